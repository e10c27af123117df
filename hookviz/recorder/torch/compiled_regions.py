"""Recognises code that hookviz cannot look into: compiled regions, and code that torch is compiling right now."""

import dis
import functools
import os
import sys
from collections.abc import Iterable
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
import torch.fx
import torch.utils.checkpoint

from hookviz.autograd import module_tree
from hookviz.autograd.torch_internals import (
    CALL_FRAME,
    COMPILE_BEGINS,
    COMPILE_COUNTERS,
    COMPILE_SWITCH,
    COMPILE_WRAPPER,
    COMPILED_AUTOGRAD,
    COMPILED_AUTOGRAD_IS_ON,
    COMPILED_CODE,
    COMPILED_MODEL,
    COMPILER_FOLDERS,
    COMPILER_UTILITIES,
    DYNAMO,
    ENGINE_FRAME,
    RECOMPUTING_FRAMES,
    RESTORING_FRAME,
    STANCE,
    TRACE_RULES,
    TracingContext,
    fx_is_tracing,
    tracing_state,
)
from hookviz.support.user_objects import is_of
from hookviz.trace.rows import Built

_CHECKPOINT = torch.utils.checkpoint.__file__
_CALLING_FRAMES = ("enter", CALL_FRAME, "__call__", "call_wrapped")
"""The frames between compiled code and what it calls: our watcher, the module's call, and a graph module's call."""
_COMPILERS = tuple(os.path.join(os.path.dirname(torch.__file__), name, "") for name in COMPILER_FOLDERS)


FORCE_EAGER = "force_eager"
"""The stance of the compiler in which compiled functions run eagerly."""


def is_compiling() -> bool:
    """Return whether torch is compiling or tracing in this thread; then no call is a real computation."""
    if torch.compiler.is_compiling() or fx_is_tracing():
        return True
    return tracing_state() is not None or TracingContext.try_get() is not None


def is_backward_compiled() -> bool:
    """Return whether compiled autograd runs the passes that begin now: it compiles each hook along with its graph."""
    return getattr(sys.modules.get(COMPILED_AUTOGRAD), COMPILED_AUTOGRAD_IS_ON, False)


def runs_eagerly() -> bool:
    """Return whether compiled functions run eagerly now, as ``torch.compiler.set_stance("force_eager")`` has it."""
    stance = getattr(sys.modules.get(DYNAMO), STANCE, None)
    return getattr(stance, "stance", None) == FORCE_EAGER


def is_recomputing() -> bool:
    """Return whether checkpointing recomputes something in the innermost backward pass of this thread."""
    return _recomputing_function() is not None


def is_restoring_saved_tensors() -> bool:
    """Return whether it does so for the nodes of this pass; reentrant checkpointing starts a nested pass instead."""
    return _recomputing_function() == RESTORING_FRAME


def _recomputing_function() -> str | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != ENGINE_FRAME:
        # Two functions of that file: the backward of its Function, and the one that restores saved tensors.
        if frame.f_code.co_name in RECOMPUTING_FRAMES and frame.f_code.co_filename == _CHECKPOINT:
            return frame.f_code.co_name
        frame = frame.f_back
    return None


def skip_package(package: str) -> None:
    """Make the compiler run the functions of ``package`` uncompiled, instead of compiling them with a warning."""
    rules: Any = sys.modules.get(TRACE_RULES)
    folders = getattr(rules, "SKIP_DIRS", ())
    # torch compiles its rules anew for each that is added, so one is added only once.
    own_folder = os.path.join(os.path.dirname(str(sys.modules[package].__file__)), "")
    if not any(own_folder == folder for folder in folders) and hasattr(rules, "add"):
        rules.add(package)


def is_compiled(module: torch.nn.Module) -> bool:
    """Return whether ``module`` is a graph that the compiler made and compiled code is calling.

    A ``GraphModule`` of the user's does not count.
    """
    if not is_of(module, torch.fx.GraphModule):
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name in _CALLING_FRAMES:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_COMPILERS)


def runs_compiled(module: torch.nn.Module) -> bool:
    """Return whether ``module`` runs compiled: by ``module.compile()``, or as the result of ``torch.compile``."""
    return module._compiled_call_impl is not None or is_compile_wrapper(module)


def is_compile_wrapper(module: torch.nn.Module) -> bool:
    """Return whether ``module`` is what ``torch.compile`` returned for another module."""
    return hasattr(module, COMPILED_MODEL)


def find_maker(module: torch.nn.Module) -> str:
    """Return what made a module of the code of another one; empty for a module that a person wrote.

    >>> find_maker(torch.fx.symbolic_trace(torch.nn.ReLU())), find_maker(torch.nn.ReLU())
    ('torch.fx', '')
    """
    kind = type(module)
    if issubclass(kind, torch.jit.ScriptModule):
        is_traced = any(base.__name__ == "TracedModule" for base in kind.__mro__)
        return "torch.jit.trace" if is_traced else "torch.jit.script"
    if not issubclass(kind, torch.fx.GraphModule):
        return ""
    is_exported = any(base.__module__.startswith("torch.export.") for base in kind.__mro__)
    return "torch.export" if is_exported else "torch.fx"


def list_made_parameters(module: torch.nn.Module) -> list[torch.Tensor]:
    """List the parameters of a module that torch made: a scripted one keeps them elsewhere."""
    is_scripted = issubclass(type(module), torch.jit.ScriptModule)
    return list(module.parameters() if is_scripted else module_tree.all_parameters(module))


EXPORT = "torch.export.export"
"""The name of the region in which torch exports a model: nothing in it is a computation."""


class RegionSwitch(NamedTuple):
    """Torch enters a compiled function, or leaves one."""

    name: str = ""
    """The name of the function that torch enters; empty if it leaves one."""
    module: torch.nn.Module | None = None
    """The module whose call was compiled, if that is what torch enters."""
    is_eager: bool = False
    """Whether torch runs the function that it enters eagerly, as if it were not compiled."""
    codes: tuple[CodeType, ...] = ()
    """The code objects one of which torch compiles first: the function, or the forward of the module."""


_LEAVING = RegionSwitch()
"""Made here: the compiler of torch 2.6 would compile what makes it when torch leaves a function."""


def read_region_switch(frame: FrameType) -> RegionSwitch | None:
    """Return what torch enters or leaves; None if it does neither.

    ``frame`` is the frame that calls ``COMPILE_SWITCH``; its argument differs between entering and leaving.
    """
    if frame.f_code.co_qualname != COMPILE_WRAPPER:
        return None
    last = max((offset for offset in find_switch_calls(frame.f_code) if offset <= frame.f_lasti), default=None)
    if last is None or not find_switch_calls(frame.f_code)[last]:
        return _LEAVING
    function = frame.f_locals.get("fn")
    name = getattr(function, "__name__", None) or frame.f_code.co_name
    # Torch compiles a method of the module, or a function around it if the code of its class belongs to torch.
    owners = (getattr(function, attribute, None) for attribute in ("__self__", "__wrapped__"))
    module = next((owner for owner in owners if is_of(owner, torch.nn.Module)), None)
    parts = (function, None if module is None else type(module).forward)
    codes = (code for part in parts if isinstance(code := getattr(part, "__code__", None), CodeType))
    return RegionSwitch(name, module, runs_eagerly(), tuple(codes))


class CompilerWork(NamedTuple):
    """What the compiler has done so far, in all threads."""

    attempts: int
    """The functions, and rests of functions after a graph break, that it began to compile."""
    graphs: int
    """The graphs that it made of them; it leaves some functions to Python."""
    breaks: int
    """The places at which it had to end a graph."""
    outermost: int
    """How often it compiled the function with which a region begins."""

    @classmethod
    def read(cls, codes: Iterable[CodeType]) -> "CompilerWork":
        """Read it from the counters of the compiler, for a region that begins with one of these code objects."""
        counters = getattr(sys.modules[COMPILER_UTILITIES], COMPILE_COUNTERS)
        breaks = sum(counters["graph_break"].values())
        list_compiled = getattr(sys.modules[DYNAMO], COMPILED_CODE)
        outermost = sum(len(list_compiled(code)) for code in codes)
        return cls(counters["frames"]["total"], counters["stats"]["unique_graphs"], breaks, outermost)

    def since(self, earlier: "CompilerWork") -> Built:
        """Return what it compiled since an ``earlier`` reading.

        >>> before = CompilerWork(attempts=1, graphs=1, breaks=0, outermost=0)
        >>> before.since(before), CompilerWork(2, 2, 0, 1).since(before), CompilerWork(2, 2, 0, 0).since(before)
        ('nothing', 'whole', 'parts')
        """
        if self == earlier:
            return "nothing"
        _, graphs, breaks, outermost = (now - then for now, then in zip(self, earlier, strict=True))
        return "whole" if graphs == outermost == 1 and not breaks else "parts"


@functools.cache
def find_switch_calls(code: CodeType) -> dict[int, bool]:
    """Map the offset of each call of ``COMPILE_SWITCH`` in ``code`` to whether a compiled function begins there."""
    loaded = [
        (instruction.offset, instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname.startswith("LOAD_")
    ]
    return {
        offset: following == COMPILE_BEGINS
        for (offset, name), (_, following) in pairwise(loaded)
        if name == COMPILE_SWITCH
    }
