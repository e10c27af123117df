"""Measures gradients, and tells what a hook did to them."""

import weakref
from collections.abc import Sequence

import torch

from hookviz.autograd.tensor_statistics import append_value
from hookviz.recorder.fingerprint import Fingerprint, Gradients, fingerprint_of, value_of
from hookviz.trace import TraceData
from hookviz.trace.value_rows import DeferredRow
from hookviz.trace.values import is_same_value


class GradientProbe:
    """Measures gradients into the values of a trace, and compares their fingerprints."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace

    def measure(self, tensor: torch.Tensor) -> int:
        """Measure ``tensor`` and return the number of its value in the trace."""
        return append_value(self.trace.values, tensor, self.trace.statistics)

    def fingerprint(self, tensor: torch.Tensor | None) -> Fingerprint | None:
        """Return the fingerprint of ``tensor``, with its measured value."""
        return None if tensor is None else fingerprint_of(tensor, self.measure(tensor))

    def have_same_numbers(self, one: Fingerprint, other: Fingerprint) -> bool:
        """Return whether two gradients have the same numbers.

        For values that are still on a device, which are not waited for, the tensors' versions decide.
        """
        rows = [
            None if fingerprint.value is None else self.trace.values[fingerprint.value] for fingerprint in (one, other)
        ]
        is_on_device = any(isinstance(row, DeferredRow) for row in rows)
        return one.is_unwritten_since(other) if is_on_device else is_same_value(*rows)

    def value_if_view(
        self, gradient: torch.Tensor, fingerprint: Fingerprint, incoming: Sequence[Fingerprint | None]
    ) -> int | None:
        """Return the value number of a large gradient that is the incoming one with other strides, else None."""
        origin = incoming[0] if len(incoming) == 1 else None
        if origin is None or origin.value is None or not fingerprint.is_view_of(origin):
            return None
        row, shape = self.trace.values[origin.value], tuple(gradient.shape)
        self.trace.values.append(row.reshaped(shape) if isinstance(row, DeferredRow) else (shape, *row[1:]))
        return len(self.trace.values) - 1

    def compare(self, last: list[Fingerprint | None], gradients: Gradients) -> tuple[list[Fingerprint | None], str]:
        """Return the fingerprints of ``gradients`` now, and what a hook did to them: "kept", "edited" or "replaced"."""
        if len(last) != len(gradients):
            return [self.fingerprint(g) for g in gradients], "replaced"
        now, effects = [], {"kept"}
        for before, gradient in zip(last, gradients, strict=True):
            fingerprint, effect = self.compare_one(before, gradient)
            now.append(fingerprint)
            effects.add(effect)
        return now, next(effect for effect in ("replaced", "edited", "kept") if effect in effects)

    def compare_one(self, before: Fingerprint | None, gradient: torch.Tensor | None) -> tuple[Fingerprint | None, str]:
        """Do the same as ``compare`` for one gradient."""
        if gradient is None or before is None:
            return self.fingerprint(gradient), "kept" if gradient is None and before is None else "replaced"
        now = fingerprint_of(gradient, self.measure(gradient))
        effect = now.find_effect(before, lambda: self.have_same_numbers(before, now))
        if effect == "kept":
            self.trace.values.pop()  # the measurement only showed that nothing changed
            return before, effect
        return now, effect


class MultiGradInputs:
    """Fingerprints of the gradients that a multi-grad hook is about to get. They are not held while it runs."""

    def __init__(self, probe: GradientProbe, index: int, gradients: list[torch.Tensor | None]) -> None:
        self._probe, self._index = probe, index
        self._before = [probe.fingerprint(gradient) for gradient in gradients]
        self._tensors = [None if gradient is None else weakref.ref(gradient) for gradient in gradients]

    def compare_with_now(self, before: int | None, after: int | None) -> tuple[list[int | None], list[int | None], str]:
        """Return the values of all gradients before and after the hook, and its effect on the earlier gradients.

        ``before`` and ``after`` are the values of the last gradient, at whose arrival the hook ran. A gradient that no
        longer exists counts as unchanged.
        """
        befores = [value_of(fingerprint) for fingerprint in self._before]
        afters, effect = list(befores), "kept"
        for i, (fingerprint, reference) in enumerate(zip(self._before, self._tensors, strict=True)):
            tensor = None if reference is None else reference()
            if tensor is not None:
                current, changed = self._probe.compare_one(fingerprint, tensor)
                afters[i] = value_of(current)
                effect = effect if changed == "kept" else changed
        befores[self._index], afters[self._index] = before, after
        return befores, afters, effect
