"""Recording: what happened is written down in its true order, and nothing is changed."""

import gc
import itertools
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import (
    Scene,
    accumulator,
    c_hook,
    firings,
    hook_everything,
    leaf,
    line,
    lines,
    plain,
    scene,
    silent,
    steps_of,
    stored_gradients,
)

import hookviz as hv
from hookviz.autograd import graph
from hookviz.autograd.node_marks import NodeMarks
from hookviz.hook_listing import node_dict
from hookviz.recorder import pass_observer


def observed(tensors: Scene, **options: Any) -> hv.Trace:
    """The trace of ``e.backward()``."""
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(**options)
    return trace


# -- the picture that everyone starts from


def test_without_hooks_the_trace_shows_the_textbook_gradients() -> None:
    tensors = scene()
    tensors.c.retain_grad()
    tensors.e.retain_grad()
    trace = observed(tensors)
    assert lines(trace) == [
        ("seed", "e"),
        ("retain_grad", "e"),
        ("compute", "MulBackward0 (e)"),
        ("arrive", "d"),
        ("accumulate", "d"),
        ("arrive", "c"),
        ("retain_grad", "c"),
        ("compute", "MulBackward0 (c)"),
        ("arrive", "a"),
        ("accumulate", "a"),
        ("arrive", "b"),
        ("accumulate", "b"),
    ]
    assert stored_gradients(trace) == {"a": (None, 12), "b": (None, 8), "d": (None, 6)}
    assert stored_gradients(trace, "retain_grad") == {"c": (None, 4), "e": (None, 1)}
    assert len(trace.firings) == 0


def test_each_hook_of_the_script_fires_with_its_gradient_before_and_after() -> None:
    tensors = scene()
    hook_everything(tensors)
    trace = observed(tensors)
    assert firings(trace) == [
        ("lambda grad: grad * 2", "e", 1, 2, "replaced"),
        ("lambda grad: grad + 100", "d", 12, 112, "replaced"),
        ("c_hook", "c", 8, 10, "replaced"),
        ("print", "c", 10, 10, "kept"),
    ]
    assert tensors.grads() == [30, 20, 10, 112, 2]
    assert {**stored_gradients(trace), **stored_gradients(trace, "retain_grad")} == {
        name: (None, grad) for name, grad in zip("abcde", tensors.grads(), strict=True)
    }


def test_a_hook_removed_through_its_handle_does_not_fire() -> None:
    tensors = scene()
    hook_everything(tensors).remove()
    trace = observed(tensors)
    assert [hook for hook, on, *_ in firings(trace) if on == "c"] == ["print"]
    assert tensors.grads() == [24, 16, 8, 112, 2]


def test_an_in_place_edit_is_seen_on_the_sibling_that_shares_its_storage() -> None:
    tensors = scene(torch.add)
    tensors.c.retain_grad()
    tensors.e.retain_grad()

    def hundredfold(grad: torch.Tensor) -> None:
        grad *= 100

    tensors.d.register_hook(hundredfold)
    trace = observed(tensors)
    assert firings(trace) == [("hundredfold", "d", 1, 100, "edited")]
    (aliased,) = steps_of(trace, "aliased")
    assert (aliased.on, plain(aliased.before), plain(aliased.after)) == ("c", 1, 100)
    assert trace.rows[aliased.index].cause == trace.firings[0].index
    assert "hundredfold on d" in aliased.sentence
    assert tensors.grads() == [300, 200, 100, 100, 1]


@pytest.mark.parametrize("size", [1, 64, 65, 1000])
def test_aliasing_is_seen_at_every_size(size: int) -> None:
    c = torch.ones(size, requires_grad=True) * 2
    d = torch.ones(size, requires_grad=True)
    e = c + d
    d.register_hook(lambda grad: grad.mul_(100) and None if size == 1 else grad[-1:].mul_(100) and None)
    with hv.record() as trace:
        e.backward(torch.ones(size))
    assert [step.effect for step in trace.firings] == ["edited"]
    assert [(step.on, step.after.max) for step in steps_of(trace, "aliased")] == [("c", 100)]


def test_of_several_edits_the_last_one_is_named() -> None:
    tensors = scene(torch.add)
    tensors.d.register_hook(lambda grad: grad.mul_(10) and None)
    tensors.d.register_hook(lambda grad: grad.add_(1) and None)
    trace = observed(tensors)
    (aliased,) = steps_of(trace, "aliased")
    assert (plain(aliased.before), plain(aliased.after)) == (1, 11)
    assert trace.rows[aliased.index].cause == trace.firings[1].index


# -- the order of things

INTERMEDIATE: dict[str, Callable[[torch.Tensor], Any]] = {
    "tensor 1": lambda c: c.register_hook(silent("tensor 1")),
    "tensor 2": lambda c: c.register_hook(silent("tensor 2")),
    "retain": lambda c: c.retain_grad(),
    "pre": lambda c: c.grad_fn.register_prehook(silent("pre")),
    "post": lambda c: c.grad_fn.register_hook(silent("post")),
}
LEAF: dict[str, Callable[[torch.Tensor], Any]] = {
    "tensor 1": lambda a: a.register_hook(silent("tensor 1")),
    "tensor 2": lambda a: a.register_hook(silent("tensor 2")),
    "pre": lambda a: accumulator(a).register_prehook(silent("pre")),
    "post accumulate": lambda a: a.register_post_accumulate_grad_hook(silent("post accumulate")),
    "post": lambda a: accumulator(a).register_hook(silent("post")),
}


def in_every_order(ways: dict[str, Any]) -> list[tuple[str, ...]]:
    """Every order of registering in which the two tensor hooks keep theirs."""
    orders = itertools.permutations(ways)
    return [order for order in orders if order.index("tensor 1") < order.index("tensor 2")]


@pytest.mark.parametrize("order", in_every_order(INTERMEDIATE), ids=" ".join)
def test_the_order_on_an_intermediate_tensor_is_that_of_kinds(order: tuple[str, ...]) -> None:
    a = leaf(2.0)
    c = a * 3
    for way in order:
        INTERMEDIATE[way](c)
    with hv.record() as trace:
        c.backward()
    assert [line(step) for step in trace.steps if step.on != "a"] == [
        ("seed", "c"),
        ("tensor_hook", "c", "tensor 1"),
        ("tensor_hook", "c", "tensor 2"),
        ("retain_grad", "c"),
        ("node_pre_hook", "MulBackward0 (c)", "pre"),
        ("compute", "MulBackward0 (c)"),
        ("node_post_hook", "MulBackward0 (c)", "post"),
    ]


@pytest.mark.parametrize("order", in_every_order(LEAF), ids=" ".join)
def test_the_order_on_a_leaf_is_that_of_kinds(order: tuple[str, ...]) -> None:
    a = leaf(2.0)
    c = a * 3
    node = accumulator(a)  # hooks on it last as long as it does
    for way in order:
        LEAF[way](a)
    with hv.record() as trace:
        c.backward()
    assert [line(step) for step in trace.steps if step.node == trace.tensors[0].node] == [
        ("arrive", "a"),
        ("tensor_hook", "a", "tensor 1"),
        ("tensor_hook", "a", "tensor 2"),
        ("node_pre_hook", "AccumulateGrad (a)", "pre"),
        ("accumulate", "a"),
        ("post_accumulate_hook", "a", "post accumulate"),
        ("node_post_hook", "AccumulateGrad (a)", "post"),
    ]
    assert plain(trace.steps[-1].before) == plain(trace.steps[-1].after) == ()
    assert trace.steps[-1].sentence.endswith(" ran. This node sends nothing that a hook could change.")
    assert node.name() == "torch::autograd::AccumulateGrad"


def test_what_a_node_pre_hook_changes_does_not_reach_the_retained_gradient() -> None:
    a = leaf(2.0)
    c = a * 3
    c.retain_grad()
    c.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    with hv.record() as trace:
        c.backward()
    assert stored_gradients(trace, "retain_grad") == {"c": (None, 1)}
    assert stored_gradients(trace) == {"a": (None, 30)}
    assert [(before, after, effect) for _, _, before, after, effect in firings(trace)] == [(1, 10, "replaced")]


def wide_graph() -> tuple[torch.Tensor, list[Any]]:
    """A graph with forks and joins, and its nodes that are no leaves."""
    x, y = leaf(2.0), leaf(3.0)
    p, q = x * y, x + y
    r = p * q
    s = (r.exp() + p).sin() * q
    return s, graph.reachable_nodes([s.grad_fn])


def test_nodes_compute_in_the_order_in_which_the_engine_runs_them() -> None:
    root, nodes = wide_graph()
    ran: list[str] = []
    for i, node in enumerate(nodes):
        node.register_hook(silent(f"{i}"))
        node.register_hook(lambda *_, i=i: ran.append(f"{i}"))
    with hv.record() as trace:
        root.backward()
    assert [step.hook.name for step in trace.firings if step.hook.place == 0] == ran
    assert len(ran) == len(nodes) == 9


def test_a_tensor_hook_in_a_diamond_fires_once_with_the_sum() -> None:
    a = leaf(2.0)
    c = a * 3
    e = c * 5 + c * 7
    c.register_hook(c_hook)
    with hv.record() as trace:
        e.backward()
    assert firings(trace) == [("c_hook", "c", 12, 14, "replaced")]
    (arrived,) = steps_of(trace, "arrive", "c")
    assert sorted(plain(part.value) for part in arrived.parts) == [5, 7]
    assert arrived.sentence in (
        "2 contributions arrive at c: 5 + 7 = 12.",
        "2 contributions arrive at c: 7 + 5 = 12.",
    )


# -- what a hook did

EFFECTS: dict[str, tuple[Callable[[torch.Tensor], Any], float, str]] = {
    "returns nothing": (lambda grad: None, 1, "kept"),
    "returns its argument": (lambda grad: grad, 1, "kept"),
    "returns an equal copy": (lambda grad: grad.clone(), 1, "replaced"),
    "returns another": (lambda grad: grad * 3, 3, "replaced"),
    "edits in place": (lambda grad: grad.mul_(3), 3, "edited"),
    "edits in place to the same": (lambda grad: grad.mul_(1), 1, "edited"),
    "edits .data": (lambda grad: grad.data.mul_(3) and None, 3, "edited"),
    "edits through numpy": (lambda grad: grad.numpy().fill(3), 3, "edited"),
    "edits and returns a copy": (lambda grad: grad.mul_(3).clone(), 3, "replaced"),
}


@pytest.mark.parametrize(("hook", "after", "effect"), EFFECTS.values(), ids=EFFECTS)
@pytest.mark.parametrize("name", ["c", "a"])
def test_what_a_tensor_hook_did_is_told(name: str, hook: Any, after: float, effect: str) -> None:
    tensors = Scene(a := leaf(2.0), *[c := a * 1] * 4)
    {"a": a, "c": c}[name].register_hook(hook)
    with hv.record() as trace:
        c.backward()
    assert [fired[1:] for fired in firings(trace)] == [(name, 1, after, effect)]
    assert tensors.a.grad.item() == after


@pytest.mark.parametrize("size", [1, 64, 65, 1000])
def test_an_edit_of_data_is_noticed_at_every_size(size: int) -> None:
    x = torch.ones(size, requires_grad=True)
    x.register_hook(lambda grad: grad.data.mul_(3) and None if size == 1 else grad.data[-1:].fill_(7) and None)
    with hv.record() as trace:
        (x * 1).sum().backward()
    assert [step.effect for step in trace.firings] == ["edited"]


def test_hooks_of_a_node_see_all_its_gradients() -> None:
    a, b = leaf(2.0), leaf(3.0)
    c = a * b
    c.grad_fn.register_prehook(lambda grads: tuple(g + 1 for g in grads))
    c.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, None))
    with hv.record() as trace:
        c.backward()
    assert [fired[2:] for fired in firings(trace)] == [
        (1, 2, "replaced"),
        ((6, 4), (60, None), "replaced"),
    ]
    assert (a.grad.item(), b.grad) == (60, None)
    assert stored_gradients(trace) == {"a": (None, 60)}


def test_a_post_accumulate_hook_sees_the_gradient_that_was_written() -> None:
    a = leaf(2.0)
    a.register_post_accumulate_grad_hook(silent("look"))
    with hv.record() as trace:
        (a * 3).backward()
    assert firings(trace) == [("look", "a", 3, 3, "kept")]


def test_a_post_accumulate_hook_may_edit_the_parameter_itself() -> None:
    a = leaf(2.0)

    def descend(parameter: torch.Tensor) -> None:
        with torch.no_grad():
            parameter -= parameter.grad

    a.register_post_accumulate_grad_hook(descend)
    with hv.record() as trace:
        (a * 3).backward()
    assert trace.firings[0].sentence == "descend edited a itself: 2 → -1."
    assert (a.item(), a.grad.item()) == (-1, 3)


def test_a_post_accumulate_hook_may_take_the_gradient_away() -> None:
    a = leaf(2.0)

    def drop(parameter: torch.Tensor) -> None:
        parameter.grad = None

    a.register_post_accumulate_grad_hook(drop)
    with hv.record() as trace:
        (a * 3).backward()
    assert firings(trace) == [("drop", "a", 3, None, "replaced")]
    assert a.grad is None


def test_a_post_accumulate_hook_that_descends_and_drops_is_told_of_both() -> None:
    a = leaf(2.0)

    def descend_and_drop(parameter: torch.Tensor) -> None:
        with torch.no_grad():
            parameter -= parameter.grad
        parameter.grad = None

    a.register_post_accumulate_grad_hook(descend_and_drop)
    with hv.record() as trace:
        (a * 3).backward()
    assert firings(trace) == [("descend_and_drop", "a", 3, None, "replaced")]


# -- hooks of tensors that nobody holds


def test_a_hook_registered_while_recording_is_known_though_its_tensor_is_gone() -> None:
    a = leaf(2.0)
    with hv.record() as trace:
        c = a * 3
        c.register_hook(c_hook)
        e = c + 1
        del c
        e.backward()
    assert [fired[0] for fired in firings(trace)] == ["c_hook"]
    assert stored_gradients(trace) == {"a": (None, 9)}


def test_a_hook_is_known_when_a_node_saved_its_tensor() -> None:
    a, d = leaf(2.0), leaf(4.0)
    c = a * 3
    c.register_hook(c_hook)
    e = c * d
    del c
    with hv.record() as trace:
        e.backward()
    assert [(name, before, after) for name, _, before, after, _ in firings(trace)] == [("c_hook", 4, 6)]


def test_a_hook_that_nobody_can_name_is_noticed_all_the_same() -> None:
    a = leaf(2.0)
    c = a * 3
    c.register_hook(c_hook)
    e = c + 1
    del c
    with hv.record() as trace:
        e.backward()
    (unknown,) = steps_of(trace, "unknown_hook")
    assert (plain(unknown.before), plain(unknown.after)) == (1, 3)
    assert unknown.index < steps_of(trace, "compute", "MulBackward0")[0].index
    assert len(trace.firings) == 0


def test_a_hook_set_before_an_in_place_operation_stays_with_the_old_version() -> None:
    a = leaf(2.0)
    with hv.record() as trace:
        c = a * 3
        c.register_hook(c_hook)
        c.retain_grad()
        c.mul_(5)
        c.backward()
    assert [(name, before, after) for name, _, before, after, _ in firings(trace)] == [("c_hook", 5, 7)]
    assert trace.ops[trace.firings[0].node] == "MulBackward0"
    assert trace.firings[0].node == steps_of(trace, "compute")[-1].node
    assert stored_gradients(trace, "retain_grad") == {"c": (None, 1)}
    assert (c.grad.item(), a.grad.item()) == (1, 21)


def test_a_hook_set_before_recording_and_before_an_in_place_operation_is_not_put_on_the_new_version() -> None:
    a = leaf(2.0)
    c = a * 3
    c.register_hook(c_hook)
    c.mul_(5)
    with hv.record() as trace:
        c.backward()
    assert len(trace.firings) == 0
    assert [(plain(s.before), plain(s.after)) for s in steps_of(trace, "unknown_hook")] == [(5, 7)]
    assert stored_gradients(trace) == {"a": (None, 21)}


# -- hooks that change hooks


def test_a_hook_added_further_on_fires_in_this_pass() -> None:
    tensors = scene()
    tensors.e.register_hook(lambda grad: tensors.c.register_hook(c_hook) and None)
    trace = observed(tensors)
    assert [(name, on, before, after) for name, on, before, after, _ in firings(trace)][1:] == [("c_hook", "c", 4, 6)]


def test_a_hook_added_to_its_own_tensor_fires_from_the_next_pass_on() -> None:
    tensors = scene()
    once = iter([True])
    tensors.c.register_hook(lambda grad: tensors.c.register_hook(c_hook) and None if next(once, False) else None)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
        tensors.e.backward()
    assert [(step.pass_id, step.hook.name == "c_hook") for step in trace.firings] == [
        (0, False),
        (1, False),
        (1, True),
    ]


def test_a_hook_that_removes_itself_fires_once() -> None:
    tensors = scene()
    handle = tensors.c.register_hook(lambda grad: handle.remove())
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
        tensors.e.backward()
    assert [(step.pass_id, step.on) for step in trace.firings] == [(0, "c")]
    assert len(tensors.c._backward_hooks) == 0


def test_a_hook_removed_by_another_of_its_tensor_still_fires_in_this_pass() -> None:
    tensors = scene()
    tensors.c.register_hook(lambda grad: handle.remove())
    handle = tensors.c.register_hook(c_hook)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
        tensors.e.backward()
    assert [(step.pass_id, step.hook.name) for step in trace.firings if step.hook.name == "c_hook"] == [(0, "c_hook")]


def test_a_hook_removed_further_on_does_not_fire() -> None:
    tensors = scene()
    handle = tensors.c.register_hook(c_hook)
    tensors.e.register_hook(lambda grad: handle.remove())
    trace = observed(tensors)
    assert [on for _, on, *_ in firings(trace)] == ["e"]
    assert tensors.a.grad.item() == 12


# -- several passes


def test_retain_grad_adds_to_the_gradient_of_an_earlier_pass() -> None:
    tensors = scene()
    tensors.c.retain_grad()
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
        tensors.e.backward()
    kept = [(plain(s.before), plain(s.after)) for s in steps_of(trace, "retain_grad")]
    assert kept == [(None, 4), (4, 8)]
    assert tensors.c.grad.item() == 8


def test_gradients_are_added_to_those_of_an_earlier_pass() -> None:
    tensors = scene()
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
        tensors.e.backward()
    assert [(plain(s.before), plain(s.after)) for s in steps_of(trace, "accumulate", "a")] == [(None, 12), (12, 24)]
    assert steps_of(trace, "accumulate", "a")[1].sentence == "The gradient is added to a.grad: 12 → 24."


def test_a_node_has_the_same_number_in_every_pass() -> None:
    tensors = scene()
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
        tensors.e.backward()
    first, second = ([(s.node, line(s)) for s in trace.steps if s.pass_id == i] for i in (0, 1))
    assert first == second
    assert len(trace.ops) == 5
    assert len(trace.roots) == 2


def test_passes_over_different_graphs_are_kept_apart() -> None:
    one, other = scene(), scene(torch.add)
    with hv.record() as trace:
        one.e.backward()
        other.e.backward()
    nodes = [{step.node for step in trace.steps if step.pass_id == i} for i in (0, 1)]
    assert not nodes[0] & nodes[1]


def test_a_pass_inside_a_hook_is_a_pass_of_its_own() -> None:
    tensors = scene()
    x = leaf(7.0)
    y = x * x
    tensors.c.register_hook(lambda grad: y.backward())
    with hv.record(names={**tensors._asdict(), "x": x, "y": y}) as trace:
        tensors.e.backward()
    inner = [step for step in trace.steps if step.pass_id == 1]
    assert {step.on for step in inner} == {"y", "MulBackward0 (y)", "x"}
    assert trace.firings[0].pass_id == 0
    assert stored_gradients(trace) == {"a": (None, 12), "b": (None, 8), "d": (None, 6), "x": (None, 14)}
    assert [step.index for step in inner] == list(range(inner[0].index, inner[-1].index + 1))


def test_large_leaves_of_a_pass_inside_a_hook_are_read_though_the_pass_around_it_adds_a_tensor_meanwhile() -> None:
    a, weight = leaf(2.0), torch.full((100,), float("nan"), requires_grad=True)
    c = a * 2
    e = c * 3

    def inner(_: torch.Tensor) -> None:
        with torch.enable_grad():
            z = weight * weight
            z.register_hook(lambda grad: c.retain_grad())
            z.sum().backward()

    e.register_hook(inner)
    with hv.record(names={"weight": weight}) as trace:
        e.sum().backward()
    assert trace.notes == [] and steps_of(trace, "unobserved") == []
    (row,) = [row for row in trace.tensors if row.name == "weight" and row.pass_id == 1]
    assert trace.value(row.data).nan == 100


def test_a_sick_model_called_in_a_hook_has_its_weights_read_in_the_pass_that_a_later_hook_begins() -> None:
    a, model, outputs = leaf(2.0), torch.nn.Linear(100, 1, bias=False), []
    torch.nn.init.constant_(model.weight, float("nan"))
    c = a * 2
    e = c * 3

    def forward(_: torch.Tensor) -> None:
        with torch.enable_grad():
            outputs.append(model(torch.ones(100)))

    e.register_hook(forward)
    c.register_hook(lambda grad: outputs.pop().backward())
    with hv.record() as trace:
        e.sum().backward()
    (row,) = [row for row in trace.tensors if row.name == "model.weight" and row.pass_id == 1]
    assert trace.value(row.data).nan == 100


def test_a_pass_over_the_graph_in_which_it_runs_sees_each_hook_once_a_pass() -> None:
    a = leaf(2.0)
    c = a * 3
    once = iter([True])
    c.register_hook(lambda grad: c.backward(retain_graph=True) if next(once, False) else None)
    c.register_hook(c_hook)
    with hv.record() as trace:
        c.backward(retain_graph=True)
    fired = [(step.pass_id, step.hook.name == "c_hook") for step in trace.firings]
    assert fired == [(1, False), (1, True), (0, False), (0, True)]
    assert a.grad.item() == 18


def test_autograd_grad_returns_without_accumulating() -> None:
    tensors = scene()
    hook_everything(tensors)
    with hv.record(names=tensors._asdict()) as trace:
        torch.autograd.grad(tensors.e, [tensors.c, tensors.d])
    assert [(s.on, plain(s.after)) for s in steps_of(trace, "returned")] == [("c", 10), ("d", 112)]
    assert [fired[:2] for fired in firings(trace) if fired[1] == "c"] == [("c_hook", "c"), ("print", "c")]
    assert steps_of(trace, "accumulate") == []
    assert stored_gradients(trace, "retain_grad") == {"e": (None, 2), "c": (None, 10)}


def test_autograd_grad_runs_no_node_hooks_of_what_it_was_asked_for() -> None:
    a = leaf(2.0)
    c = a * 3
    e = c * 5
    c.grad_fn.register_prehook(silent("pre"))
    node = accumulator(a)
    node.register_prehook(silent("leaf pre"))
    with hv.record() as trace:
        torch.autograd.grad(e, c, retain_graph=True)
        torch.autograd.grad(e, a)
    assert [(s.pass_id, s.hook.name) for s in trace.firings] == [(1, "pre")]
    assert [(s.pass_id, s.on, plain(s.after)) for s in steps_of(trace, "returned")] == [(0, "c", 5), (1, "a", 15)]


def test_autograd_grad_of_an_unused_tensor_returns_none() -> None:
    a, b = leaf(2.0), leaf(3.0)
    with hv.record(names={"a": a, "b": b}) as trace:
        result = torch.autograd.grad(a * 2, [a, b], allow_unused=True)
    assert result[1] is None
    assert [step.on for step in steps_of(trace, "returned")] == ["a"]


def test_a_gradient_reaches_a_tensor_hook_as_none_where_an_output_is_undefined() -> None:
    x = leaf(1.0, 2.0)
    u, v = x.unbind()
    u.register_hook(silent("of u"))
    v.register_hook(silent("of v"))
    with hv.record() as trace:
        torch.autograd.grad(u * 3, [u, v], allow_unused=True)
    assert firings(trace) == [("of u", "u", 3, 3, "kept"), ("of v", "v", None, None, "kept")]
    assert [(s.on, plain(s.after)) for s in steps_of(trace, "returned")] == [("u", 3), ("v", None)]


def test_outputs_of_one_node_have_names_of_their_own() -> None:
    x = leaf(1.0, 2.0)
    u, v = x.unbind()
    u.register_hook(silent("of u"))
    v.register_hook(c_hook)
    with hv.record() as trace:
        (u * 3 + v * 5).backward()
    assert sorted(firings(trace)) == [("c_hook", "v", 5, 7, "replaced"), ("of u", "u", 3, 3, "kept")]
    assert trace.firings[0].node == trace.firings[1].node
    assert {s.output for s in trace.firings} == {0, 1}
    assert stored_gradients(trace) == {"x": (None, [3, 7])}


def test_several_roots_have_a_seed_each() -> None:
    x = leaf(2.0)
    y, z = x * 3, x * 5
    with hv.record() as trace:
        torch.autograd.backward([y, z], [torch.tensor(1.0), torch.tensor(10.0)])
    assert [(s.on, plain(s.after)) for s in steps_of(trace, "seed")] == [("y", 1), ("z", 10)]
    assert stored_gradients(trace) == {"x": (None, 53)}


def test_a_second_derivative_is_a_second_pass() -> None:
    x = leaf(3.0)
    with hv.record() as trace:
        (slope,) = torch.autograd.grad(x**3, x, create_graph=True)
        slope.backward()
    assert [step.pass_id for step in steps_of(trace, "seed")] == [0, 1]
    assert x.grad.item() == 18
    assert stored_gradients(trace) == {"x": (None, 18)}


# -- exceptions


class Boom(Exception):
    pass


def boom(*_: Any) -> None:
    raise Boom("went wrong")


class Failing(torch.autograd.Function):
    """An op whose backward raises."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        raise Boom("went wrong")


REGISTER = {
    "tensor_hook": lambda c: c.register_hook(boom),
    "node_pre_hook": lambda c: c.grad_fn.register_prehook(boom),
    "node_post_hook": lambda c: c.grad_fn.register_hook(boom),
}


@pytest.mark.parametrize("kind", REGISTER)
def test_an_exception_in_a_hook_is_the_last_step(kind: str) -> None:
    a = leaf(2.0)
    c = a * 3
    REGISTER[kind](c)
    c.register_hook(silent("harmless"))
    with hv.record() as trace, pytest.raises(Boom):
        c.backward()
    last = trace.steps[-1]
    assert last.kind == "exception" and last.hook.name == "boom"
    assert last.sentence == f"boom on {last.on} raised Boom: went wrong: the pass ends here."
    assert a.grad is None


REFUSED = {
    "a number": lambda grad: 3,
    "another shape": lambda grad: torch.ones(3),
    "another type": lambda grad: grad.double(),
}


@pytest.mark.parametrize("hook", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("kind", ["tensor_hook", "node_pre_hook"])
def test_what_torch_refuses_to_take_from_a_hook_is_told_of_that_hook(kind: str, hook: Any) -> None:
    a = leaf(2.0)
    c = a * 3
    if kind == "tensor_hook":
        c.register_hook(hook)
    else:
        c.grad_fn.register_prehook(lambda grads: (hook(grads[0]),))
    c.register_hook(silent("harmless"))
    with hv.record() as trace, pytest.raises((TypeError, RuntimeError)):
        c.backward()
    last = trace.steps[-1]
    assert (last.kind, last.hook.kind) == ("exception", kind)
    assert "hook" in last.sentence and "harmless" not in last.sentence


def test_an_exception_in_a_node_is_the_last_step_and_names_the_node() -> None:
    a = leaf(2.0)
    y = Failing.apply(a)
    z = y * 2
    z.register_hook(silent("long over"))
    with hv.record() as trace, pytest.raises(Boom):
        z.backward()
    last = trace.steps[-1]
    assert (last.kind, last.on, last.hook) == ("exception", "FailingBackward (y)", None)
    assert "went wrong" in last.sentence


def test_an_exception_keeps_its_traceback_free_of_the_recorder() -> None:
    tensors = scene()
    tensors.c.register_hook(boom)
    frames = []
    for watch in (False, True):
        with pytest.raises(Boom) as caught, hv.record() if watch else torch.enable_grad():
            tensors.e.backward(retain_graph=True)
        frames.append([(f.filename, f.name) for f in traceback.extract_tb(caught.value.__traceback__)][1:])
    assert frames[0] == frames[1]


def test_a_pass_over_a_freed_graph_is_an_exception_of_torch() -> None:
    tensors = scene()
    tensors.e.backward()
    with hv.record() as trace, pytest.raises(RuntimeError, match="second time"):
        tensors.e.backward()
    assert trace.steps[-1].kind == "exception"
    assert "second time" in trace.steps[-1].sentence


def test_after_an_exception_the_next_pass_is_observed() -> None:
    tensors = scene()
    handle = tensors.c.register_hook(boom)
    with hv.record(names=tensors._asdict()) as trace:
        with pytest.raises(Boom):
            tensors.e.backward(retain_graph=True)
        handle.remove()
        tensors.e.backward()
    assert lines(trace)[-1] == ("accumulate", "b")
    assert {step.pass_id for step in trace.steps} == {0, 1}


# -- threads


def in_thread(work: Callable[[], None]) -> None:
    """Run ``work`` in another thread, and raise here what it raises there."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def test_a_pass_of_another_thread_is_left_alone() -> None:
    mine, theirs = scene(), scene()
    theirs.c.register_hook(c_hook)
    with hv.record(names=mine._asdict()) as trace:
        in_thread(theirs.e.backward)
        assert len(trace.steps) == 0
        mine.e.backward()
    assert {step.pass_id for step in trace.steps} == {0}
    assert len(trace.firings) == 0
    assert theirs.a.grad.item() == 18


def test_a_pass_of_another_thread_through_a_graph_being_observed_is_left_alone() -> None:
    tensors = scene()
    once = iter([True])

    def elsewhere(grad: torch.Tensor) -> None:
        if next(once, False):
            in_thread(lambda: tensors.e.backward(retain_graph=True))

    tensors.e.register_hook(elsewhere)
    tensors.c.register_hook(c_hook)
    trace = observed(tensors, retain_graph=True)
    assert [on for _, on, *_ in firings(trace)] == ["e", "c"]
    assert {step.pass_id for step in trace.steps} == {0}
    assert tensors.a.grad.item() == 36


def test_a_pass_of_another_thread_that_overtakes_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = scene()
    tensors.c.register_hook(c_hook)
    once, engine = iter([True]), torch.autograd.graph._engine_run_backward

    def overtaken(*arguments: Any, **named: Any) -> Any:
        if next(once, False):
            in_thread(lambda: tensors.e.backward(retain_graph=True))
        return engine(*arguments, **named)

    for owner in (torch.autograd, torch.autograd.graph):
        monkeypatch.setattr(owner, "_engine_run_backward", overtaken)
    trace = observed(tensors, retain_graph=True)
    assert len(trace.firings) == 1
    assert stored_gradients(trace) == {"a": (18, 36), "b": (12, 24), "d": (6, 12)}


def test_two_threads_record_each_their_own() -> None:
    mine, theirs = scene(), scene(torch.add)
    traces: list[hv.Trace] = []
    with hv.record() as trace:
        in_thread(lambda: traces.append(observed(theirs)))
        mine.e.backward()
    assert "AddBackward0" in traces[0].ops
    assert "AddBackward0" not in trace.ops
    assert len(trace.steps) == len(traces[0].steps) == 10


# -- nothing is changed, nothing stays behind


def test_every_hook_dict_is_left_as_it_was() -> None:
    tensors = scene()
    hook_everything(tensors)
    dicts = [tensors.c._backward_hooks, tensors.d._backward_hooks, tensors.e._backward_hooks]
    before = [list(kept.items()) for kept in dicts]
    observed(tensors)
    assert [list(kept.items()) for kept in dicts] == before
    assert tensors.a._backward_hooks is None
    assert tensors.c.grad_fn.metadata == {}


def test_between_two_passes_nothing_lies_in_a_hook_dict() -> None:
    tensors = scene()
    handle = tensors.c.register_hook(c_hook)
    with hv.record(names=tensors._asdict()):
        tensors.e.backward(retain_graph=True)
        assert dict(tensors.c._backward_hooks) == {handle.id: c_hook}
        assert len(node_dict(tensors.c.grad_fn, "node_pre_hook")) == 0


def test_torch_has_its_own_functions_back() -> None:
    functions = [torch.autograd._engine_run_backward, torch.Tensor.register_hook, torch.Tensor.backward]
    codes = [function.__code__ for function in functions]
    with hv.record():
        assert torch.autograd._engine_run_backward.__code__ is not codes[0]
        assert torch.Tensor.register_hook is not functions[1]
    with pytest.raises(Boom), hv.record():
        boom()
    assert [torch.autograd._engine_run_backward, torch.Tensor.register_hook, torch.Tensor.backward] == functions
    assert all(function.__code__ is code for function, code in zip(functions, codes, strict=True))


def test_a_handle_made_while_recording_works_afterwards() -> None:
    tensors = scene()
    with hv.record():
        handle = tensors.c.register_hook(c_hook)
        tensors.e.backward(retain_graph=True)
    assert list(tensors.c._backward_hooks.values()) == [c_hook]
    assert tensors.c.grad_fn.metadata == {}
    handle.remove()
    assert len(tensors.c._backward_hooks) == 0


def test_a_trace_keeps_no_tensor_alive() -> None:
    tensors = scene()
    hook_everything(tensors)
    trace = observed(tensors)
    gone = [weakref.ref(x) for x in tensors]
    del tensors
    gc.collect()
    assert [reference() for reference in gone] == [None] * 5
    assert len(trace.firings) == 4


def test_the_buffer_of_a_gradient_still_becomes_the_gradient_itself() -> None:
    x = torch.ones(1000, requires_grad=True)
    places = []
    x.register_hook(lambda grad: places.append(grad.data_ptr()))
    with hv.record():
        (x * 2).sum().backward()
    assert places == [x.grad.data_ptr()]


# -- what cannot be observed


def chain(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = leaf(1.0)
    y = x
    for _ in range(length):
        y = y + 1
    return x, y


def test_a_graph_that_is_too_deep_runs_unobserved_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_DEPTH", 20)
    x, y = chain(30)
    with pytest.warns(hv.HookvizWarning, match="more than 20 nodes in a row"), hv.record() as trace:
        y.backward()
    assert x.grad.item() == 1
    assert [step.kind for step in trace.steps] == ["unobserved"]
    assert trace.notes == [trace.steps[0].sentence]
    assert trace.notes[0] in repr(trace)


def test_a_fault_of_the_recorder_never_reaches_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = scene()
    hook_everything(tensors)
    monkeypatch.setattr(pass_observer.PassObserver, "hook_fired", boom)
    with pytest.warns(hv.HookvizWarning, match="went wrong") as caught, hv.record() as trace:
        tensors.e.backward()
    assert tensors.grads() == [30, 20, 10, 112, 2]
    assert len(caught) == 1
    assert [step.kind for step in trace.steps].count("unobserved") == 1


def test_a_warning_that_is_turned_into_an_error_does_not_stop_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_DEPTH", 20)
    x, y = chain(30)
    with hv.record() as trace:  # pytest's filter makes every warning an error
        y.backward()
    assert x.grad.item() == 1
    assert len(trace.notes) == 1


def test_a_large_graph_is_recorded_whole() -> None:
    x, y = chain(1000)
    with hv.record() as trace:
        y.backward()
    assert x.grad.item() == 1
    assert len(steps_of(trace, "compute")) == 1000
    assert stored_gradients(trace) == {"x": (None, 1)}


@pytest.mark.parametrize("length", [10, 1000])
def test_an_edit_in_the_middle_of_a_graph_is_seen_whatever_its_size(length: int) -> None:
    x, y = chain(length)
    node = y.grad_fn
    for _ in range(length // 2):
        node = node.next_functions[0][0]
    node.register_prehook(lambda grads: grads[0].data.mul_(4) and None)
    with hv.record() as trace:
        y.backward()
    assert [fired[2:] for fired in firings(trace)] == [(1, 4, "edited")]
    assert stored_gradients(trace) == {"x": (None, x.grad.item())} == {"x": (None, 4)}


def test_nothing_is_said_of_what_ran_before_and_after_the_block() -> None:
    tensors = scene()
    tensors.e.backward(retain_graph=True)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
    count = len(trace.steps)
    tensors.e.backward()
    assert len(trace.steps) == count == 10
    assert stored_gradients(trace)["a"] == (12, 24)


def test_names_come_from_the_callers_variables_and_names_given_by_hand_win() -> None:
    x = leaf(2.0)
    loss = x * 3
    with hv.record(names={"weight": x}) as trace:
        loss.backward()
    assert {step.on for step in trace.steps} == {"loss", "MulBackward0 (loss)", "weight"}


def test_a_name_given_by_hand_hides_a_variable_of_that_name() -> None:
    x = leaf(2.0)
    loss = x * 3
    with hv.record(names={"x": loss}) as trace:
        torch.autograd.grad(loss, x)
    assert trace.steps[0].on == "x"
    assert trace.steps[-1].on != "x"


class Stored:
    """What a person may store in a node's metadata."""


@pytest.mark.parametrize("ends", ["pass", "call"])
def test_what_is_stored_on_a_node_goes_soon_after_the_node(ends: str) -> None:
    model, x = torch.nn.Linear(1, 1), leaf(3.0)
    with hv.record(model):
        y = model(torch.ones(1))
        y.register_hook(lambda grad: None)  # the node is remembered for its call, and for this hook
        stored = Stored()
        gone = weakref.ref(stored)
        y.grad_fn.metadata["mine"] = stored
        y.backward()
        del y, stored
        if ends == "pass":
            (x * 2).backward()
        else:
            model(torch.ones(1))
        assert gone() is None


def test_the_mark_of_a_living_node_stays() -> None:
    marks: NodeMarks[str] = NodeMarks()
    living, gone = leaf(1.0) * 2, leaf(1.0) * 3
    marks.put(living.grad_fn, "living")
    marks.put(gone.grad_fn, "gone")
    del gone
    marks.sweep()
    assert [mark for _, mark in marks.items()] == ["living"] == [marks.get(living.grad_fn)]
