"""What is folded, and into what: levels of at most about forty boxes, however large or strange the graph."""

import math
import random
from typing import Any

import pytest
import torch
from scenes import leaf
from torch import nn

import hookviz as hv
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, Group, Views
from hookviz.picture.grouping.activity import Arrival, BoxActivity, PassActivity, list_norm_ranges, merge_consecutive
from hookviz.picture.grouping.collapsing import part_size
from hookviz.picture.grouping.views import MAX_BOXES_BESIDE_MODEL, View


def views(loss: torch.Tensor, *models: nn.Module) -> Views:
    with hv.record(*models) as trace:
        loss.backward()
    return Views(trace)


def of_model(model: nn.Module, *given: torch.Tensor) -> Views:
    with hv.record(model) as trace:
        model(*given).sum().backward()
    return Views(trace)


def chain(count: int, *, ops: int = 2) -> torch.Tensor:
    x = leaf(1.0)
    for i in range(count):
        x = x * 1.001 if i % ops else x + 0.001
    return x


def fan(count: int) -> torch.Tensor:
    return torch.stack([leaf(float(i)) for i in range(count)]).sum()


def tangle(count: int, seed: int) -> torch.Tensor:
    """A graph in which any op may use any earlier results."""
    choose = random.Random(seed)
    made = [leaf(1.0), leaf(2.0)]
    ops: list[Any] = [torch.add, torch.mul, torch.sub, torch.maximum]
    while len(made) < count:
        made.append(choose.choice(ops)(choose.choice(made), choose.choice(made[-8:])))
    return made[-1]


class Deep(nn.Module):
    """Modules inside modules."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.inner = Deep(depth - 1) if depth > 1 else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.scale
        return x if self.inner is None else self.inner(x)


class Again(nn.Module):
    """One module that is called many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.layer, self.times = nn.Linear(2, 2), times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.times):
            x = self.layer(x)
        return x


def checked(found: Views) -> list[View]:
    """All views, once it is seen that each node is in exactly one of them and none is too large."""
    every = found.list_views()
    assert sorted(node for view in every for node in view.nodes) == sorted(found.tree.nodes)
    for view in every:
        assert (
            len(view.nodes) + len(view.opened_calls) + len(view.closed_groups)
            <= MAX_VISIBLE_BOXES + MAX_BOXES_BESIDE_MODEL
        )
        for node in view.nodes:
            assert found.find_view_group(found.tree.innermost_groups[node]) is view.group
    return every


@pytest.mark.parametrize("count", [1, 39, 41, 500, 3000])
@pytest.mark.parametrize("ops", [1, 2, 3])
def test_a_chain_of_any_length_has_levels_of_at_most_forty_boxes(count: int, ops: int) -> None:
    assert len(checked(views(chain(count, ops=ops)))) >= (1 if count < MAX_VISIBLE_BOXES else 2)


@pytest.mark.parametrize("count", [5, 41, 2000])
def test_a_fan_is_one_box(count: int) -> None:
    top, *others = checked(views(fan(count)))
    assert [fold.kind for fold in top.closed_groups] == (["fan"] if count > MAX_VISIBLE_BOXES else [])
    assert bool(others) is (count > MAX_VISIBLE_BOXES)
    if count > MAX_VISIBLE_BOXES:
        assert len(top.closed_groups[0].unsplit_members) == count


def test_ops_of_one_kind_in_a_row_are_one_box() -> None:
    x = leaf(0.5)
    for function in (torch.sin, torch.exp, torch.tanh):
        for _ in range(30):
            x = function(x)
    top, *_ = checked(views(x))
    # Two of the three: then there is room for the third.
    assert [(fold.kind, len(fold.unsplit_members)) for fold in top.closed_groups] == [("run", 30)] * 2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [30, 90, 700])
def test_a_tangle_is_parted(count: int, seed: int) -> None:
    checked(views(tangle(count, seed)))


def test_a_small_graph_is_not_folded() -> None:
    found = of_model(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), torch.ones(1, 2))
    (view,) = checked(found)
    assert view.closed_groups == [] and len(view.opened_calls) == 4  # the whole and its three layers


def test_equal_layers_are_seen_as_boxes_of_their_own_as_long_as_there_is_room() -> None:
    found = of_model(nn.Sequential(*(nn.Linear(2, 2) for _ in range(12))), torch.ones(1, 2))
    top = found.view_of(found.tree.root)
    assert [fold.call >= 0 for fold in top.closed_groups] == [True] * 12
    checked(found)


def test_many_equal_layers_are_a_run_in_parts() -> None:
    found = of_model(nn.Sequential(*(nn.Linear(2, 2) for _ in range(120))), torch.ones(1, 2))
    top = found.view_of(found.tree.root)
    assert {fold.kind for fold in top.closed_groups} == {"part"}
    assert sum(len(fold.unsplit_members) for fold in top.closed_groups) == 120
    assert [fold.offset for fold in top.closed_groups] == [20 * k for k in range(6)]
    checked(found)


def test_modules_nested_180_deep_are_folded_without_recursion() -> None:
    every = checked(of_model(Deep(180), torch.ones(1)))
    assert len(every) > 3


def test_a_module_called_a_thousand_times() -> None:
    checked(of_model(Again(1000), torch.ones(1, 2)))


def test_5000_modules() -> None:
    checked(of_model(nn.Sequential(*(nn.Identity() for _ in range(5000))), leaf(1.0, 2.0)))


def test_a_forward_without_a_backward_has_its_calls() -> None:
    model = nn.Sequential(*(nn.ReLU() for _ in range(60)))
    with hv.record(model) as trace:
        model(torch.ones(2))
    found = Views(trace)
    shown = [
        fold.call for view in found.list_views() for fold in [*view.opened_calls, *view.closed_groups] if fold.call >= 0
    ]
    assert sorted(set(shown)) == list(range(61))


def test_the_parameters_of_a_module_that_is_not_called_itself_lie_in_the_one_that_uses_them() -> None:
    attention = nn.MultiheadAttention(4, 2)
    x = torch.ones(3, 1, 4)
    with hv.record(attention) as trace:
        attention(x, x, x)[0].sum().backward()
    tree = Views(trace).tree
    named = {row.name: row.node for row in trace.tensors if row.leaf}
    (out,) = [node for name, node in named.items() if name.endswith("out_proj.weight")]
    assert tree.innermost_groups[out].call == 0


def test_a_part_is_a_round_number_of_things() -> None:
    for count in (41, 48, 100, 999, 1601, 10_000, 123_456):
        size = part_size(count)
        assert -(-count // size) <= MAX_VISIBLE_BOXES and str(size).rstrip("0") in ("1", "2", "25", "4", "5")


# -- what happened inside


def inside(found: Views, fold: Group) -> BoxActivity:
    return PassActivity(found.tree).merge_group(fold)


def test_what_happened_inside_the_whole_is_what_happened() -> None:
    loss = chain(100)
    with hv.record() as trace:
        loss.backward()
    found = Views(trace)
    of = inside(found, found.tree.root)
    assert of.steps == list(range(len(trace.rows)))
    assert len(of.arrivals) == sum(row.kind in ("arrive", "seed") for row in trace.rows)


def test_hooks_inside_are_counted_whether_or_not_they_fired() -> None:
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(30)))
    for layer in model:
        layer.register_forward_hook(lambda module, args, output: None)
        layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    model[7].weight.register_hook(lambda grad: grad)
    with hv.record(model) as trace:
        model(torch.ones(1, 2, requires_grad=True)).sum().backward()
    found = Views(trace)
    of = inside(found, found.tree.root)
    assert len(of.hooks) == 61
    assert {hook for _, hook in of.firings} == of.hooks


def test_steps_in_a_row_are_told_by_their_ends() -> None:
    assert merge_consecutive([]) == []
    assert merge_consecutive([4]) == [(4, 4)]
    assert merge_consecutive([1, 2, 3, 7, 8, 10]) == [(1, 3), (7, 8), (10, 10)]


def test_a_range_is_told_again_only_when_one_can_see_the_difference() -> None:
    arrived = [Arrival(0, 1.0, 0), Arrival(1, 1.01, 0), Arrival(2, 2.0, 0), Arrival(3, float("nan"), 3)]
    assert [(told.step, told.low, told.high, told.nonfinite_count) for told in list_norm_ranges(arrived)] == [
        (0, 1.0, 1.0, 0),
        (2, 1.0, 2.0, 0),
        (3, 1.0, 2.0, 1),
    ]


def test_norms_are_compared_as_they_are_shown() -> None:
    assert Arrival(0, 100.43, 0).display_norm == 100.4 and Arrival(0, math.inf, 1).display_norm == "inf"
