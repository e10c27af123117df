"""Recording lists the steps of a pass in execution order and changes nothing."""

from typing import Any

import pytest
import torch
from scenes import (
    Doubled,
    accumulator,
    c_hook,
    chain,
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

# -- the shared scene


def test_without_hooks_the_trace_shows_the_textbook_gradients() -> None:
    tensors = scene()
    tensors.c.retain_grad()
    tensors.e.retain_grad()
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
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
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
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

    def hundredfold(grad: torch.Tensor) -> None:
        grad *= 100

    tensors.d.register_hook(hundredfold)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    assert firings(trace) == [("hundredfold", "d", 1, 100, "edited")]
    (aliased_step,) = steps_of(trace, "aliased")
    assert (aliased_step.on, plain(aliased_step.before), plain(aliased_step.after)) == ("c", 1, 100)
    assert trace._data.rows[aliased_step.index].cause == trace.firings[0].index
    assert "hundredfold on d" in aliased_step.sentence
    assert tensors.c.grad.item() == 100


def test_an_edit_of_one_of_many_numbers_is_detected_also_where_the_storage_is_shared() -> None:
    c = torch.ones(1000, requires_grad=True) * 2
    d = torch.ones(1000, requires_grad=True)
    d.register_hook(lambda grad: grad[-1:].mul_(100) and None)
    with hv.record() as trace:
        (c + d).backward(torch.ones(1000))
    assert [step.effect for step in trace.firings] == ["edited"]
    assert [(step.on, step.after.max) for step in steps_of(trace, "aliased")] == [("c", 100)]


# -- order


def test_hooks_on_a_tensor_and_a_leaf_run_in_the_order_of_their_kinds() -> None:
    a = leaf(2.0)
    c = a * 3
    node = accumulator(a)  # keeps the node alive, and with it the hooks
    for one in (c.grad_fn, node):
        one.register_hook(silent("post"))
        one.register_prehook(silent("pre"))
    a.register_post_accumulate_grad_hook(silent("post accumulate"))
    c.retain_grad()
    for tensor in (a, c):
        tensor.register_hook(silent("tensor 1"))
        tensor.register_hook(silent("tensor 2"))
    with hv.record() as trace:
        c.backward()
    assert lines(trace) == [
        ("seed", "c"),
        ("tensor_hook", "c", "tensor 1"),
        ("tensor_hook", "c", "tensor 2"),
        ("retain_grad", "c"),
        ("node_pre_hook", "MulBackward0 (c)", "pre"),
        ("compute", "MulBackward0 (c)"),
        ("node_post_hook", "MulBackward0 (c)", "post"),
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


def test_nodes_of_a_graph_with_forks_and_joins_are_in_the_order_of_the_engine() -> None:
    x, y = leaf(2.0), leaf(3.0)
    p, q = x * y, x + y
    r = (p * q).exp()
    s = (r + p).sin() * q
    ran: list[str] = []
    for name, tensor in {"p": p, "q": q, "r": r, "s": s}.items():
        tensor.grad_fn.register_hook(silent(name))
        tensor.grad_fn.register_hook(lambda *_, name=name: ran.append(name))
    with hv.record() as trace:
        s.backward()
    assert [step.hook.name for step in trace.firings if step.hook.place == 0] == ran
    assert sorted(ran) == ["p", "q", "r", "s"]


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


@pytest.mark.parametrize(
    ("hook", "after", "effect"),
    [
        (lambda grad: grad, 1, "kept"),
        (lambda grad: grad.clone(), 1, "replaced"),
        (lambda grad: grad.mul_(3), 3, "edited"),
        (lambda grad: grad.numpy().fill(3), 3, "edited"),
        (lambda grad: grad.mul_(3).clone(), 3, "replaced"),
    ],
)
def test_the_effect_of_a_tensor_hook_is_reported(hook: Any, after: float, effect: str) -> None:
    a = leaf(2.0)
    c = a * 1
    c.register_hook(hook)
    with hv.record() as trace:
        c.backward()
    assert [fired[1:] for fired in firings(trace)] == [("c", 1, after, effect)]
    assert a.grad.item() == after


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
    assert trace.firings[0].node == steps_of(trace, "compute")[-1].node
    assert stored_gradients(trace, "retain_grad") == {"c": (None, 1)}
    assert (c.grad.item(), a.grad.item()) == (1, 21)


# -- several passes


def test_passes_of_one_graph_have_the_same_nodes_and_add_up_and_those_outside_of_the_block_are_not_recorded() -> None:
    tensors = scene()
    tensors.e.backward(retain_graph=True)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
        tensors.e.backward(retain_graph=True)
    count = len(trace.steps)
    tensors.e.backward()
    assert len(trace.steps) == count == 20
    assert [(plain(s.before), plain(s.after)) for s in steps_of(trace, "accumulate", "a")] == [(12, 24), (24, 36)]
    assert steps_of(trace, "accumulate", "a")[0].sentence == "The gradient is added to a.grad: 12 → 24."
    first, second = ([(s.node, line(s)) for s in trace.steps if s.pass_id == i] for i in (0, 1))
    assert first == second
    assert len(trace._data.ops) == 5


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


def test_autograd_grad_returns_without_accumulating() -> None:
    tensors = scene()
    hook_everything(tensors)
    with hv.record(names=tensors._asdict()) as trace:
        torch.autograd.grad(tensors.e, [tensors.c, tensors.d])
    assert [(s.on, plain(s.after)) for s in steps_of(trace, "returned")] == [("c", 10), ("d", 112)]
    assert [fired[:2] for fired in firings(trace) if fired[1] == "c"] == [("c_hook", "c"), ("print", "c")]
    assert steps_of(trace, "accumulate") == []
    assert stored_gradients(trace, "retain_grad") == {"e": (None, 2), "c": (None, 10)}


def test_outputs_of_one_node_have_separate_names_and_an_unused_one_receives_none() -> None:
    x = leaf(1.0, 2.0)
    u, v = x.unbind()
    u.register_hook(silent("of u"))
    v.register_hook(lambda grad: None if grad is None else grad + 2)
    with hv.record() as trace:
        torch.autograd.grad(u * 3, [u, v], allow_unused=True)
        (u * 3 + v * 5).backward()
    unused, used = (
        [(s.on, s.output, plain(s.before), plain(s.after)) for s in trace.firings if s.pass_id == i] for i in (0, 1)
    )
    assert unused == [("u", 0, 3, 3), ("v", 1, None, None)]
    assert sorted(used) == [("u", 0, 3, 3), ("v", 1, 5, 7)]
    assert [(s.on, plain(s.after)) for s in steps_of(trace, "returned")] == [("u", 3), ("v", None)]
    assert stored_gradients(trace) == {"x": (None, [3, 7])}


# -- exceptions


class Boom(Exception):
    pass


def boom(*_: Any) -> None:
    raise Boom("went wrong")


def test_an_exception_in_a_hook_is_the_last_step_of_its_pass_and_the_next_pass_is_observed() -> None:
    a = leaf(2.0)
    c = a * 3
    handle = c.grad_fn.register_prehook(boom)
    with hv.record() as trace:
        with pytest.raises(Boom):
            c.backward(retain_graph=True)
        last = trace.steps[-1]
        handle.remove()
        c.backward()
    assert last.kind == "exception" and last.hook.name == "boom"
    assert last.sentence == f"boom on {last.on} raised Boom: went wrong: the pass ends here."
    assert lines(trace)[-1] == ("accumulate", "a")
    assert {step.pass_id for step in trace.steps} == {0, 1}
    assert a.grad.item() == 3


def test_an_error_in_the_recorder_does_not_reach_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = scene()
    hook_everything(tensors)
    monkeypatch.setattr(pass_observer.PassObserver, "hook_fired", boom)
    with pytest.warns(hv.HookvizWarning, match="went wrong") as caught, hv.record() as trace:
        tensors.e.backward()
    assert tensors.grads() == [30, 20, 10, 112, 2]
    assert len(caught) == 1
    assert [step.kind for step in trace.steps].count("unobserved") == 1


def test_a_too_deep_graph_runs_unobserved_with_a_warning_that_may_be_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_DEPTH", 20)
    y = chain(30)
    with pytest.warns(hv.HookvizWarning, match="more than 20 nodes in a row"), hv.record() as trace:
        y.backward(retain_graph=True)
    assert [step.kind for step in trace.steps] == ["unobserved"]
    assert trace.notes == [trace.steps[0].sentence]
    assert trace.notes[0] in repr(trace)
    with hv.record() as trace:  # pytest's filter makes every warning an error
        y.backward()
    assert len(trace.notes) == 1


# -- the dict of hooks


def test_the_dict_of_hooks_holds_those_of_the_user_alone_and_their_handles_work_afterwards() -> None:
    tensors = scene()
    with hv.record():
        handle = tensors.c.register_hook(c_hook)
        tensors.e.backward(retain_graph=True)
        assert dict(tensors.c._backward_hooks) == {handle.id: c_hook}
    assert list(tensors.c._backward_hooks.values()) == [c_hook]
    handle.remove()
    assert len(tensors.c._backward_hooks) == 0


# -- other uses of record()


def test_a_block_that_is_never_entered_warns_with_its_line() -> None:
    with pytest.warns(hv.HookvizWarning, match=r"Write: with hv\.record\(net\) as trace:") as caught:
        hv.record(Doubled())
    assert caught[0].filename == __file__


def test_the_repr_of_a_block_shows_what_to_write_and_a_block_is_entered_once() -> None:
    block = hv.record()
    assert repr(block).startswith("Nothing is recorded: record() only records in a with block.")
    with block:
        pass
    assert repr(block) == (
        "This recording has started or ended. Its trace is the variable after 'as': with hv.record(net) as trace:"
    )
    with pytest.raises(RuntimeError, match="call record\\(\\) again"), block:
        pass
