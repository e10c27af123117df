"""The rows of the hooks on the graph of a pass, found behind what torch puts around a user's function."""

from typing import Any

from hookviz.autograd.graph_snapshot import add_hook_row
from hookviz.autograd.torch_internals import current_task
from hookviz.recorder.graph_owners import GraphOwners
from hookviz.recorder.hook_observer import Hook, HookDictObserver, HookListObserver
from hookviz.recorder.multi_grad_hooks import part_of
from hookviz.recorder.unwrapped_hooks import unwrap_hook
from hookviz.support.messages import say
from hookviz.trace import MODULE_HOOK_KINDS, HookPlace, Place, TraceData
from hookviz.trace.traversal import chain

Entry = tuple[Any, Hook]
"""(key, function) in a hook dict."""

_Identity = tuple[str, int, int, Any]
"""(kind of the dict, node, output, key) of a hook."""


class HookRegistry:
    """Gives each hook of one pass its row in the trace."""

    def __init__(self, trace: TraceData, pass_id: int, owners: GraphOwners) -> None:
        self.trace, self.pass_id, self.owners = trace, pass_id, owners
        self._rows: dict[_Identity, int] = {}
        self._calls: dict[_Identity, int] = {}
        """The module call that each legacy hook belongs to."""
        self._any: set[int] = set()
        """The multi-grad hooks of mode ``any`` that have fired in this pass."""
        self._parts: dict[tuple[int, int], Place] = {}
        """(``id`` of what the parts of a multi-grad hook share, which part) → the tensor that this part is on."""

    def add(self, stage: HookDictObserver, entry: Entry) -> None:
        """A hook is registered on the graph of this pass; torch's own that calls a module's is not one."""
        found = unwrap_hook(entry[1])
        if found is not None and found.waits:
            self._parts[id(found.state), part_of(entry[1]) or 0] = stage.node, stage.output
        if found is None or found.kind != "module":
            self.row(stage, entry)

    def names(self, hook: Hook, count: int) -> tuple[str, ...]:
        """What the tensors of a multi-grad hook are called; one that is not in this graph goes by its place."""
        found = unwrap_hook(hook)
        places = [self._parts.get((id(found and found.state), part)) for part in range(count)]
        return tuple(
            say("name.tensor", number=part + 1) if place is None else self.trace.name(*place)
            for part, place in enumerate(places)
        )

    def row(self, stage: HookDictObserver, entry: Entry) -> int:
        """The number of a hook in the trace; a new one gets its row."""
        identity = _identity(stage, entry)
        if identity not in self._rows:
            self._rows[identity] = self._new(stage, *entry)
        return self._rows[identity]

    def _new(self, stage: HookDictObserver, key: Any, hook: Hook) -> int:
        found = unwrap_hook(hook)
        kind, function = (stage.kind, hook) if found is None else (found.kind, found.function)
        if kind not in MODULE_HOOK_KINDS:
            return add_hook_row(self.trace, self.pass_id, kind, stage.node, stage.output, key, function)
        if isinstance(stage, HookListObserver):
            call = stage.call
        elif found is not None and found.module is not None:
            call = self._call_of(found.module, stage.node)
        else:
            call = self.trace.owners.get(stage.node, -1)
        self._calls[_identity(stage, (key, hook))] = call
        module = self.trace.calls[call].module if call >= 0 else -1
        return self.owners.modules.backward_hook(self.pass_id, kind, module, function, _same_before(stage, key, hook))

    def place(self, stage: HookDictObserver, hooks: list[Entry], entry: Entry) -> HookPlace:
        """Where a hook stands among those of its kind that torch is calling."""
        kind = _kind(stage, entry[1])
        peers = [other for other in hooks if not stage.observes(other[1]) and _kind(stage, other[1]) == kind]
        return HookPlace(peers.index(entry), len(peers))

    def culprit(self, stage: HookDictObserver, entry: Entry) -> tuple[int | None, int]:
        """The hook to name when torch raised while ``entry`` ran, or did not take what it returned; and its call.

        What torch's own hook for a module returns is what the last of the module's hooks has made it.
        """
        if _kind(stage, entry[1]) != "module":
            hook = self.row(stage, entry)
            return hook, self.call(stage, entry)
        mine = (row for row in reversed(self.trace.rows) if row.pass_id == self.pass_id)
        made = (row for row in mine if row.kind in MODULE_HOOK_KINDS and row.effect == "replaced")
        return next(((row.hook, row.call) for row in made), (None, -1))

    def ran(self, hook: Hook) -> bool:
        """Whether a function of the user's has run, now that ``hook`` has: torch's own may have had to wait."""
        found = unwrap_hook(hook)
        if found is None or found.kind == "backward_hook":
            return True
        if found.kind == "module":  # the observers in its lists have reported each function
            return False
        if found.waits:
            return current_task() not in found.state  # after the last gradient it forgets the count
        first = id(found.state) not in self._any
        self._any.add(id(found.state))
        return first

    def call(self, stage: HookDictObserver, entry: Entry) -> int:
        """The module call that a hook's step is about, or -1; ``row`` has numbered the hook."""
        return stage.call if isinstance(stage, HookListObserver) else self._calls.get(_identity(stage, entry), -1)

    def _call_of(self, module: Any, node: int) -> int:
        """The call of ``module`` whose legacy hooks sit on ``node``, that of its first output tensor.

        A module inside may have made that node, and a module that returns what it was given has not made it at all.
        """
        number = self.owners.modules.number(module)
        for call in chain(self.trace, self.trace.owners.get(node, -1)):
            if self.trace.calls[call].module == number:
                return call
        known = [index for index, row in enumerate(self.trace.calls) if row.module == number]
        return known[0] if len(known) == 1 else self.owners.call_of(module, node)


def _identity(stage: HookDictObserver, entry: Entry) -> _Identity:
    return stage.kind, stage.node, stage.output, entry[0]


def _same_before(stage: HookDictObserver, key: Any, hook: Hook) -> int:
    """How many hooks before this one have the same function behind them."""
    function, count = _function(hook), 0
    for other, known in stage.user_hooks():
        if other == key:
            break
        count += _function(known) is function
    return count


def _function(hook: Hook) -> Any:
    found = unwrap_hook(hook)
    return hook if found is None else found.function


def _kind(stage: HookDictObserver, hook: Hook) -> str:
    found = unwrap_hook(hook)
    return stage.kind if found is None else found.kind
