"""Computations on a tensor's numbers without torch give the same results as torch."""

import itertools

import torch

from hookviz.analysis.findings.torchless_numbers import LARGEST, broadcast_pairs, largest_number, rows_along
from hookviz.trace.values import Value

DTYPES = {dtype for name in dir(torch) if isinstance(dtype := getattr(torch, name), torch.dtype)}
SHAPES = [(), (1,), (3,), (2, 1), (2, 3), (1, 3), (4, 2, 1), (0,), (2, 0)]


def arange_of_shape(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def test_the_largest_number_of_a_dtype_matches_torch() -> None:
    """Fails for a torch with a new dtype, so that it is added to the table."""
    for dtype in DTYPES:
        name = str(dtype).removeprefix("torch.")
        try:
            assert largest_number(name) == (torch.finfo(dtype).max if dtype.is_floating_point else torch.inf), name
        except NotImplementedError:  # torch itself has no limits for it
            assert name not in LARGEST


def test_broadcast_pairs_match_torch() -> None:
    for first_shape, second_shape in itertools.product(SHAPES, SHAPES):
        first, second = arange_of_shape(first_shape), arange_of_shape(second_shape) + 0.5
        try:
            broadcast = torch.broadcast_tensors(first, second)  # type: ignore[no-untyped-call]
            expected = list(zip(*(tensor.flatten().tolist() for tensor in broadcast), strict=True))
        except RuntimeError:
            expected = []
        assert list(broadcast_pairs(Value.of(first), Value.of(second))) == expected, (first_shape, second_shape)


def test_rows_along_a_dimension_match_torch() -> None:
    for shape in SHAPES[1:]:
        tensor = arange_of_shape(shape)
        for dim in range(-len(shape), len(shape)):
            expected = tensor.movedim(dim, -1).reshape(-1, shape[dim]).tolist() if tensor.numel() else []
            assert rows_along(Value.of(tensor), dim) == expected, (shape, dim)


def test_unknown_and_complex_numbers_give_no_pairs_and_no_rows() -> None:
    one = Value.of(torch.ones(1))
    for unknown in (Value.of(torch.zeros(100)), Value.of(torch.tensor([1j])), None):
        assert list(broadcast_pairs(one, unknown)) == []
        assert unknown is None or rows_along(unknown, 0) == []
    assert rows_along(one, None) == rows_along(one, 1) == []
