"""A Value has the statistics that torch computes, for every kind of tensor, and keeps no reference to it."""

import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookviz import Value
from hookviz.autograd.tensor_statistics import measure
from hookviz.trace.value_rows import MAX_KEPT_NUMBERS
from hookviz.trace.values import format_number, format_numbers, is_same_value

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


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


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [MAX_KEPT_NUMBERS, MAX_KEPT_NUMBERS + 1, 5000])
def test_statistics_of_half_precision_are_accumulated_wider(dtype: torch.dtype, size: int) -> None:
    tensor = torch.full((size,), 300.0, dtype=dtype)
    value = Value.of(tensor)
    number = tensor[0].item()
    assert value.mean == pytest.approx(number)
    assert value.norm == pytest.approx(number * math.sqrt(size))
    assert (value.min, value.max, value.inf) == (number, number, 0)


def test_an_overflowing_sum_is_not_counted_as_inf() -> None:
    value = Value.of(torch.full((1000,), 3e38))
    assert value.mean == pytest.approx(3e38, rel=1e-6)
    assert value.norm == pytest.approx(3e38 * math.sqrt(1000), rel=1e-6)
    assert value.inf == 0


@pytest.mark.parametrize("size", [10, 1000])
def test_inf_and_nan_are_counted(size: int) -> None:
    tensor = torch.ones(size)
    tensor[:3] = torch.tensor([math.inf, -math.inf, math.nan])
    value = Value.of(tensor)
    assert (value.nan, value.inf) == (1, 2)
    assert all(map(math.isnan, (value.min, value.max, value.mean, value.norm)))


@pytest.mark.parametrize("size", [10, 1000])
def test_min_and_max_are_known_with_inf_only(size: int) -> None:
    tensor = torch.ones(size)
    tensor[0] = math.inf
    value = Value.of(tensor)
    assert (value.min, value.max, value.mean, value.norm) == (1, math.inf, math.inf, math.inf)


@pytest.mark.parametrize("shape", [(), (1,), (8, 8), (64,), (2, 4, 8)])
def test_up_to_64_numbers_are_stored(shape: tuple[int, ...]) -> None:
    tensor = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    assert Value.of(tensor).tolist() == tensor.tolist()


@pytest.mark.parametrize("shape", [(65,), (5, 13), (1000, 1000)])
def test_of_more_than_64_numbers_only_statistics_are_stored(shape: tuple[int, ...]) -> None:
    value = Value.of(torch.ones(shape))
    assert value.tolist() is None
    assert (value.mean, value.shape) == (1, shape)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 100)])
def test_an_empty_tensor_has_a_value(shape: tuple[int, ...]) -> None:
    value = Value.of(torch.zeros(shape))
    assert (value.shape, value.norm, value.nan, value.zero) == (shape, 0, 0, 0)
    assert math.isnan(value.mean)
    assert value.text() and value.block()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(1).expand(100, 10),
        torch.arange(300.0).reshape(10, 30).t(),
        torch.arange(400.0)[::3],
        torch.arange(100.0).reshape(1, 100).expand(50, 100),
        torch.zeros(200),
    ],
    ids=["expanded", "transposed", "strided", "partly expanded", "zeros"],
)
def test_the_layout_of_a_tensor_does_not_change_its_statistics(tensor: torch.Tensor) -> None:
    value, copy = Value.of(tensor), tensor.contiguous().double()
    assert value.norm == pytest.approx(copy.norm().item(), rel=1e-5)
    assert value.mean == pytest.approx(copy.mean().item(), rel=1e-5)
    assert (value.min, value.max) == (copy.min().item(), copy.max().item())
    assert value.zero == int((copy == 0).sum())


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.int8], ids=str)
@pytest.mark.parametrize("size", [4, 400])
def test_integers_and_booleans_have_statistics(dtype: torch.dtype, size: int) -> None:
    value = Value.of(torch.tensor([0, 1] * (size // 2)).to(dtype))
    assert (value.min, value.max, value.mean, value.zero) == (0, 1, 0.5, size // 2)
    assert value.norm == pytest.approx(math.sqrt(size / 2))


@pytest.mark.parametrize("size", [2, 200])
def test_a_complex_tensor_has_a_norm_and_counts(size: int) -> None:
    value = Value.of(torch.tensor([3 + 4j, 0j] * (size // 2)))
    assert value.norm == pytest.approx(5 * math.sqrt(size / 2))
    assert math.isnan(value.min) and math.isnan(value.mean)
    assert (value.zero, value.nan) == (size // 2, 0)


def subclass() -> torch.Tensor:
    class Mine(torch.Tensor):
        pass

    return torch.ones(2).as_subclass(Mine)


UNREADABLE = {
    "sparse": (lambda: torch.eye(2).to_sparse(), "sparse_coo"),
    "meta": (lambda: torch.empty(3, device="meta"), "meta"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "quantized"),
    "subclass": (subclass, "Mine"),
}


@pytest.mark.parametrize(("make", "kind"), UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.filterwarnings("ignore")
def test_an_unreadable_tensor_is_noted_with_its_kind(make: Any, kind: str) -> None:
    value = Value.of(make())
    assert value.note == f"not shown ({kind} tensor)"
    assert value.tolist() is None
    assert math.isnan(value.norm)
    assert value.text() == value.note
    assert value.note in value.block()


def test_a_tensor_inside_vmap_is_not_read() -> None:
    values = []
    torch.vmap(lambda x: values.append(Value.of(x)) or x)(torch.ones(3))
    assert [value.note for value in values] == ["not shown (functorch tensor)"]


def test_measuring_never_raises() -> None:
    class RaisesInLayout(torch.Tensor):
        @property
        def layout(self) -> Any:
            raise ValueError("no layout for you")

    assert measure(torch.ones(2).as_subclass(RaisesInLayout))[-1]
    assert measure("no tensor")[-1].text == "not shown (AttributeError)"  # type: ignore[arg-type]


def test_measuring_keeps_no_reference_and_changes_nothing() -> None:
    tensor = torch.ones(100, requires_grad=True)
    version, reference = tensor._version, weakref.ref(tensor)
    value = Value.of(tensor)
    assert (tensor._version, tensor._backward_hooks, tensor.grad) == (version, None, None)
    del tensor
    gc.collect()
    assert reference() is None
    assert value.mean == 1


def test_measuring_triggers_no_torch_function_or_dispatch_mode() -> None:
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class FailingFunctionMode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError(func)

    class FailingDispatchMode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError(func)

    small, large = torch.ones(3), torch.ones(300)
    with FailingFunctionMode(), FailingDispatchMode():
        rows = [measure(small), measure(large)]
    assert [row[-1] for row in rows] == [None, None]


@pytest.mark.parametrize(
    ("number_", "text"),
    [(8.0, "8"), (0.30000000000000004, "0.3"), (-0.0, "-0"), (1e-9, "1e-09"), (math.nan, "nan"), (-math.inf, "-inf")],
)
def test_numbers_are_formatted_briefly(number_: float, text: str) -> None:
    assert format_number(number_) == text


@pytest.mark.parametrize(("z", "text"), [(1 + 2j, "1+2i"), (-1.5 - 0.5j, "-1.5-0.5i"), (0j, "0+0i")])
def test_complex_numbers_are_formatted_with_i(z: complex, text: str) -> None:
    assert format_number(z) == text


def test_the_short_form_has_numbers_if_they_fit_else_shape_and_norm() -> None:
    value = Value.of(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    assert value.text(room=16) == "[[3, 0], [0, 4]]"
    assert value.text(room=15) == "(2, 2) norm 5"
    assert value.text(room=15, shape=False) == "norm 5"
    assert value.block() == "[3, 0]\n[0, 4]"


def test_the_long_form_lists_every_statistic_with_nan_and_inf() -> None:
    tensor = torch.zeros(100)
    tensor[0], tensor[1] = math.nan, math.inf
    block = Value.of(tensor).block()
    for word in ("shape  (100,)", "dtype  float32", "norm   nan", "zeros  98", "1 NaN", "1 Inf"):
        assert word in block


def test_matrices_of_a_block_are_separated_by_blank_lines() -> None:
    assert Value.of(torch.arange(8.0).reshape(2, 2, 2)).block() == "[0, 1]\n[2, 3]\n\n[4, 5]\n[6, 7]"


def test_nested_numbers_are_formatted_on_one_line() -> None:
    assert format_numbers([[1.0], [2.5]]) == "[[1], [2.5]]"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (torch.tensor(math.nan), torch.tensor(math.nan), True),
        (torch.tensor([1.0, math.nan]), torch.tensor([1.0, math.nan]), True),
        (torch.tensor(1.0), torch.tensor(2.0), False),
        (torch.ones(100), torch.ones(100), True),
        (torch.ones(100), torch.zeros(100), False),
        (torch.tensor(1.0), torch.tensor([1.0]), False),
        (torch.tensor(1.0), torch.tensor(1.0, dtype=torch.float64), False),
    ],
)
def test_is_same_value_compares_numbers_shape_dtype_and_nan(
    first: torch.Tensor, second: torch.Tensor, expected: bool
) -> None:
    assert is_same_value(measure(first), measure(second)) is expected


def test_a_value_is_restored_from_its_row() -> None:
    value = Value.of(torch.ones(3))
    assert Value(*value.row) == value


def test_a_matrix_of_one_row_or_column_keeps_its_brackets() -> None:
    assert Value.of(torch.ones(1, 2)).block() == "[[1, 1]]"
    assert Value.of(torch.ones(2, 1)).block() == "[1]\n[1]"
