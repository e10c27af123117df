"""Grouping splits a graph of any size and shape into views of at most about forty boxes."""

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


def make_views(loss: torch.Tensor, *models: nn.Module) -> Views:
    with hv.record(*models) as trace:
        loss.backward()
    return Views(trace)


def record_model_views(model: nn.Module, *inputs: torch.Tensor) -> Views:
    with hv.record(model) as trace:
        model(*inputs).sum().backward()
    return Views(trace)


def chain(count: int, *, ops: int = 2) -> torch.Tensor:
    x = leaf(1.0)
    for i in range(count):
        x = x * 1.001 if i % ops else x + 0.001
    return x


def fan(count: int) -> torch.Tensor:
    return torch.stack([leaf(float(i)) for i in range(count)]).sum()


def irregular_graph(count: int, seed: int) -> torch.Tensor:
    """Return the result of random ops, each of which may use any earlier result."""
    random_generator = random.Random(seed)
    tensors = [leaf(1.0), leaf(2.0)]
    ops: list[Any] = [torch.add, torch.mul, torch.sub, torch.maximum]
    while len(tensors) < count:
        tensors.append(
            random_generator.choice(ops)(random_generator.choice(tensors), random_generator.choice(tensors[-8:]))
        )
    return tensors[-1]


class NestedModule(nn.Module):
    """Modules nested ``depth`` levels deep."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.inner = NestedModule(depth - 1) if depth > 1 else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.scale
        return x if self.inner is None else self.inner(x)


class RepeatedLayer(nn.Module):
    """Calls one layer ``times`` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.layer, self.times = nn.Linear(2, 2), times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.times):
            x = self.layer(x)
        return x


def check_views(views: Views) -> list[View]:
    """Return all views, and assert that each node is in exactly one view and that no view is too large."""
    all_views = views.list_views()
    assert sorted(node for view in all_views for node in view.nodes) == sorted(views.tree.nodes)
    for view in all_views:
        assert (
            len(view.nodes) + len(view.opened_calls) + len(view.closed_groups)
            <= MAX_VISIBLE_BOXES + MAX_BOXES_BESIDE_MODEL
        )
        for node in view.nodes:
            assert views.find_view_group(views.tree.innermost_groups[node]) is view.group
    return all_views


@pytest.mark.parametrize("count", [1, 39, 41, 500, 3000])
@pytest.mark.parametrize("ops", [1, 2, 3])
def test_every_view_of_a_chain_has_at_most_forty_boxes(count: int, ops: int) -> None:
    assert len(check_views(make_views(chain(count, ops=ops)))) >= (1 if count < MAX_VISIBLE_BOXES else 2)


@pytest.mark.parametrize("count", [5, 41, 2000])
def test_a_large_fan_is_one_group(count: int) -> None:
    top_view, *others = check_views(make_views(fan(count)))
    assert [group.kind for group in top_view.closed_groups] == (["fan"] if count > MAX_VISIBLE_BOXES else [])
    assert bool(others) is (count > MAX_VISIBLE_BOXES)
    if count > MAX_VISIBLE_BOXES:
        assert len(top_view.closed_groups[0].unsplit_members) == count


def test_consecutive_ops_of_one_kind_are_one_group() -> None:
    x = leaf(0.5)
    for function in (torch.sin, torch.exp, torch.tanh):
        for _ in range(30):
            x = function(x)
    top_view, *_ = check_views(make_views(x))
    # Two of the three runs are grouped, which leaves room for the third.
    assert [(group.kind, len(group.unsplit_members)) for group in top_view.closed_groups] == [("run", 30)] * 2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [30, 90, 700])
def test_an_irregular_graph_is_split_into_views(count: int, seed: int) -> None:
    check_views(make_views(irregular_graph(count, seed)))


def test_a_small_graph_is_not_grouped() -> None:
    views = record_model_views(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), torch.ones(1, 2))
    (view,) = check_views(views)
    assert view.closed_groups == [] and len(view.opened_calls) == 4  # the model and its three layers


def test_a_few_equal_layers_are_separate_boxes() -> None:
    views = record_model_views(nn.Sequential(*(nn.Linear(2, 2) for _ in range(12))), torch.ones(1, 2))
    top_view = views.view_of(views.tree.root)
    assert [group.call is not None for group in top_view.closed_groups] == [True] * 12
    check_views(views)


def test_many_equal_layers_are_split_into_parts() -> None:
    views = record_model_views(nn.Sequential(*(nn.Linear(2, 2) for _ in range(120))), torch.ones(1, 2))
    top_view = views.view_of(views.tree.root)
    assert {group.kind for group in top_view.closed_groups} == {"part"}
    assert sum(len(group.unsplit_members) for group in top_view.closed_groups) == 120
    assert [group.offset for group in top_view.closed_groups] == [20 * k for k in range(6)]
    check_views(views)


def test_modules_nested_180_deep_are_grouped_without_recursion() -> None:
    all_views = check_views(record_model_views(NestedModule(180), torch.ones(1)))
    assert len(all_views) > 3


def test_a_module_called_a_thousand_times_is_grouped() -> None:
    check_views(record_model_views(RepeatedLayer(1000), torch.ones(1, 2)))


def test_5000_modules_are_grouped() -> None:
    check_views(record_model_views(nn.Sequential(*(nn.Identity() for _ in range(5000))), leaf(1.0, 2.0)))


def test_a_forward_pass_without_backward_shows_all_calls() -> None:
    model = nn.Sequential(*(nn.ReLU() for _ in range(60)))
    with hv.record(model) as trace:
        model(torch.ones(2))
    views = Views(trace)
    shown_calls = [
        group.call
        for view in views.list_views()
        for group in [*view.opened_calls, *view.closed_groups]
        if group.call is not None
    ]
    assert sorted(set(shown_calls)) == list(range(61))


def test_parameters_of_an_uncalled_module_belong_to_the_module_that_uses_them() -> None:
    attention = nn.MultiheadAttention(4, 2)
    x = torch.ones(3, 1, 4)
    with hv.record(attention) as trace:
        attention(x, x, x)[0].sum().backward()
    tree = Views(trace).tree
    nodes_by_name = {row.name: row.node for row in trace.tensors if row.leaf}
    (out,) = [node for name, node in nodes_by_name.items() if name.endswith("out_proj.weight")]
    assert tree.innermost_groups[out].call == 0


def test_a_part_has_a_round_number_of_members() -> None:
    for count in (41, 48, 100, 999, 1601, 10_000, 123_456):
        size = part_size(count)
        assert -(-count // size) <= MAX_VISIBLE_BOXES and str(size).rstrip("0") in ("1", "2", "25", "4", "5")


# -- activity inside a group


def merge_activity(views: Views, group: Group) -> BoxActivity:
    return PassActivity(views.tree).merge_group(group)


def test_the_activity_of_the_root_covers_all_steps() -> None:
    loss = chain(100)
    with hv.record() as trace:
        loss.backward()
    views = Views(trace)
    activity = merge_activity(views, views.tree.root)
    assert activity.steps == list(range(len(trace.rows)))
    assert len(activity.arrivals) == sum(row.kind in ("arrive", "seed") for row in trace.rows)


def test_the_activity_counts_hooks_that_did_not_fire() -> None:
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(30)))
    for layer in model:
        layer.register_forward_hook(lambda module, args, output: None)
        layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    model[7].weight.register_hook(lambda grad: grad)
    with hv.record(model) as trace:
        model(torch.ones(1, 2, requires_grad=True)).sum().backward()
    views = Views(trace)
    activity = merge_activity(views, views.tree.root)
    assert len(activity.hooks) == 61
    assert {hook for _, hook in activity.firings} == activity.hooks


def test_consecutive_steps_are_merged_into_ranges() -> None:
    assert merge_consecutive([]) == []
    assert merge_consecutive([4]) == [(4, 4)]
    assert merge_consecutive([1, 2, 3, 7, 8, 10]) == [(1, 3), (7, 8), (10, 10)]


def test_norm_ranges_change_only_with_a_visible_difference() -> None:
    arrivals = [Arrival(0, 1.0, 0), Arrival(1, 1.01, 0), Arrival(2, 2.0, 0), Arrival(3, float("nan"), 3)]
    assert [
        (norm_range.step, norm_range.low, norm_range.high, norm_range.nonfinite_count)
        for norm_range in list_norm_ranges(arrivals)
    ] == [
        (0, 1.0, 1.0, 0),
        (2, 1.0, 2.0, 0),
        (3, 1.0, 2.0, 1),
    ]


def test_norms_are_compared_after_rounding_for_display() -> None:
    assert Arrival(0, 100.43, 0).display_norm == 100.4 and Arrival(0, math.inf, 1).display_norm == "inf"
