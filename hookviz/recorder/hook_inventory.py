"""Finds the hooks that were registered in a recording and never fired."""

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.autograd import module_tree, variable_names
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.node_numbering import NodeNumbers
from hookviz.recorder.call_tracker import CallTracker
from hookviz.recorder.hook_dicts import global_module_hook_dicts, global_optimizer_hook_dicts, user_hook_entries
from hookviz.recorder.hook_owners import Facts, ModuleEvidence, TensorEvidence
from hookviz.recorder.hooked_objects import (
    HookedModel,
    OwnedDict,
    dicts_in_variables,
    dicts_of_optimizer,
    sort_outermost_first,
)
from hookviz.recorder.optimizer_steps import OptimizerTracker
from hookviz.recorder.session import Session
from hookviz.recorder.unwrapped_hooks import unwrap_hook
from hookviz.support.source_code import Source, describe_function, shorten_filename
from hookviz.trace import HOOK_KINDS, MODULE_HOOK_KINDS, HookRow, UnfiredRow
from hookviz.trace.value_rows import get_stored_rows

MAX_HOOKS = 2_000
"""A trace holds up to this many hooks that did not fire; a note says that there are more."""

_Identity: TypeAlias = tuple[Any, int | None]
"""Key and module of a hook: torch gives each hook a key of its own, but a copy of a module has the same ones."""
_GroupedRow: TypeAlias = tuple[UnfiredRow, int]
"""A row, and a number that the parts of a multi-grad hook share (0 for other hooks)."""


class Removal(NamedTuple):
    """A hook that was removed during the recording."""

    hooks: "weakref.ref[Any]"
    key: Any
    source: Source
    group: int
    until: int
    removed_at: str


class Registration(NamedTuple):
    """A hook that was registered on a tensor during the recording."""

    hooks: "weakref.ref[Any]"
    kind: str
    source: Source
    group: int


class HookInventory:
    """Notes when hooks are registered and removed, and writes at the end a row for each that did not fire.

    The hooks are those of the given models, of modules, tensors and optimizers in the caller's variables, and of what
    was called. torch numbers hooks in the order in which they are registered: that tells which are older than the
    recording.
    """

    def __init__(self, session: Session, calls: CallTracker, optimizers: OptimizerTracker) -> None:
        self.session, self.trace, self.calls, self.optimizers = session, session.trace, calls, optimizers
        self._first_key = RemovableHandle.next_id
        self._registered: dict[int, int] = {}
        """Key → the number of steps when the hook was registered."""
        self._on_tensors: dict[int, Registration] = {}
        self._removals: list[Removal] = []
        self._removed_from: set[int] = set()
        """``id`` of the dicts from which hooks were removed."""
        self._multi_grad_keys: set[int | str] = set()
        self._facts_by_owner: dict[int, Facts] = {}
        """``id`` of an owner → what is known of it, while the rows are written."""
        self._numbering: NodeNumbers | None = None
        self._dropped_steps = 0
        self._fired: set[_Identity] = set()
        """The hooks that fired in passes that were dropped; at the end, in all."""
        self.tensors, self.modules = TensorEvidence(), ModuleEvidence(calls)

    # -- what happens during the recording; none of this may take long

    def registered(self, handle: RemovableHandle) -> None:
        """Note that torch has made the handle of a new hook."""
        self._registered[handle.id] = self._dropped_steps + len(self.trace.rows)

    def tensor_hook_added(self, kind: str, hooks: Any) -> None:
        """Note the source of a hook that was just added to a tensor, which may soon be gone."""
        key, hook = next(reversed(user_hook_entries(hooks)), (None, None))
        if isinstance(key, int) and key in self._registered:
            self._on_tensors[key] = Registration(weakref.ref(hooks), kind, *_describe(hook))

    def removed(self, handle: RemovableHandle) -> None:
        """Note that a hook is about to be removed, and by which line of the user's code."""
        hooks: Any = handle.hooks_dict_ref()
        if hooks is None or handle.id not in hooks or len(self._removals) >= MAX_HOOKS:
            return
        frame = variable_names.caller_frame()
        line = f"{shorten_filename(frame.f_code.co_filename) or ''}:{frame.f_lineno}"
        until = self._dropped_steps + len(self.trace.rows)
        self._removals.append(Removal(weakref.ref(hooks), handle.id, *_describe(hooks[handle.id]), until, line))

    def pass_begins(self, snapshot: GraphSnapshot, names: Mapping[str, torch.Tensor], inputs: Sequence[Any]) -> None:
        """Note which tensors with hooks are not in the graph of a pass, and which modules without a call are used."""
        self.modules.pass_begins(snapshot, is_partial=bool(inputs))
        if RemovableHandle.next_id:  # else no hook was registered since Python started
            self.tensors.pass_begins(snapshot, names.values(), is_partial=bool(inputs))

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget what was seen of a tensor: torch swaps it with another one only if nothing refers to it weakly."""
        self.tensors.forget(tensor)
        self.modules.forget(tensor)

    def passes_dropped(self, count: int) -> None:
        """Note what fired in the first ``count`` passes, which are about to be dropped."""
        dropped = [row for row in self.trace.rows if row.pass_id < count]
        self._dropped_steps += len(dropped)
        hooks = {row.hook for row in dropped if row.hook is not None and row.kind in HOOK_KINDS}
        self._fired |= {_identity(self.trace.hook_rows[hook]) for hook in hooks}
        self._forget_dead_hooks()

    def _forget_dead_hooks(self) -> None:
        """Forget the hooks of tensors that no longer exist and of passes that were dropped: a loop may make many."""
        dead = {key for key, registration in self._on_tensors.items() if registration.hooks() is None}
        self._removals = [removal for removal in self._removals if removal.hooks() is not None]
        self._on_tensors = {key: one for key, one in self._on_tensors.items() if key not in dead}
        self._fired = {identity for identity in self._fired if identity[0] not in dead}
        self._registered = {key: step for key, step in self._registered.items() if step >= self._dropped_steps}
        self.tensors.forget_dead_tensors()

    # -- the end

    def close(self, numbering: NodeNumbers) -> None:
        """Write a row for each hook that did not fire; ``numbering`` finds the nodes of tensors."""
        if not RemovableHandle.next_id:
            return
        self._numbering = numbering
        self._note_firings()
        self._removed_from = {id(removal.hooks()) for removal in self._removals}
        self._multi_grad_keys = {row.key for row in self.trace.hook_rows if row.kind == "multi_grad_hook"}
        dicts = {id(owned.place.hooks): owned for owned in self._owned_dicts()}
        grouped = chain(self._rows_of_dicts(dicts), self._rows_of_removals(dicts), self._rows_of_other_tensors(dicts))
        rows = _merge_multi_grad(grouped, self._fired_groups(dicts))
        rows += self._rows_of_graphs({_identity(row) for row in rows})
        self.trace.unfired_rows += rows[:MAX_HOOKS]
        if len(rows) > MAX_HOOKS:
            self.session.notes.say("note.unfired", count=f"{len(rows):,}", most=f"{MAX_HOOKS:,}")
        self.modules.models, self._numbering = [], None
        self._facts_by_owner.clear()

    def _owned_dicts(self) -> Iterator[OwnedDict]:
        """Yield the hook dicts, of everything that is known, from which a hook did not fire."""
        self.modules.models = self._find_models()
        for model in (model for model in self.modules.models if model.has_hooks):
            label = partial(self.calls.modules.name_within, model.root)
            yield from model.dicts(label, self._is_needed)
        yield from dicts_in_variables(variable_names.caller_frame(), self._is_needed)
        for name, optimizer in self.optimizers.alive_optimizers():
            yield from dicts_of_optimizer(optimizer, name)
        for place in chain(global_module_hook_dicts(), global_optimizer_hook_dicts()):
            if place.kind in HOOK_KINDS:
                yield OwnedDict(place, None)

    def _is_needed(self, owner: Any, hooks: Any) -> bool:
        if hooks:
            number = self._number(owner)
            return any((key, number) not in self._fired or key in self._multi_grad_keys for key in hooks)
        return hooks is not None and id(hooks) in self._removed_from

    def _find_models(self) -> list[HookedModel]:
        """Find the models that have to do with what ran, with their hooks."""
        visited: set[int] = set()
        wanted = self._removed_from
        called = [module for _, module in self.calls.modules.alive_modules()]
        given = self.calls.modules.given_models()
        models = [HookedModel(root, visited, wanted) for root in given if id(root) not in visited]
        candidates = (HookedModel(root, visited, wanted) for root in self._candidates(called))
        models += [model for model in candidates if self._is_related(model, called)]
        return models + [HookedModel(module, visited, wanted) for module in called if id(module) not in visited]

    def _candidates(self, called: Sequence[torch.nn.Module]) -> Iterator[torch.nn.Module]:
        """Yield the modules in variables to look at: a notebook may hold many models that were not used here."""
        if not called and not self.modules.has_parameters and self.trace.roots:
            return
        classes = {type(module) for module in called}
        variables = variable_names.variables_of(variable_names.caller_frame(), torch.nn.Module)
        given = {id(model) for model in self.calls.modules.given_models()}
        candidates = (root for root in variables.values() if id(root) not in given)
        has_given = bool(self.calls.modules.given)
        yield from sort_outermost_first([root for root in candidates if not has_given or type(root) in classes])

    def _is_related(self, model: HookedModel, called: Sequence[torch.nn.Module]) -> bool:
        """Return whether a model was called, or used without a call, or may be a copy of one that was."""
        is_called = not {id(module) for module in called}.isdisjoint(map(id, module_tree.all_modules(model.root)))
        is_twin = any(type(module) is type(model.root) for module in called)
        is_used = self.modules.are_used(module_tree.all_parameters(model.root)) is not None
        return is_called or is_twin or is_used or not (called or self.trace.roots)

    def _note_firings(self) -> None:
        # Compact rows, which have no hook, are not expanded for this.
        hooks = {row.hook for row in get_stored_rows(self.trace.rows, 0) if type(row) is not tuple}
        self._fired |= {_identity(self.trace.hook_rows[hook]) for hook in hooks if hook is not None}

    def _rows_of_dicts(self, dicts: Mapping[int, OwnedDict]) -> Iterator[_GroupedRow]:
        """Yield a row for each hook that is registered now."""
        for owned in dicts.values():
            for key, hook in user_hook_entries(owned.place.hooks):
                if not self._has_fired(owned, key):
                    source, group = _describe(hook)
                    yield self._row(owned, key, source, group)._replace(flags=owned.place.flags_of(key)), group

    def _has_fired(self, owned: OwnedDict, key: Any) -> bool:
        return (key, self._number(owned.owner)) in self._fired

    def _number(self, owner: Any) -> int | None:
        return self.calls.modules.find_number(owner) if isinstance(owner, torch.nn.Module) else None

    def _rows_of_removals(self, dicts: Mapping[int, OwnedDict]) -> Iterator[_GroupedRow]:
        """Yield a row for each hook that was removed from a dict whose owner is known."""
        for removal in self._removals:
            owned = dicts.get(id(removal.hooks()))
            if owned is not None and not self._has_fired(owned, removal.key):
                row = self._row(owned, removal.key, removal.source, removal.group)
                until = max(removal.until - self._dropped_steps, 0)
                yield row._replace(until=until, removed_at=removal.removed_at), removal.group

    def _rows_of_other_tensors(self, dicts: Mapping[int, OwnedDict]) -> Iterator[_GroupedRow]:
        """Yield a row for each hook that was registered in the recording on a tensor that no variable leads to."""
        removed = {removal.key for removal in self._removals}
        for key, (reference, kind, source, group) in self._on_tensors.items():
            hooks, kind = reference(), "multi_grad_hook" if group else kind
            is_known = key in removed or (hooks is not None and id(hooks) in dicts)
            if not is_known and (key, None) not in self._fired:
                evidence = (("gone", "yes"),) if hooks is None else ()
                yield UnfiredRow(kind, "", key, *source, since=self._since(key), evidence=evidence), group

    def _rows_of_graphs(self, known: set[_Identity]) -> Iterator[UnfiredRow]:
        """Yield a row for each other hook that was on the graph of a pass, such as a hook of a node."""
        for index, row in enumerate(self.trace.hook_rows):
            if row.kind != "multi_grad_hook" and _identity(row) not in known | self._fired:
                on, source = self.trace.hook(index).on, (row.name, row.file, row.line, row.text, row.mark)
                since = self._since(row.key)
                yield UnfiredRow(row.kind, on, row.key, *source, row.flags, since, module=row.module, node=row.node)

    def _fired_groups(self, dicts: Mapping[int, OwnedDict]) -> set[int]:
        """Return the groups of the multi-grad hooks that fired: torch calls only one of their parts."""
        keys = {key for key in self._multi_grad_keys if (key, None) in self._fired}
        if not keys:
            return set()
        entries = (entry for owned in dicts.values() for entry in user_hook_entries(owned.place.hooks))
        groups = {_describe(hook)[1] for key, hook in entries if key in keys}
        return groups | {registration.group for key, registration in self._on_tensors.items() if key in keys}

    def _row(self, owned: OwnedDict, key: Any, source: Source, group: int) -> UnfiredRow:
        kind = "multi_grad_hook" if group else owned.place.kind
        evidence = tuple((name, str(value)) for name, value in self._facts(owned.owner).items())
        since, module, node = self._since(key), self._number(owned.owner), _find_node(owned.owner, self._numbering)
        return UnfiredRow(kind, owned.place.on, key, *source, since=since, module=module, evidence=evidence, node=node)

    def _facts(self, owner: Any) -> Facts:
        """Return what is known of the owner of a hook, which may have many hooks."""
        if id(owner) not in self._facts_by_owner:
            self._facts_by_owner[id(owner)] = self._find_facts(owner)
        return self._facts_by_owner[id(owner)]

    def _find_facts(self, owner: Any) -> Facts:
        if isinstance(owner, torch.nn.Module):
            return self.modules.evidence(owner)
        if isinstance(owner, torch.optim.Optimizer):
            return {"class": type(owner).__name__, "steps": self.optimizers.steps_of(owner)}
        with suppress(RuntimeError):  # torch refuses everything about a stale output of unbind
            if isinstance(owner, torch.Tensor):
                return self.tensors.evidence(owner) | self.modules.membership(owner)
        return {}

    def _since(self, key: Any) -> int | None:
        """Return the number of steps when a hook was registered; None if that was before the recording."""
        if not isinstance(key, int) or key < self._first_key:
            return None
        return max(self._registered.get(key, 0) - self._dropped_steps, 0)


def _find_node(owner: Any, numbering: NodeNumbers | None) -> int | None:
    """Return the node at which the gradient of a tensor arrives, if it belonged to the graph of a pass."""
    with suppress(RuntimeError):  # torch refuses everything about a stale output of unbind
        if isinstance(owner, torch.Tensor) and numbering is not None:
            return numbering.find(owner)
    return None


def _merge_multi_grad(rows: Iterable[_GroupedRow], fired_groups: set[int]) -> list[UnfiredRow]:
    """Make one row of the parts of each multi-grad hook, one for each of its tensors; drop those that fired."""
    merged: list[UnfiredRow] = []
    parts: dict[int, list[UnfiredRow]] = {}
    for row, group in rows:
        if group:
            parts.setdefault(group, []).append(row)
        else:
            merged.append(row)
    for group, same in parts.items():
        if group not in fired_groups:
            merged.append(same[0]._replace(on=", ".join(row.on for row in same if row.on)))
    return merged


def _identity(row: HookRow | UnfiredRow) -> _Identity:
    module = row.module if row.kind in MODULE_HOOK_KINDS and "global" not in row.flags else None
    return row.key, module


def _describe(hook: Any) -> tuple[Source, int]:
    """Return the source of the user's function in a hook, and for a part of a multi-grad hook what the parts share."""
    unwrapped = unwrap_hook(hook)
    group = id(unwrapped.state) if unwrapped is not None and unwrapped.kind == "multi_grad_hook" else 0
    return describe_function(hook if unwrapped is None else unwrapped.function), group
