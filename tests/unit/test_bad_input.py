"""Bad input raises an error that says what is wrong and what to do; a backward pass is never refused."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import leaf

import hookviz as hv

LOSS = torch.ones(2, requires_grad=True).sum()


class Scale:
    """A callable object."""

    def __call__(self, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2


def record_with_hook(hook: Callable[..., Any]) -> hv.Trace:
    a = leaf(2.0)
    a.register_hook(hook)
    with hv.record() as trace:
        (a * 3).backward()
    return trace


# -- drawing


def test_drawing_too_deep_a_graph_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookviz.autograd.graph.MAX_DEPTH", 3)
    with pytest.raises(ValueError, match="more than 3 nodes in a row"):
        hv.draw(leaf(1.0) + 1 + 1 + 1)
    hv.draw(torch.stack([leaf(1.0) + 1 for _ in range(9)]))  # wide, but three nodes deep


def test_rendering_a_non_digraph_is_refused() -> None:
    with pytest.raises(TypeError, match=r"render\(\) takes a graphviz\.Digraph"):
        hv.render("digraph {}")  # type: ignore[arg-type]


# -- names


def test_bad_names_are_refused_and_leave_no_recording_open() -> None:
    words = re.escape("names takes a dict of name → tensor, not a list.")
    with pytest.raises(TypeError, match=words), hv.record(names=[LOSS]):  # type: ignore[arg-type]
        pass
    with hv.record():
        pass


# -- steps


def test_an_unknown_step_is_refused_with_the_valid_range() -> None:
    trace = record_with_hook(print)
    for show in (trace.figure, trace.steps.__getitem__):
        for step in (5, -6):
            with pytest.raises(IndexError, match=f"There is no step {step}: this trace has the steps 0 to 4"):
                show(step)


# -- hooks whose source cannot be found


def hook_without_source() -> Callable[..., Any]:
    """Compile a hook as if typed into a prompt: Python keeps no source for it."""
    return eval(compile("lambda grad: grad * 2", "<stdin>", "eval"))


HOOKS = {
    "lambda typed into a prompt": (hook_without_source(), "lambda", "λ"),
    "builtin": (print, "print", "print"),
    "class": (Scale(), "Scale", "Scale"),
}


@pytest.mark.parametrize(("hook", "name", "label"), HOOKS.values(), ids=HOOKS)
def test_a_hook_without_source_is_recorded_and_shown(hook: Any, name: str, label: str) -> None:
    trace = record_with_hook(hook)
    (firing,) = trace.firings
    assert (firing.hook.name, firing.hook.label) == (name, label)
    assert label in firing.sentence
    assert label in trace.player().content["svgs"][0]
    assert label in repr(trace.firings)


def test_an_invalid_path_raises_a_type_error_and_an_unwritable_one_the_reason(tmp_path: Path) -> None:
    trace = record_with_hook(lambda grad: None)
    with pytest.raises(TypeError, match=r'A path is a string such as "pass\.json", or .*; this is an int'):
        trace.save(3)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="cannot be written: No such file or directory"):
        trace.to_html(tmp_path / "no" / "such" / "file")
