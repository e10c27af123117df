"""Which modules of the given models are followed: all of them, or those that a person chose by their names."""

import difflib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import torch
from torch.autograd.graph import Node

from hookviz.autograd import graph, module_tree
from hookviz.support.messages import say
from hookviz.support.printable import kind_of

if TYPE_CHECKING:
    from hookviz.recorder.notes import Notes

Module = torch.nn.Module
Only = str | Sequence[str] | None

NEAR = 3
"""How many names the message lists where a pattern matches none."""


def checked_only(only: Only, models: Sequence[Module]) -> tuple[str, ...] | None:
    """``only`` as patterns, each of which matches a module; None for all modules.

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
            raise TypeError(say("error.only.type", kind=kind_of(pattern)))
    if not patterns or not models:
        raise ValueError(say("error.only.model" if patterns else "error.only.empty"))
    paths = [path for model in models for path, _ in _named(model)]
    for pattern in patterns:
        if not any(fnmatchcase(path, pattern) for path in paths):
            raise ValueError(say("error.only.none", pattern=pattern, names=_near(pattern, paths)))
    return patterns


def _named(model: Module) -> Iterator[tuple[str, Module]]:
    """A module that stands in a model twice has both names."""
    return module_tree.named_modules(model, every_path=True)


def _near(pattern: str, paths: Sequence[str]) -> str:
    """The names that are most like ``pattern``; the first ones, where none is."""
    names = [path for path in dict.fromkeys(paths) if path]
    found = difflib.get_close_matches(pattern, names, NEAR, cutoff=0.3) or names[:NEAR]
    return ", ".join(found) or say("name.none")


class ModuleFilter:
    """The modules that a recording follows."""

    def __init__(self, models: Sequence[Module], patterns: tuple[str, ...] | None) -> None:
        self.patterns = patterns
        everything = {id(module) for model in models for module in module_tree.all_modules(model)}
        self.all = len(everything)
        self.modules = everything if patterns is None else set(_matching(models, patterns))
        """``id`` of each; of none, where there is no model, since then whatever is called is followed."""
        self._leaves = {id(p) for model in models for p in self._parameters(model)} if patterns else set()
        self.nodes = self.observed = 0
        """How many nodes the last pass had, and how many of them were observed."""

    def parameters(self, module: Module) -> Iterator[torch.nn.Parameter]:
        """The parameters that count as those of ``module``: its own, and those of modules in it that are not chosen."""
        queue = [module]
        while queue:
            holder = queue.pop()
            yield from (parameter for _, parameter in module_tree.own_parameters(holder))
            if self.patterns is not None:
                queue += [child for _, child in module_tree.children(holder) if id(child) not in self.modules]

    def _parameters(self, model: Module) -> Iterator[torch.nn.Parameter]:
        for module in module_tree.all_modules(model):
            if id(module) in self.modules:
                yield from module_tree.all_parameters(module)

    def leaves(self, nodes: Sequence[Node]) -> set[int]:
        """``id`` of each AccumulateGrad of a chosen module, which need not be called for its parameters to be used."""
        return {id(node) for node in nodes if (leaf := graph.leaf_of(node)) is not None and id(leaf) in self._leaves}

    def add_notes(self, notes: "Notes", called: bool) -> None:
        """Note what was left out."""
        if self.patterns is None:
            return
        patterns = ", ".join(self.patterns)
        notes.say("note.only", patterns=patterns, chosen=len(self.modules), all=self.all)
        if self.nodes:
            notes.say("note.only.nodes", seen=self.observed, nodes=self.nodes)
        if not called:
            notes.say("note.only.uncalled", patterns=patterns)


def _matching(models: Sequence[Module], patterns: Sequence[str]) -> Iterator[int]:
    for model in models:
        for path, module in _named(model):
            if any(fnmatchcase(path, pattern) for pattern in patterns):
                yield id(module)
