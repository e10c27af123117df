"""The census: every hook that is registered now, and what two censuses differ in."""

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import count
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import GradientEdge, Node

from hookviz.autograd import graph, module_tree
from hookviz.autograd.torch_internals import DisableTorchFunction, require_internals
from hookviz.hook_listing.graph_hooks import Unplaced, survey_hooks
from hookviz.recorder.hook_dicts import Dict, Kept, entries, of_all_modules, of_all_optimizers, of_module, of_optimizer
from hookviz.recorder.module_registry import ModuleRegistry
from hookviz.recorder.unwrapped_hooks import unwrap_hook
from hookviz.support.messages import say
from hookviz.support.printable import kind_of, printable
from hookviz.support.source_code import describe
from hookviz.support.table import Table
from hookviz.trace import Hook, TraceData

_taken = count()


class Identity(NamedTuple):
    """Tells a hook from all others: the dict that keeps it, and its key there.

    Python makes one weak reference for each object, and as long as a census holds that, it stands for no other. The
    key alone would not do: torch gives out each number once, but a copied module keeps its hooks under the old ones.
    """

    dict: "weakref.ref[Dict]"
    key: Any

    @property
    def plain(self) -> tuple[int, Any]:
        """The same, to be looked up in sets: a reference to a dict has no hash."""
        return id(self.dict), self.key


@dataclass(frozen=True)
class Change:
    """A hook that is registered in one of two censuses only."""

    change: str
    """``left`` behind since the earlier census, or ``gone``."""
    hook: Hook


class Census(Table[Hook]):
    """The hooks that were registered at one moment: a list in Python, a table in Jupyter.

    It holds no tensor, module, optimizer or function alive. ``before - after`` tells what was registered in between
    and what was removed, whichever way round the two are written.

    >>> layer = torch.nn.Linear(1, 1)
    >>> before = hooks(layer)
    >>> handle = layer.register_forward_hook(print)
    >>> print(before - hooks(layer))
    change       on     hook   kind          kept in               place  where
    left behind  layer  print  forward hook  layer._forward_hooks  1/1
    """

    def __init__(self, found: Iterable[tuple[Identity, Hook]], unplaced: Sequence[Unplaced] = ()) -> None:
        known: dict[tuple[int, Any], tuple[Identity, Hook]] = {}
        for identity, hook in found:
            known.setdefault(identity.plain, (identity, hook))
        self._identities = [identity for identity, _ in known.values()]
        self._number = next(_taken)
        self._unplaced = say("census.unplaced", hooks=_listed(unplaced)) if unplaced else ""
        nothing = self._unplaced or say("census.empty")
        super().__init__((hook for _, hook in known.values()), _head(), _cells, nothing=nothing)

    def __repr__(self) -> str:
        table = super().__repr__()
        return f"{table}\n{self._unplaced}" if self._unplaced and len(self) else table

    def _repr_html_(self) -> str:
        table = super()._repr_html_()
        return f"{table}<p>{escape(printable(self._unplaced))}</p>" if self._unplaced and len(self) else table

    def __sub__(self, other: object) -> Table[Change]:
        if not isinstance(other, Census):
            return NotImplemented
        before, after = sorted((self, other), key=lambda census: census._number)
        left = [Change("left", hook) for hook in after._without(before)]
        gone = [Change("gone", hook) for hook in before._without(after)]
        head = [say("table.change"), *_head()]
        return Table([*left, *gone], head, _change_cells, nothing=say("census.nothing"))

    def _without(self, other: "Census") -> list[Hook]:
        known = {identity.plain for identity in other._identities}
        return [hook for identity, hook in zip(self._identities, self, strict=True) if identity.plain not in known]


Found = Iterator[tuple[Identity, Hook]]


def hooks(*things: torch.Tensor | Node | torch.nn.Module | torch.optim.Optimizer) -> Census:
    """Every hook registered now on ``things``, and where it is kept; without things, the global hooks.

    - Of a tensor or an autograd node: those on it and on the graph below it. A hook on an intermediate tensor fires
      even when the Python tensor is gone, or was changed in place since: its dict then hangs on the node, and PyTorch
      does not tell on which. Such hooks, wherever they hang, are named below the table.
    - Of a module: those of the module, of all modules in it and of their parameters, and those of all modules.
    - Of an optimizer: its own, and those of all optimizers.

    Raises:
        TypeError: something is none of these.
        ValueError: a graph is too deep to be held.

    >>> a = torch.tensor(2.0, requires_grad=True)
    >>> c = a * 3
    >>> handle = c.register_hook(print)
    >>> [(hook.on, hook.name, hook.kept_in) for hook in hooks(c)]
    [('c', 'print', 'c._backward_hooks')]
    """
    require_internals()
    for thing in things:
        if not isinstance(thing, (torch.Tensor, Node, torch.nn.Module, torch.optim.Optimizer)):
            raise TypeError(say("error.hooks.type", kind=kind_of(thing)))
    modules = [thing for thing in things if isinstance(thing, torch.nn.Module)]
    optimizers = [thing for thing in things if isinstance(thing, torch.optim.Optimizer)]
    roots = [thing for thing in things if isinstance(thing, (torch.Tensor, Node))]
    unplaced: list[Unplaced] = []
    with DisableTorchFunction():
        found = [*_of_dicts(_of_modules(modules)), *_of_graphs(roots, unplaced)]
        found += _of_dicts(_of_optimizers(optimizers))
        found += _of_dicts(of_all_modules()) if modules or not things else ()
        found += _of_dicts(of_all_optimizers()) if optimizers or not things else ()
    return Census(found, unplaced)


def _of_modules(roots: Sequence[torch.nn.Module]) -> Iterator[Kept]:
    """The dicts of models, under the names that a recording gives their modules."""
    names = ModuleRegistry(TraceData())
    for root in roots:
        names.name(root)
        for module in module_tree.all_modules(root):
            yield from of_module(module, names.trace.module(names.number(module)))


def _of_optimizers(optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[Kept]:
    for optimizer in optimizers:
        yield from of_optimizer(
            optimizer, graph.variable_name(optimizer, graph.caller_frame()) or type(optimizer).__name__
        )


def _of_dicts(dicts: Iterable[Kept]) -> Found:
    for kept in dicts:
        for place, (key, hook) in enumerate(entries(kept.hooks)):
            flags = tuple(flag for flag, keys in kept.flags.items() if keys is None or key in keys)
            found = unwrap_hook(hook)
            kind = found.kind if found is not None and found.kind == "multi_grad_hook" else kept.kind
            source = describe(hook if found is None else found.function)
            total = len(entries(kept.hooks))
            row = Hook(kept.on, kind, source, kept.kept_in, place, total, flags)
            yield Identity(weakref.ref(kept.hooks), key), row


def _of_graphs(roots: Sequence[torch.Tensor | Node], unplaced: list[Unplaced]) -> Found:
    """The hooks of graphs, as a recording would name them; of a tensor without a history, none.

    Those that may be on these graphs and cannot be found there are added to ``unplaced``.
    """
    starts = [root if isinstance(root, torch.Tensor) else GradientEdge(root, 0) for root in roots]
    given = [start for start in starts if isinstance(start, GradientEdge) or start.requires_grad]
    trace, found = survey_hooks(given, graph.tensor_variables(graph.caller_frame()), unplaced)
    for row, kept, key in found:
        keys = [other for other, _ in entries(kept)]
        yield Identity(weakref.ref(kept), key), replace(trace.hook(row), place=keys.index(key), total=len(keys))


def _listed(hooks: Sequence[Unplaced]) -> str:
    """Hooks with the lines where they were written, each once."""
    told = [f"{hook.label} ({hook.where})" if hook.where else hook.label for hook in hooks]
    return ", ".join(dict.fromkeys(told))


def _head() -> list[str]:
    return [say(f"table.{name}") for name in ("on", "hook", "kind", "dict", "place", "where")]


def _cells(hook: Hook) -> tuple[str, ...]:
    kind = say(f"census.{hook.kind}")
    if hook.flags:
        kind = say("census.flags", kind=kind, flags=", ".join(hook.flags))
    return (hook.on, hook.label, kind, hook.kept_in, f"{hook.place + 1}/{hook.total}", hook.where)


def _change_cells(change: Change) -> tuple[str, ...]:
    return (say(f"change.{change.change}"), *_cells(change.hook))
