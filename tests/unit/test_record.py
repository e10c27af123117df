"""Recording lists the steps of a pass in execution order and changes nothing."""

import threading
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
from hookviz.recorder.passes import pass_observer
from tests.requirements import needs_saved_tensors


def record_backward(tensors: Scene, **options: Any) -> hv.Trace:
    """The trace of ``e.backward()``."""
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(**options)
    return trace


# -- the shared scene


def test_without_hooks_the_trace_shows_the_textbook_gradients() -> None:
    tensors = scene()
    tensors.c.retain_grad()
    tensors.e.retain_grad()
    trace = record_backward(tensors)
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


def test_each_hook_fires_with_its_gradient_before_and_after() -> None:
    tensors = scene()
    hook_everything(tensors)
    trace = record_backward(tensors)
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


def test_an_in_place_edit_is_reported_on_the_sibling_that_shares_its_storage() -> None:
    tensors = scene(torch.add)
    tensors.c.retain_grad()
    tensors.e.retain_grad()

    def hundredfold(grad: torch.Tensor) -> None:
        grad *= 100

    tensors.d.register_hook(hundredfold)
    trace = record_backward(tensors)
    assert firings(trace) == [("hundredfold", "d", 1, 100, "edited")]
    (aliased_step,) = steps_of(trace, "aliased")
    assert (aliased_step.on, plain(aliased_step.before), plain(aliased_step.after)) == ("c", 1, 100)
    assert trace._data.rows[aliased_step.index].cause == trace.firings[0].index
    assert "hundredfold on d" in aliased_step.sentence
    assert tensors.grads() == [300, 200, 100, 100, 1]


@pytest.mark.parametrize("size", [1, 1000])
def test_aliasing_is_detected_at_every_size(size: int) -> None:
    c = torch.ones(size, requires_grad=True) * 2
    d = torch.ones(size, requires_grad=True)
    e = c + d
    d.register_hook(lambda grad: grad.mul_(100) and None if size == 1 else grad[-1:].mul_(100) and None)
    with hv.record() as trace:
        e.backward(torch.ones(size))
    assert [step.effect for step in trace.firings] == ["edited"]
    assert [(step.on, step.after.max) for step in steps_of(trace, "aliased")] == [("c", 100)]


# -- order

INTERMEDIATE_HOOKS: dict[str, Callable[[torch.Tensor], Any]] = {
    "tensor 1": lambda c: c.register_hook(silent("tensor 1")),
    "tensor 2": lambda c: c.register_hook(silent("tensor 2")),
    "retain": lambda c: c.retain_grad(),
    "pre": lambda c: c.grad_fn.register_prehook(silent("pre")),
    "post": lambda c: c.grad_fn.register_hook(silent("post")),
}
LEAF_HOOKS: dict[str, Callable[[torch.Tensor], Any]] = {
    "tensor 1": lambda a: a.register_hook(silent("tensor 1")),
    "tensor 2": lambda a: a.register_hook(silent("tensor 2")),
    "pre": lambda a: accumulator(a).register_prehook(silent("pre")),
    "post accumulate": lambda a: a.register_post_accumulate_grad_hook(silent("post accumulate")),
    "post": lambda a: accumulator(a).register_hook(silent("post")),
}


def registration_orders(hooks: dict[str, Any]) -> list[tuple[str, ...]]:
    """The order in which torch runs the hooks, and the reverse; the two tensor hooks keep their order."""
    tensor_hooks, others = tuple(hooks)[:2], tuple(hooks)[2:]
    return [tensor_hooks + others, others[::-1] + tensor_hooks]


@pytest.mark.parametrize("order", registration_orders(INTERMEDIATE_HOOKS), ids=" ".join)
def test_hooks_on_an_intermediate_tensor_run_in_the_order_of_their_kinds(order: tuple[str, ...]) -> None:
    a = leaf(2.0)
    c = a * 3
    for name in order:
        INTERMEDIATE_HOOKS[name](c)
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


@pytest.mark.parametrize("order", registration_orders(LEAF_HOOKS), ids=" ".join)
def test_hooks_on_a_leaf_run_in_the_order_of_their_kinds(order: tuple[str, ...]) -> None:
    a = leaf(2.0)
    c = a * 3
    node = accumulator(a)  # keeps the node alive, and with it the hooks
    for name in order:
        LEAF_HOOKS[name](a)
    with hv.record() as trace:
        c.backward()
    assert [line(step) for step in trace.steps if step.node == trace._data.tensors[0].node] == [
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


def wide_graph() -> tuple[torch.Tensor, list[Any]]:
    """A graph with forks and joins, and its nodes without the leaves."""
    x, y = leaf(2.0), leaf(3.0)
    p, q = x * y, x + y
    r = p * q
    s = (r.exp() + p).sin() * q
    nodes = [s.grad_fn]
    for node in nodes:  # grows during the loop
        following = [end for end, _ in node.next_functions if end.name() != "torch::autograd::AccumulateGrad"]
        nodes += [end for end in following if end not in nodes]
    return s, nodes


def test_compute_steps_are_in_the_order_of_the_engine() -> None:
    root, nodes = wide_graph()
    ran: list[str] = []
    for i, node in enumerate(nodes):
        node.register_hook(silent(f"{i}"))
        node.register_hook(lambda *_, i=i: ran.append(f"{i}"))
    with hv.record() as trace:
        root.backward()
    assert [step.hook.name for step in trace.firings if step.hook.place == 0] == ran
    assert len(ran) == len(nodes) == 7


def test_a_tensor_hook_in_a_diamond_fires_once_with_the_sum() -> None:
    a = leaf(2.0)
    c = a * 3
    e = c * 5 + c * 7
    c.register_hook(c_hook)
    with hv.record() as trace:
        e.backward()
    assert firings(trace) == [("c_hook", "c", 12, 14, "replaced")]
    (arrival,) = steps_of(trace, "arrive", "c")
    assert sorted(plain(part.value) for part in arrival.parts) == [5, 7]
    assert arrival.sentence in (
        "2 contributions arrive at c: 5 + 7 = 12.",
        "2 contributions arrive at c: 7 + 5 = 12.",
    )


# -- effects of hooks

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
def test_the_effect_of_a_tensor_hook_is_reported(name: str, hook: Any, after: float, effect: str) -> None:
    tensors = Scene(a := leaf(2.0), *[c := a * 1] * 4)
    {"a": a, "c": c}[name].register_hook(hook)
    with hv.record() as trace:
        c.backward()
    assert [fired[1:] for fired in firings(trace)] == [(name, 1, after, effect)]
    assert tensors.a.grad.item() == after


@pytest.mark.parametrize("size", [1, 64, 65])
def test_an_edit_of_data_is_detected_at_every_size(size: int) -> None:
    x = torch.ones(size, requires_grad=True)
    x.register_hook(lambda grad: grad.data.mul_(3) and None if size == 1 else grad.data[-1:].fill_(7) and None)
    with hv.record() as trace:
        (x * 1).sum().backward()
    assert [step.effect for step in trace.firings] == ["edited"]


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


# -- hooks of tensors without a reference


def test_a_hook_registered_while_recording_is_recorded_after_its_tensor_is_deleted() -> None:
    a = leaf(2.0)
    with hv.record() as trace:
        c = a * 3
        c.register_hook(c_hook)
        e = c + 1
        del c
        e.backward()
    assert [fired[0] for fired in firings(trace)] == ["c_hook"]
    assert stored_gradients(trace) == {"a": (None, 9)}


@needs_saved_tensors
def test_a_hook_of_a_deleted_tensor_is_found_through_the_node_that_saved_it() -> None:
    a, d = leaf(2.0), leaf(4.0)
    c = a * 3
    c.register_hook(c_hook)
    e = c * d
    del c
    with hv.record() as trace:
        e.backward()
    assert [(name, before, after) for name, _, before, after, _ in firings(trace)] == [("c_hook", 4, 6)]


def test_a_hook_of_an_unreachable_tensor_is_reported_as_unknown() -> None:
    a = leaf(2.0)
    c = a * 3
    c.register_hook(c_hook)
    e = c + 1
    del c
    with hv.record() as trace:
        e.backward()
    (unknown_hook,) = steps_of(trace, "unknown_hook")
    assert (plain(unknown_hook.before), plain(unknown_hook.after)) == (1, 3)
    assert unknown_hook.index < steps_of(trace, "compute", "MulBackward0")[0].index
    assert len(trace.firings) == 0


def test_a_hook_registered_before_an_in_place_operation_stays_on_the_old_version() -> None:
    a = leaf(2.0)
    with hv.record() as trace:
        c = a * 3
        c.register_hook(c_hook)
        c.retain_grad()
        c.mul_(5)
        c.backward()
    assert [(name, before, after) for name, _, before, after, _ in firings(trace)] == [("c_hook", 5, 7)]
    assert trace._data.ops[trace.firings[0].node] == "MulBackward0"
    assert trace.firings[0].node == steps_of(trace, "compute")[-1].node
    assert stored_gradients(trace, "retain_grad") == {"c": (None, 1)}
    assert (c.grad.item(), a.grad.item()) == (1, 21)


# -- several passes


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
    assert len(trace._data.ops) == 5
    assert len(trace._data.roots) == 2


def test_a_pass_inside_a_hook_has_its_own_pass_id() -> None:
    tensors = scene()
    x = leaf(7.0)
    y = x * x
    tensors.c.register_hook(lambda grad: y.backward())
    with hv.record(names={**tensors._asdict(), "x": x, "y": y}) as trace:
        tensors.e.backward()
    inner_steps = [step for step in trace.steps if step.pass_id == 1]
    assert {step.on for step in inner_steps} == {"y", "MulBackward0 (y)", "x"}
    assert trace.firings[0].pass_id == 0
    assert stored_gradients(trace) == {"a": (None, 12), "b": (None, 8), "d": (None, 6), "x": (None, 14)}
    assert [step.index for step in inner_steps] == list(range(inner_steps[0].index, inner_steps[-1].index + 1))


def test_nan_weights_of_a_model_called_in_a_hook_are_read_in_the_pass_of_a_later_hook() -> None:
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
    (row,) = [row for row in trace._data.tensors if row.name == "model.weight" and row.pass_id == 1]
    assert trace._data.value(row.data).nan == 100


def test_a_nested_pass_over_the_same_graph_records_each_hook_once_per_pass() -> None:
    a = leaf(2.0)
    c = a * 3
    first_time = iter([True])
    c.register_hook(lambda grad: c.backward(retain_graph=True) if next(first_time, False) else None)
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


def test_a_tensor_hook_on_an_unused_output_receives_none() -> None:
    x = leaf(1.0, 2.0)
    u, v = x.unbind()
    u.register_hook(silent("of u"))
    v.register_hook(silent("of v"))
    with hv.record() as trace:
        torch.autograd.grad(u * 3, [u, v], allow_unused=True)
    assert firings(trace) == [("of u", "u", 3, 3, "kept"), ("of v", "v", None, None, "kept")]
    assert [(s.on, plain(s.after)) for s in steps_of(trace, "returned")] == [("u", 3), ("v", None)]


def test_outputs_of_one_node_have_separate_names() -> None:
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


REGISTER_FAILING_HOOK = {
    "tensor_hook": lambda c: c.register_hook(boom),
    "node_pre_hook": lambda c: c.grad_fn.register_prehook(boom),
    "node_post_hook": lambda c: c.grad_fn.register_hook(boom),
}


@pytest.mark.parametrize("kind", REGISTER_FAILING_HOOK)
def test_an_exception_in_a_hook_is_the_last_step(kind: str) -> None:
    a = leaf(2.0)
    c = a * 3
    REGISTER_FAILING_HOOK[kind](c)
    c.register_hook(silent("harmless"))
    with hv.record() as trace, pytest.raises(Boom):
        c.backward()
    last = trace.steps[-1]
    assert last.kind == "exception" and last.hook.name == "boom"
    assert last.sentence == f"boom on {last.on} raised Boom: went wrong: the pass ends here."
    assert a.grad is None


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
    """Run ``work`` in another thread and re-raise its exception."""
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


def test_a_pass_of_another_thread_is_not_recorded() -> None:
    own, others = scene(), scene()
    others.c.register_hook(c_hook)
    with hv.record(names=own._asdict()) as trace:
        in_thread(others.e.backward)
        assert len(trace.steps) == 0
        own.e.backward()
    assert {step.pass_id for step in trace.steps} == {0}
    assert len(trace.firings) == 0
    assert others.a.grad.item() == 18


def test_a_pass_of_another_thread_through_the_observed_graph_is_not_recorded() -> None:
    tensors = scene()
    first_time = iter([True])

    def run_in_other_thread(grad: torch.Tensor) -> None:
        if next(first_time, False):
            in_thread(lambda: tensors.e.backward(retain_graph=True))

    tensors.e.register_hook(run_in_other_thread)
    tensors.c.register_hook(c_hook)
    trace = record_backward(tensors, retain_graph=True)
    assert [on for _, on, *_ in firings(trace)] == ["e", "c"]
    assert {step.pass_id for step in trace.steps} == {0}
    assert tensors.a.grad.item() == 36


def test_a_pass_of_another_thread_just_before_the_engine_runs_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = scene()
    tensors.c.register_hook(c_hook)
    first_time, engine = iter([True]), torch.autograd.graph._engine_run_backward

    def run_after_other_thread(*arguments: Any, **options: Any) -> Any:
        if next(first_time, False):
            in_thread(lambda: tensors.e.backward(retain_graph=True))
        return engine(*arguments, **options)

    for owner in (torch.autograd, torch.autograd.graph):
        monkeypatch.setattr(owner, "_engine_run_backward", run_after_other_thread)
    trace = record_backward(tensors, retain_graph=True)
    assert len(trace.firings) == 1
    assert stored_gradients(trace) == {"a": (18, 36), "b": (12, 24), "d": (6, 12)}


# -- no changes, no references


def test_hook_dicts_contain_no_observer_between_passes() -> None:
    tensors = scene()
    handle = tensors.c.register_hook(c_hook)
    with hv.record(names=tensors._asdict()):
        tensors.e.backward(retain_graph=True)
        assert dict(tensors.c._backward_hooks) == {handle.id: c_hook}


def test_a_handle_created_while_recording_works_afterwards() -> None:
    tensors = scene()
    with hv.record():
        handle = tensors.c.register_hook(c_hook)
        tensors.e.backward(retain_graph=True)
    assert list(tensors.c._backward_hooks.values()) == [c_hook]
    handle.remove()
    assert len(tensors.c._backward_hooks) == 0


# -- passes that cannot be observed


def chain(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = leaf(1.0)
    y = x
    for _ in range(length):
        y = y + 1
    return x, y


def test_a_too_deep_graph_runs_unobserved_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_DEPTH", 20)
    x, y = chain(30)
    with pytest.warns(hv.HookvizWarning, match="more than 20 nodes in a row"), hv.record() as trace:
        y.backward()
    assert x.grad.item() == 1
    assert [step.kind for step in trace.steps] == ["unobserved"]
    assert trace.notes == [trace.steps[0].sentence]
    assert trace.notes[0] in repr(trace)


def test_an_error_in_the_recorder_does_not_reach_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = scene()
    hook_everything(tensors)
    monkeypatch.setattr(pass_observer.PassObserver, "hook_fired", boom)
    with pytest.warns(hv.HookvizWarning, match="went wrong") as caught, hv.record() as trace:
        tensors.e.backward()
    assert tensors.grads() == [30, 20, 10, 112, 2]
    assert len(caught) == 1
    assert [step.kind for step in trace.steps].count("unobserved") == 1


def test_a_warning_turned_into_an_error_does_not_stop_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_DEPTH", 20)
    x, y = chain(30)
    with hv.record() as trace:  # pytest's filter makes every warning an error
        y.backward()
    assert x.grad.item() == 1
    assert len(trace.notes) == 1


@pytest.mark.parametrize("length", [10, 1000])
def test_an_edit_in_the_middle_of_a_graph_is_detected_at_any_graph_size(length: int) -> None:
    x, y = chain(length)
    node = y.grad_fn
    for _ in range(length // 2):
        node = node.next_functions[0][0]
    node.register_prehook(lambda grads: grads[0].data.mul_(4) and None)
    with hv.record() as trace:
        y.backward()
    assert [fired[2:] for fired in firings(trace)] == [(1, 4, "edited")]
    assert stored_gradients(trace) == {"x": (None, x.grad.item())} == {"x": (None, 4)}


def test_passes_before_and_after_the_block_are_not_recorded() -> None:
    tensors = scene()
    tensors.e.backward(retain_graph=True)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
    count = len(trace.steps)
    tensors.e.backward()
    assert len(trace.steps) == count == 10
    assert stored_gradients(trace)["a"] == (12, 24)
