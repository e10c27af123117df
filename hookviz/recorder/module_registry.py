"""The modules of a recording: what they are called, and the rows of their hooks."""

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.nn.modules.module as torch_modules

from hookviz.autograd import graph, module_tree
from hookviz.autograd.graph_snapshot import add_hook_row
from hookviz.autograd.torch_internals import (
    ALWAYS_CALLED,
    GLOBAL_IS_FULL,
    GLOBAL_MODULE_HOOKS,
    IS_FULL,
    MODULE_HOOKS,
    WITH_KWARGS,
)
from hookviz.support.interrupts import Uninterrupted
from hookviz.trace import ModuleRow, TraceData

Module = torch.nn.Module

_OWN = {**MODULE_HOOKS, "backward_hook": MODULE_HOOKS["full_backward_hook"]}
_GLOBAL = {**GLOBAL_MODULE_HOOKS, "backward_hook": GLOBAL_MODULE_HOOKS["full_backward_hook"]}
"""Kind of hook → the attribute in which a module keeps it, and the variable that keeps those of all modules."""


class ModuleRegistry:
    """Gives each module a number and a name, without holding it."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._numbers: dict[int, tuple[weakref.ref[Module], int]] = {}
        self._holders: list[weakref.ref[Module]] = []
        self._names: dict[int, tuple[weakref.ref[Module], str]] = {}
        """``id`` of a module → the module, since a new one may get the ``id`` of one that is gone, and its name."""
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        """A name that several modules would have → the number for the next of them."""
        self._hooks: dict[tuple[Any, ...], int] = {}

    def number(self, module: Module) -> int:
        """The number of a module, the same in every call."""
        reference, number = self._numbers.get(id(module), (None, 0))
        if reference is None or reference() is not module:
            number, name = len(self.trace.modules), self._name(module)
            with Uninterrupted():
                self.trace.modules.append(ModuleRow(name, type(module).__name__))
                self._holders.append(weakref.ref(module))
                self._numbers[id(module)] = (self._holders[-1], number)
        return number

    def known(self, module: Module) -> int | None:
        """The number of a module that was called; None for any other."""
        reference, number = self._numbers.get(id(module), (None, 0))
        return number if reference is not None and reference() is module else None

    def _name(self, module: Module) -> str:
        return self._named(module) or self.name(module)

    def _named(self, module: Module) -> str | None:
        """The name that a module has got; None for one that has none."""
        reference, name = self._names.get(id(module), (None, ""))
        return name if reference is not None and reference() is module else None

    def label(self, module: Module) -> str:
        """What to call a module that may have no name: nothing that could fail is asked of it."""
        return self._named(module) or type(module).__name__

    def called(self) -> set[int]:
        """``id`` of each module that was called."""
        return set(self._numbers)

    def name(self, root: Module) -> str:
        """Name a model and all that is in it: what a person would write to reach it, ``net.layers.0``.

        The model is called after the caller's variable, or after its class where there is none.
        """
        top = self._named(root) or self._free(graph.variable_name(root, graph.caller_frame()) or type(root).__name__)
        for path, module in module_tree.named_modules(root):
            if self._named(module) is None:
                name = f"{top}.{path}" if path else top
                self._taken.add(name)
                self._names[id(module)] = weakref.ref(module), name
        return top

    def _free(self, name: str) -> str:
        """``name``, with a number if a module has it already, or had it."""
        free = name
        while free in self._taken:
            number = self._next.get(name, 2)
            free, self._next[name] = f"{name} {number}", number + 1
        return free

    def parameters(self) -> dict[str, torch.Tensor]:
        """Name → parameter, of every module that was called."""
        found: dict[str, torch.Tensor] = {}
        for row, reference in zip(self.trace.modules, self._holders, strict=True):
            module = reference()
            for name, parameter in () if module is None else module_tree.own_parameters(module):
                found[f"{row.name}.{name}"] = parameter
        return found

    def alive(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of every module that was called and is still there."""
        for row, reference in zip(self.trace.modules, self._holders, strict=True):
            module = reference()
            if module is not None:
                yield row.name, module

    def hook(self, kind: str, module: int, key: Any, function: Any, *, shared: bool, pass_id: int | None = None) -> int:
        """The number of a module's hook in the trace; one that is ``shared`` belongs to all modules."""
        known = (kind, -1 if shared else module, key, id(function))
        if known not in self._hooks or pass_id is not None:
            holder = torch_modules if shared else self._holders[module]()
            flags = _flags(holder, kind, key, shared)
            row = (kind, -1, -1, key, function)
            self._hooks[known] = add_hook_row(self.trace, pass_id, *row, module=known[1], flags=flags)
        return self._hooks[known]

    def renumber(self, hooks: Mapping[int, int]) -> None:
        """Hooks got new numbers (old → new); what is not among them is forgotten."""
        self._hooks = {known: hooks[number] for known, number in self._hooks.items() if number in hooks}

    def backward_hook(self, pass_id: int, kind: str, module: int, function: Any, nth: int) -> int:
        """The number of a backward hook in the trace: torch copied it, and its key is looked up where it came from.

        ``nth`` tells one function's hooks apart: torch calls those of all modules first, then the module's own.
        """
        found = [
            (key, shared)
            for owner, shared in ((torch_modules, True), (self._holders[module]() if module >= 0 else None, False))
            for key, hook in _backward_dict(owner, kind, shared).items()
            if hook is function
        ]
        if found and kind == "backward_hook":  # several calls may have put theirs on one node
            nth %= len(found)
        key, shared = found[nth] if nth < len(found) else (len(found) - nth - 1, module < 0)  # removed since
        return self.hook(kind, module, key, function, shared=shared, pass_id=pass_id)


def _backward_dict(owner: Any, kind: str, shared: bool) -> dict[Any, Any]:
    """The backward hooks of this kind: full ones and others are kept in one dict, which is all of one sort."""
    sort = getattr(owner, GLOBAL_IS_FULL if shared else IS_FULL, None)
    other = kind != "full_backward_pre_hook" and sort is not (kind == "full_backward_hook")
    return {} if other else _dict(owner, kind, shared)


def _dict(holder: Any, kind: str, shared: bool) -> dict[Any, Any]:
    """The dict in which a module keeps its hooks of this kind, or torch those of all modules."""
    return getattr(holder, (_GLOBAL if shared else _OWN)[kind], None) or {}


def _flags(holder: Any, kind: str, key: Any, shared: bool) -> tuple[str, ...]:
    found = ["global"] if shared else []
    attribute = (_GLOBAL if shared else _OWN)[kind]
    for suffix, flag in ((WITH_KWARGS, "with_kwargs"), (ALWAYS_CALLED, "always_call")):
        if key in (getattr(holder, attribute + suffix, None) or {}):
            found.append(flag)
    return tuple(found)
