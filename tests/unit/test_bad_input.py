"""Bad input raises an error that says what is wrong and what to do; a backward pass is never refused."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import leaf, scene
from shown import in_english

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


@pytest.mark.parametrize(
    ("thing", "kind"),
    [(3, "an int"), (None, "a NoneType"), ("loss", "a str"), ([LOSS], "a list"), (torch.nn.Linear(1, 1), "a Linear")],
    ids=["int", "None", "str", "list", "module"],
)
def test_drawing_a_non_tensor_raises_a_type_error_that_names_its_type(thing: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=rf"draw\(\) takes a tensor .* this is {kind}"):
        hv.draw(thing)


def tensor_without_history() -> torch.Tensor:
    with torch.no_grad():
        return leaf(2.0) * 3


@pytest.mark.parametrize(
    "make", [lambda: torch.ones(2), tensor_without_history, lambda: LOSS.detach()], ids=["plain", "no_grad", "detached"]
)
def test_drawing_a_tensor_without_history_suggests_requires_grad(make: Callable[[], torch.Tensor]) -> None:
    with pytest.raises(ValueError, match=r"no history to draw.*requires_grad=True"):
        hv.draw(make())


def test_drawing_too_deep_a_graph_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookviz.autograd.graph.MAX_DEPTH", 3)
    with pytest.raises(ValueError, match="more than 3 nodes in a row"):
        hv.draw(leaf(1.0) + 1 + 1 + 1 + 1)


def test_listing_the_hooks_of_too_deep_a_graph_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookviz.autograd.graph.MAX_DEPTH", 3)
    with pytest.raises(ValueError, match="more than 3 nodes in a row"):
        hv.hooks(leaf(1.0) + 1 + 1 + 1 + 1)


@pytest.mark.parametrize("most", [0, -5])
def test_drawing_fewer_than_one_node_is_refused(most: int) -> None:
    with pytest.raises(ValueError, match="most"):
        hv.draw(LOSS, most=most)


@pytest.mark.parametrize("most", ["3", 2.5, None])
def test_the_number_of_nodes_to_draw_must_be_an_int(most: Any) -> None:
    with pytest.raises(TypeError, match="most"):
        hv.draw(LOSS, most=most)


@pytest.mark.parametrize("thing", ["digraph {}", None, 3])
def test_rendering_a_non_digraph_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match=r"render\(\) takes a graphviz\.Digraph"):
        hv.render(thing)


@pytest.mark.parametrize("path_arguments", [{"filename": 3}, {"directory": 3}, {"outfile": 3.5}])
def test_rendering_to_an_invalid_path_is_refused(path_arguments: Any) -> None:
    with pytest.raises(TypeError, match="A path is a string such as"):
        hv.draw(LOSS).render(**path_arguments)


# -- names


FUNCTIONS_WITH_NAMES = {
    "draw": lambda names: hv.draw(LOSS, names=names),
    "record": lambda names: hv.record(names=names).__enter__(),
}


@pytest.mark.parametrize("function_name", FUNCTIONS_WITH_NAMES)
@pytest.mark.parametrize(
    ("names", "error", "words"),
    [
        ({3: LOSS}, TypeError, "A name is a string such as 'loss', not an int"),
        ({None: LOSS}, TypeError, "A name is a string such as 'loss', not a NoneType"),
        ({"": LOSS}, ValueError, "A name cannot be empty"),
        ({"  ": LOSS}, ValueError, "A name cannot be empty"),
        ({"a" * 10_000: LOSS}, ValueError, "at most 200 characters; this one has 10,000"),
        ({"loss": 3}, TypeError, r"names\['loss'\] is an int, not a tensor"),
        ([LOSS], TypeError, "names takes a dict of name → tensor; this is a list"),
        ("loss", TypeError, "names takes a dict of name → tensor; this is a str"),
    ],
    ids=["int", "None", "empty", "blank", "long", "no tensor", "list", "str"],
)
def test_bad_names_are_refused(function_name: str, names: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        FUNCTIONS_WITH_NAMES[function_name](names)
    with hv.record():  # no recording is left open
        pass


@pytest.mark.parametrize("name", ["not an identifier", "1", "<b>", 'a"b', "a" * 200, "损失", "\u202e"])
def test_a_name_need_not_be_an_identifier(name: str) -> None:
    x = leaf(2.0)
    with hv.record(names={name: x}) as trace:
        (x * 3).backward()
    assert trace.steps[-1].on == name
    assert hv.draw(x * 3, names={name: x}).pipe("svg")
    assert trace.player().steps == len(trace.steps)


# -- recording


def test_recording_nothing_says_so() -> None:
    with hv.record() as trace:
        leaf(2.0) * 3
    assert len(trace.steps) == 0
    assert repr(trace).startswith("Nothing was recorded")


def test_a_nested_recording_is_refused_and_the_outer_one_continues() -> None:
    tensors = scene()
    with hv.record(names=tensors._asdict()) as trace:
        with pytest.raises(RuntimeError, match="already observing this thread"), hv.record():
            pass
        tensors.e.backward()
    assert len(trace.steps) == 10


def test_an_exception_in_a_record_block_propagates() -> None:
    with pytest.raises(ZeroDivisionError), hv.record():
        1 / 0  # noqa: B018
    with hv.record():
        pass


# -- steps


@pytest.mark.parametrize("step", [10, -11, 10**9])
def test_the_error_for_an_unknown_step_lists_the_valid_range(step: int) -> None:
    tensors = scene()
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    with pytest.raises(IndexError, match=f"There is no step {step}: this trace has the steps 0 to 9"):
        trace.figure(step)


@pytest.mark.parametrize(("step", "kind"), [("3", "str"), (1.5, "float"), (True, "bool"), ([1], "list")])
def test_a_step_index_must_be_an_int(step: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"A step is a whole number counted from 0, not (an? )?{kind}"):
        record_with_hook(print).figure(step)


def test_a_figure_of_an_empty_trace_is_refused() -> None:
    with pytest.raises(IndexError, match="this trace holds no steps"):
        hv.Trace().figure(0)


# -- hooks whose source cannot be found


def hook_without_source() -> Callable[..., Any]:
    """Compile a hook as if typed into a prompt: Python keeps no source for it."""
    return eval(compile("lambda grad: grad * 2", "<stdin>", "eval"))


HOOKS = {
    "lambda typed into a prompt": (hook_without_source(), "lambda", "λ"),
    "builtin": (print, "print", "print"),
    "function of torch": (torch.neg, "neg", "neg"),
    "partial": (functools.partial(torch.mul, 2), "partial(mul)", "partial(mul)"),
    "class": (Scale(), "Scale", "Scale"),
    "method": (Scale().__call__, "Scale.__call__", "Scale.__call__"),
}


@pytest.mark.parametrize(("hook", "name", "label"), HOOKS.values(), ids=HOOKS)
def test_a_hook_without_source_is_recorded_and_shown(hook: Any, name: str, label: str) -> None:
    trace = record_with_hook(hook)
    (firing,) = trace.firings
    assert (firing.hook.name, firing.hook.label) == (name, label)
    assert label in firing.sentence
    assert label in trace.player().content["svgs"][0]
    assert label in repr(trace.firings)


@pytest.mark.parametrize("hook", [hook_without_source(), print, torch.neg, functools.partial(torch.mul, 2)])
def test_the_player_says_that_python_has_no_source(hook: Any) -> None:
    (shown,) = record_with_hook(hook).player().hooks
    assert shown["source"] is None
    assert in_english(shown["no_source"]).endswith(" is not available.")


@pytest.mark.parametrize("call", [lambda trace: trace.save(3), lambda trace: trace.to_html(3), lambda _: hv.load(3)])
def test_an_invalid_path_raises_a_type_error(call: Any) -> None:
    with pytest.raises(TypeError, match=r'A path is a string such as "pass\.json", or a pathlib\.Path; this is an int'):
        call(record_with_hook(lambda grad: None))


def test_saving_to_a_directory_raises_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="cannot be written: Is a directory"):
        record_with_hook(lambda grad: None).save(tmp_path)


def test_indexing_past_the_last_step_raises_with_the_valid_range() -> None:
    trace = record_with_hook(lambda grad: None)
    with pytest.raises(IndexError, match=r"There is no step 999: this trace has the steps 0 to \d+\."):
        trace.steps[999]
    assert [step.index for step in trace.steps] == list(range(len(trace.rows)))
