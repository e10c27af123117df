"""A trace describes what happened, from plain data alone."""

from typing import Any

import pytest
import torch
from scenes import c_hook, leaf, lines, plain, recorded, steps_of

import hookviz as hv


@pytest.fixture
def trace() -> hv.Trace:
    return recorded()


def test_steps_are_counted_from_0_and_can_be_sliced(trace: hv.Trace) -> None:
    assert [step.index for step in trace.steps] == list(range(16))
    assert trace.steps[-1] == trace.steps[15]
    assert [step.index for step in trace.steps[2:8:3]] == [2, 5]
    assert (trace.steps[0].kind, trace._data.at(15), trace._data.at(-16)) == ("seed", 15, 0)
    assert [step.index for step in trace.firings] == [1, 5, 8, 9]
    assert repr(trace).startswith("Trace: 16 steps, 4 of them hooks, 1 backward pass")


def test_the_repr_of_firings_is_a_table_counted_from_1(trace: hv.Trace) -> None:
    head, *rows = repr(trace.firings).splitlines()
    assert head.split() == ["step", "hook", "on", "before", "after", "effect", "where"]
    assert rows[2].split()[:8] == ["9", "of", "16", "c_hook", "c", "8", "10", "replaced"]
    assert len(rows) == 4


def test_a_hook_has_its_registration_and_source_location(trace: hv.Trace) -> None:
    hook = trace.steps[8].hook
    line = c_hook.__code__.co_firstlineno
    assert (hook.name, hook.label, hook.on, hook.kind) == ("c_hook", "c_hook", "c", "tensor_hook")
    assert (hook.kept_in, hook.place, hook.total) == ("c._backward_hooks", 0, 2)
    assert (hook.file, hook.line, hook.where) == ("tests/scenes.py", line, f"tests/scenes.py, line {line}")
    assert hook.source.startswith("def c_hook(grad")


SENTENCES = [
    "Backward starts at e with the gradient 1.",
    "λ grad * 2 on e replaced the gradient: 1 → 2.",
    "e keeps its gradient: e.grad = 2.",
    "MulBackward0 (e) takes the gradient 2 and sends 8 to c, 12 to d.",
    "The gradient 12 arrives at d.",
    "λ grad + 100 on d replaced the gradient: 12 → 112.",
    "d.grad is written: 112.",
    "The gradient 8 arrives at c.",
    "c_hook on c replaced the gradient: 8 → 10.",
    "print on c looked at the gradient and left it unchanged: 10.",
    "c keeps its gradient: c.grad = 10.",
    "MulBackward0 (c) takes the gradient 10 and sends 30 to a, 20 to b.",
    "The gradient 30 arrives at a.",
    "a.grad is written: 30.",
    "The gradient 20 arrives at b.",
    "b.grad is written: 20.",
]


def test_each_step_has_its_sentence(trace: hv.Trace) -> None:
    assert [step.sentence for step in trace.steps] == SENTENCES


def test_repeated_ops_without_a_name_are_numbered() -> None:
    roots = [leaf(2.0).sin().exp().sin()]
    with hv.record(names={"a": torch.ones(1)}) as trace:
        roots.pop().backward()
    names = [step.on for step in steps_of(trace, "compute")]
    nodes = [step.node for step in steps_of(trace, "compute")]
    assert names == [f"SinBackward0 #{nodes[0]}", "ExpBackward0", f"SinBackward0 #{nodes[2]}"]


def test_a_trace_can_be_read_while_it_grows() -> None:
    a = leaf(2.0)
    with hv.record() as trace:
        y = a * 3
        y.backward()
        assert lines(trace)[-1] == ("accumulate", "a")
        z = (a * 5).sin()
        z.backward()
        assert [step.on for step in steps_of(trace, "seed")] == ["y", "z"]
    assert [plain(step.before) for step in steps_of(trace, "accumulate")] == [None, 3]


def test_a_trace_is_plain_data() -> None:
    plain_types = {int, float, str, bool, type(None), list, tuple, dict}

    def kinds(thing: Any) -> set[type]:
        if isinstance(thing, dict):
            return {dict}.union(*map(kinds, thing.keys()), *map(kinds, thing.values()))
        if isinstance(thing, list | tuple):
            return {tuple if isinstance(thing, tuple) else list}.union(*map(kinds, thing))
        return {type(thing)}

    trace = recorded()
    for name in ("ops", "edges", "tensors", "hook_rows", "values", "rows", "remarks", "roots"):
        assert kinds(getattr(trace._data, name)) <= plain_types
