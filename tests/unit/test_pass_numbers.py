"""The number of a pass counts all passes that ran: dropped and skipped ones do not renumber the others."""

from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import leaf, steps_of
from shown import overview, unpack_chunk

import hookviz as hv
from hookviz.player.html_page import page
from hookviz.storage.integrity import find_fault
from hookviz.trace.redaction import redact


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
