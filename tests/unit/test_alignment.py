"""Alignment gives several traces of one program common node numbers and matching rows."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import c_hook, hook_everything, leaf, plain, scene
from torch import nn

import hookviz as hv
from hookviz.analysis.comparison.alignment import ABSENT, align


def record_scene(*hooks: str, backward: Callable[[Any], Any] = lambda tensors: tensors.e.backward()) -> hv.Trace:
    """Record the backward pass of ``scene`` with c_hook on the tensors named in ``hooks``."""
    tensors = scene()
    for name in hooks:
        getattr(tensors, name).register_hook(c_hook)
    with hv.record(names=tensors._asdict()) as trace:
        backward(tensors)
    return trace


def describe_steps(trace: hv.Trace) -> list[tuple[Any, ...]]:
    """Describe each step that is present, without the numbers of unnamed nodes."""
    present = [step for step in trace.steps if step.kind != ABSENT]
    label = [step.hook and (step.hook.label, step.hook.on) for step in present]
    return [
        (
            step.kind,
            without_node_numbers(step.on),
            hook,
            repr(step.before),
            repr(step.after),
            without_node_numbers(repr(step.parts)),
        )
        for step, hook in zip(present, label, strict=True)
    ]


def without_node_numbers(text: str) -> str:
    return re.sub(r" #\d+", "", text)


HOOKED_TENSORS = {
    "the same": ((), ()),
    "an additional hook": ((), ("c",)),
    "a missing hook": (("c", "d"), ("d",)),
    "another hook": (("c",), ("e",)),
    "many hooks": (("a", "b", "c", "d", "e"), ("e", "d")),
}


@pytest.mark.parametrize(("first_hooks", "second_hooks"), HOOKED_TENSORS.values(), ids=HOOKED_TENSORS)
def test_alignment_preserves_the_steps_of_each_trace(
    first_hooks: tuple[str, ...], second_hooks: tuple[str, ...]
) -> None:
    traces = [record_scene(*first_hooks), record_scene(*second_hooks)]
    steps_before = [describe_steps(trace) for trace in traces]
    aligned = align(traces)
    assert [describe_steps(trace) for trace in aligned] == steps_before
    assert len({len(trace.rows) for trace in aligned}) == 1


@pytest.mark.parametrize(("first_hooks", "second_hooks"), HOOKED_TENSORS.values(), ids=HOOKED_TENSORS)
def test_aligned_steps_have_the_same_kind_and_tensor(first_hooks: Any, second_hooks: Any) -> None:
    first, second = align([record_scene(*first_hooks), record_scene(*second_hooks)])
    for first_step, second_step in zip(first.steps, second.steps, strict=True):
        if ABSENT not in (first_step.kind, second_step.kind):
            assert (first_step.kind, first_step.on, first_step.node, first_step.row.hook) == (
                second_step.kind,
                second_step.on,
                second_step.node,
                second_step.row.hook,
            )
    unmatched_hooks = [
        step.hook for pair in zip(first.steps, second.steps, strict=True) for step in pair if ABSENT in kinds(pair)
    ]
    assert {hook.on for hook in unmatched_hooks if hook is not None} == set(first_hooks) ^ set(second_hooks)


def test_nodes_missing_from_the_first_trace_are_matched_by_their_computation() -> None:
    def record_function(function: Callable[[torch.Tensor], torch.Tensor]) -> hv.Trace:
        x = leaf(2.0)
        with hv.record(names={"x": x}) as trace:
            function(x).backward()
        return trace

    traces = align(
        [record_function(f) for f in (torch.cos, lambda x: x.exp().exp(), lambda x: x.sin().exp(), torch.exp)]
    )
    roots = [next(step.node for step in trace.steps if step.kind == "seed") for trace in traces]
    assert len(set(roots)) == 4
    inner = [step.node for step in traces[1].steps if step.kind == "compute"][1]
    assert inner == roots[3]  # both traces compute the exponential of x


def test_nodes_added_by_a_forward_hook_do_not_shift_other_steps() -> None:
    def record_network(hooked: bool) -> hv.Trace:
        net = nn.Sequential(*(nn.Sequential(nn.Linear(1, 1), nn.Tanh()) for _ in range(3)), nn.ReLU())
        for k in range(2):
            if hooked:
                net[k].register_forward_hook(lambda module, args, output: output * 2)
        with hv.record() as trace:
            net(torch.ones(1, 1)).sum().backward()
        return trace

    traces = [record_network(True), record_network(False)]
    steps_before = [describe_steps(trace) for trace in traces]
    first, second = align(traces)
    assert [describe_steps(first), describe_steps(second)] == steps_before
    assert ABSENT not in [step.kind for step in first.steps]
    unmatched_steps = [
        first_step
        for first_step, second_step in zip(first.steps, second.steps, strict=True)
        if second_step.kind == ABSENT
    ]
    hook_steps = [
        step
        for step in unmatched_steps
        if step.hook or (step.node is not None and first.ops[step.node] == "MulBackward0")
    ]
    assert unmatched_steps == hook_steps
    assert len(unmatched_steps) == 6  # the hook runs, and its product passes the gradient on


@pytest.mark.parametrize(("first_order", "second_order"), [("uu", "uv"), ("uv", "uu"), ("uvu", "vvu")])
def test_two_nodes_of_one_trace_are_never_merged(first_order: str, second_order: str) -> None:
    def record_roots(root_names: str) -> hv.Trace:
        x = leaf(2.0)
        roots = {"u": x * 3, "v": x * 3}
        with hv.record(names={"x": x, **roots}) as trace:
            for name in root_names:
                roots[name].backward(retain_graph=True)
        return trace

    traces = [record_roots(first_order), record_roots(second_order)]
    steps_before = [describe_steps(trace) for trace in traces]
    first, second = align(traces)
    assert [describe_steps(first), describe_steps(second)] == steps_before
    numbers = {step.on: step.node for step in [*first.steps, *second.steps] if step.kind == "seed"}
    assert len(set(numbers.values())) == len(numbers) == 2


def kinds(pair: tuple[hv.Step, hv.Step]) -> set[str]:
    return {step.kind for step in pair}


def test_aligning_does_not_modify_the_traces() -> None:
    traces = [record_scene("c"), record_scene("e")]
    before = [repr((trace.rows, trace.hook_rows, trace.edges, trace.ops, trace.hooked)) for trace in traces]
    align(traces)
    assert before == [repr((trace.rows, trace.hook_rows, trace.edges, trace.ops, trace.hooked)) for trace in traces]


def test_aligned_traces_share_hook_rows_and_hook_numbers() -> None:
    first, second = align([record_scene("c"), record_scene("c", "d")])
    assert first.hook_rows == second.hook_rows
    assert [first.hook(i).on for i in first.hooked[0]] == ["c", "d"] == [second.hook(i).on for i in second.hooked[0]]


def test_equal_hooks_are_distinguished_by_the_given_hook_identities() -> None:
    def twice() -> hv.Trace:
        x = leaf(3.0)
        x.register_hook(c_hook)
        x.register_hook(c_hook)
        with hv.record() as trace:
            (x * 1).backward()
        return trace

    whole, shortened = twice(), twice()
    shortened.hook_rows = shortened.hook_rows[1:]  # as if the first had not been registered
    shortened.hooked = [[0]]
    shortened.rows = [row._replace(hook=row.hook - 1) if row.hook else row for row in shortened.rows if row.hook != 0]
    _, guessed = align([whole, shortened])
    _, identified = align([whole, shortened], [{0: "one", 1: "two"}, {0: "two"}])
    assert [step.row.hook for step in guessed.firings] == [0]
    assert [step.row.hook for step in identified.firings] == [1]


def test_steps_in_different_orders_get_separate_rows() -> None:
    a, b = leaf(2.0), leaf(3.0)

    def trace_of(*order: torch.Tensor) -> hv.Trace:
        with hv.record(names={"a": a, "b": b}) as trace:
            for tensor in order:
                (tensor * 1).backward()
        return trace

    traces = [trace_of(a, b), trace_of(a, b)]
    traces[1].rows = [*traces[1].rows[4:], *traces[1].rows[:4]]
    steps_before = [describe_steps(trace) for trace in traces]
    aligned = align(traces)
    assert [describe_steps(trace) for trace in aligned] == steps_before
    assert len(aligned[0].rows) > len(traces[0].rows)


def test_aliased_steps_keep_their_cause() -> None:
    def record_in_place_edit(*hooked_names: str) -> hv.Trace:
        a, b = leaf(2.0), leaf(3.0)
        c, d = a * 1, b * 1
        e = c + d
        d.register_hook(lambda grad: grad.mul_(100))
        for name in hooked_names:
            {"e": e, "c": c}[name].register_hook(lambda grad: None)
        with hv.record(names={"a": a, "b": b, "c": c, "d": d, "e": e}) as trace:
            e.backward()
        return trace

    for trace in align([record_in_place_edit(), record_in_place_edit("e", "c")]):
        aliased = [step for step in trace.steps if step.kind == "aliased"]
        for step in aliased:
            assert step.row.cause is not None
            assert trace.steps[step.row.cause].effect == "edited"
        assert aliased


class Tripled(nn.Module):
    """A layer whose output a hook can replace, which changes the graph."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply ``x`` by 3."""
        return x * 3


def module_trace(*, hook: bool) -> hv.Trace:
    net, x = Tripled(), leaf(2.0)
    if hook:
        net.register_forward_hook(lambda module, args, output: output + 1)
    with hv.record(net, names={"x": x}) as trace:
        y = net(x)
        y.backward()
    return trace


def test_different_graphs_are_aligned_by_tensor_names_and_module_calls() -> None:
    traces = [module_trace(hook=False), module_trace(hook=True)]
    steps_before = [describe_steps(trace) for trace in traces]
    aligned = align(traces)
    assert [describe_steps(trace) for trace in aligned] == steps_before
    leaves = [{step.node for step in trace.steps if step.kind == "accumulate"} for trace in aligned]
    assert leaves[0] == leaves[1]
    assert aligned[0].calls == aligned[1].calls
    assert aligned[0].edges != aligned[1].edges


def test_a_backward_pass_in_only_one_trace_is_kept() -> None:
    def passes(count: int) -> hv.Trace:
        x = leaf(3.0)
        with hv.record(names={"x": x}) as trace:
            for _ in range(count):
                (x * x).backward()
        return trace

    traces = [passes(1), passes(2)]
    steps_before = [describe_steps(trace) for trace in traces]
    assert [describe_steps(trace) for trace in align(traces)] == steps_before


def train_with_grad_scaler() -> None:
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)), torch.ones(1, 2, requires_grad=True)
    for layer in (net[0], net[2]):  # each adds nodes
        layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    (torch.amp.GradScaler("cpu", init_scale=1024.0).scale(net(x).sum()) + (x * 3).sum()).backward()


def test_alignment_preserves_gradient_scales() -> None:
    traces = list(hv.whatif(train_with_grad_scaler).traces.values())
    for trace, aligned in zip(traces, align(traces), strict=True):
        steps = [step for step in aligned.steps if step.kind != ABSENT]
        assert [(step.scale, step.kind) for step in steps] == [(step.scale, step.kind) for step in trace.steps]
        assert {step.scale for step in steps} > {None}


def recorded_in_part(*, hooked: bool) -> hv.Trace:
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)), torch.ones(1, 2, requires_grad=True)
    if hooked:  # it adds nodes
        net[0].register_full_backward_hook(lambda module, grad_input, grad_output: None)
    with hv.record(net[0]) as trace:
        net(x).sum().backward()
    return trace


def test_alignment_preserves_unrecorded_nodes() -> None:
    traces = [recorded_in_part(hooked=False), recorded_in_part(hooked=True)]
    for trace, aligned in zip(traces, align(traces), strict=True):
        outside_names = [sorted(either.name(node) for node in either.outside) for either in (trace, aligned)]
        assert [len(names) for names in outside_names] == [len(trace.outside)] * 2
        assert {aligned.ops[node] for node in aligned.outside} == {trace.ops[node] for node in trace.outside}
        sentences = [step.sentence for step in aligned.steps if step.kind == "accumulate"]
        assert sentences == [step.sentence for step in trace.steps if step.kind == "accumulate"]
        assert not any("not recorded" in sentence for sentence in sentences)


def test_alignment_preserves_the_values_of_each_trace() -> None:
    tensors = scene()
    hook_everything(tensors)
    with hv.record(names=tensors._asdict()) as hooked:
        tensors.e.backward()
    first, second = align([record_scene(), hooked])
    grads = [{s.on: plain(s.after) for s in trace.steps if s.kind == "accumulate"} for trace in (first, second)]
    assert grads == [{"a": 12.0, "b": 8.0, "d": 6.0}, {"a": 30.0, "b": 20.0, "d": 112.0}]
