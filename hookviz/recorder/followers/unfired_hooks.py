"""Writes at the end of a recording a row for each hook that did not fire, with what the ledger knows of its owner.

Hooks on state_dict, load_state_dict and registration are followed by no recording.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeAlias

import torch

from hookviz.autograd import module_tree, variable_names
from hookviz.recorder.follower import Follower
from hookviz.recorder.followers.hook_entry import HookEntry, MultiGradGroup, find_user_source
from hookviz.recorder.followers.hook_ledger import HookLedger
from hookviz.recorder.followers.hook_owners import HookOwner, ModuleOwner, OptimizerOwner, TensorOwner
from hookviz.recorder.followers.older_hooks import OlderHooks, OwnedDict
from hookviz.recorder.followers.optimizer_steps import OptimizerTracker
from hookviz.recorder.passes.pass_tracker import PassTracker
from hookviz.recorder.torch.hook_dicts import user_hook_entries
from hookviz.support.user_objects import is_of
from hookviz.trace import HookIdentity, UnfiredRow, identity_of
from hookviz.trace.traversal import list_outer_paths

MAX_HOOKS = 2_000
"""A trace holds up to this many hooks that did not fire; a note says that there are more."""

GroupedRow: TypeAlias = tuple[UnfiredRow, MultiGradGroup | None]
"""A row, and for a part of a multi-grad hook its group."""


class UnfiredHooks(Follower):
    """Writes the rows of the hooks that did not fire.

    The hooks are those of the ledger, and older ones of the given models, of what was called, and of modules, tensors
    and optimizers in the caller's variables.
    """

    def __init__(
        self, passes: PassTracker, ledger: HookLedger, optimizers: OptimizerTracker, names: Mapping[str, Any]
    ) -> None:
        self.session, self.trace, self.calls, self.optimizers = passes.session, passes.trace, passes.calls, optimizers
        self.numbering, self.ledger, self.parameters = passes.numbering, ledger, ledger.parameters
        self.firings, self._names = ledger.firings, names

    def close(self) -> None:
        """Write a row for each hook that did not fire."""
        if not self.ledger.dates.has_hooks:
            return
        self.firings.note_all()
        found = variable_names.interesting_variables(variable_names.caller_frame())
        variables = {**self._names, **found, **self._names}  # the user's names come first
        older = OlderHooks(self.calls.modules, self.parameters, variables, self._is_needed)
        shared = [*self._meet(older.dicts(self.optimizers.alive_optimizers(), bool(self.trace.roots)))]
        known = [*self.ledger.older.values(), *self.ledger.entries.values()]
        entries = [entry for entry in known if not self.ledger.dates.is_after_stop(entry.key)]
        silent = [entry for entry in entries if entry.kind and not self._has_fired(entry)]
        grouped = [(self._row(entry), entry.group) for entry in silent]
        rows = merge_multi_grad_rows([*grouped, *shared], self._fired_states(entries))
        rows += self._rows_of_graphs({identity_of(row) for row in rows})
        self._write(rows)

    def _write(self, rows: list[UnfiredRow]) -> None:
        self.trace.unfired_rows += rows[:MAX_HOOKS]
        missed = self.ledger.missed + max(len(rows) - MAX_HOOKS, 0)
        if missed:
            self.session.notes.say("hooks", count=f"{missed:,}")

    # -- older hooks

    def _is_needed(self, hooks: Any) -> bool:
        return hooks is not None and (bool(hooks) or self.ledger.has_removals(hooks))

    def _meet(self, dicts: Iterable[OwnedDict]) -> Iterator[GroupedRow]:
        """Give older hooks their entries; yield the rows of hooks of all modules or optimizers that did not fire."""
        several = {row.key for row in self.trace.hook_rows if row.kind == "multi_grad_hook"}
        for place, owner in dicts:
            number = self.calls.modules.find_number(owner) if is_of(owner, torch.nn.Module) else None
            for key, hook in user_hook_entries(place.hooks):
                has_fired = (key, number) in self.firings.fired and key not in several
                if has_fired or self.ledger.dates.is_after_stop(key):
                    continue
                if owner is not None:
                    entry = self.ledger.add_older(place.kind, key, hook, owner, place.hooks, place.on)
                    entry.flags = place.flags_of(key)
                else:
                    source, _ignored = find_user_source(hook)
                    since = self.ledger.dates.since(key)
                    row = UnfiredRow(place.kind, place.on, key, *source, place.flags_of(key), since)
                    yield row._replace(registered_at=self.ledger.dates.registered_at(key)), None
            if owner is not None:
                self.ledger.add_removed(place.kind, owner, place.hooks, place.on)

    def _has_fired(self, entry: HookEntry) -> bool:
        """Return whether a hook fired or may have: perhaps for a copy of its module.

        A shallow copy shares its dict. A deep copy has a dict of its own; the hook of a module that was only made to be
        copied fires there, unless the hook is a method: its object was copied, too.
        """
        if not isinstance(entry.owner, ModuleOwner):
            return (entry.key, None) in self.firings.fired
        is_template = entry.owner.is_discarded and not entry.has_object
        has_moved = is_template and bool(self.firings.find_modules(entry.key))
        return has_moved or self.firings.has_fired_from(entry.hooks, entry.key)

    def _fired_states(self, entries: Iterable[HookEntry]) -> set[int]:
        """Return the ``id`` of the states of the multi-grad hooks that fired: torch calls only one of their parts."""
        groups = (entry.group for entry in entries if (entry.key, None) in self.firings.fired)
        return {id(group.state) for group in groups if group is not None}

    # -- rows

    def _row(self, entry: HookEntry) -> UnfiredRow:
        ledger = self.ledger
        row = UnfiredRow(entry.kind, entry.owner.name, entry.key, *entry.source, entry.flags)
        until = ledger.dates.count_left(entry.until)
        row = row._replace(since=ledger.dates.since(entry.key), until=until, removed_at=entry.removed_at)
        row = row._replace(registered_at=entry.registered_at, library=entry.is_from_library)
        if isinstance(entry.owner, ModuleOwner):
            copies = self.firings.find_modules(entry.key)
            return self._add_module(row, entry.owner)._replace(copy=next(iter(copies), None), bound=entry.has_object)
        if isinstance(entry.owner, OptimizerOwner):
            return self._add_optimizer(row, entry.owner)
        return self._add_tensor(row, entry, entry.owner) if isinstance(entry.owner, TensorOwner) else row

    def _module_number(self, owner: ModuleOwner) -> int | None:
        module, modules = owner.get(), self.calls.modules
        if module is not None:
            return modules.find_number(module)
        return None if owner.reference is None else modules.find_number_of(owner.reference)

    def _add_module(self, row: UnfiredRow, owner: ModuleOwner) -> UnfiredRow:
        """Add what is known of a module: its calls, and without any what ran instead."""
        number, module = self._module_number(owner), owner.get()
        known = None if owner.reference is None else self.calls.modules.name_of(owner.reference)
        name = known or owner.name if number is None else self.trace.modules[number].name
        called = 0 if number is None else self.calls.count_calls(number)
        used, is_older = self._count_uses(name, module) if not called else (0, False)
        stand_in = None if called else owner.stand_in or self.ledger.stand_ins.find(module)
        return row._replace(
            on=name,
            module=number,
            owner=owner.class_name,
            discarded=owner.is_discarded and not called,
            has_forward=owner.has_forward,
            called=called,
            inner="" if called else self._find_inner(name, owner),
            compiled=self.calls.compiled.find_place(name, module),
            used=used,
            older=is_older,
            partial=self.ledger.partial_passes,
            stand_in="" if stand_in is None else stand_in.name,
            maker="" if stand_in is None else stand_in.maker,
        )

    def _find_inner(self, name: str, owner: ModuleOwner) -> str:
        """Return the name of a module inside another one that was called; empty if none was."""
        module = owner.get()
        if module is not None:
            return self.ledger.owners.find_called_inside(module)
        return owner.inner or self._called_inside.get(name, "")

    @cached_property
    def _called_inside(self) -> dict[str, str]:
        """Path → the first module below it that was called."""
        inner: dict[str, str] = {}
        for row in self.trace.modules:
            for path in list_outer_paths(row.name):
                inner.setdefault(path, row.name)
        return inner

    @cached_property
    def _used_prefixes(self) -> dict[str, tuple[int, bool]]:
        """Path → the most passes of a parameter below it, and whether their graph is older than the recording."""
        found: dict[str, tuple[int, bool]] = {}
        for name, passes in self.parameters.used.items():
            for path in list_outer_paths(name):
                found[path] = passes, name in self.parameters.older
        return found

    def _count_uses(self, name: str, module: torch.nn.Module | None) -> tuple[int, bool]:
        """Return in how many passes a parameter of a module belonged to the graph, and whether that is older."""
        used = None if module is None else self.parameters.count_uses(module_tree.all_parameters(module))
        return used or ((0, False) if module is not None else self._used_prefixes.get(name, (0, False)))

    def _add_optimizer(self, row: UnfiredRow, owner: OptimizerOwner) -> UnfiredRow:
        number = None if owner.reference is None else self.optimizers.number_of(owner.reference)
        if number is None:
            return row._replace(owner=owner.class_name)
        steps = self.optimizers.count_steps(number)
        return row._replace(on=self.trace.optimizers[number].name, owner=owner.class_name, steps=steps)

    def _add_tensor(self, row: UnfiredRow, entry: HookEntry, owner: TensorOwner) -> UnfiredRow:
        """Add what the passes saw of a tensor while its hook was registered."""
        tensor, ledger = owner.get(), self.ledger
        last = ledger.whole_passes if entry.passes_after is None else entry.passes_after
        passes = last - entry.passes_before
        is_frozen = entry.frozen == entry.seen if entry.seen else not owner.requires_grad
        returned = None if owner.key is None else self.calls.owners.outputs.find_part(owner.key)
        is_parameter_of_hook = returned is not None and entry.registered_by is not None
        in_graph = entry.in_graph or int(entry.key in self.firings.on_graphs)
        was_gone = in_graph > entry.in_graph and ledger.partial_passes == ledger.passes  # its hooks stay on the node
        return row._replace(
            on="" if is_parameter_of_hook else row.on,
            node=None if tensor is None else self._find_node(tensor),
            call=owner.call if owner.call is not None and owner.call < len(self.trace.calls) else None,
            owner=owner.holder_class,
            passes=passes,
            in_graph=in_graph,
            partial=entry.partial or int(was_gone),
            leaf=owner.is_leaf,
            discarded=owner.is_discarded and owner.is_parameter,
            frozen=is_frozen and owner.is_leaf,
            frozen_at_call=bool(passes) and entry.frozen_at_call == passes,
            stray=entry.is_stray,
            uncalled=entry.is_of_uncalled_model,
            made_by=owner.made_by,
            made_from="" if owner.made_from is None else self._name_leaf(owner.made_from),
            returned=returned,
            beside=entry.is_beside,
            dropped=entry.is_dropped and not owner.is_parameter,
            late=entry.is_late,
            transformed=entry.transformed,
            wrapped=owner.is_wrapped,
        )

    def _find_node(self, tensor: torch.Tensor) -> int | None:
        with suppress(RuntimeError):  # torch refuses everything about a stale output of unbind
            return self.numbering.find(tensor)
        return None

    def _name_leaf(self, owner: HookOwner) -> str:
        """Return the path of a leaf in a model that the recording knows; otherwise the name that it had."""
        leaf, parameters = owner.get(), self.calls.modules.named_parameters()
        return next((name for name, one in parameters.items() if one is leaf), owner.name)

    def _rows_of_graphs(self, known: set[HookIdentity]) -> Iterator[UnfiredRow]:
        """Yield a row for each other hook that was on the graph of a pass, such as a hook of a node."""
        for index, row in enumerate(self.trace.hook_rows):
            identity = identity_of(row)
            if row.kind != "multi_grad_hook" and identity not in known and identity not in self.firings.fired:
                on = self.trace.hook(index).on
                found = UnfiredRow(
                    row.kind, on, row.key, *row.source[:-1], row.held, row.flags, self.ledger.dates.since(row.key)
                )
                registered = self.ledger.dates.registered_at(row.key)
                yield found._replace(module=row.module, node=row.node, registered_at=registered)


def merge_multi_grad_rows(rows: Iterable[GroupedRow], fired_states: set[int]) -> list[UnfiredRow]:
    """Merge the rows of the parts of each multi-grad hook; leave out the hooks that fired, by ``id`` of their state."""
    merged: list[UnfiredRow] = []
    parts: dict[int, tuple[MultiGradGroup, list[UnfiredRow]]] = {}
    for row, group in rows:
        if group is None:
            merged.append(row)
        else:
            parts.setdefault(id(group.state), (group, []))[1].append(row)
    for state, (group, same) in parts.items():
        if state not in fired_states and not _may_have_fired_unseen(group, same):
            merged.append(_merge(same))
    return merged


def _may_have_fired_unseen(group: MultiGradGroup, parts: Sequence[UnfiredRow]) -> bool:
    """Return whether the hook may have a part that the recording does not know: one that is older than it."""
    return parts[0].since is None and (group.size is None or len(parts) < group.size)


def _merge(parts: Sequence[UnfiredRow]) -> UnfiredRow:
    """Return the row of a hook, with the facts that hold for all of its tensors, or for those in the graph."""
    relevant = [part for part in parts if part.in_graph] or list(parts)
    return parts[0]._replace(
        on=", ".join(part.on for part in parts if part.on),
        passes=min(part.passes for part in relevant),
        partial=min(part.partial for part in relevant),
        in_graph=max(part.in_graph for part in relevant),
        leaf=all(part.leaf for part in relevant),
        frozen=all(part.frozen for part in relevant),
        stray=all(part.stray for part in relevant),
    )
