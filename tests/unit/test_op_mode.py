"""``record(cuts=True)`` leaves the user's modes, exceptions, tensors and compiled code as they are."""

import gc
import traceback
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import hookviz as hv
from hookviz.trace.redaction import redact
from tests.missing import missing_gradients


@pytest.fixture(autouse=True)
def stack_is_restored() -> Iterator[None]:
    before = count_modes()
    yield
    assert count_modes() == before


def count_modes() -> int:
    return torch._C._len_torch_function_stack()


class Names(TorchFunctionMode):
    """Keeps the names of the functions that it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Cut(nn.Module):
    """Two layers, with a cut between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x).softmax(-1)
        return self.second(h.detach())  # type: ignore[no-any-return]


def cut_trace(**options: Any) -> hv.Trace:
    net = Cut()
    with hv.record(net, cuts=True, **options) as trace:
        net(torch.ones(1, 2)).sum().backward()
    return trace


def test_without_the_option_no_mode_is_active_and_no_note_is_written() -> None:
    with hv.record() as trace:
        assert count_modes() == 0
        torch.ones(1, requires_grad=True).sum().backward()
    assert not any("cuts" in note for note in trace.notes)
    assert trace._data.cut_rows == []


def test_traceback_of_an_exception_has_no_frame_of_ours() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught, hv.record(cuts=True):
        torch.ones(2, 3) @ torch.ones(2, 3)
    files = [Path(frame.filename) for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not any(file.is_relative_to(Path(hv.__file__).parent) for file in files)
    assert caught.value.__context__ is None


def work(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.softmax(x * 2, -1).detach().sum()


def test_modes_of_the_user_see_the_same_functions() -> None:
    x = torch.ones(2, requires_grad=True)
    plain, inside, outside = Names(), Names(), Names()
    with plain:
        work(x)
    with hv.record(cuts=True), inside:
        work(x)
    with outside, hv.record(cuts=True):
        outside.names.clear()
        work(x)
        seen_outside = list(outside.names)
    assert inside.names == plain.names == seen_outside
    assert plain.names


def test_compiled_code_is_compiled_once_and_without_our_mode() -> None:
    compilations: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compilations.append([node.target for node in graph.graph.nodes])
        return graph.forward

    torch._dynamo.reset()
    fast = torch.compile(lambda x: x.sin() + 1, backend=backend)
    net, x = Cut(), torch.ones(1, 2, requires_grad=True)
    expected = fast(x)
    with hv.record(net, cuts=True) as trace:
        assert torch.equal(fast(x), expected)
        assert count_modes() == 1
        net(fast(x)).sum().backward()
    assert torch.equal(fast(x), expected)
    assert len(compilations) == 1
    assert [row.place for row in missing_gradients(trace)] == ["op"]


def test_a_loop_over_new_leaves_is_one_cut_and_keeps_none_of_them() -> None:
    net = Cut()
    with hv.record(net, cuts=True, keep=1) as trace:
        references = []
        for _ in range(20):
            x = torch.ones(1, 2, requires_grad=True)
            references.append(weakref.ref(x))
            loss = (net(x) * x.detach().mean()).sum() + x.sum()
            loss.backward()
            del x, loss
        gc.collect()
        assert [reference() for reference in references[:-2]] == [None] * 18
    assert len(trace._data.cut_rows) <= 2
    assert [row.place for row in missing_gradients(trace)] == ["op"]


def test_step_is_the_last_one_before_the_cut_and_survives_dropped_passes() -> None:
    assert missing_gradients(cut_trace())[0].step == 2
    net = Cut()
    with hv.record(net, cuts=True, keep=1) as trace:
        for _ in range(3):
            net(torch.ones(1, 2)).sum().backward()
    (row,) = missing_gradients(trace)
    assert row.place == "op" and row.step is None and row.line is not None
    assert len(trace._data.cut_rows) == 1


def test_file_says_the_same_and_redaction_removes_the_code(tmp_path: Path) -> None:
    trace = cut_trace()
    trace.save(tmp_path / "cut.json")
    loaded = hv.load(tmp_path / "cut.json")
    assert loaded._data.cut_rows == trace._data.cut_rows != []
    assert list(missing_gradients(loaded)) == list(missing_gradients(trace))
    (row,) = redact(trace._data, source=False).cut_rows
    assert (row.file, row.line, row.text, row.op) == (None, None, None, "detach")
    (row,) = redact(trace._data, values=False).cut_rows
    assert row.text is None and row.line is not None
    assert [one.text for one in trace._data.cut_rows] == ["h.detach()"]
