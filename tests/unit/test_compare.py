"""Two traces of one program: which gradients differ, by how much, and from which hook on."""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import Scene, c_hook, leaf, plain, scene, silent
from torch import nn

import hookviz as hv
from hookviz.trace import Note, StepRow

Hooks = Mapping[str, Callable[..., Any]]


def recorded(hooks: Hooks, join: Callable[..., torch.Tensor] = operator.mul, seed: float = 1.0) -> hv.Trace:
    """The pass over the picture with a hook on some of its tensors; all gradients are kept."""
    tensors = scene(join)
    for name, hook in hooks.items():
        getattr(tensors, name).register_hook(hook)
    tensors.c.retain_grad()
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(torch.tensor(seed))
    return trace


def program(run: Callable[[], Any], **names: torch.Tensor) -> hv.Trace:
    with hv.record(names=names) as trace:
        run()
    return trace


def told(comparison: Any) -> list[tuple[Any, ...]]:
    return [(row.on, row.kind, plain(row.before), plain(row.after), row.amount) for row in comparison]


def culprit(comparison: Any) -> tuple[str, str] | None:
    return None if comparison.first is None else (comparison.first.hook.name, comparison.first.on)


def double(grad: torch.Tensor) -> torch.Tensor:
    return grad * 2


def nan(grad: torch.Tensor) -> torch.Tensor:
    return grad * math.nan


# -- the picture, with and without a hook


def test_with_and_without_c_hook() -> None:
    hooks = {"e": double, "c": c_hook, "d": lambda grad: grad + 100}
    without = recorded({name: hook for name, hook in hooks.items() if name != "c"})
    trace = recorded(hooks)
    difference = trace.diff(without)
    assert told(difference) == [
        ("c", "retain_grad", 10, 8, 2),
        ("a", "accumulate", 30, 24, 6),
        ("b", "accumulate", 20, 16, 4),
    ]
    assert culprit(difference) == ("c_hook", "c")
    assert difference.first.trace is trace
    assert "Gradients that differ: 3. The difference begins with c_hook on c" in difference.sentence
    assert difference.sentence.endswith(f"step {difference.first.index + 1} of this trace.")


def test_the_firing_that_only_the_other_trace_has_is_found_there() -> None:
    other = recorded({"c": c_hook})
    difference = recorded({}).diff(other)
    assert difference.first == next(iter(other.firings))
    assert "of the other trace" in difference.sentence


def test_a_hook_that_returns_something_else_is_found_in_the_other_trace() -> None:
    factor = [2.0]

    def scale(grad: torch.Tensor) -> torch.Tensor:
        return grad * factor[0]

    one = recorded({"e": double, "c": scale, "a": double})
    factor[0] = 3.0
    other = recorded({"e": double, "c": scale, "a": double})
    difference = one.diff(other)
    assert culprit(difference) == ("scale", "c")
    assert difference.first.trace is other


def test_a_hook_that_only_looks_makes_no_difference() -> None:
    with_it, without = recorded({"e": silent("looks"), "c": c_hook}), recorded({})
    assert culprit(with_it.diff(without)) == ("c_hook", "c")
    assert recorded({"c": silent("looks")}).diff(without).first is None


def test_the_in_place_trap() -> None:
    def in_place(grad: torch.Tensor) -> None:
        grad *= 100

    difference = recorded({}, operator.add).diff(recorded({"d": in_place}, operator.add))
    assert {(row[0], *row[2:]) for row in told(difference)} == {
        ("c", 1, 100, 99),
        ("a", 3, 300, 297),
        ("b", 2, 200, 198),
        ("d", 1, 100, 99),
    }
    assert culprit(difference) == ("in_place", "d")


def test_an_edit_in_place_against_a_new_tensor() -> None:
    def times_in_place(grad: torch.Tensor) -> None:
        grad *= 100

    def times(grad: torch.Tensor) -> torch.Tensor:
        return grad * 100

    times_in_place.__name__ = "times"
    difference = recorded({"d": times}, operator.add).diff(recorded({"d": times_in_place}, operator.add))
    assert {row[0] for row in told(difference)} == {"a", "b", "c"}
    assert (culprit(difference), difference.first.effect) == (("times", "d"), "edited")


def test_the_same_hooks_in_another_order() -> None:
    def ordered(*hooks: Callable[..., Any]) -> hv.Trace:
        a = leaf(3.0)
        for hook in hooks:
            a.register_hook(hook)
        return program((a * 2).backward, a=a)

    difference = ordered(double, c_hook).diff(ordered(c_hook, double))
    assert told(difference) == [("a", "accumulate", 6, 8, 2)]
    assert culprit(difference) == ("c_hook", "a")


@pytest.mark.parametrize("swapped", [False, True])
def test_where_each_has_a_hook_of_its_own_the_earlier_one_is_named(swapped: bool) -> None:
    traces = [recorded({"c": double}, operator.add), recorded({"d": lambda grad: grad.mul_(100)}, operator.add)]
    difference = traces[swapped].diff(traces[not swapped])
    assert difference.first.on == "d"
    assert f"The difference begins with λ grad.mul_(100) on d, step {difference.first.index + 1}" in difference.sentence


def test_another_seed_differs_before_any_hook() -> None:
    difference = recorded({"e": double}).diff(recorded({"e": double}, seed=10.0))
    assert told(difference)[0] == ("e", "seed", 1, 10, 9)
    assert culprit(difference) == ("double", "e")
    assert "They differ before any observed hook changes one. The first hook to receive " in difference.sentence
    assert "such a gradient is double on" in difference.sentence


def test_a_hook_more_is_not_blamed_for_another_seed() -> None:
    difference = recorded({}).diff(recorded({"c": c_hook}, seed=10.0))
    assert culprit(difference) == ("c_hook", "c")
    assert "They differ before any observed hook changes one" in difference.sentence


def test_a_hook_that_sees_another_input_is_not_blamed_for_it() -> None:
    def run(number: float) -> hv.Trace:
        layer = nn.Bilinear(1, 1, 1)
        layer.register_forward_hook(silent("looks"))
        with hv.record(layer) as trace:
            layer(torch.tensor([number]), torch.ones(1)).backward()
        return trace

    difference = run(1.0).diff(run(2.0))
    assert culprit(difference) == ("looks", "layer")
    assert "They differ before any observed hook changes one" in difference.sentence


def test_without_hooks_the_sentence_says_that_none_makes_the_difference() -> None:
    difference = recorded({}).diff(recorded({}, seed=10.0))
    assert difference.first is None
    assert difference.sentence == (
        "Gradients that differ: 5. No hook ran in either trace, so the programs themselves differ, in their numbers or "
        "in the gradient that they begin with. The first gradient that differs is that of e, step 1 of this trace."
    )


def test_the_first_difference_says_of_which_trace_its_step_is() -> None:
    a, b = leaf(2.0), leaf(3.0)

    def run(*inputs: torch.Tensor) -> hv.Trace:
        e = a * b
        trace = program(lambda: e.backward(inputs=list(inputs) or None), a=a, b=b, e=e)
        a.grad = b.grad = None
        return trace

    step = next(step for step in run().steps if (step.kind, step.on) == ("accumulate", "a"))
    assert f"that of a, step {step.index + 1} of the other trace." in run(b).diff(run()).sentence
    assert f"that of a, step {step.index + 1} of this trace." in run().diff(run(b)).sentence


def unnamed(*hooks: Callable[..., Any], seed: float = 1.0) -> hv.Trace:
    """A pass in which the tensor with the hooks is gone before the recording begins."""
    a = leaf(2.0)
    c = a * 2
    for hook in hooks:
        c.register_hook(hook)
    e = (c * 3).sum()
    del c
    return program(lambda: e.backward(torch.tensor(seed)), a=a, e=e)


def test_a_hook_that_cannot_be_named_may_make_the_difference() -> None:
    hooked, bare = unnamed(lambda grad: grad * 10), unnamed()
    step = next(step for step in hooked.steps if step.kind == "unknown_hook")
    for difference, which in ((bare.diff(hooked), "the other trace"), (hooked.diff(bare), "this trace")):
        assert difference.first is None
        assert difference.sentence == (
            f"Gradients that differ: {len(difference)}. No observed hook causes the difference. An unknown hook "
            f"changed the gradient of {step.on}, step {step.index + 1} of {which}: it may be the cause."
        )


def test_a_hook_that_cannot_be_named_and_does_the_same_in_both_is_not_blamed() -> None:
    same = unnamed(lambda grad: grad * 10).diff(unnamed(lambda grad: grad * 10, seed=2.0))
    assert same.sentence == f"Gradients that differ: {len(same)}. No observed hook causes the difference."
    other = unnamed(lambda grad: grad * 10).diff(unnamed(lambda grad: grad * 20))
    assert "An unknown hook changed the gradient of" in other.sentence


def test_where_not_all_was_observed_no_program_is_blamed() -> None:
    here, there = recorded({}), recorded({}, seed=10.0)
    said = (
        "Gradients that differ: 5. No observed hook causes the difference. Not every hook of the two runs was "
        "observed: an unobserved hook may be the cause."
    )
    compiled = StepRow(0, "compiled", region="forward")
    assert here.diff(replace(there, rows=[*there.rows, compiled])).sentence == said
    there.remarks.append(Note.of("note.unfollowed", kind="prehook", on="e"))
    assert here.diff(there).sentence == said


def test_where_hooks_do_the_same_in_both_that_is_said() -> None:
    layer = nn.Linear(1, 1, bias=False)
    layer.weight.register_hook(silent("looks"))

    def run(*more: Callable[..., Any]) -> hv.Trace:
        x = leaf(2.0)
        handles = [x.register_hook(hook) for hook in more]
        with hv.record() as trace:
            (x * x).backward()
        for handle in handles:
            handle.remove()
        return trace

    assert run(silent("one")).diff(run(silent("one"))).sentence == "No gradient differs between the two traces."


# -- equal traces


def test_equal_traces() -> None:
    one, other = recorded({"c": c_hook}), recorded({"c": c_hook})
    for difference in (one.diff(one), one.diff(other)):
        assert (len(difference), difference.first) == (0, None)
        assert repr(difference) == difference.sentence == "No gradient differs between the two traces."
        assert "No gradient differs" in difference._repr_html_()


def test_a_hook_more_that_changes_no_number_leaves_the_traces_equal() -> None:
    difference = recorded({"c": lambda grad: grad * 1}).diff(recorded({}))
    assert (len(difference), difference.first) == (0, None)


def test_one_nan_among_numbers_makes_the_difference_nan() -> None:
    def run(factor: float) -> hv.Trace:
        v = leaf(1.0, 2.0)
        return program((v * torch.tensor([5.0, factor])).sum().backward, v=v)

    assert all(math.isnan(row[-1]) for row in told(run(1.0).diff(run(math.nan))))


def test_nan_is_like_nan() -> None:
    assert len(recorded({"c": nan}).diff(recorded({"c": nan}))) == 0
    against_numbers = told(recorded({"c": nan}).diff(recorded({})))
    assert all(math.isnan(row[-1]) for row in against_numbers) and len(against_numbers) == 3


def test_infinity_less_infinity_is_nothing() -> None:
    def partly(grad: torch.Tensor) -> torch.Tensor:
        return torch.stack([grad[0] * math.inf, grad[1] + 1])

    def run(hook: Callable[..., Any]) -> hv.Trace:
        v = leaf(1.0, 2.0)
        v.register_hook(partly)
        v.register_hook(hook)
        return program((v * 3).sum().backward, v=v)

    assert [row[-1] for row in told(run(double).diff(run(silent("looks"))))] == [4]


def test_traces_from_files_compare_like_those_at_hand(tmp_path: Path) -> None:
    one, other = recorded({"c": c_hook}), recorded({"c": nan})
    one.save(tmp_path / "one.json")
    other.save(tmp_path / "other.json")
    loaded = hv.load(tmp_path / "one.json"), hv.load(tmp_path / "other.json")
    assert repr(loaded[0].diff(loaded[1])) == repr(one.diff(other)) == repr(one.diff(loaded[1]))
    assert len(one.diff(loaded[0])) == len(loaded[1].diff(other)) == 0


# -- what is compared


def test_nodes_are_matched_by_their_places_and_not_by_their_numbers() -> None:
    tensors = scene()
    with hv.record(names=tensors._asdict()) as other:
        leaf(1.0).exp().backward()
        tensors.e.backward()
    tensors = scene()
    with hv.record(names=tensors._asdict()) as one:
        tensors.b.exp().backward()  # the leaf has its number before the rest of the graph
        tensors.b.grad = None
        tensors.e.backward()
    assert one.ops != other.ops
    assert {row.on for row in one.diff(other)} == {"b"}  # exp(3) is not exp(1)


def test_several_passes_are_compared_one_by_one() -> None:
    def run(remove: bool) -> hv.Trace:
        a = leaf(2.0)
        y = a * 3
        handle = y.register_hook(double)
        with hv.record() as trace:
            y.backward(retain_graph=True)
            if remove:
                handle.remove()
            y.backward()
        return trace

    difference = run(False).diff(run(True))
    assert told(difference) == [("a", "arrive", 6, 3, 3), ("a", "accumulate", 12, 9, 3)]
    assert (culprit(difference), difference.first.pass_id) == (("double", "y"), 1)


def test_gradients_that_are_returned() -> None:
    def run(*hooks: Callable[..., Any]) -> hv.Trace:
        a = leaf(2.0)
        y = a * 3
        for hook in hooks:
            a.register_hook(hook)
        return program(lambda: torch.autograd.grad(y, a), a=a)

    assert told(run(double).diff(run())) == [("a", "returned", 6, 3, 3)]


def test_a_post_accumulate_hook_changes_what_stays_in_grad() -> None:
    def halve(parameter: torch.Tensor) -> None:
        parameter.grad /= 2

    def run(hook: Callable[..., Any]) -> hv.Trace:
        a = leaf(2.0)
        a.register_post_accumulate_grad_hook(hook)
        return program((a * 3).backward, a=a)

    difference = run(halve).diff(run(silent("looks")))
    assert told(difference) == [("a", "accumulate", 1.5, 3, 1.5)]
    assert culprit(difference) == ("halve", "a")


def test_large_gradients_are_compared_by_their_norms() -> None:
    def run(factor: float) -> hv.Trace:
        w = torch.ones(100, requires_grad=True)
        return program((w * factor).sum().backward, w=w)

    assert [(row[0], row[-1]) for row in told(run(3.0).diff(run(1.0)))] == [("w", 20)]


def test_a_gradient_that_only_one_of_them_has() -> None:
    def stop(grad: torch.Tensor) -> None:
        raise ValueError("stop")

    tensors = scene()
    tensors.c.register_hook(stop)
    with pytest.raises(ValueError, match="stop"), hv.record(names=tensors._asdict()) as stopped:
        tensors.e.backward()
    difference = stopped.diff(recorded({}))
    assert {row[0]: row[2:] for row in told(difference) if row[0] in "ab"} == {
        "a": (None, 12, None),
        "b": (None, 8, None),
    }
    assert [row[-1] for row in difference.texts()][-1].startswith("None → ")


def test_gradients_whose_numbers_are_not_known_are_counted_and_not_called_equal() -> None:
    table = nn.Embedding(3, 2, sparse=True)
    with hv.record() as trace:
        table(torch.tensor([1])).sum().backward()
    sentence = trace.diff(trace).sentence
    assert "No gradient differs" in sentence
    assert sentence.endswith("could not be compared, because their numbers are not known: 2.")


class Net(nn.Module):
    """Two layers of one number each, the first shared by two calls."""

    def __init__(self) -> None:
        super().__init__()
        self.l1, self.l2 = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        for layer in (self.l1, self.l2):
            nn.init.constant_(layer.weight, 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Through the first layer twice."""
        return self.l2(self.l1(self.l1(x)))


def of_net(change: Callable[[Net], Any]) -> hv.Trace:
    net = Net()
    change(net)
    x = torch.ones(1, 1, requires_grad=True)
    with hv.record(net) as trace:
        net(x).sum().backward()
    return trace


def test_a_full_backward_hook_and_the_nodes_that_torch_adds_for_it_are_no_other_graph() -> None:
    def doubled(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
        return (grad_input[0] * 2,)

    without = of_net(lambda net: None)
    difference = of_net(lambda net: net.l2.register_full_backward_hook(doubled)).diff(without)
    assert culprit(difference) == ("doubled", "net.l2")
    ends = [(row[0], *row[2:]) for row in told(difference) if row[1] == "accumulate"]
    assert sorted(ends) == [("net.l1.weight", [[16]], [[8]], 8), ("x", [[16]], [[8]], 8)]


def test_where_backward_starts_inside_such_nodes_nothing_differs() -> None:
    def of_linear(register: Callable[[nn.Module], Any]) -> hv.Trace:
        layer = nn.Linear(1, 1)
        nn.init.constant_(layer.weight, 3.0)
        register(layer)
        with hv.record(layer) as trace:
            layer(torch.ones(1, 1, requires_grad=True)).backward()
        return trace

    full = of_linear(lambda layer: layer.register_full_backward_hook(silent("look")))
    assert str(full.diff(of_linear(lambda layer: None))) == "No gradient differs between the two traces."


def test_a_forward_hook_that_changes_numbers_only_is_found() -> None:
    def added(module: nn.Module, args: Any, output: torch.Tensor) -> None:
        output.data += 1

    difference = of_net(lambda net: None).diff(of_net(lambda net: net.l1.register_forward_hook(added)))
    assert culprit(difference) == ("added", "net.l1")


def test_values_of_several_things_are_compared_one_by_one() -> None:
    def run(factor: float) -> hv.Trace:
        def scaled(module: nn.Module, args: Any) -> Any:
            return args[0], args[1] * factor

        layer = nn.Bilinear(1, 1, 1, bias=False)
        nn.init.constant_(layer.weight, 1.0)
        layer.register_forward_pre_hook(scaled)
        with hv.record(layer) as trace:
            layer(torch.ones(1), torch.ones(1)).sum().backward()
        return trace

    assert culprit(run(1.0).diff(run(3.0))) == ("scaled", "layer")
    assert run(3.0).diff(run(3.0)).first is None


# -- what cannot be compared


@pytest.mark.parametrize("other", [None, 3, "trace.json"])
def test_what_is_no_trace_is_refused(other: object) -> None:
    with pytest.raises(TypeError, match=r"diff\(\) takes the other trace; this is"):
        recorded({}).diff(other)


def graph(build: Callable[[Scene], Any]) -> hv.Trace:
    tensors = scene()
    root = build(tensors)
    return program(lambda: torch.autograd.backward(root))


DIFFERENT = {
    "at the root": (
        lambda t: t.e.exp(),
        lambda t: t.e.sin(),
        "at the root of pass 1, this one has ExpBackward0 and the other has SinBackward0",
    ),
    "further on": (
        lambda t: (t.a * t.b).exp().sin(),
        lambda t: (t.a + t.b).exp().sin(),
        "at slot 1 of ExpBackward0, this one has MulBackward0 and the other has AddBackward0",
    ),
    "an end": (
        lambda t: t.a * t.b,
        lambda t: t.a * 3,
        "at slot 2 of MulBackward0.*, this one has AccumulateGrad and the other has nothing",
    ),
    "another output": (
        lambda t: torch.stack([t.a, t.b]).unbind()[0].exp(),
        lambda t: torch.stack([t.a, t.b]).unbind()[1].exp(),
        r"this one has UnbindBackward0 and the other has UnbindBackward0 \(its output 2\)",
    ),
    "a leaf twice": (
        lambda t: (t.a * t.a).exp(),
        lambda t: (t.a * t.b).exp(),
        "at slot 2 of MulBackward0.*, two paths meet in one AccumulateGrad node in one of them",
    ),
    "two leaves": (
        lambda t: (t.a * t.b).exp(),
        lambda t: (t.a * t.a).exp(),
        "at slot 2 of MulBackward0.*, two paths meet in one AccumulateGrad node in one of them",
    ),
    "more roots": (
        lambda t: [t.a.exp()],
        lambda t: [t.a.exp(), t.b.exp()],
        r"pass 1 begins at 1 root\(s\) in this one",
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_graphs_that_differ_are_refused_with_the_place_where_they_part(case: str) -> None:
    one, other, said = DIFFERENT[case]
    with pytest.raises(ValueError, match=said):
        graph(one).diff(graph(other))


def test_another_number_of_passes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"this one has 1 backward pass\(es\), the other 0"):
        recorded({}).diff(hv.Trace())


def test_jupyter_shows_both_side_by_side_and_the_sentence() -> None:
    html = recorded({"c": c_hook}).diff(recorded({}))._repr_mimebundle_()["text/html"]
    assert "hv-state" in html
    assert "Gradients that differ: 3." in html
