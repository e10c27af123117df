"""Finds the hooks that were registered in a recording and never fired."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

import torch

from hookviz.autograd import module_tree, variable_names
from hookviz.recorder.follower import Follower
from hookviz.recorder.followers.hook_log import MAX_MODULE_HOOKS, MAX_REMOVALS, HookLog, Removal, find_user_source
from hookviz.recorder.followers.hook_owners import SEEN_BY_PASSES, Facts
from hookviz.recorder.followers.hooked_objects import (
    OwnedDict,
    dicts_in_variables,
    dicts_of_optimizer,
)
from hookviz.recorder.followers.multi_grad_rows import GroupedRow, MultiGradGroup, merge_multi_grad_rows
from hookviz.recorder.followers.optimizer_steps import OptimizerTracker
from hookviz.recorder.followers.related_models import RelatedModels
from hookviz.recorder.passes.pass_tracker import PassTracker
from hookviz.recorder.torch.hook_dicts import global_module_hook_dicts, global_optimizer_hook_dicts, user_hook_entries
from hookviz.support.source_code import Source
from hookviz.trace import HOOK_KINDS, HookIdentity, UnfiredRow, identity_of
from hookviz.trace.unfired_rows import Evidence

MAX_HOOKS = 2_000
"""A trace holds up to this many hooks that did not fire; a note says that there are more."""


class UnfiredHookWriter(Follower):
    """Writes at the end of a recording a row for each hook that did not fire.

    The hooks are those of the given models, of modules, tensors and optimizers in the caller's variables, of what was
    called, and those that were registered during the recording, wherever they are.
    """

    def __init__(self, passes: PassTracker, log: HookLog, optimizers: OptimizerTracker) -> None:
        self.session, self.trace, self.calls, self.optimizers = passes.session, passes.trace, passes.calls, optimizers
        self.numbering, self.log = passes.numbering, log
        self.tensors, self.modules = self.log.tensors, self.log.modules
        self._removed_from: set[int] = set()
        """``id`` of the dicts from which hooks were removed."""
        self._multi_grad_keys: set[int | str] = set()
        self._fired_modules: dict[Any, set[int]] = {}
        """Key of a module hook → the modules for which a hook with this key fired."""
        self._facts_by_owner: dict[int, Facts] = {}
        """``id`` of an owner → what is known of it, while the rows are written."""
        self._variables: Mapping[str, Any] = {}
        """The variables of the caller, while the rows are written."""

    def close(self) -> None:
        """Write a row for each hook that did not fire."""
        if not self.log.has_hooks:
            return
        self._variables = variable_names.interesting_variables(variable_names.caller_frame())
        self.log.note_firings()
        for key, module in self.log.fired:
            if module is not None:
                self._fired_modules.setdefault(key, set()).add(module)
        self._removed_from = {id(removal.hooks()) for removal in self.log.removals}
        self._multi_grad_keys = {row.key for row in self.trace.hook_rows if row.kind == "multi_grad_hook"}
        dicts = {id(owned.place.hooks): owned for owned in self._owned_dicts()}
        grouped = chain(
            self._rows_of_dicts(dicts),
            self._rows_of_removals(dicts),
            self._rows_of_other_tensors(dicts),
            self._rows_of_gone_modules(),
        )
        rows = merge_multi_grad_rows(grouped, self._fired_states(dicts))
        rows += self._rows_of_graphs({identity_of(row) for row in rows})
        kept = [row._replace(registered_at=self.log.registered_at(row.key)) for row in rows[:MAX_HOOKS]]
        self.trace.unfired_rows += kept
        if len(rows) > MAX_HOOKS:
            self.session.notes.say("unfired", count=f"{len(rows):,}", most=f"{MAX_HOOKS:,}")
        if self.log.missed_removals:
            self.session.notes.say("removals", count=f"{self.log.missed_removals:,}", most=f"{MAX_REMOVALS:,}")
        if self.log.missed_module_hooks:
            many = {"count": f"{self.log.missed_module_hooks:,}", "most": f"{MAX_MODULE_HOOKS:,}"}
            self.session.notes.say("module_hooks", **many)
        self.modules.models, self._variables = [], {}
        self._facts_by_owner.clear()

    def _owned_dicts(self) -> Iterator[OwnedDict]:
        """Yield the hook dicts, of everything that is known, from which a hook did not fire."""
        self.modules.models = RelatedModels(
            self.log, self.calls.modules, self._variables, self._removed_from, self._fired_modules
        ).find()
        for model in (model for model in self.modules.models if model.has_hooks):
            label = partial(self.calls.modules.name_within, model.root)
            yield from model.dicts(label, self._is_needed)
        yield from dicts_in_variables(self._variables, self._is_needed)
        for name, optimizer in self.optimizers.alive_optimizers():
            yield from dicts_of_optimizer(optimizer, name)
        for place in chain(global_module_hook_dicts(), global_optimizer_hook_dicts()):
            if place.kind in HOOK_KINDS:
                yield OwnedDict(place, None)

    def _is_needed(self, owner: Any, hooks: Any) -> bool:
        if hooks is None or id(hooks) in self._removed_from:
            return hooks is not None
        number = self._number(owner) if hooks else None
        return any((key, number) not in self.log.fired or key in self._multi_grad_keys for key in hooks)

    def _rows_of_dicts(self, dicts: Mapping[int, OwnedDict]) -> Iterator[GroupedRow]:
        """Yield a row for each hook that is registered now."""
        for owned in dicts.values():
            for key, hook in user_hook_entries(owned.place.hooks):
                if not self._has_fired(owned, key) and not self._may_have_fired_unseen(owned, key):
                    source, group = find_user_source(hook)
                    yield self._row(owned, key, source, group)._replace(flags=owned.place.flags_of(key)), group

    def _has_fired(self, owned: OwnedDict, key: Any) -> bool:
        """Return whether a hook fired, perhaps for a shallow copy of its module, which has the same dict."""
        if (key, self._number(owned.owner)) in self.log.fired:
            return True
        numbers = self._fired_modules.get(key, ()) if isinstance(owned.owner, torch.nn.Module) else ()
        return any(self.calls.modules.had_dict(number, owned.place.hooks) for number in numbers)

    def _number(self, owner: Any) -> int | None:
        return self.calls.modules.find_number(owner) if isinstance(owner, torch.nn.Module) else None

    def _rows_of_removals(self, dicts: Mapping[int, OwnedDict]) -> Iterator[GroupedRow]:
        """Yield a row for each hook that was removed from a dict whose owner is known."""
        for removal in self.log.removals:
            owned = dicts.get(id(removal.hooks()))
            if owned is not None and not self._has_fired(owned, removal.key):
                row = self._row(owned, removal.key, removal.source, removal.group, removal)
                yield row._replace(until=self.log.until(removal), removed_at=removal.removed_at), removal.group

    def _rows_of_other_tensors(self, dicts: Mapping[int, OwnedDict]) -> Iterator[GroupedRow]:
        """Yield a row for each hook that was registered in the recording on a tensor that no variable leads to."""
        removals = {removal.key: removal for removal in self.log.removals}
        for key, registration in self.log.on_tensors.items():
            is_known = registration.hooks() is not None and id(registration.hooks()) in dicts
            if is_known or (key, None) in self.log.fired:
                continue
            kind = registration.kind if registration.group is None else "multi_grad_hook"
            evidence: Evidence = (("gone", "yes"),) if registration.is_gone else ()
            normed = "" if registration.normed is None else self._name_parameter(registration.normed())
            evidence += (("weight_norm", normed),) if normed else ()
            evidence += (("in_graph", "1"),) if key in self.log.on_graphs else ()
            row = UnfiredRow(kind, "", key, *registration.source, since=self.log.since(key), evidence=evidence)
            removal = removals.get(key)
            if removal is not None:
                row = row._replace(until=self.log.until(removal), removed_at=removal.removed_at)
            yield row, registration.group

    def _name_parameter(self, parameter: torch.Tensor | None) -> str:
        """Return the path of a parameter in a variable or in a model; empty if there is none."""
        models = [(name, one) for name, one in self._variables.items() if isinstance(one, torch.nn.Module)]
        models += [(self.calls.modules.label(model.root), model.root) for model in self.modules.models]
        named = ((name, *item) for name, model in models for item in module_tree.named_parameters(model))
        return next((f"{name}.{path}" for name, path, one in named if one is parameter), "")

    def _rows_of_gone_modules(self) -> Iterator[GroupedRow]:
        """Yield a row for each hook that was registered in the recording on a module that no longer exists."""
        for key, registration in self.log.on_modules.items():
            has_fired = key in self._fired_modules or key in self.log.called_unseen
            if registration.module() is None and not has_fired:
                number = self.calls.modules.find_number_of(registration.module)
                on = "" if number is None else self.trace.modules[number].name
                evidence: Evidence = (("class", registration.module_class),)
                evidence += (("gone", "yes"),) if number is None else (("called", str(self.calls.count_calls(number))),)
                row = UnfiredRow(registration.kind, on, key, *registration.source, since=self.log.since(key))
                yield row._replace(module=number, evidence=evidence), None

    def _rows_of_graphs(self, known: set[HookIdentity]) -> Iterator[UnfiredRow]:
        """Yield a row for each other hook that was on the graph of a pass, such as a hook of a node."""
        for index, row in enumerate(self.trace.hook_rows):
            identity = identity_of(row)
            if row.kind != "multi_grad_hook" and identity not in known and identity not in self.log.fired:
                on, source = self.trace.hook(index).on, (row.name, row.file, row.line, row.text, row.mark)
                since = self.log.since(row.key)
                yield UnfiredRow(row.kind, on, row.key, *source, row.flags, since, module=row.module, node=row.node)

    def _fired_states(self, dicts: Mapping[int, OwnedDict]) -> set[int]:
        """Return the ``id`` of the states of the multi-grad hooks that fired: torch calls only one of their parts."""
        keys = {key for key in self._multi_grad_keys if (key, None) in self.log.fired}
        if not keys:
            return set()
        entries = (entry for owned in dicts.values() for entry in user_hook_entries(owned.place.hooks))
        groups = [find_user_source(hook)[1] for key, hook in entries if key in keys]
        groups += [removal.group for removal in self.log.removals if removal.key in keys]
        groups += [registration.group for key, registration in self.log.on_tensors.items() if key in keys]
        return {id(group.state) for group in groups if group is not None}

    def _row(
        self, owned: OwnedDict, key: Any, source: Source, group: MultiGradGroup | None, removal: Removal | None = None
    ) -> UnfiredRow:
        kind = owned.place.kind if group is None else "multi_grad_hook"
        facts = self._facts(owned.owner)
        if isinstance(owned.owner, torch.Tensor):
            facts = self._facts_while(owned.owner, key, removal, facts)
        if key in self.log.on_graphs and "passes" in facts:
            facts = {"in_graph": 1, **facts}  # of a pass that began where no variable held the tensor
        evidence = tuple((name, str(value)) for name, value in facts.items())
        since, module, node = self.log.since(key), self._number(owned.owner), self._find_node(owned.owner)
        return UnfiredRow(kind, owned.place.on, key, *source, since=since, module=module, evidence=evidence, node=node)

    def _find_node(self, owner: Any) -> int | None:
        """Return the node at which the gradient of a tensor arrives, if it belonged to the graph of a pass."""
        with suppress(RuntimeError):  # torch refuses everything about a stale output of unbind
            return self.numbering.find(owner) if isinstance(owner, torch.Tensor) else None
        return None

    def _facts_while(self, tensor: torch.Tensor, key: int, removal: Removal | None, facts: Facts) -> Facts:
        """Return what is known of a tensor while one of its hooks was registered; ``facts`` hold for all the time."""
        is_unknown = removal is not None and removal.seen is None
        if is_unknown or self.log.is_on_earlier_value(key, tensor):  # what the passes saw is about another value
            return {name: value for name, value in facts.items() if name not in SEEN_BY_PASSES}
        since = self.log.seen_before(key)
        if not since and removal is None:
            return facts
        with suppress(RuntimeError):
            return self._find_tensor_facts(tensor, since, None if removal is None else removal.seen)
        return {}

    def _may_have_fired_unseen(self, owned: OwnedDict, key: Any) -> bool:
        """Return whether a hook may have run where the recording could not see it.

        That is an older hook in a graph where nothing leads to it, or the hook of a module of which a shallow copy was
        called. Where a part of a model is recorded, the table says so of the rest.
        """
        tensor = owned.owner
        if self.log.may_have_fired_elsewhere(owned.place.hooks):
            return not self.calls.followed.are_part
        if not isinstance(tensor, torch.Tensor) or key in self.log.on_graphs or self.log.since(key) is not None:
            return False
        is_seen = self.tensors.counts_of(tensor)["passes"] >= self.tensors.passes
        return self.log.is_on_earlier_value(key, tensor) or not (tensor.is_leaf or is_seen)

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
                return self._find_tensor_facts(owner, Counter(), None)
        return {}

    def _find_tensor_facts(self, tensor: torch.Tensor, since: Counter[str], until: Counter[str] | None) -> Facts:
        return self.tensors.evidence(tensor, since, until) | self.modules.membership(tensor)
