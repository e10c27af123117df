"""What recording reads of a pass, and how often: each gradient once."""

import itertools
from typing import Any

import pytest
import torch

from hookviz import Trace, record
from hookviz.autograd.tensor_statistics import _COUNT_PACKED, measure
from hookviz.recorder import gradient_probe, pass_observer
from hookviz.recorder.fingerprint import fingerprint_of


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shape of each gradient that the observers of a pass have read."""
    shapes: list[tuple[int, ...]] = []

    def counted(values: list[Any], tensor: torch.Tensor, which: str) -> int:
        shapes.append(tuple(tensor.shape))
        values.append(measure(tensor))
        return len(values) - 1

    monkeypatch.setattr(gradient_probe, "append_value", counted)
    return shapes


def chain(length: int) -> Trace:
    y = x = torch.tensor(1.0, requires_grad=True)
    for _ in range(length):
        y = y * -1
    with record(names={"x": x}) as trace:
        y.backward()
    return trace


def test_in_a_large_graph_without_hooks_each_gradient_is_read_once(read: list[tuple[int, ...]]) -> None:
    trace = chain(pass_observer.SMALL_GRAPH)
    arrived = [step for step in trace.steps if step.kind == "arrive"]
    assert len(read) == len(arrived) + 1  # and the seed
    assert [step.after.tolist() for step in arrived] == [(-1.0) ** n for n in range(1, pass_observer.SMALL_GRAPH + 1)]


def test_in_a_small_graph_from_before_it_is_read_where_it_is_sent_and_where_it_arrives(
    read: list[tuple[int, ...]],
) -> None:
    trace = chain(pass_observer.SMALL_GRAPH - 1)
    assert len(read) == 2 * len([step for step in trace.steps if step.kind == "arrive"]) + 2


def test_in_a_small_graph_that_was_seen_being_made_it_is_read_once(read: list[tuple[int, ...]]) -> None:
    with record() as trace:
        y = x = torch.tensor(1.0, requires_grad=True)
        for _ in range(5):
            y = y * -1
        y.backward()
    assert x.grad is not None and len(read) == 5 + 1
    assert [step.after.tolist() for step in trace.steps if step.kind == "arrive"] == [-1.0, 1.0, -1.0, 1.0, -1.0]


def test_a_hook_makes_the_recorder_look_twice_in_a_large_graph(read: list[tuple[int, ...]]) -> None:
    y = x = torch.tensor(1.0, requires_grad=True)
    x.register_hook(lambda grad: None)
    for _ in range(pass_observer.SMALL_GRAPH):
        y = y * 2
    with record(names={"x": x}):
        y.backward()
    assert len(read) > 2 * pass_observer.SMALL_GRAPH


@pytest.mark.parametrize("cut", [lambda x: x.view(1200).view(40, 5, 6).unsqueeze(0), lambda x: x.t().unsqueeze(1)])
def test_a_gradient_that_is_only_cut_in_another_way_is_not_read_again(cut: Any, read: list[tuple[int, ...]]) -> None:
    x = torch.randn(30, 40, requires_grad=True)
    y = cut(x)
    weights = torch.randn(y.shape)
    with record(names={"x": x}) as trace:
        (y * weights).sum().backward()
    large = [shape for shape in read if len(shape)]
    assert len(large) == 2  # what sum sends, and what the product sends
    stored = next(step for step in trace.steps if step.kind == "accumulate")
    assert x.grad is not None
    assert stored.after.shape == (30, 40)
    assert stored.after.norm == pytest.approx(x.grad.norm().item(), rel=1e-6)


BLOCK = torch.arange(240.0)
VIEWS = {
    "whole": BLOCK,
    "matrix": BLOCK.view(12, 20),
    "transposed": BLOCK.view(12, 20).t(),
    "permuted": BLOCK.view(4, 6, 10).permute(2, 0, 1),
    "with a one": BLOCK.view(12, 1, 20),
    "half": BLOCK[:120],
    "the same half": BLOCK[:120].view(10, 12).t(),
    "every second": BLOCK[::2],
    "columns": BLOCK.view(12, 20)[:, :10],
    "columns, transposed": BLOCK.view(12, 20)[:, :10].t(),
    "diagonal blocks": BLOCK.as_strided((8, 10), (30, 1)),
    "expanded": BLOCK[:1].expand(12, 20),
    "expanded otherwise": BLOCK[:1].expand(240),
    "overlapping": BLOCK.as_strided((10, 12), (1, 1)),
}


def test_views_of_one_layout_show_the_same_numbers() -> None:
    layouts = {name: fingerprint_of(view).layout for name, view in VIEWS.items()}
    numbers = {name: view.flatten().sort().values for name, view in VIEWS.items()}
    assert None not in layouts.values()
    pairs = [pair for pair in itertools.combinations(VIEWS, 2) if layouts[pair[0]] == layouts[pair[1]]]
    assert [(one, other) for one, other in pairs if not torch.equal(numbers[one], numbers[other])] == []


@pytest.mark.parametrize(
    "group", [("whole", "matrix", "transposed", "permuted", "with a one"), ("half", "the same half")]
)
def test_views_of_the_same_numbers_have_one_layout(group: tuple[str, ...]) -> None:
    assert len({fingerprint_of(VIEWS[name]).layout for name in group}) == 1


def test_a_view_that_negates_is_not_taken_for_the_other() -> None:
    z = torch.randn(100, dtype=torch.complex64).conj()
    assert z.imag.is_neg()
    assert fingerprint_of(z.imag).layout is None


@pytest.mark.parametrize("extra", [-1, 0, 1, 255 * 8 - 1, 255 * 8])
@pytest.mark.parametrize("every", [1, 2, 7])
def test_zeros_are_counted_exactly_however_many_there_are(extra: int, every: int) -> None:
    tensor = torch.ones(_COUNT_PACKED + extra)
    tensor[::every] = 0
    tensor[-1] = -0.0
    assert measure(tensor)[4][6] == int((tensor == 0).sum())
    assert measure(torch.ones(_COUNT_PACKED + extra) * torch.tensor(-1.0))[4][6] == 0


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_zeros_are_counted_in_any_order_of_dimensions_and_with_gaps(order: tuple[int, ...]) -> None:
    tensor = torch.randn(30, 70, 50).relu().permute(order)
    for view in (tensor, tensor[1:], tensor[:, ::2], tensor[..., 3:]):
        assert measure(view)[4][6] == int((view == 0).sum())
