"""Regions that cannot be looked into: what torch.compile has compiled, and what torch compiles just now."""

import dis
import functools
import os
import sys
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import torch
import torch.utils.checkpoint
from torch._guards import TracingContext
from torch.fx import _symbolic_trace as symbolic_trace

DYNAMO, SWITCH = "torch._dynamo.eval_frame", "_maybe_set_eval_frame"
"""The module that runs compiled functions (loaded when it is first needed), and what it calls before and after each."""

_CHECKPOINT = torch.utils.checkpoint.__file__
ENOUGH: type[Exception] = torch.utils.checkpoint._StopRecomputationError
"""What checkpointing raises, and catches again, once it has computed all that backward needs."""
_WRAPPER, _BEGINS = "compile_wrapper", "_callback_from_stance"
"""What runs a compiled function, and what it asks for the argument with which it switches to compiled code."""
_COMPILERS = tuple(
    os.path.join(os.path.dirname(torch.__file__), name, "") for name in ("_functorch", "_dynamo", "_inductor")
)


def is_compiling() -> bool:
    """Whether torch is compiling or tracing in this thread, so that nothing which seems to run is real."""
    if torch.compiler.is_compiling() or symbolic_trace._is_fx_tracing_flag:
        return True
    state: Any = torch._C._get_tracing_state()
    return state is not None or TracingContext.try_get() is not None


def is_recomputing() -> bool:
    """Whether checkpointing, in the innermost backward pass of this thread, computes something a second time."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_engine_run_backward":
        # In this file nothing else is called so: the backward of its function, and what fills in saved tensors.
        if frame.f_code.co_name in ("backward", "recompute_fn") and frame.f_code.co_filename == _CHECKPOINT:
            return True
        frame = frame.f_back
    return False


def leave_alone(package: str) -> None:
    """Have the compiler run the functions of ``package`` as they are, instead of compiling them with a warning."""
    rules: Any = sys.modules.get(f"{DYNAMO.rpartition('.')[0]}.trace_rules")
    folders = getattr(rules, "SKIP_DIRS", ())
    here = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
    if not any(here == folder for folder in folders) and hasattr(rules, "add"):
        rules.add(package)


def is_compiled(module: torch.nn.Module) -> bool:
    """Whether ``module`` is a graph that the compiler made and that compiled code calls; one of the user's is not."""
    if not isinstance(module, torch.fx.GraphModule):
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name in ("enter", "_wrapped_call_impl", "__call__", "call_wrapped"):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_COMPILERS)


def switched(frame: FrameType) -> str | None:
    """Torch begins or ends a compiled function: its name when it begins, empty when it ends, None otherwise.

    ``frame`` is the one that calls ``SWITCH``, which it does before the function with another argument than behind it.
    """
    if frame.f_code.co_name != _WRAPPER:
        return None
    last = max((place for place in _switches(frame.f_code) if place <= frame.f_lasti), default=None)
    if last is None or not _switches(frame.f_code)[last]:
        return ""
    return getattr(frame.f_locals.get("fn"), "__name__", None) or _WRAPPER


@functools.cache
def _switches(code: CodeType) -> dict[int, bool]:
    """Where in ``code`` ``SWITCH`` is called, and whether a compiled function begins there."""
    loaded = [(one.offset, one.argval) for one in dis.get_instructions(code) if one.opname.startswith("LOAD_")]
    return {place: following == _BEGINS for (place, name), (_, following) in pairwise(loaded) if name == SWITCH}
