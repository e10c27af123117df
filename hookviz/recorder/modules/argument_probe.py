"""Measures arguments and outputs of modules, and tells what a forward hook did to them."""

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from hookviz.autograd.tensor_statistics import measure_or_defer
from hookviz.autograd.tensor_types import is_tensor
from hookviz.recorder.fingerprint import fingerprint_of
from hookviz.recorder.modules.pytree import PytreeLeaf, object_row
from hookviz.trace import TraceData
from hookviz.trace.value_rows import DeferredRow
from hookviz.trace.values import is_same_value


class ArgumentProbe:
    """Measures arguments and outputs into a trace, and compares them before and after a hook."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._measured: dict[int, tuple[weakref.ref[torch.Tensor], int, int]] = {}
        """``id`` of a tensor → the tensor, its version when it was measured, and the number of its value."""

    def measure(self, labelled: Iterable[tuple[str, Any]], *, again: bool = False) -> list[PytreeLeaf]:
        """Measure labelled objects as they are now.

        A tensor whose version has not changed since the last measurement is measured again only if ``again`` is true. A
        hook may write past torch, through ``.data`` or numpy, and then the version stays the same.
        """
        return [self._measure_leaf(label, item, again) for label, item in labelled]

    def _measure_leaf(self, label: str, item: Any, again: bool) -> PytreeLeaf:
        if not is_tensor(item):
            return PytreeLeaf(label, None, self._append(object_row(item)))
        fingerprint = fingerprint_of(item)
        reference, version, value = self._measured.get(id(item), (None, 0, 0))
        is_known = reference is not None and reference() is item and version == fingerprint.mark[1]
        if not is_known or again or fingerprint.layout is None:
            row = measure_or_defer(item, self.trace.statistics)
            if not is_known or isinstance(row, DeferredRow) or not is_same_value(self.trace.values[value], row):
                value = self._append(row)
            self._measured[id(item)] = (weakref.ref(item), fingerprint.mark[1], value)
        fingerprint.value = value
        return PytreeLeaf(label, fingerprint, value)

    def _append(self, row: Any) -> int:
        self.trace.values.append(row)
        return len(self.trace.values) - 1

    def forget(self, tensor: torch.Tensor) -> None:
        """Measure ``tensor`` again the next time."""
        self._measured.pop(id(tensor), None)

    def forget_all(self) -> None:
        """Measure every tensor again the next time, because values got new numbers."""
        self._measured.clear()

    def compare(self, before: Sequence[PytreeLeaf], after: Sequence[PytreeLeaf]) -> str:
        """Classify what a hook did, from the leaves before and after it: "kept", "edited" or "replaced"."""
        if [leaf.label for leaf in before] != [leaf.label for leaf in after]:
            return "replaced"
        effects = {self._compare_leaves(*pair) for pair in zip(before, after, strict=True)}
        return next(effect for effect in ("replaced", "edited", "kept") if effect in {*effects, "kept"})

    def _compare_leaves(self, before: PytreeLeaf, after: PytreeLeaf) -> str:
        def has_same_numbers() -> bool:
            return is_same_value(self.trace.values[before.value], self.trace.values[after.value])

        if before.fingerprint is None or after.fingerprint is None:
            return "kept" if before.fingerprint is after.fingerprint and has_same_numbers() else "replaced"
        return after.fingerprint.find_effect(before.fingerprint, has_same_numbers)
