"""Reads the inputs of a multi-grad hook: the gradients of several tensors, which torch collects in a closure."""

import weakref
from typing import Any

import torch

from hookviz.recorder.fingerprint import value_of
from hookviz.recorder.gradient_probe import GradientProbe
from hookviz.recorder.unwrapped_hooks import closure_variables


def tensor_index(hook: Any) -> int | None:
    """Return the index of the tensor that a part of a multi-grad hook is on; None in mode "any"."""
    place = closure_variables(hook).get("idx")
    return place if isinstance(place, int) else None


def collected_gradients(hook: Any, task: int) -> tuple[int, list[torch.Tensor | None]] | None:
    """Return the index of a part's tensor, and the gradients that torch has collected for the other tensors.

    The gradients are complete when the hook is about to run; None stands for a gradient that has not arrived or never
    will. Before that, and in mode "any", the result is None.
    """
    inside = closure_variables(hook)
    try:
        come = inside["count"].get(task, 0)
        if come and come != inside["nb_calls"] - 1:
            return None
        return inside["idx"], list(inside["buffer"].get(task) or [None] * inside["len_tensors"])
    except KeyError:  # mode "any", or a torch that keeps the gradients elsewhere
        return None


class MultiGradInputs:
    """Fingerprints of the gradients that a multi-grad hook is about to get. They are not held while it runs."""

    def __init__(self, probe: GradientProbe, place: int, gradients: list[torch.Tensor | None]) -> None:
        self._probe, self._place = probe, place
        self._before = [probe.fingerprint(gradient) for gradient in gradients]
        self._tensors = [None if gradient is None else weakref.ref(gradient) for gradient in gradients]

    def since(self, before: int | None, after: int | None) -> tuple[list[int | None], list[int | None], str]:
        """Return the values of all gradients before and after the hook, and its effect on the earlier gradients.

        ``before`` and ``after`` are the values of the last gradient, at whose arrival the hook ran. A gradient that no
        longer exists counts as unchanged.
        """
        given = [value_of(fingerprint) for fingerprint in self._before]
        now, effect = list(given), "kept"
        for i, (fingerprint, reference) in enumerate(zip(self._before, self._tensors, strict=True)):
            tensor = None if reference is None else reference()
            if tensor is not None:
                seen, changed = self._probe.compare_one(fingerprint, tensor)
                now[i] = value_of(seen)
                effect = effect if changed == "kept" else changed
        given[self._place], now[self._place] = before, after
        return given, now, effect
