"""A value says what torch would say of the tensor, for every kind of tensor, and keeps nothing of it."""

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
def test_statistics_are_those_of_torch(numbers: list[float]) -> None:
    tensor = torch.tensor(numbers, dtype=torch.float64)
    value = Value.of(tensor)
    assert (value.nan, value.inf, value.zero) == counts(tensor)
    assert value.shape == (len(numbers),)
    if numbers:
        expected = [tensor.amin(), tensor.amax(), tensor.mean(), torch.linalg.vector_norm(tensor)]
        got = [value.min, value.max, value.mean, value.norm]
        spread = 1e-9 * max((abs(x) for x in numbers if math.isfinite(x)), default=0)
        np.testing.assert_allclose(got, [float(x) for x in expected], rtol=1e-9, atol=spread)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [MAX_KEPT_NUMBERS, MAX_KEPT_NUMBERS + 1, 5000])
def test_statistics_of_half_precision_are_accumulated_wider(dtype: torch.dtype, size: int) -> None:
    tensor = torch.full((size,), 300.0, dtype=dtype)
    value = Value.of(tensor)
    each = tensor[0].item()
    assert value.mean == pytest.approx(each)
    assert value.norm == pytest.approx(each * math.sqrt(size))
    assert (value.min, value.max, value.inf) == (each, each, 0)


def test_a_sum_that_overflows_is_no_infinity_of_the_tensor() -> None:
    value = Value.of(torch.full((1000,), 3e38))
    assert value.mean == pytest.approx(3e38, rel=1e-6)
    assert value.norm == pytest.approx(3e38 * math.sqrt(1000), rel=1e-6)
    assert value.inf == 0


@pytest.mark.parametrize("size", [10, 1000])
def test_a_true_infinity_and_a_nan_are_counted(size: int) -> None:
    tensor = torch.ones(size)
    tensor[:3] = torch.tensor([math.inf, -math.inf, math.nan])
    value = Value.of(tensor)
    assert (value.nan, value.inf) == (1, 2)
    assert all(map(math.isnan, (value.min, value.max, value.mean, value.norm)))


@pytest.mark.parametrize("size", [10, 1000])
def test_infinities_alone_leave_the_extremes_known(size: int) -> None:
    tensor = torch.ones(size)
    tensor[0] = math.inf
    value = Value.of(tensor)
    assert (value.min, value.max, value.mean, value.norm) == (1, math.inf, math.inf, math.inf)


@pytest.mark.parametrize("shape", [(), (1,), (8, 8), (64,), (2, 4, 8)])
def test_up_to_64_numbers_are_kept_one_by_one(shape: tuple[int, ...]) -> None:
    tensor = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    assert Value.of(tensor).tolist() == tensor.tolist()


@pytest.mark.parametrize("shape", [(65,), (5, 13), (1000, 1000)])
def test_of_more_than_64_only_statistics_are_kept(shape: tuple[int, ...]) -> None:
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
def test_whole_numbers_and_truth_values_have_statistics(dtype: torch.dtype, size: int) -> None:
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


HIDDEN = {
    "sparse": (lambda: torch.eye(2).to_sparse(), "sparse_coo"),
    "meta": (lambda: torch.empty(3, device="meta"), "meta"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "quantized"),
    "subclass": (subclass, "Mine"),
}


@pytest.mark.parametrize(("make", "kind"), HIDDEN.values(), ids=HIDDEN)
@pytest.mark.filterwarnings("ignore")
def test_a_tensor_of_a_special_kind_is_named_and_left_alone(make: Any, kind: str) -> None:
    value = Value.of(make())
    assert value.note == f"not shown ({kind} tensor)"
    assert value.tolist() is None
    assert math.isnan(value.norm)
    assert value.text() == value.note
    assert value.note in value.block()


def test_a_tensor_inside_vmap_is_left_alone() -> None:
    seen = []
    torch.vmap(lambda x: seen.append(Value.of(x)) or x)(torch.ones(3))
    assert [value.note for value in seen] == ["not shown (functorch tensor)"]


def test_measuring_never_raises() -> None:
    class Wicked(torch.Tensor):
        @property
        def layout(self) -> Any:
            raise ValueError("no layout for you")

    assert measure(torch.ones(2).as_subclass(Wicked))[-1]
    assert measure("no tensor")[-1].text == "not shown (AttributeError)"  # type: ignore[arg-type]


def test_measuring_holds_nothing_of_the_tensor_and_changes_nothing() -> None:
    tensor = torch.ones(100, requires_grad=True)
    version, gone = tensor._version, weakref.ref(tensor)
    value = Value.of(tensor)
    assert (tensor._version, tensor._backward_hooks, tensor.grad) == (version, None, None)
    del tensor
    gc.collect()
    assert gone() is None
    assert value.mean == 1


def test_measuring_sets_off_no_torch_function_or_dispatch_mode() -> None:
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Deaf(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError(func)

    class Numb(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError(func)

    few, many = torch.ones(3), torch.ones(300)
    with Deaf(), Numb():
        rows = [measure(few), measure(many)]
    assert [row[-1] for row in rows] == [None, None]


@pytest.mark.parametrize(
    ("number_", "text"),
    [(8.0, "8"), (0.30000000000000004, "0.3"), (-0.0, "-0"), (1e-9, "1e-09"), (math.nan, "nan"), (-math.inf, "-inf")],
)
def test_a_number_is_written_as_a_person_would(number_: float, text: str) -> None:
    assert format_number(number_) == text


@pytest.mark.parametrize(("z", "text"), [(1 + 2j, "1+2i"), (-1.5 - 0.5j, "-1.5-0.5i"), (0j, "0+0i")])
def test_a_complex_number_is_written_with_i(z: complex, text: str) -> None:
    assert format_number(z) == text


def test_numbers_that_fit_stand_on_one_line_and_others_become_shape_and_norm() -> None:
    value = Value.of(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    assert value.text(room=16) == "[[3, 0], [0, 4]]"
    assert value.text(room=15) == "(2, 2) norm 5"
    assert value.text(room=15, shape=False) == "norm 5"
    assert value.block() == "[3, 0]\n[0, 4]"


def test_the_long_form_lists_every_statistic_and_says_what_is_wrong() -> None:
    tensor = torch.zeros(100)
    tensor[0], tensor[1] = math.nan, math.inf
    block = Value.of(tensor).block()
    for word in ("shape  (100,)", "dtype  float32", "norm   nan", "zeros  98", "1 NaN", "1 Inf"):
        assert word in block


def test_layers_of_a_block_are_set_apart() -> None:
    assert Value.of(torch.arange(8.0).reshape(2, 2, 2)).block() == "[0, 1]\n[2, 3]\n\n[4, 5]\n[6, 7]"


def test_nested_numbers_stand_on_one_line() -> None:
    assert format_numbers([[1.0], [2.5]]) == "[[1], [2.5]]"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
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
def test_values_are_compared_as_a_person_would(one: torch.Tensor, other: torch.Tensor, alike: bool) -> None:
    assert is_same_value(measure(one), measure(other)) is alike


def test_a_value_and_its_row_are_the_same_thing() -> None:
    value = Value.of(torch.ones(3))
    assert Value(*value.row) == value


def test_a_matrix_of_one_row_keeps_its_brackets() -> None:
    assert Value.of(torch.ones(1, 2)).block() == "[[1, 1]]"
    assert Value.of(torch.ones(2, 1)).block() == "[1]\n[1]"
