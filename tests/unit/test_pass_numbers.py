"""``record(every=n)`` records every n-th pass; the number of a pass counts all that ran."""

from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import Doubled, Net, leaf, plain, steps_of
from shown import overview, unpack_chunk
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from hookviz.player.html_page import page
from hookviz.storage.integrity import find_fault
from hookviz.trace.redaction import redact
from tests.unit.test_retention import TrainingLoop


def train(passes: int, **options: Any) -> hv.Trace:
    x = leaf(2.0)
    x.register_hook(lambda grad: grad * 2)
    with hv.record(names={"x": x}, **options) as trace:
        for _ in range(passes):
            (x * x).backward()
    return trace


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({}, [1, 2, 3, 4]),
        ({"keep": 3}, [2, 3, 4]),
        ({"every": 3}, [1, 4]),
        ({"every": 2, "keep": 1}, [3]),
    ],
    ids=str,
)
def test_each_pass_keeps_its_number(options: dict[str, int], numbers: list[int], tmp_path: Path) -> None:
    trace = train(4, **options)
    assert trace.pass_numbers == numbers == sorted({step.pass_number for step in trace.steps})
    assert trace.lacks_passes == bool(options) and find_fault(trace._data) == ""
    trace.save(tmp_path / "trace.json")
    assert hv.load(tmp_path / "trace.json").pass_numbers == numbers
    assert list_titles(trace) == [f"Pass {number}" for number in numbers]


def test_sentences_and_tables_say_the_number() -> None:
    trace = train(1204, every=1203)
    assert [step.sentence.partition(". ")[2] for step in steps_of(trace, "seed")] == [
        "This is pass 1 of the recording.",
        "This is pass 1,204 of the recording.",
    ]
    assert [row[0] for row in trace.firings.texts()] == ["1", "1,204"]
    assert "It holds passes from 1 to 1,204 of the recording." in repr(trace)
    assert "It holds pass 4 of the recording." in repr(train(4, keep=1))


def test_a_finding_says_the_number_of_its_pass() -> None:
    x = leaf(0.0)
    with hv.record(keep=1) as trace:
        for _ in range(4):
            x.grad = None
            x.sqrt().backward()
    assert trace.findings.values.texts()[0][0] == "4"
    assert trace.content()["findings"][0]["text"].startswith("Pass 4, Step ")


def test_inf_that_becomes_nan_in_later_passes_is_inf_in_its_own_pass_only() -> None:
    weight = leaf(0.0)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with hv.record() as trace:
        for _ in range(2):
            optimizer.zero_grad()
            weight.sqrt().backward()
            optimizer.step()
    assert {finding.kind: finding.when for finding in trace.findings.values}["inf"] == "only in pass 1"


def list_titles(trace: hv.Trace) -> list[str]:
    """List the titles of the top-level picture of each pass, as the player shows them."""
    content = trace.content()
    views = [unpack_chunk(content, f"{pass_id}/") for pass_id in range(len(trace._data.roots))]
    return [view["breadcrumbs"][-1][1] for view in views]


def test_a_page_without_scripts_shows_the_number() -> None:
    html = page(train(9, keep=2)._data)
    assert "<figcaption>Pass 9</figcaption>" in html and html.count("<figure>") == 1
    assert "<figcaption>Pass 2</figcaption>" in page(train(2)._data)


def test_a_pass_says_the_number_at_which_it_starts() -> None:
    w = torch.tensor(2.0, requires_grad=True)
    with hv.record(keep=3) as trace:
        (w * 7).backward()
        (w * 0.25).backward()
        (w * float("nan")).backward()
        (w * torch.ones(3)).backward(torch.ones(3))
    assert trace._data.losses == {0: 0.5, 1: None}
    assert overview(trace.player().content)["losses"] == ["0.5", "NaN or Inf", ""]
    assert not redact(trace._data, values=False).losses


# -- every n-th pass


def kinds(trace: hv.Trace, pass_id: int | None = None) -> list[str]:
    return [step.kind for step in trace.steps if pass_id in (None, step.pass_id)]


def test_every_third_pass_is_recorded_with_its_forward_pass_and_step() -> None:
    loop, single, unobserved = TrainingLoop(), TrainingLoop(), TrainingLoop()
    with hv.record(single.net) as single_trace:
        single.run(1)
    with hv.record(loop.net, every=3) as trace:
        loop.run(8)
    assert len(trace._data.roots) == 3
    for number in range(3):
        assert kinds(trace, number) == kinds(single_trace)
    inputs = [plain(step.after) for step in steps_of(trace, "call", "loop.net")] + [
        plain(step.after) for step in steps_of(trace, "call") if step.on.startswith("loop.net (call")
    ]
    assert inputs == [1, 4, 7]
    assert find_fault(trace._data) == ""
    assert trace.notes == [
        "record(every=...) recorded 3 of 8 backward passes, one of every 3 from the first on; "
        "the others ran unobserved."
    ]
    unobserved.run(8)
    gradients = [[parameter.grad for parameter in one.net.parameters()] for one in (loop, unobserved)]
    assert all(map(torch.equal, *gradients))


def test_nested_passes_are_sampled_with_their_outer_pass() -> None:
    """Reentrant checkpointing starts a nested backward pass for each region."""
    net = Net()

    def run() -> None:
        x = leaf(1.0)
        checkpoint(net.l2, checkpoint(net.l1, x, use_reentrant=True), use_reentrant=True).backward()

    with hv.record(net, every=2) as trace:
        for _ in range(4):
            run()
    assert len(trace._data.roots) == 6 and len(steps_of(trace, "seed")) >= 2
    calls = [step.on for step in steps_of(trace, "call")]
    assert len(calls) == 2 * 4, calls  # forward, and again in backward


def test_skipped_passes_add_no_rows_and_no_hooks() -> None:
    net = Doubled()
    with hv.record(net, every=10) as trace:
        net(leaf(1.0)).backward()
        rows, values = len(trace._data.rows), len(trace._data.values)
        out = net(leaf(1.0))
        handle = out.register_hook(lambda grad: grad * 2)
        assert not net._forward_hooks and len(handle.hooks_dict_ref()) == 1
        out.backward()
    assert (len(trace._data.rows), len(trace._data.values)) == (rows, values)
