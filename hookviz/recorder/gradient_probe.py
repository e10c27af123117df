"""What is there now, measured, and what a hook must have done to what was there before."""

import torch

from hookviz.autograd.tensor_statistics import append_value
from hookviz.recorder.fingerprint import Fingerprint, Gradients, fingerprint_of
from hookviz.trace import TraceData
from hookviz.trace.value_rows import DeferredRow
from hookviz.trace.values import is_same_value


class GradientProbe:
    """Measures gradients into the values of a trace, and compares what is seen of them."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace

    def measure(self, tensor: torch.Tensor) -> int:
        """The number of the value of ``tensor`` in the trace."""
        return append_value(self.trace.values, tensor, self.trace.statistics)

    def fingerprint(self, tensor: torch.Tensor | None) -> Fingerprint | None:
        """What is seen of ``tensor``, measured."""
        return None if tensor is None else fingerprint_of(tensor, self.measure(tensor))

    def alike(self, one: Fingerprint, other: Fingerprint) -> bool:
        """Whether two gradients have the same numbers; a device is not waited for, its tensors' versions must do."""
        rows = [None if seen.value is None else self.trace.values[seen.value] for seen in (one, other)]
        return one.mark == other.mark if any(isinstance(row, DeferredRow) for row in rows) else is_same_value(*rows)

    def compare(self, last: list[Fingerprint | None], gradients: Gradients) -> tuple[list[Fingerprint | None], str]:
        """What is there now, and what a hook must have done to it: kept, edited or replaced."""
        if len(last) != len(gradients):
            return [self.fingerprint(g) for g in gradients], "replaced"
        now, effects = [], {"kept"}
        for before, gradient in zip(last, gradients, strict=True):
            fingerprint, effect = self.effect(before, gradient)
            now.append(fingerprint)
            effects.add(effect)
        return now, next(effect for effect in ("replaced", "edited", "kept") if effect in effects)

    def effect(self, before: Fingerprint | None, gradient: torch.Tensor | None) -> tuple[Fingerprint | None, str]:
        """As ``compare``, for one gradient."""
        if gradient is None or before is None:
            return self.fingerprint(gradient), "kept" if gradient is None and before is None else "replaced"
        now = fingerprint_of(gradient, self.measure(gradient))
        if now.identity != before.identity:
            return now, "replaced"
        if now.mark == before.mark and self.alike(before, now):
            self.trace.values.pop()  # measured only to see that nothing changed
            return before, "kept"
        return now, "edited"
