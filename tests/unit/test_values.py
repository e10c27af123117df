"""A Value has the statistics that torch computes, for every kind of tensor, and keeps no reference to it."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookviz import Value


def counts(tensor: torch.Tensor) -> tuple[int, int, int]:
    return int(tensor.isnan().sum()), int(tensor.isinf().sum()), int((tensor == 0).sum())


@given(st.lists(st.floats(width=32), max_size=100))
@settings(deadline=None)
def test_statistics_match_torch(numbers: list[float]) -> None:
    tensor = torch.tensor(numbers, dtype=torch.float64)
    value = Value.of(tensor)
    assert (value.nan, value.inf, value.zero) == counts(tensor)
    assert value.shape == (len(numbers),)
    if numbers:
        expected = [tensor.amin(), tensor.amax(), tensor.mean(), torch.linalg.vector_norm(tensor)]
        actual = [value.min, value.max, value.mean, value.norm]
        tolerance = 1e-9 * max((abs(x) for x in numbers if math.isfinite(x)), default=0)
        np.testing.assert_allclose(actual, [float(x) for x in expected], rtol=1e-9, atol=tolerance)


@pytest.mark.parametrize(
    ("dtype", "size", "number"), [(torch.float16, 64, 300.0), (torch.float16, 65, 300.0), (torch.float32, 99, 3e38)]
)
def test_sums_are_accumulated_in_a_wider_type(dtype: torch.dtype, size: int, number: float) -> None:
    tensor = torch.full((size,), number, dtype=dtype)
    value = Value.of(tensor)
    exact = tensor[0].item()
    assert value.mean == pytest.approx(exact, rel=1e-6)
    assert value.norm == pytest.approx(exact * math.sqrt(size), rel=1e-6)
    assert (value.min, value.max, value.inf) == (exact, exact, 0)


@pytest.mark.parametrize("size", [10, 1000])
def test_inf_and_nan_are_counted(size: int) -> None:
    tensor = torch.ones(size)
    tensor[0] = math.inf
    value = Value.of(tensor)
    assert (value.min, value.max, value.mean, value.norm) == (1, math.inf, math.inf, math.inf)
    tensor[1:3] = torch.tensor([-math.inf, math.nan])
    value = Value.of(tensor)
    assert (value.nan, value.inf) == (1, 2)
    assert all(map(math.isnan, (value.min, value.max, value.mean, value.norm)))


@pytest.mark.parametrize("shape", [(2, 4, 8), (5, 13)])
def test_up_to_64_numbers_are_stored(shape: tuple[int, ...]) -> None:
    tensor = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    value = Value.of(tensor)
    assert value.tolist() == (tensor.tolist() if tensor.numel() <= 64 else None)
    assert (value.mean, value.shape) == (tensor.mean().item(), shape)


def test_the_layout_of_a_tensor_does_not_change_its_statistics() -> None:
    tensor = torch.arange(100.0).expand(50, 100).t()
    value, copy = Value.of(tensor), tensor.contiguous().double()
    assert value.norm == pytest.approx(copy.norm().item(), rel=1e-5)
    assert (value.min, value.max, value.mean, value.zero) == (0, 99, 49.5, 50)


@pytest.mark.parametrize(("dtype", "size"), [(torch.int64, 4), (torch.bool, 400)])
def test_integers_and_booleans_have_statistics(dtype: torch.dtype, size: int) -> None:
    value = Value.of(torch.tensor([0, 1] * (size // 2)).to(dtype))
    assert (value.min, value.max, value.mean, value.zero) == (0, 1, 0.5, size // 2)
    assert value.norm == pytest.approx(math.sqrt(size / 2))


def test_measuring_never_raises() -> None:
    class RaisesInLayout(torch.Tensor):
        @property
        def layout(self) -> Any:
            raise ValueError("no layout for you")

    assert Value.of(torch.ones(2).as_subclass(RaisesInLayout)).note
    assert Value.of("no tensor").note == "not shown (AttributeError)"  # type: ignore[arg-type]


def test_numbers_are_formatted_briefly() -> None:
    numbers = Value.of(torch.tensor([8.0, 0.1 + 0.2, -0.0, 1e-9, math.nan, -math.inf], dtype=torch.float64))
    assert numbers.block() == "[8, 0.3, -0, 1e-09, nan, -inf]"
    assert Value.of(torch.tensor([1 + 2j, -1.5 - 0.5j, 0j])).block() == "[1+2i, -1.5-0.5i, 0+0i]"
    assert Value.of(torch.arange(8.0).reshape(2, 2, 2)).block() == "[0, 1]\n[2, 3]\n\n[4, 5]\n[6, 7]"
    assert Value.of(torch.ones(1, 2)).block() == "[[1, 1]]"
    assert Value.of(torch.ones(2, 1)).block() == "[1]\n[1]"


def test_the_short_form_has_numbers_if_they_fit_else_shape_and_norm() -> None:
    value = Value.of(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    assert value.text(room=16) == "[[3, 0], [0, 4]]"
    assert value.text(room=15) == "(2, 2) norm 5"
    assert value.text(room=15, shape=False) == "norm 5"


def test_the_long_form_lists_every_statistic_with_nan_and_inf() -> None:
    tensor = torch.zeros(100)
    tensor[0], tensor[1] = math.nan, math.inf
    block = Value.of(tensor).block()
    for word in ("shape  (100,)", "dtype  float32", "norm   nan", "zeros  98", "1 NaN", "1 Inf"):
        assert word in block
