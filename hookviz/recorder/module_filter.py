"""Decides which modules of the given models are followed: all, or those that match ``only``."""

import difflib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph, module_tree
from hookviz.support.messages import say
from hookviz.support.printable import describe_type

if TYPE_CHECKING:
    from hookviz.recorder.notes import Notes

Module = torch.nn.Module
NodeFilter = str | Sequence[str] | None

MAX_SUGGESTIONS = 3
"""How many names the error message suggests if a pattern matches nothing."""


def checked_only(only: NodeFilter, models: Sequence[Module]) -> tuple[str, ...] | None:
    """Return ``only`` as a tuple of patterns that each match a module, or None for all modules.

    Raises:
        TypeError: it holds something that is not a text.
        ValueError: it is empty, there is no model to choose from, or a pattern matches no module in it.

    >>> checked_only("0", [torch.nn.Sequential(torch.nn.ReLU())])
    ('0',)
    """
    if only is None:
        return None
    patterns = (only,) if isinstance(only, str) else tuple(only) if isinstance(only, Sequence) else (only,)
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(say("error.only.type", kind=describe_type(pattern)))
    if not patterns or not models:
        raise ValueError(say("error.only.model" if patterns else "error.only.empty"))
    paths = [path for model in models for path, _ in _all_named_modules(model)]
    for pattern in patterns:
        if not any(fnmatchcase(path, pattern) for path in paths):
            raise ValueError(say("error.only.none", pattern=pattern, names=_similar_names(pattern, paths)))
    return patterns


def _all_named_modules(model: Module) -> Iterator[tuple[str, Module]]:
    """Yield (path, module); a module that occurs in a model twice has both paths."""
    return module_tree.named_modules(model, every_path=True)


def _similar_names(pattern: str, paths: Sequence[str]) -> str:
    """Return the names most similar to ``pattern``, or the first ones if none is similar."""
    names = [path for path in dict.fromkeys(paths) if path]
    found = difflib.get_close_matches(pattern, names, MAX_SUGGESTIONS, cutoff=0.3) or names[:MAX_SUGGESTIONS]
    return ", ".join(found) or say("name.none")


class ModuleFilter:
    """The set of modules that a recording follows."""

    def __init__(self, models: Sequence[Module], patterns: tuple[str, ...] | None) -> None:
        self.patterns = patterns
        everything = {id(module) for model in models for module in module_tree.all_modules(model)}
        self.total = len(everything)
        self.modules = everything if patterns is None else set(_matching_module_ids(models, patterns))
        """``id`` of each followed module.

        Empty without models, because then every module that is called is followed.
        """
        self._leaves = {id(p) for model in models for p in self._followed_parameters(model)} if patterns else set()
        self.node_count = self.observed_count = 0
        """Number of nodes in the last pass, and of observed nodes among them."""

    def parameters(self, module: Module) -> Iterator[torch.nn.Parameter]:
        """Yield the parameters of ``module``: its own, and those of unfollowed modules inside it."""
        queue = [module]
        while queue:
            holder = queue.pop()
            yield from (parameter for _, parameter in module_tree.own_parameters(holder))
            if self.patterns is not None:
                queue += [child for _, child in module_tree.children(holder) if id(child) not in self.modules]

    def _followed_parameters(self, model: Module) -> Iterator[torch.nn.Parameter]:
        for module in module_tree.all_modules(model):
            if id(module) in self.modules:
                yield from module_tree.all_parameters(module)

    def leaf_nodes(self, nodes: Sequence[Node]) -> set[int]:
        """Return the ``id`` of each AccumulateGrad node of a followed module's parameters.

        A module's parameters may be used without calling the module.
        """
        return {id(node) for node in nodes if (leaf := graph.leaf_of(node)) is not None and id(leaf) in self._leaves}

    def add_notes(self, notes: "Notes", called: bool) -> None:
        """Add notes about the modules and nodes that were left out."""
        if self.patterns is None:
            return
        patterns = ", ".join(self.patterns)
        notes.say("note.only", patterns=patterns, chosen=len(self.modules), all=self.total)
        if self.node_count:
            notes.say("note.only.nodes", seen=self.observed_count, nodes=self.node_count)
        if not called:
            notes.say("note.only.uncalled", patterns=patterns)


def _matching_module_ids(models: Sequence[Module], patterns: Sequence[str]) -> Iterator[int]:
    for model in models:
        for path, module in _all_named_modules(model):
            if any(fnmatchcase(path, pattern) for pattern in patterns):
                yield id(module)
