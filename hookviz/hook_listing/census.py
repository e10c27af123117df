"""The census: every hook that is registered now, and the difference between two censuses."""

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import GradientEdge, Node

from hookviz.analysis.hook_counts import HookCount, count_firings, find_count
from hookviz.api.trace import Trace, data_of
from hookviz.autograd import module_tree, variable_names
from hookviz.autograd.torch_internals import DisableTorchFunction, require_internals
from hookviz.hook_listing.graph_hooks import UnplacedHooks, capture_with_hooks
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.recorder.torch.hook_dicts import (
    Dict,
    HookDict,
    global_module_hook_dicts,
    global_optimizer_hook_dicts,
    module_hook_dicts,
    optimizer_hook_dicts,
    user_hook_entries,
)
from hookviz.recorder.torch.unwrapped_hooks import is_multi_grad_part, user_function
from hookviz.support.messages import N_, _, join_sentences
from hookviz.support.printable import describe_type
from hookviz.support.source_code import Source, describe_function
from hookviz.support.table import Table, cells_of, head_of
from hookviz.trace import Hook, TraceData
from hookviz.trace.hooks import HookLabels, LabelledHook

_CHANGES = {
    "left": N_("left behind"),
    "gone": N_("gone"),
}


_census_numbers = count()
"""Numbers censuses in the order in which they are taken."""


class HookIdentity(NamedTuple):
    """Identifies a hook: the dict that keeps it, and its key there.

    Python makes one weak reference per object; while a census holds it, its ``id`` is not reused. The key alone is not
    enough: torch gives out each number once, but a copied module keeps its hooks under the old numbers.
    """

    dict: "weakref.ref[Dict]"
    key: Any

    @property
    def plain(self) -> tuple[int, Any]:
        """A hashable form of this: a weak reference to a dict has no hash."""
        return id(self.dict), self.key


@dataclass(frozen=True)
class Change:
    """A hook that is registered in only one of two censuses."""

    change: str
    """``left``: registered since the earlier census; ``gone``: removed since."""
    hook: Hook
    """The hook, with its owner and the dict that holds it or held it."""


class Census(Table[Hook]):
    """The hooks that were registered at one moment: a list in Python, a table in Jupyter.

    It keeps no tensor, module, optimizer or function alive. ``before - after`` has the hooks that were registered or
    removed in between; the order of the two does not matter.

    >>> import torch, hookviz as hv
    >>> layer = torch.nn.Linear(1, 1)
    >>> before = hv.hooks(layer)
    >>> handle = layer.register_forward_hook(print)
    >>> print(before - hv.hooks(layer))
    change       on     hook   kind          kept in               place  where
    left behind  layer  print  forward hook  layer._forward_hooks  1/1
    """

    def __init__(
        self,
        hooks: Iterable[tuple[HookIdentity, Hook]],
        unplaced: UnplacedHooks,
        trace: Trace | None,
    ) -> None:
        unique: dict[tuple[int, Any], tuple[HookIdentity, Hook]] = {}
        for identity, hook in hooks:
            unique.setdefault(identity.plain, (identity, hook))
        self._identities = [identity for identity, _ignored in unique.values()]
        self._number = next(_census_numbers)
        below = _describe_unplaced(unplaced)
        empty = below or _("No hook is registered here.")
        rows = [hook for _ignored, hook in unique.values()]
        if trace is None:
            super().__init__(rows, head_of(rows), cells_of, nothing=empty, below=below)
            return
        counts = count_firings(data_of(trace))
        fired = {id(hook): find_count(counts, identity.key, hook) for identity, hook in unique.values()}
        head = [*head_of(rows), _("fired")]
        super().__init__(
            rows, head, lambda hook: (*cells_of(hook), _describe_count(fired[id(hook)])), nothing=empty, below=below
        )

    def __sub__(self, other: object) -> Table[Change]:
        if not isinstance(other, Census):
            return NotImplemented
        before, after = sorted((self, other), key=lambda census: census._number)
        left = [Change("left", hook) for hook in after._hooks_not_in(before)]
        gone = [Change("gone", hook) for hook in before._hooks_not_in(after)]
        head = [_("change"), *head_of([change.hook for change in (*left, *gone)])]
        return Table(
            [*left, *gone],
            head,
            _change_cells,
            nothing=_("The same hooks are registered as before: none was left behind, none is gone."),
        )

    def _hooks_not_in(self, other: "Census") -> list[Hook]:
        others = {identity.plain for identity in other._identities}
        return [hook for identity, hook in zip(self._identities, self, strict=True) if identity.plain not in others]


IdentifiedHooks = Iterator[tuple[HookIdentity, Hook]]


def hooks(*things: torch.Tensor | Node | torch.nn.Module | torch.optim.Optimizer, trace: Trace | None = None) -> Census:
    """List every hook registered now on ``things``, and the dict that keeps it; without things, the global hooks.

    - For a tensor or an autograd node: the hooks on it and on the graph below it. A hook on an intermediate tensor
      fires even if the Python tensor is gone or was changed in place since: then a node keeps its dict, and PyTorch
      does not show which node. Such hooks of all graphs are listed below the table.
    - For a module: the hooks of the module, of all modules in it and of their parameters, and the global module hooks.
    - For an optimizer: its own hooks, and the global optimizer hooks.

    With a ``trace``, a column says how often each hook fired in it: "0" for a hook that did not (``trace.hooks`` says
    why), and "unknown" for one that the trace does not know, by its number, its function and the name of its owner.

    Raises:
        TypeError: a thing is not a tensor, node, module or optimizer, or ``trace`` is not a trace.
        ValueError: a graph is too deep to be held.

    >>> import torch, hookviz as hv
    >>> a = torch.tensor(2.0, requires_grad=True)
    >>> c = a * 3
    >>> handle = c.register_hook(print)
    >>> [(hook.on, hook.name, hook.kept_in) for hook in hv.hooks(c)]
    [('c', 'print', 'c._backward_hooks')]
    """
    require_internals()
    for thing in things:
        if not isinstance(thing, (torch.Tensor, Node, torch.nn.Module, torch.optim.Optimizer)):
            raise TypeError(
                _(
                    "hooks() takes tensors, autograd nodes, modules and optimizers in any mix, or nothing for "
                    "the global hooks; this is {kind}."
                ).format(kind=describe_type(thing))
            )
    if trace is not None and not isinstance(trace, Trace):
        raise TypeError(
            _("hooks(..., trace=...) takes a trace that record() or load() returned, not {kind}.").format(
                kind=describe_type(trace)
            )
        )
    modules = [thing for thing in things if isinstance(thing, torch.nn.Module)]
    optimizers = [thing for thing in things if isinstance(thing, torch.optim.Optimizer)]
    roots = [thing for thing in things if isinstance(thing, (torch.Tensor, Node))]
    unplaced = UnplacedHooks([], [])
    with DisableTorchFunction():
        dicts = (kept for name, module in iter_named_modules(*modules) for kept in module_hook_dicts(module, name))
        found = [*hooks_in_dicts(dicts), *_hooks_on_graphs(roots, unplaced)]
        found += hooks_in_dicts(_dicts_of_optimizers(optimizers))
        found += hooks_in_dicts(global_module_hook_dicts()) if modules or not things else ()
        found += hooks_in_dicts(global_optimizer_hook_dicts()) if optimizers or not things else ()
    return Census(found, unplaced, trace)


def iter_named_modules(*roots: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """Yield the modules of models, under the names that a recording gives them."""
    names = ModuleRegistry(TraceData())
    for root in roots:
        names.name_model(root)
        for module in module_tree.all_modules(root):
            yield names.trace.module(names.number(module)), module


def _dicts_of_optimizers(optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[HookDict]:
    for optimizer in optimizers:
        yield from optimizer_hook_dicts(
            optimizer,
            variable_names.variable_name(optimizer, variable_names.caller_frame()) or type(optimizer).__name__,
        )


def hooks_in_dicts(dicts: Iterable[HookDict]) -> IdentifiedHooks:
    """Yield the user's hooks in ``dicts``, each with its identity."""
    found: list[tuple[HookIdentity, Hook, LabelledHook]] = []
    for kept in dicts:
        entries = user_hook_entries(kept.hooks)
        for place, (key, hook) in enumerate(entries):
            kind = "multi_grad_hook" if is_multi_grad_part(hook) else kept.kind
            source = describe_function(user_function(hook))
            labelled = LabelledHook(source._replace(held=()), source.held, kept.kept_in)
            row = Hook(kept.on, kind, labelled.source, kept.kept_in, place, len(entries), kept.flags_of(key))
            found.append((HookIdentity(weakref.ref(kept.hooks), key), row, labelled))
    labels = HookLabels(labelled for _identity, _row, labelled in found)
    for identity, row, labelled in found:
        yield identity, replace(row, distinction=labels.distinguish(labelled, row.on))


def _hooks_on_graphs(roots: Sequence[torch.Tensor | Node], unplaced: UnplacedHooks) -> IdentifiedHooks:
    """Yield the hooks of graphs, named as in a recording; none for a tensor without a history.

    Hooks that may be on these graphs, but on an unknown node, are added to ``unplaced``.
    """
    starts = [root if isinstance(root, torch.Tensor) else GradientEdge(root, 0) for root in roots]
    given = [start for start in starts if isinstance(start, GradientEdge) or start.requires_grad]
    trace, graph_hooks = capture_with_hooks(
        given, variable_names.tensor_variables(variable_names.caller_frame()), unplaced
    )
    for row, hook_dict, key in graph_hooks:
        keys = [other for other, _ignored in user_hook_entries(hook_dict)]
        yield (
            HookIdentity(weakref.ref(hook_dict), key),
            replace(trace.hook(row), place=keys.index(key), total=len(keys)),
        )


def _describe_unplaced(unplaced: UnplacedHooks) -> str:
    """Say which hooks run in a graph, or may, and are not listed on its nodes; empty if there are none."""
    sentences: list[str] = []
    if unplaced.of_modules:
        text = _("Backward hooks of modules run in this graph, too: {hooks}. hooks(model) lists them.")
        sentences.append(text.format(hooks=_join_unplaced(unplaced.of_modules)))
    if unplaced.lost:
        text = _(
            "Hooks whose tensor can no longer be reached: {hooks}. The tensor was freed, or changed in "
            "place after the hook was registered. The hook is still on a node of the graph, but PyTorch "
            "does not say which; it may run here."
        )
        sentences.append(text.format(hooks=_join_unplaced(unplaced.lost)))
    return join_sentences(sentences)


def _join_unplaced(hooks: Sequence[Source]) -> str:
    """Join hooks with their lines of source, each once."""
    texts = [f"{hook.label} ({hook.where})" if hook.where else hook.label for hook in hooks]
    return ", ".join(dict.fromkeys(texts))


def _describe_count(count: HookCount | None) -> str:
    return _("unknown") if count is None else str(count.fired)


def _change_cells(change: Change) -> tuple[str, ...]:
    return (_(_CHANGES[change.change]), *cells_of(change.hook))
