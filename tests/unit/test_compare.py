"""``Trace.diff`` reports which gradients of two traces differ, by how much, and the first hook that differs."""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from scenes import Scene, c_hook, leaf, plain, scene, silent
from torch import nn

import hookviz as hv
from hookviz.trace import Note

Hooks = Mapping[str, Callable[..., Any]]


def record_scene(hooks: Hooks, join: Callable[..., torch.Tensor] = operator.mul, seed: float = 1.0) -> hv.Trace:
    """Record the backward pass of ``scene`` with hooks on the named tensors."""
    tensors = scene(join)
    for name, hook in hooks.items():
        getattr(tensors, name).register_hook(hook)
    tensors.c.retain_grad()
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(torch.tensor(seed))
    return trace


def record_run(run: Callable[[], Any], **names: torch.Tensor) -> hv.Trace:
    with hv.record(names=names) as trace:
        run()
    return trace


def describe_rows(comparison: Any) -> list[tuple[Any, ...]]:
    return [(row.on, row.kind, plain(row.before), plain(row.after), row.amount) for row in comparison]


def first_hook(comparison: Any) -> tuple[str, str] | None:
    return None if comparison.first is None else (comparison.first.hook.name, comparison.first.on)


def double(grad: torch.Tensor) -> torch.Tensor:
    return grad * 2


def nan(grad: torch.Tensor) -> torch.Tensor:
    return grad * math.nan


# -- the same graph, with and without a hook


def test_a_missing_hook_is_reported_as_the_first_difference() -> None:
    hooks = {"e": double, "c": c_hook, "d": lambda grad: grad + 100}
    without = record_scene({name: hook for name, hook in hooks.items() if name != "c"})
    trace = record_scene(hooks)
    difference = trace.diff(without)
    assert describe_rows(difference) == [
        ("c", "retain_grad", 10, 8, 2),
        ("a", "accumulate", 30, 24, 6),
        ("b", "accumulate", 20, 16, 4),
    ]
    assert first_hook(difference) == ("c_hook", "c")
    assert difference.first.trace is trace._data
    assert "Gradients that differ: 3. The difference begins with c_hook on c" in difference.sentence
    assert difference.sentence.endswith(f"step {difference.first.index + 1} of this trace.")


def test_a_hook_with_another_result_is_the_first_difference() -> None:
    def scale_by(factor: float) -> Callable[..., torch.Tensor]:
        def scale(grad: torch.Tensor) -> torch.Tensor:
            return grad * factor

        return scale

    one = record_scene({"e": double, "c": scale_by(2), "a": double})
    other = record_scene({"e": double, "c": scale_by(3), "a": double})
    difference = one.diff(other)
    assert first_hook(difference) == ("scale", "c")
    assert difference.first.trace is other._data


def test_a_hook_that_returns_none_is_not_blamed() -> None:
    with_hook, without = record_scene({"e": silent("looks"), "c": c_hook}), record_scene({})
    assert first_hook(with_hook.diff(without)) == ("c_hook", "c")
    difference = record_scene({"c": silent("looks")}).diff(without)
    assert difference.first is None
    assert difference.sentence == (
        "No gradient differs between the two traces. Hooks that were seen to fire only in this trace: tensor hook "
        "looks on c."
    )


def test_of_two_different_hooks_the_earlier_one_is_reported() -> None:
    later, earlier = (record_scene({name: double}, operator.add) for name in "cd")
    for difference in (later.diff(earlier), earlier.diff(later)):
        assert f"The difference begins with double on d, step {difference.first.index + 1}" in difference.sentence


def test_a_different_seed_gradient_is_reported_before_any_hook() -> None:
    difference = record_scene({"e": double}).diff(record_scene({"e": double}, seed=10.0))
    assert describe_rows(difference)[0] == ("e", "seed", 1, 10, 9)
    assert "They differ before any observed hook changes one. The first hook to receive " in difference.sentence
    assert "such a gradient is double on" in difference.sentence


def test_without_hooks_the_sentence_reports_different_programs() -> None:
    difference = record_scene({}).diff(record_scene({}, seed=10.0))
    assert difference.first is None
    assert difference.sentence == (
        "Gradients that differ: 5. No hook ran in either trace, so the programs themselves differ, in their numbers or "
        "in the gradient that they begin with. The first gradient that differs is that of e, step 1 of this trace."
    )


def test_with_unobserved_hooks_the_programs_are_not_blamed() -> None:
    this_trace, other_trace = record_scene({}), record_scene({}, seed=10.0)
    other_trace._data.remarks.append(Note.of("saved", hook="pack"))
    assert this_trace.diff(other_trace).sentence == (
        "Gradients that differ: 5. No observed hook causes the difference. Not every hook of the two runs was "
        "observed: an unobserved hook may be the cause."
    )


# -- equal traces


def test_equal_traces_have_no_difference() -> None:
    one, other = record_scene({"c": c_hook}), record_scene({"c": c_hook})
    for difference in (one.diff(one), one.diff(other)):
        assert (len(difference), difference.first) == (0, None)
        assert repr(difference) == difference.sentence == "No gradient differs between the two traces."
        assert "No gradient differs" in difference._repr_html_()


def test_nan_equals_nan() -> None:
    assert len(record_scene({"c": nan}).diff(record_scene({"c": nan}))) == 0
    against_numbers = describe_rows(record_scene({"c": nan}).diff(record_scene({})))
    assert all(math.isnan(row[-1]) for row in against_numbers) and len(against_numbers) == 3


# -- what is compared


def test_backward_passes_are_compared_one_by_one() -> None:
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
    assert describe_rows(difference) == [("a", "arrive", 6, 3, 3), ("a", "accumulate", 12, 9, 3)]
    assert (first_hook(difference), difference.first.pass_id) == (("double", "y"), 1)


def test_of_traces_that_stopped_at_different_passes_the_common_ones_are_compared() -> None:
    def run(total: int, keep: int | None = None) -> hv.Trace:
        a = leaf(2.0)
        a.register_hook(double)
        with hv.record(keep=keep) as trace:
            for number in range(1, total + 1):
                a.grad = None
                (a * number).backward()
            (a * 2).exp()
        return trace

    for other in (run(2), run(3, keep=2)):
        comparison = run(4).diff(other)
        assert len(comparison) == 0
        assert comparison.sentence.endswith("were compared, 2: this trace has 4, the other 2.")


def test_nodes_that_torch_adds_for_full_backward_hooks_do_not_change_the_graph() -> None:
    def doubled(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
        return (grad_input[0] * 2,)

    net, traces = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)), []
    for layer in net:
        nn.init.constant_(layer.weight, 2.0)
    for hook in (doubled, silent("looks")):
        with net[1].register_full_backward_hook(hook), hv.record(net) as trace:
            net(torch.ones(1, 1)).sum().backward()
        net.zero_grad()
        traces.append(trace)
    difference = traces[0].diff(traces[1])
    assert first_hook(difference) == ("doubled", "net.1")
    accumulated = [row[2:] for row in describe_rows(difference) if row[1] == "accumulate"]
    assert accumulated == [([[4]], [[2]], 2)]


def record_embedding(*, sparse: bool) -> hv.Trace:
    table = nn.Embedding(3, 2, sparse=sparse)
    with hv.record() as trace:
        table(torch.tensor([1])).sum().backward()
    return trace


@pytest.mark.parametrize("sparse", [True, False])
def test_gradients_with_unknown_numbers_in_one_trace_are_counted_as_not_compared(sparse: bool) -> None:
    sentence = record_embedding(sparse=True).diff(record_embedding(sparse=sparse)).sentence
    assert ("No gradient differs" in sentence) is sparse
    assert sentence.endswith("could not be compared, because their numbers are not known: 2.")


# -- what cannot be compared


def test_comparing_with_a_non_trace_is_refused() -> None:
    with pytest.raises(TypeError, match=r"diff\(\) takes the other trace; this is a str"):
        record_scene({}).diff("trace.json")


DIFFERENT_GRAPHS: dict[str, tuple[Callable[[Scene], Any], Callable[[Scene], Any]]] = {
    "at slot 1 of ExpBackward0 .root., this one has MulBackward0 and the other has AddBackward0": (
        lambda t: (t.a * t.b).exp(),
        lambda t: (t.a + t.b).exp(),
    ),
    "at slot 2 of MulBackward0.*, two paths meet in one AccumulateGrad node in one of them": (
        lambda t: t.a * t.a,
        lambda t: t.a * t.b,
    ),
}
"""What is said → two graphs."""


@pytest.mark.parametrize("expected", DIFFERENT_GRAPHS)
def test_different_graphs_are_refused_with_the_first_different_node(expected: str) -> None:
    roots = [build(scene()) for build in DIFFERENT_GRAPHS[expected]]
    one, other = (record_run(lambda root=root: torch.autograd.backward(root)) for root in roots)
    with pytest.raises(ValueError, match=expected):
        one.diff(other)
