"""What modules are given and return, measured into the values of a trace, and what a hook must have done to it."""

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from hookviz.autograd.tensor_statistics import measure_or_defer
from hookviz.recorder.fingerprint import fingerprint_of
from hookviz.recorder.pytree import Leaf, row_of
from hookviz.trace import TraceData
from hookviz.trace.value_rows import Deferred
from hookviz.trace.values import same


class ArgumentProbe:
    """Measures arguments and outputs, and compares what is there before a hook with what is there after it."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int, int]] = {}
        """``id`` of a tensor → the tensor, its version when it was measured, and the number of its value."""

    def measure(self, things: Iterable[tuple[str, Any]], *, again: bool = False) -> list[Leaf]:
        """What is there now; a tensor that nobody wrote to since it was seen is measured ``again`` only if asked for.

        A hook may write past torch, through ``.data`` or numpy, and then its version stays the same.
        """
        return [self._leaf(label, thing, again) for label, thing in things]

    def _leaf(self, label: str, thing: Any, again: bool) -> Leaf:
        if not isinstance(thing, torch.Tensor):
            return Leaf(label, None, id(thing), self._append(row_of(thing)))
        fingerprint = fingerprint_of(thing)
        reference, version, value = self._known.get(id(thing), (None, 0, 0))
        known = reference is not None and reference() is thing and version == fingerprint.mark[1]
        if not known or again or fingerprint.layout is None:
            row = measure_or_defer(thing, self.trace.statistics)
            if not known or isinstance(row, Deferred) or not same(self.trace.values[value], row):
                value = self._append(row)
            self._known[id(thing)] = (weakref.ref(thing), fingerprint.mark[1], value)
        fingerprint.value = value
        return Leaf(label, fingerprint, id(thing), value)

    def _append(self, row: Any) -> int:
        self.trace.values.append(row)
        return len(self.trace.values) - 1

    def forget(self, tensor: torch.Tensor) -> None:
        """``tensor`` is measured again."""
        self._known.pop(id(tensor), None)

    def forget_all(self) -> None:
        """Values got new numbers: every tensor is measured again."""
        self._known.clear()

    def effect(self, before: Sequence[Leaf], after: Sequence[Leaf]) -> str:
        """What a hook must have done: kept, edited or replaced."""
        if [leaf.label for leaf in before] != [leaf.label for leaf in after]:
            return "replaced"
        effects = {self._effect(*pair) for pair in zip(before, after, strict=True)}
        return next(effect for effect in ("replaced", "edited", "kept") if effect in {*effects, "kept"})

    def _effect(self, before: Leaf, after: Leaf) -> str:
        alike = same(self.trace.values[before.value], self.trace.values[after.value])
        if before.fingerprint is None or after.fingerprint is None:
            return "kept" if before.fingerprint is after.fingerprint and alike else "replaced"
        if before.identity != after.identity:
            return "replaced"
        return "kept" if alike and before.fingerprint.mark == after.fingerprint.mark else "edited"
