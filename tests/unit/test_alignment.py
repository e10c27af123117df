"""Several traces of one program in common numbers, row beside row."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import c_hook, hook_everything, leaf, plain, scene
from torch import nn

import hookviz as hv
from hookviz.analysis.comparison.alignment import ABSENT, align


def passed(*hooks: str, backward: Callable[[Any], Any] = lambda tensors: tensors.e.backward()) -> hv.Trace:
    """The picture with c_hook on some of its tensors."""
    tensors = scene()
    for name in hooks:
        getattr(tensors, name).register_hook(c_hook)
    with hv.record(names=tensors._asdict()) as trace:
        backward(tensors)
    return trace


def lines(trace: hv.Trace) -> list[tuple[Any, ...]]:
    """What is told of each step that is there; of a node without a name, not its number."""
    there = [step for step in trace.steps if step.kind != ABSENT]
    label = [step.hook and (step.hook.label, step.hook.on) for step in there]
    return [
        (step.kind, unnumbered(step.on), hook, repr(step.before), repr(step.after), unnumbered(repr(step.parts)))
        for step, hook in zip(there, label, strict=True)
    ]


def unnumbered(text: str) -> str:
    return re.sub(r" #\d+", "", text)


PAIRS = {
    "the same": ((), ()),
    "a hook more": ((), ("c",)),
    "a hook less": (("c", "d"), ("d",)),
    "another hook": (("c",), ("e",)),
    "hooks of all": (("a", "b", "c", "d", "e"), ("e", "d")),
}


@pytest.mark.parametrize(("one", "two"), PAIRS.values(), ids=PAIRS)
def test_each_trace_tells_what_it_told_before(one: tuple[str, ...], two: tuple[str, ...]) -> None:
    traces = [passed(*one), passed(*two)]
    told = [lines(trace) for trace in traces]
    moved = align(traces)
    assert [lines(trace) for trace in moved] == told
    assert len({len(trace.rows) for trace in moved}) == 1


@pytest.mark.parametrize(("one", "two"), PAIRS.values(), ids=PAIRS)
def test_steps_side_by_side_are_of_the_same_kind_on_the_same_tensor(one: Any, two: Any) -> None:
    first, second = align([passed(*one), passed(*two)])
    for here, there in zip(first.steps, second.steps, strict=True):
        if ABSENT not in (here.kind, there.kind):
            assert (here.kind, here.on, here.node, here.row.hook) == (there.kind, there.on, there.node, there.row.hook)
    only = [step.hook for pair in zip(first.steps, second.steps, strict=True) for step in pair if ABSENT in kinds(pair)]
    assert {hook.on for hook in only if hook is not None} == set(one) ^ set(two)


def test_what_only_later_traces_have_is_one_where_it_computes_the_same() -> None:
    def went(function: Callable[[torch.Tensor], torch.Tensor]) -> hv.Trace:
        x = leaf(2.0)
        with hv.record(names={"x": x}) as trace:
            function(x).backward()
        return trace

    traces = align([went(f) for f in (torch.cos, lambda x: x.exp().exp(), lambda x: x.sin().exp(), torch.exp)])
    roots = [next(step.node for step in trace.steps if step.kind == "seed") for trace in traces]
    assert len(set(roots)) == 4
    inner = [step.node for step in traces[1].steps if step.kind == "compute"][1]
    assert inner == roots[3]  # the exponential of x is the same thing wherever it stands


def test_a_forward_hook_that_computes_takes_no_other_step_out_of_its_place() -> None:
    def went(scaled: bool) -> hv.Trace:
        net = nn.Sequential(*(nn.Sequential(nn.Linear(1, 1), nn.Tanh()) for _ in range(3)), nn.ReLU())
        for k in range(2):
            if scaled:
                net[k].register_forward_hook(lambda module, args, output: output * 2)
        with hv.record() as trace:
            net(torch.ones(1, 1)).sum().backward()
        return trace

    traces = [went(True), went(False)]
    told = [lines(trace) for trace in traces]
    first, second = align(traces)
    assert [lines(first), lines(second)] == told
    assert ABSENT not in [step.kind for step in first.steps]
    away = [one for one, two in zip(first.steps, second.steps, strict=True) if two.kind == ABSENT]
    of_hooks = [step for step in away if step.hook or (step.node >= 0 and first.ops[step.node] == "MulBackward0")]
    assert away == of_hooks
    assert len(away) == 6  # the hook runs, and its product passes on what arrives


@pytest.mark.parametrize(("one", "two"), [("uu", "uv"), ("uv", "uu"), ("uvu", "vvu")])
def test_two_nodes_of_one_trace_are_never_one(one: str, two: str) -> None:
    def went(way: str) -> hv.Trace:
        x = leaf(2.0)
        roots = {"u": x * 3, "v": x * 3}
        with hv.record(names={"x": x, **roots}) as trace:
            for name in way:
                roots[name].backward(retain_graph=True)
        return trace

    traces = [went(one), went(two)]
    told = [lines(trace) for trace in traces]
    first, second = align(traces)
    assert [lines(first), lines(second)] == told
    numbers = {step.on: step.node for step in [*first.steps, *second.steps] if step.kind == "seed"}
    assert len(set(numbers.values())) == len(numbers) == 2


def kinds(pair: tuple[hv.Step, hv.Step]) -> set[str]:
    return {step.kind for step in pair}


def test_the_traces_themselves_are_left_alone() -> None:
    traces = [passed("c"), passed("e")]
    before = [repr((trace.rows, trace.hook_rows, trace.edges, trace.ops, trace.hooked)) for trace in traces]
    align(traces)
    assert before == [repr((trace.rows, trace.hook_rows, trace.edges, trace.ops, trace.hooked)) for trace in traces]


def test_every_hook_is_known_to_all_and_has_one_number() -> None:
    first, second = align([passed("c"), passed("c", "d")])
    assert first.hook_rows == second.hook_rows
    assert [first.hook(i).on for i in first.hooked[0]] == ["c", "d"] == [second.hook(i).on for i in second.hooked[0]]


def test_equal_hooks_are_told_apart_by_who_knows_better() -> None:
    def twice() -> hv.Trace:
        x = leaf(3.0)
        x.register_hook(c_hook)
        x.register_hook(c_hook)
        with hv.record() as trace:
            (x * 1).backward()
        return trace

    whole, rest = twice(), twice()
    rest.hook_rows = rest.hook_rows[1:]  # as if the first had not been registered
    rest.hooked = [[0]]
    rest.rows = [row._replace(hook=row.hook - 1) if row.hook else row for row in rest.rows if row.hook != 0]
    _, guessed = align([whole, rest])
    _, told = align([whole, rest], [{0: "one", 1: "two"}, {0: "two"}])
    assert [step.row.hook for step in guessed.firings] == [0]
    assert [step.row.hook for step in told.firings] == [1]


def test_steps_in_another_order_have_a_place_each() -> None:
    a, b = leaf(2.0), leaf(3.0)

    def trace_of(*order: torch.Tensor) -> hv.Trace:
        with hv.record(names={"a": a, "b": b}) as trace:
            for tensor in order:
                (tensor * 1).backward()
        return trace

    traces = [trace_of(a, b), trace_of(a, b)]
    traces[1].rows = [*traces[1].rows[4:], *traces[1].rows[:4]]
    told = [lines(trace) for trace in traces]
    moved = align(traces)
    assert [lines(trace) for trace in moved] == told
    assert len(moved[0].rows) > len(traces[0].rows)


def test_the_cause_of_an_aliased_gradient_is_still_its_cause() -> None:
    def corrupted(*more: str) -> hv.Trace:
        a, b = leaf(2.0), leaf(3.0)
        c, d = a * 1, b * 1
        e = c + d
        d.register_hook(lambda grad: grad.mul_(100))
        for name in more:
            {"e": e, "c": c}[name].register_hook(lambda grad: None)
        with hv.record(names={"a": a, "b": b, "c": c, "d": d, "e": e}) as trace:
            e.backward()
        return trace

    for trace in align([corrupted(), corrupted("e", "c")]):
        aliased = [step for step in trace.steps if step.kind == "aliased"]
        for step in aliased:
            assert step.row.cause is not None
            assert trace.steps[step.row.cause].effect == "edited"
        assert aliased


class Doubled(nn.Module):
    """A layer whose output a hook can replace, which makes another graph."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A product."""
        return x * 3


def module_trace(*, hook: bool) -> hv.Trace:
    net, x = Doubled(), leaf(2.0)
    if hook:
        net.register_forward_hook(lambda module, args, output: output + 1)
    with hv.record(net, names={"x": x}) as trace:
        y = net(x)
        y.backward()
    return trace


def test_where_the_graphs_differ_tensors_of_one_name_and_calls_of_one_module_are_one() -> None:
    traces = [module_trace(hook=False), module_trace(hook=True)]
    told = [lines(trace) for trace in traces]
    moved = align(traces)
    assert [lines(trace) for trace in moved] == told
    leaves = [{step.node for step in trace.steps if step.kind == "accumulate"} for trace in moved]
    assert leaves[0] == leaves[1]
    assert moved[0].calls == moved[1].calls
    assert moved[0].edges != moved[1].edges


def test_a_pass_that_only_one_of_them_has_stays() -> None:
    def passes(count: int) -> hv.Trace:
        x = leaf(3.0)
        with hv.record(names={"x": x}) as trace:
            for _ in range(count):
                (x * x).backward()
        return trace

    traces = [passes(1), passes(2)]
    told = [lines(trace) for trace in traces]
    assert [lines(trace) for trace in align(traces)] == told


def scaled() -> None:
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)), torch.ones(1, 2, requires_grad=True)
    for layer in (net[0], net[2]):  # each adds nodes
        layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    (torch.amp.GradScaler("cpu", init_scale=1024.0).scale(net(x).sum()) + (x * 3).sum()).backward()


def test_scaled_gradients_are_those_of_each_trace() -> None:
    traces = list(hv.whatif(scaled).traces.values())
    for trace, moved in zip(traces, align(traces), strict=True):
        steps = [step for step in moved.steps if step.kind != ABSENT]
        assert [(step.scale, step.kind) for step in steps] == [(step.scale, step.kind) for step in trace.steps]
        assert {step.scale for step in steps} > {None}


def recorded_in_part(*, hooked: bool) -> hv.Trace:
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)), torch.ones(1, 2, requires_grad=True)
    if hooked:  # it adds nodes
        net[0].register_full_backward_hook(lambda module, grad_input, grad_output: None)
    with hv.record(net, only="0") as trace:
        net(x).sum().backward()
    return trace


def test_what_was_not_recorded_is_so_in_each_trace() -> None:
    traces = [recorded_in_part(hooked=False), recorded_in_part(hooked=True)]
    for trace, moved in zip(traces, align(traces), strict=True):
        named = [sorted(one.name(node) for node in one.outside) for one in (trace, moved)]
        assert [len(names) for names in named] == [len(trace.outside)] * 2
        assert {moved.ops[node] for node in moved.outside} == {trace.ops[node] for node in trace.outside}
        written = [step.sentence for step in moved.steps if step.kind == "accumulate"]
        assert written == [step.sentence for step in trace.steps if step.kind == "accumulate"]
        assert not any("not recorded" in sentence for sentence in written)


def test_values_are_those_of_each_trace() -> None:
    tensors = scene()
    hook_everything(tensors)
    with hv.record(names=tensors._asdict()) as hooked:
        tensors.e.backward()
    first, second = align([passed(), hooked])
    grads = [{s.on: plain(s.after) for s in trace.steps if s.kind == "accumulate"} for trace in (first, second)]
    assert grads == [{"a": 12.0, "b": 8.0, "d": 6.0}, {"a": 30.0, "b": 20.0, "d": 112.0}]
