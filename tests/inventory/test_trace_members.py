"""For each method and property of a trace what it shows of one small recording."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import hookviz as hv
from tests.unit.test_public_names import DESCRIBED


def c_hook(grad: torch.Tensor) -> torch.Tensor:
    return grad + 2


def record_pass(*, hooked: bool = True) -> hv.Trace:
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    c = a * b
    if hooked:
        c.register_hook(c_hook)
    e = c * d
    with hv.record() as trace:
        e.backward()
    return trace


def write(trace: hv.Trace, name: str, folder: Path) -> bytes:
    path = folder / name
    {".html": trace.to_html, ".json": trace.save, ".png": trace.animate}[path.suffix](path)
    return path.read_bytes()


SENTENCE = "c_hook on c replaced the gradient: 4 → 6."
CHECKS: dict[str, Callable[[hv.Trace, Path], bool]] = {
    "animate": lambda trace, folder: write(trace, "pass.png", folder).startswith(b"\x89PNG"),
    "diff": lambda trace, _: SENTENCE.split(" replaced")[0] in str(record_pass(hooked=False).diff(trace)),
    "dropped": lambda trace, _: trace.dropped == 0,
    "figure": lambda trace, _: "c_hook" in trace.figure(step=5).pipe(format="svg").decode(),
    "findings": lambda trace, _: list(trace.findings) == [] and "Nothing" in str(trace.findings),
    "firings": lambda trace, _: [step.sentence for step in trace.firings] == [SENTENCE],
    "hooks": lambda trace, _: [(row.name, row.on, row.passes) for row in trace.hooks] == [("c_hook", "c", (1,))],
    "lacks_passes": lambda trace, _: trace.lacks_passes is False,
    "notes": lambda trace, _: trace.notes == [],
    "pass_number": lambda trace, _: trace.pass_number(0) == 1,
    "pass_numbers": lambda trace, _: trace.pass_numbers == [1],
    "player": lambda trace, _: trace.player().steps == 11,
    "plot": lambda trace, _: [row[0] for row in trace.plot().table] == ["a", "b", "d"],
    "rank": lambda trace, _: trace.rank is None,
    "ranks": lambda trace, _: trace.ranks is None,
    "save": lambda trace, folder: bool(write(trace, "a.json", folder)) and hv.load(folder / "a.json") == trace,
    "statistics": lambda trace, _: trace.statistics is None,
    "steps": lambda trace, _: [trace.steps[0].kind, trace.steps[-1].sentence] == ["seed", "b.grad is written: 12."],
    "text": lambda trace, _: "6  tensor hook  c_hook on c       4 → 6, replaced" in trace.text(range(3, 8), width=100),
    "to_html": lambda trace, folder: b"<html" in write(trace, "pass.html", folder),
    "to_pandas": lambda trace, _: list(trace.to_pandas()["hook"].dropna()) == ["c_hook"],
    "to_records": lambda trace, _: [row["norm_after"] for row in trace.to_records() if row["hook"]] == [6.0],
    "to_tensorboard": lambda trace, folder: trace.to_tensorboard(folder) is None and any(folder.glob("events*")),
    "why": lambda trace, _: [reason.value.tolist() for reason in trace.why(6)] == [18, 12],
}
"""Name → whether the recording of ``a``, ``b``, ``c``, ``d``, ``e`` shows what it should."""


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    return record_pass()


@pytest.mark.parametrize("name", CHECKS)
def test_member_shows_the_recording(name: str, trace: hv.Trace, tmp_path: Path) -> None:
    assert CHECKS[name](trace, tmp_path)


def test_each_member_that_is_described_is_tried() -> None:
    assert {*CHECKS} == {*DESCRIBED.split()}


def test_print_shows_one_line_for_each_step(trace: hv.Trace) -> None:
    assert "   6  tensor hook  c_hook on c" in str(trace)


def test_jupyter_shows_the_player(trace: hv.Trace) -> None:
    shown = trace._repr_mimebundle_()
    assert "hv-still" in shown["text/html"] and shown["text/plain"] == repr(trace)
