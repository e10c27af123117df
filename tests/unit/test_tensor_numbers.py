"""What is asked of a tensor's numbers without torch is what torch says of them."""

import itertools

import pytest
import torch

from hookviz.analysis.findings.torchless_numbers import LARGEST, broadcast_pairs, largest_number, rows_along
from hookviz.trace.values import Value

DTYPES = {found for name in dir(torch) if isinstance(found := getattr(torch, name), torch.dtype)}


@pytest.mark.parametrize("dtype", sorted(DTYPES, key=str), ids=str)
def test_the_largest_number_of_a_dtype_is_that_of_torch(dtype: torch.dtype) -> None:
    """A torch that adds a dtype fails here, so that it is added to the table."""
    name = str(dtype).removeprefix("torch.")
    try:
        assert largest_number(name) == (torch.finfo(dtype).max if dtype.is_floating_point else torch.inf)
    except NotImplementedError:  # torch itself does not know
        assert name not in LARGEST


SHAPES = [(), (1,), (3,), (2, 1), (2, 3), (1, 3), (4, 2, 1), (0,), (2, 0)]


def counted(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


@pytest.mark.parametrize(("one", "other"), [*itertools.product(SHAPES, SHAPES)])
def test_two_tensors_meet_as_torch_broadcasts_them(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    first, second = counted(one), counted(other) + 0.5
    found = list(broadcast_pairs(Value.of(first), Value.of(second)))
    try:
        together = torch.broadcast_tensors(first, second)  # type: ignore[no-untyped-call]
    except RuntimeError:
        assert found == []
        return
    assert found == list(zip(*(tensor.flatten().tolist() for tensor in together), strict=True))


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_the_rows_along_a_dimension_are_those_of_torch(shape: tuple[int, ...]) -> None:
    tensor = counted(shape)
    for dim in range(-len(shape), len(shape)):
        there = tensor.movedim(dim, -1).reshape(-1, shape[dim]).tolist() if tensor.numel() else []
        assert rows_along(Value.of(tensor), dim) == there


def test_nothing_is_said_of_numbers_that_are_unknown_or_complex() -> None:
    many, complex_ = Value.of(torch.zeros(100)), Value.of(torch.tensor([1j]))
    one = Value.of(torch.ones(1))
    assert (
        list(broadcast_pairs(many, one))
        == list(broadcast_pairs(one, None))
        == list(broadcast_pairs(one, complex_))
        == []
    )
    assert rows_along(many, 0) == rows_along(complex_, 0) == rows_along(one, None) == rows_along(one, 1) == []
