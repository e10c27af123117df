"""Computations on a tensor's numbers without torch give the same results as torch."""

import itertools

import pytest
import torch

from hookviz.analysis.findings.torchless_numbers import LARGEST, broadcast_pairs, largest_number, rows_along
from hookviz.trace.values import Value

DTYPES = {dtype for name in dir(torch) if isinstance(dtype := getattr(torch, name), torch.dtype)}


@pytest.mark.parametrize("dtype", sorted(DTYPES, key=str), ids=str)
def test_the_largest_number_of_a_dtype_matches_torch(dtype: torch.dtype) -> None:
    """Fails for a torch with a new dtype, so that it is added to the table."""
    name = str(dtype).removeprefix("torch.")
    try:
        assert largest_number(name) == (torch.finfo(dtype).max if dtype.is_floating_point else torch.inf)
    except NotImplementedError:  # torch itself has no limits for it
        assert name not in LARGEST


SHAPES = [(), (1,), (3,), (2, 1), (2, 3), (1, 3), (4, 2, 1), (0,), (2, 0)]


def arange_of_shape(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


@pytest.mark.parametrize(("first_shape", "second_shape"), [*itertools.product(SHAPES, SHAPES)])
def test_broadcast_pairs_match_torch(first_shape: tuple[int, ...], second_shape: tuple[int, ...]) -> None:
    first, second = arange_of_shape(first_shape), arange_of_shape(second_shape) + 0.5
    pairs = list(broadcast_pairs(Value.of(first), Value.of(second)))
    try:
        broadcast = torch.broadcast_tensors(first, second)  # type: ignore[no-untyped-call]
    except RuntimeError:
        assert pairs == []
        return
    assert pairs == list(zip(*(tensor.flatten().tolist() for tensor in broadcast), strict=True))


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_rows_along_a_dimension_match_torch(shape: tuple[int, ...]) -> None:
    tensor = arange_of_shape(shape)
    for dim in range(-len(shape), len(shape)):
        expected = tensor.movedim(dim, -1).reshape(-1, shape[dim]).tolist() if tensor.numel() else []
        assert rows_along(Value.of(tensor), dim) == expected


def test_unknown_and_complex_numbers_give_no_pairs_and_no_rows() -> None:
    unknown, complex_ = Value.of(torch.zeros(100)), Value.of(torch.tensor([1j]))
    one = Value.of(torch.ones(1))
    assert (
        list(broadcast_pairs(unknown, one))
        == list(broadcast_pairs(one, None))
        == list(broadcast_pairs(one, complex_))
        == []
    )
    assert rows_along(unknown, 0) == rows_along(complex_, 0) == rows_along(one, None) == rows_along(one, 1) == []
