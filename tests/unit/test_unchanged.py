"""Recording does not change what it observes: copies, pickles, modes, settings, hook dicts, and the call stack."""

import copy
import inspect
import io
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from scenes import Net, leaf
from torch import nn
from torch.utils.hooks import RemovableHandle

import hookviz as hv
from hookviz.recorder.hook_observer import Observer
from tests.torch_state import PLACES, hook_dicts, process_state, register_at

Context = Callable[[], AbstractContextManager[Any]]

# -- copies


def named_hook(*given: Any) -> None:
    """A hook that can be pickled."""


def add_one(module: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
    return output + 1


class HoldsHandle(Net):
    """A net that holds the handle of its own hook."""

    def __init__(self) -> None:
        super().__init__()
        self.handle = self.register_forward_hook(add_one)


def net_with_hooks() -> HoldsHandle:
    """A net with hooks of several kinds, all picklable."""
    net = HoldsHandle()
    for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
        getattr(net.l1, f"register_{kind}_hook")(named_hook)
    net.l2.register_forward_pre_hook(named_hook, with_kwargs=True)
    net.l2.weight.register_hook(named_hook)
    net.l2.weight.register_post_accumulate_grad_hook(named_hook)
    return net


def torch_saved(thing: Any) -> bytes:
    file = io.BytesIO()
    torch.save(thing, file)
    return file.getvalue()


MOMENTS = ("between", "forward", "full_backward", "post_accumulate")


def snapshots_at(take: Callable[[nn.Module], Any], moment: str, context: Any) -> tuple[list[Any], HoldsHandle]:
    """The results of ``take(net)`` at ``moment`` and after the pass, and the net."""
    RemovableHandle.next_id = 1000  # a hook's number is its key in the dict, and part of what is saved
    net, snapshots = net_with_hooks(), []

    def take_snapshot(*given: Any) -> None:
        handle.remove()  # this function cannot be pickled
        snapshots.append(take(net))

    if moment != "between":
        handle = register_at(moment, net, torch.optim.SGD(net.parameters()), take_snapshot)
    with context():
        y = net(leaf(3.0))
        if moment == "between":
            snapshots.append(take(net))
        y.backward()
        net.l2.register_forward_hook(named_hook)
        snapshots.append(take(net))
    return snapshots, net


@pytest.mark.parametrize(
    ("take", "moment"),
    [*((torch_saved, moment) for moment in MOMENTS), (lambda net: torch_saved(copy.deepcopy(net)), "forward")],
)
@pytest.mark.filterwarnings("ignore:backward hook")
def test_files_and_copies_of_a_recorded_model_are_identical_in_every_byte(
    take: Callable[[nn.Module], Any], moment: str
) -> None:
    plain, _ = snapshots_at(take, moment, nullcontext)
    recorded, _ = snapshots_at(take, moment, hv.record)
    assert len(plain) == 2
    assert recorded == plain


def test_a_copy_made_while_recording_works_with_its_handle_and_a_shallow_one_shares_the_hooks() -> None:
    (first, _), _ = snapshots_at(copy.deepcopy, "forward", hv.record)
    assert first(leaf(3.0)).item() == 13
    first.handle.remove()
    assert first(leaf(3.0)).item() == 12
    assert not [key for module in first.modules() for key in module._forward_hooks if isinstance(key, Observer)]
    (shallow, _), net = snapshots_at(copy.copy, "forward", hv.record)
    assert shallow._forward_hooks is net._forward_hooks
    assert len(net._forward_hooks) == 1


# -- state of the process, and the stack


class Boom(Exception):
    """Raised by a hook."""


class Cube(torch.autograd.Function):
    """A function whose backward calls ``Cube.action``."""

    action: Callable[[], object] = staticmethod(lambda: None)

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        Cube.action()
        return 3 * ctx.saved_tensors[0] ** 2 * grad


class Acts(nn.Module):
    """A module that calls ``action``."""

    def __init__(self, action: Callable[[], object]) -> None:
        super().__init__()
        self.action = action

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.action()
        return x * 2


class Observed:
    """What a program sees at one place in it, and what is left when an exception leaves it there."""

    def __init__(self, place: str, context: Context, error: type[BaseException] | None) -> None:
        self.frames: list[Any] = []
        self.traceback, self.caught, self.error = "", "", error
        net = net_with_hooks()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        inner = nn.Sequential(nn.Sequential(Acts(self.act if place == "module" else bool)))
        Cube.action = staticmethod(self.act if place == "function" else bool)
        handle = register_at(place, net, opt, lambda *given: self.act()) if place in PLACES else None
        before, dicts = process_state(), hook_dicts(net, opt)
        with context() as self.trace:
            try:
                Cube.apply(inner(net(leaf(3.0)))).backward()  # type: ignore[no-untyped-call]
                opt.step()
            except BaseException as raised:
                self.caught, self.traceback = type(raised).__name__, traceback.format_exc()
        assert hook_dicts(net, opt) == dicts
        assert process_state() == before
        if handle is not None:
            handle.remove()

    def act(self) -> None:
        self.frames.extend((frame[1:], frame.positions) for frame in inspect.stack(0))
        if self.error is not None:
            raise self.error("out of the hook")


@pytest.mark.parametrize(
    ("place", "error"),
    [
        *((place, Boom) for place in (*PLACES, "module", "function")),
        ("forward", None),
        ("forward", SystemExit),
        ("tensor", KeyboardInterrupt),
    ],
)
def test_recording_changes_neither_the_stack_nor_what_an_exception_leaves(
    place: str, error: type[BaseException] | None
) -> None:
    plain, recorded = (Observed(place, context, error) for context in (nullcontext, hv.record))
    assert len(plain.frames) > 8 and plain.caught == ("" if error is None else error.__name__)
    assert recorded.frames == plain.frames
    assert (recorded.caught, recorded.traceback) == (plain.caught, plain.traceback)
    last = recorded.trace.steps[-1]
    assert (last.kind == "exception") is (error is not None)
    assert (last.hook is not None and "self.act()" in last.hook.name) is (error is not None and place in PLACES)
    assert recorded.trace.notes == []


# -- recursion depth


@pytest.mark.parametrize(("cuts", "place", "count"), [(True, "tensor", 1), (True, "forward", 0), (False, "tensor", 0)])
def test_following_ops_puts_one_frame_under_what_runs_inside_an_op(cuts: bool, place: str, count: int) -> None:
    found: list[int] = []
    package = hv.__file__.removesuffix("__init__.py")
    net = Net()

    def count_frames(*given: Any) -> None:
        found.append(sum(one.filename.startswith(package) for one in inspect.stack()))

    register_at(place, net, torch.optim.SGD(net.parameters()), count_frames)
    with hv.record(cuts=cuts):
        net(leaf(3.0)).backward()
    assert found == [count]
