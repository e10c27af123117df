"""Gives the hooks on the graph of a pass their rows in the trace."""

from typing import Any

from hookviz.autograd.graph_snapshot import add_hook_row
from hookviz.autograd.torch_internals import current_task
from hookviz.recorder.hook_observer import Hook, HookDictObserver, HookIteration, HookListObserver, Observer
from hookviz.recorder.modules.graph_owners import GraphOwners
from hookviz.recorder.torch.unwrapped_hooks import UnwrappedHook, tensor_index, unwrap_hook
from hookviz.trace import MODULE_HOOK_KINDS, HookPlace, NodeOutput, TraceData
from hookviz.trace.traversal import iter_enclosing_calls

Entry = tuple[Any, Hook]
"""(key, function) of a hook in its dict."""

_Identity = tuple[str, int, int | None, Any]
"""(kind of the dict, node, output, key) of a hook."""


class HookRegistry:
    """Gives each hook of one pass its row in the trace."""

    def __init__(self, trace: TraceData, pass_id: int, owners: GraphOwners) -> None:
        self.trace, self.pass_id, self.owners = trace, pass_id, owners
        self._rows: dict[_Identity, int] = {}
        self._calls: dict[_Identity, int | None] = {}
        """The module call that each module hook belongs to."""
        self._fired: set[int] = set()
        """For ``UnwrappedHook.has_run``."""
        self._part_places: dict[tuple[int, int], NodeOutput] = {}
        """(``id`` of the state that a multi-grad hook's parts share, index of a part) → place of its tensor."""
        self._unwrapped: dict[int, tuple[Hook, UnwrappedHook]] = {}
        """``id`` of a hook → the hook, which so keeps its id, and what it is."""

    def unwrap(self, hook: Hook) -> UnwrappedHook:
        """Find out what a hook is, once in a pass."""
        known = self._unwrapped.get(id(hook))
        if known is None:
            known = self._unwrapped[id(hook)] = hook, unwrap_hook(hook)
        return known[1]

    def add(self, dict_observer: HookDictObserver, entry: Entry) -> None:
        """Add a hook of this pass's graph, unless it is torch's own hook that calls a module's full backward hooks."""
        unwrapped = self.unwrap(entry[1])
        if unwrapped.waits:
            self._part_places[id(unwrapped.state), tensor_index(entry[1]) or 0] = dict_observer.place
        if not unwrapped.calls_others:
            self.hook_number(dict_observer, entry)

    def tensor_names(self, hook: Hook, count: int) -> tuple[str, ...]:
        """Return the names of a multi-grad hook's tensors; empty for one outside this graph, or without a name."""
        state = self.unwrap(hook).state
        places = [self._part_places.get((id(state), part)) for part in range(count)]
        return tuple("" if place is None else self.trace.naming.tensors.get(place, "") for place in places)

    def hook_number(self, dict_observer: HookDictObserver, entry: Entry) -> int:
        """Return the number of a hook in the trace; a new hook gets a row."""
        identity = _hook_identity(dict_observer, entry)
        if identity not in self._rows:
            self._rows[identity] = self._add_row(dict_observer, *entry)
        return self._rows[identity]

    def _add_row(self, dict_observer: HookDictObserver, key: Any, hook: Hook) -> int:
        unwrapped = self.unwrap(hook)
        kind, function = unwrapped.kind or dict_observer.kind, unwrapped.function
        if kind not in MODULE_HOOK_KINDS:
            return add_hook_row(self.trace, self.pass_id, kind, dict_observer.node, dict_observer.output, key, function)
        call: int | None
        if isinstance(dict_observer, HookListObserver):
            call = dict_observer.call
        elif unwrapped.module is not None:
            call = self._legacy_hook_call(unwrapped.module, dict_observer.node)
        else:
            call = self.trace.owners.get(dict_observer.node)
        self._calls[_hook_identity(dict_observer, (key, hook))] = call
        module = None if call is None else self.trace.calls[call].module
        return self.owners.modules.backward_hook(
            self.pass_id, kind, module, function, self._count_same_before(dict_observer, key, function)
        )

    def find_place(self, hooks: list[Entry], entry: Entry) -> HookPlace:
        """Return the position of a hook among the hooks of its kind that torch is calling."""
        kind = self.unwrap(entry[1]).kind
        peers = [other for other in hooks if not isinstance(other[1], Observer) and self.unwrap(other[1]).kind == kind]
        return HookPlace(peers.index(entry), len(peers))

    def find_culprit(
        self, dict_observer: HookDictObserver, iteration: HookIteration[Any]
    ) -> tuple[int | None, int | None]:
        """Return the hook to blame and its call, if torch raised while it called these hooks or refused a result.

        If it was calling its own hook for a module, the culprit is the last of the module's hooks that replaced
        something.
        """
        entry = next(iter(iteration.remaining), None)
        if entry is None:
            return None, None
        if not self.unwrap(entry[1]).calls_others:
            hook = self.hook_number(dict_observer, entry)
            return hook, self.call_number(dict_observer, entry)
        rows = (row for row in reversed(self.trace.rows) if row.pass_id == self.pass_id)
        replacing = (row for row in rows if row.kind in MODULE_HOOK_KINDS and row.effect == "replaced")
        return next(((row.hook, row.call) for row in replacing), (None, None))

    def has_run(self, hook: Hook) -> bool:
        """Return whether the user's function has run, now that torch has called ``hook``."""
        return self.unwrap(hook).has_run(current_task(), self._fired)

    def call_number(self, dict_observer: HookDictObserver, entry: Entry) -> int | None:
        """Return the module call that a hook's step belongs to, if any. ``hook_number`` must be called first."""
        if isinstance(dict_observer, HookListObserver):
            return dict_observer.call
        return self._calls.get(_hook_identity(dict_observer, entry))

    def _count_same_before(self, dict_observer: HookDictObserver, key: Any, function: Any) -> int:
        """Count the hooks before the one with this key that run the same function."""
        count = 0
        for other_key, other in dict_observer.user_hooks():
            if other_key == key:
                break
            count += self.unwrap(other).function is function
        return count

    def _legacy_hook_call(self, module: Any, node: int) -> int:
        """Return the call of ``module`` whose legacy hooks are on ``node``, the node of its first output tensor.

        An inner module may have made that node, and a module that returns its input has not made it at all.
        """
        number = self.owners.modules.number(module)
        for call in iter_enclosing_calls(self.trace, self.trace.owners.get(node)):
            if self.trace.calls[call].module == number:
                return call
        calls = [index for index, row in enumerate(self.trace.calls) if row.module == number]
        return calls[0] if len(calls) == 1 else self.owners.call_at_node(module, node)


def _hook_identity(dict_observer: HookDictObserver, entry: Entry) -> _Identity:
    return dict_observer.kind, dict_observer.node, dict_observer.output, entry[0]
