"""Bad input raises an error that says what is wrong and what to do."""

import re
from pathlib import Path

import pytest
import torch
from scenes import leaf

import hookviz as hv

LOSS = torch.ones(2, requires_grad=True).sum()


def record_a_pass() -> hv.Trace:
    with hv.record() as trace:
        (leaf(2.0) * 3).backward()
    return trace


def test_drawing_too_deep_a_graph_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookviz.autograd.graph.MAX_DEPTH", 3)
    with pytest.raises(ValueError, match="more than 3 nodes in a row"):
        hv.draw(leaf(1.0) + 1 + 1 + 1)
    hv.draw(torch.stack([leaf(1.0) + 1 for _ in range(9)]))  # wide, but three nodes deep


def test_rendering_a_non_digraph_is_refused() -> None:
    with pytest.raises(TypeError, match=r"render\(\) takes a graphviz\.Digraph"):
        hv.render("digraph {}")  # type: ignore[arg-type]


def test_bad_names_are_refused_and_leave_no_recording_open() -> None:
    words = re.escape("names takes a dict of name → tensor, not a list.")
    with pytest.raises(TypeError, match=words), hv.record(names=[LOSS]):  # type: ignore[arg-type]
        pass
    with hv.record():
        pass


def test_an_unknown_step_is_refused_with_the_valid_range() -> None:
    trace = record_a_pass()
    for show in (trace.figure, trace.steps.__getitem__):
        with pytest.raises(IndexError, match="There is no step 4: this trace has the steps 0 to 3"):
            show(4)


def test_an_invalid_path_raises_a_type_error_and_an_unwritable_one_the_reason(tmp_path: Path) -> None:
    trace = record_a_pass()
    with pytest.raises(TypeError, match=r'A path is a string such as "pass\.json", or .*; this is an int'):
        trace.save(3)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="cannot be written: No such file or directory"):
        trace.to_html(tmp_path / "no" / "such" / "file")
