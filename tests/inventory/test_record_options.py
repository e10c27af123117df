"""For each option of ``hookviz.record`` a small program that uses it."""

from pathlib import Path

import pytest
import torch
from torch import nn

import hookviz as hv
from tests.missing import missing_gradients


def train(passes: int = 1, **options: object) -> hv.Trace:
    layer = nn.Linear(2, 1)
    with hv.record(layer, **options) as trace:
        for _ in range(passes):
            layer(torch.ones(2)).sum().backward()
    return trace


def test_only_the_given_models_are_recorded() -> None:
    encoder, head = nn.Linear(2, 2), nn.Linear(2, 1)
    with hv.record(head) as trace:
        head(encoder(torch.ones(2))).sum().backward()
    assert {step.on for step in trace.steps if step.kind == "call"} == {"head"}


def test_names_are_those_that_were_given() -> None:
    x = torch.ones(1, requires_grad=True)
    with hv.record(names={"input": x}) as trace:
        (x * 2).backward()
    assert trace.steps[-1].on == "input"


@pytest.mark.usefixtures("compiler")
def test_compiled_code_runs_eagerly_and_shows_its_hooks() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    compiled = torch.compile(net, backend="eager")
    compiled(torch.ones(2)).sum().backward()
    net[1].register_forward_hook(lambda *_: None)  # torch leaves it out of what is compiled already
    with hv.record(net, compiled="eager") as trace:
        compiled(torch.ones(2)).sum().backward()
    assert [step.on for step in trace.firings] == ["net.1"]
    assert len(trace.notes) == 1 and "ran compiled code eagerly" in str(trace.notes[0])
    with hv.record(net) as trace:
        compiled(torch.ones(2)).sum().backward()
    assert trace.steps[0].kind == "compiled" and not trace.firings


def test_every_second_pass_is_recorded() -> None:
    assert train(5, every=2).pass_numbers == [1, 3, 5]


def test_last_passes_are_kept() -> None:
    trace = train(5, keep=2)
    assert (trace.pass_numbers, trace.dropped) == ([4, 5], 3)


def test_recording_stops_at_the_first_nan() -> None:
    x = torch.ones(1, requires_grad=True)
    with hv.record(until="nan") as trace:
        for factor in (1.0, float("nan"), 1.0):
            (x * factor).backward()
    assert trace.pass_numbers == [1, 2]
    assert "nan" in trace.notes[-1].lower()


def test_recording_stops_where_a_function_says_so() -> None:
    assert train(5, until=lambda trace: len(trace.pass_numbers) == 3).pass_numbers == [1, 2, 3]


def test_exception_writes_a_file(tmp_path: Path) -> None:
    x = torch.ones(1, requires_grad=True)

    def fail(path: Path) -> None:
        with hv.record(on_trouble=path):
            (x * 2).backward()
            raise ValueError("it broke")

    for name in ("crash.html", "crash.json"):
        with pytest.raises(ValueError, match="it broke"):
            fail(tmp_path / name)
    assert "<html" in (tmp_path / "crash.html").read_text(encoding="utf-8")
    assert hv.load(tmp_path / "crash.json").steps[-1].sentence == "ValueError: it broke ended the recording."


@pytest.mark.parametrize("statistics", ["all", "norm", None])
def test_statistics_of_large_tensors_are_read(statistics: str) -> None:
    x = torch.ones(100, requires_grad=True)
    with hv.record(statistics=statistics) as trace:
        (x * 2).sum().backward()
    gradient = trace.steps[-1].after
    assert gradient.norm == 20
    assert gradient.mean == (None if statistics == "norm" else 2)


def test_line_that_cuts_the_graph_is_named() -> None:
    encoder, head = nn.Linear(2, 2), nn.Linear(2, 1)
    with hv.record(encoder, head, cuts=True) as trace:
        features = encoder(torch.ones(2)).detach()
        head(features).sum().backward()
    [row] = missing_gradients(trace)
    assert row.place == "op" and "detach()" in row.sentence and row.line is not None
