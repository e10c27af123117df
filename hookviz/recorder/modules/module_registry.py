"""Names and numbers the modules of a recording, names their calls, and gives their hooks rows in the trace."""

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import torch
import torch.nn.modules.module as torch_modules

from hookviz.autograd import module_tree
from hookviz.autograd.graph_snapshot import add_hook_row
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.torch_internals import (
    ALWAYS_CALLED,
    GLOBAL_IS_FULL,
    GLOBAL_MODULE_HOOKS,
    IS_FULL,
    MODULE_HOOKS,
    WITH_KWARGS,
)
from hookviz.autograd.variable_names import Holder, caller_frame, find_holder, user_frames
from hookviz.support.interpreter import Uninterrupted
from hookviz.support.source_code import describe_function
from hookviz.support.user_objects import read_attribute
from hookviz.trace import CallRow, ModuleRow, TraceData

Module = torch.nn.Module

_MODULE_ATTRIBUTES = {**MODULE_HOOKS, "backward_hook": MODULE_HOOKS["full_backward_hook"]}
_GLOBAL_VARIABLES = {**GLOBAL_MODULE_HOOKS, "backward_hook": GLOBAL_MODULE_HOOKS["full_backward_hook"]}
"""Kind of hook → the attribute in which a module keeps its own hooks; the variable that holds the global hooks."""

_DROPOUTS = tuple(
    getattr(torch.nn, name)
    for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")
)
"""The modules that drop numbers in training mode only, with the probability ``p``."""


class ModuleRegistry:
    """Gives each module a number and a name, without holding it."""

    def __init__(self, trace: TraceData, given: Iterable[Module] = ()) -> None:
        self.trace = trace
        self.given = [weakref.ref(model) for model in given]
        """The models that the recording was given."""
        self._numbers: IdentityMap[int] = IdentityMap()
        self.called_ids: set[int] = set()
        """The ``id`` of each module that was called; it may no longer exist."""
        self._holders: list[weakref.ref[Module]] = []
        self._names: IdentityMap[str] = IdentityMap()
        self._names_by_reference: dict[int, tuple[weakref.ref[Module], str]] = {}
        """``id`` of the reference to a module → it and the name, also when the module is gone."""
        self._used_names: set[str] = set()
        self._shared: set[str] = set()
        """The names of modules that others hold at several places."""
        self._roots: set[str] = set()
        """The names of models: a module may have been added to one of them since it was named."""
        self._next_number: dict[str, int] = {}
        """Name that several modules would have → the number to append for the next of them."""
        self._hooks: dict[tuple[Any, ...], int] = {}
        self._dicts: dict[tuple[Any, int], weakref.ref[dict[Any, Any]]] = {}
        """Key of a hook and number of its module → the dict that has it; a shallow copy of a module shares it."""
        self._removed_keys: dict[tuple[int, int], list[Any]] = {}
        """``id`` of a hook dict and of a function → the keys of the hooks that were removed from the dict."""

    def number(self, module: Module) -> int:
        """Return the number of a module, which is the same in every call."""
        number = self._numbers.get(module)
        if number is None:
            number, name = len(self.trace.modules), self.known_name(module) or self.name_model(module)
            with Uninterrupted():
                self.trace.modules.append(ModuleRow(name, type(module).__name__, drops=_read_dropout(module)))
                self._holders.append(weakref.ref(module))
                self._numbers.put(module, number)
                self.called_ids.add(id(module))
        if "forward" in vars(module) and self.trace.modules[number].forward is None:
            self.trace.modules[number] = self.trace.modules[number]._replace(forward=_find_own_forward(module))
        return number

    def find_number(self, module: Module) -> int | None:
        """Return the number of a module that was called; None for any other module."""
        return self._numbers.get(module)

    def is_alive(self, number: int) -> bool:
        """Return whether the module with this number still exists."""
        return self._holders[number]() is not None

    def find_number_of(self, reference: "weakref.ref[Module]") -> int | None:
        """Return the number of a module that was called and no longer exists: Python makes one reference to each."""
        return next((number for number, holder in enumerate(self._holders) if holder is reference), None)

    def name_of(self, reference: "weakref.ref[Module]") -> str | None:
        """Return the name of a module that may no longer exist, or None if it has none."""
        return self._names_by_reference.get(id(reference), (None, None))[1]

    def dict_of_hook(self, key: Any, number: int) -> "weakref.ref[dict[Any, Any]] | None":
        """Return the reference to the dict that has a hook of the module with this number; the dict may be gone."""
        return self._dicts.get((key, number))

    def known_name(self, module: Module) -> str | None:
        """Return the name of a module, or None if it has no name yet."""
        return self._names.get(module)

    def label(self, module: Module) -> str:
        """Return the name of a module, or its class without one; this runs no code of the module's that could fail."""
        return self.known_name(module) or type(module).__name__

    def holds(self, parameter: torch.Tensor) -> bool:
        """Return whether a module that has a name holds ``parameter``."""
        return any(one is parameter for one in module_tree.list_own_parameters([m for _, m in self.known_modules()]))

    def name_model(self, module: Module) -> str:
        """Name the model that holds ``module``, and all modules in it, by the expressions that reach them.

        The model is named after a variable of the user's code, such as ``net``, and a module in it ``net.layers.0``;
        a model that no variable holds is named after its class. If DDP wraps ``net``, the names begin with ``net``.
        Returns the name of ``module``.
        """
        name = self.known_name(module)
        if name is not None and name not in self._roots:
            return name
        for inner in module_tree.unwrap(module), module:
            if name is not None or self.known_name(inner) is None:
                holder = Holder(name, module) if name is not None else find_model(inner)
                self._name_all(holder or Holder(type(module).__name__, module))
        return self.label(module)

    def name_if_held(self, module: Module) -> None:
        """Name the model that holds ``module``, if it has no name yet and a variable leads to it."""
        holder = find_model(module) if self.known_name(module) is None else None
        if holder is not None:
            self._name_all(holder)

    def _name_all(self, holder: Holder) -> None:
        root_name = self.known_name(holder.root) or self._free_name(holder.name)
        self._roots.add(root_name)
        held: list[Module] = []
        for path, inner in module_tree.named_modules(holder.root):
            held += [child for _name, child in module_tree.children(inner)]
            if self.known_name(inner) is None:
                inner_name = f"{root_name}.{path}" if path else root_name
                self._used_names.add(inner_name)
                self._names.put(inner, inner_name)
                reference = weakref.ref(inner)
                self._names_by_reference[id(reference)] = reference, inner_name
        counts = Counter(map(id, held))
        self._shared.update(self.label(module) for module in held if counts[id(module)] > 1)

    def is_shared(self, name: str) -> bool:
        """Return whether modules hold the one with a name at several places."""
        return name in self._shared

    def _free_name(self, name: str) -> str:
        """Return ``name``, with a number appended if a module has or had that name."""
        candidate = name
        while candidate in self._used_names:
            number = self._next_number.get(name, 2)
            candidate, self._next_number[name] = f"{name} {number}", number + 1
        return candidate

    def named_parameters(self) -> dict[str, torch.Tensor]:
        """Return name → parameter for every module that has a name: first those that were called.

        The others count as well: a compiled module runs without a call that hookviz sees.
        """
        parameters: dict[str, torch.Tensor] = {}
        for path, module in (*self.alive_modules(), *self.known_modules()):
            for name, parameter in module_tree.own_parameters(module):
                parameters.setdefault(f"{path}.{name}", parameter)
        return parameters

    def known_modules(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) for every module that has a name and still exists, whether it was called or not."""
        return ((name, module) for module, name in self._names.items())

    def given_models(self) -> list[Module]:
        """Return the models that the recording was given and that still exist."""
        return [model for reference in self.given if (model := reference()) is not None]

    def name_within(self, root: Module, module: Module) -> str:
        """Return the name of a module in ``root``; if it has none, its model is named now."""
        if self.known_name(module) is None:
            self.name_model(root)
        return self.label(module)

    def alive_modules(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) for every module that was called and still exists."""
        for row, reference in zip(self.trace.modules, self._holders, strict=True):
            module = reference()
            if module is not None:
                yield row.name, module

    def hook_number(
        self, kind: str, module: int | None, key: Any, function: Any, *, shared: bool, pass_id: int | None = None
    ) -> int:
        """Return the number of a module's hook in the trace; a ``shared`` hook belongs to all modules."""
        owner = None if shared else module
        identity = (kind, owner, key, id(function))
        if identity not in self._hooks or pass_id is not None:
            holder = torch_modules if owner is None else self._holders[owner]()
            flags = _hook_flags(holder, kind, key, shared)
            row = (kind, None, None, key, function)
            if owner is not None and (hooks := _hook_dict(holder, kind, shared)):
                self._dicts[key, owner] = weakref.ref(hooks)
            self._hooks[identity] = add_hook_row(self.trace, pass_id, *row, module=identity[1], flags=flags)
        return self._hooks[identity]

    def renumber(self, hooks: Mapping[int, int]) -> None:
        """Renumber the hooks (old → new), and forget those that are not in the mapping."""
        self._hooks = {identity: hooks[number] for identity, number in self._hooks.items() if number in hooks}

    def backward_hook(self, pass_id: int, kind: str, module: int | None, function: Any, nth: int) -> int:
        """Return the number of a backward hook in the trace.

        torch copied the hook without its key, so the key is looked up in the dict of its origin. ``nth`` distinguishes
        hooks with the same function: torch calls the global ones first, then the module's own.
        """
        matching = [
            (key, shared)
            for owner, shared in ((torch_modules, True), (None if module is None else self._holders[module](), False))
            for key, hook in _backward_dict(owner, kind, shared).items()
            if hook is function
        ]
        if matching and kind == "backward_hook":  # several calls may have put their hooks on one node
            nth %= len(matching)
        if nth >= len(matching):  # the hook was removed since torch copied it
            matching += self._find_removed(kind, module, function)
        key, shared = matching[nth] if nth < len(matching) else (len(matching) - nth - 1, module is None)
        return self.hook_number(kind, module, key, function, shared=shared, pass_id=pass_id)

    def hook_removed(self, hooks: Any, key: Any, function: Any) -> None:
        """Remember the key of a hook that is about to be removed: the graph of an earlier call may still have it."""
        self._removed_keys.setdefault((id(hooks), id(function)), []).append(key)

    def _find_removed(self, kind: str, module: int | None, function: Any) -> list[tuple[Any, bool]]:
        """Return key and place (whether all modules share it) of the removed hooks with this function."""
        found: list[tuple[Any, bool]] = []
        for owner, shared in ((torch_modules, True), (None if module is None else self._holders[module](), False)):
            hooks = getattr(owner, (_GLOBAL_VARIABLES if shared else _MODULE_ATTRIBUTES)[kind], None)
            found += [(key, shared) for key in self._removed_keys.get((id(hooks), id(function)), ())]
        return found


def _backward_dict(owner: Any, kind: str, shared: bool) -> dict[Any, Any]:
    """Return the backward hooks of one kind. A dict holds either full or legacy hooks, never both."""
    is_full = getattr(owner, GLOBAL_IS_FULL if shared else IS_FULL, None)
    is_other_kind = kind != "full_backward_pre_hook" and is_full is not (kind == "full_backward_hook")
    return {} if is_other_kind else _hook_dict(owner, kind, shared)


def _hook_dict(holder: Any, kind: str, shared: bool) -> dict[Any, Any]:
    """Return the dict that keeps hooks of this kind of a module, or of all modules."""
    return getattr(holder, (_GLOBAL_VARIABLES if shared else _MODULE_ATTRIBUTES)[kind], None) or {}


def _hook_flags(holder: Any, kind: str, key: Any, shared: bool) -> tuple[str, ...]:
    flags = ["global"] if shared else []
    attribute = (_GLOBAL_VARIABLES if shared else _MODULE_ATTRIBUTES)[kind]
    for suffix, flag in ((WITH_KWARGS, "with_kwargs"), (ALWAYS_CALLED, "always_call")):
        if key in (getattr(holder, attribute + suffix, None) or {}):
            flags.append(flag)
    return tuple(flags)


def find_model(module: Module) -> Holder | None:
    """Find the model that holds ``module`` among the variables of the user's code that is running.

    The innermost function that has one counts.
    """
    visited: set[int] = set()
    holders = (find_holder(module, frame, visited) for frame in (*user_frames(), caller_frame()))
    return next((holder for holder in holders if holder is not None), None)


def _find_own_forward(module: Module) -> str:
    """Return file and line of the function that was put in the place of the forward of a module; empty if unknown."""
    source = describe_function(vars(module)["forward"])
    return f"{source.file}:{source.line}" if source.file and source.line else ""


def _read_dropout(module: Module) -> float | None:
    """Return the probability with which a module drops numbers; None if it is no dropout of torch."""
    rate = read_attribute(module, "p") if issubclass(type(module), _DROPOUTS) else None
    return float(rate) if isinstance(rate, (float, int)) else None


MAX_PATHS = 10_000
"""Modules that share modules that share modules may have many more; then a call has the name of its module."""


class SharedPaths:
    """Names the calls of shared modules, and of what is in them, by the modules that made the calls."""

    def __init__(self, trace: TraceData, modules: ModuleRegistry) -> None:
        self.trace, self.modules = trace, modules
        self._paths: dict[tuple[int, int], str] = {}
        """Numbers of two modules → the only path from the first to the second; empty if there are several, or none."""
        self._counts: Counter[tuple[int, str]] = Counter()
        """Number of a module and path → the calls so far."""

    def add_path(self, row: CallRow, module: Module, caller: Module | None) -> CallRow:
        """Return the row of a call with its path, if the module, or one around it that runs, has several."""
        name = self.trace.modules[row.module].name
        around = None if row.parent is None else self.trace.calls[row.parent]
        is_inside = around is not None and bool(around.nth)
        if not is_inside and not self.modules.is_shared(name):
            return row
        path = "" if around is None or caller is None else self._find_path(around, row.module, caller, module)
        path = "" if path == name else path
        self._counts[row.module, path] += 1
        return row._replace(path=path, nth=self._counts[row.module, path])

    def _find_path(self, around: CallRow, number: int, caller: Module, module: Module) -> str:
        key = around.module, number
        if key not in self._paths:
            pairs = list(islice(module_tree.named_modules(caller, every_path=True), MAX_PATHS))
            paths = [path for path, inner in pairs if inner is module]
            self._paths[key] = paths[0] if len(paths) == 1 and len(pairs) < MAX_PATHS else ""
        outer = around.path or self.trace.modules[around.module].name
        return f"{outer}.{self._paths[key]}" if self._paths[key] else ""
