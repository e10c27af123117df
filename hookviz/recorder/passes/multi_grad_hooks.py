"""Reads the inputs of a multi-grad hook: the gradients of several tensors, which torch collects in a closure."""

import weakref
from typing import Any

import torch

from hookviz.recorder.fingerprint import value_of
from hookviz.recorder.passes.gradient_probe import GradientProbe
from hookviz.support.wrapped_functions import closure_variables


def tensor_index(hook: Any) -> int | None:
    """Return the index of the tensor that a part of a multi-grad hook is on; None in mode "any"."""
    index = closure_variables(hook).get("idx")
    return index if isinstance(index, int) else None


def collected_gradients(hook: Any, task: int) -> tuple[int, list[torch.Tensor | None]] | None:
    """Return the index of a part's tensor, and the gradients that torch has collected for the other tensors.

    The gradients are complete when the hook is about to run; None stands for a gradient that has not arrived or never
    will. Before that, and in mode "any", the result is None.
    """
    variables = closure_variables(hook)
    try:
        arrived = variables["count"].get(task, 0)
        if arrived and arrived != variables["nb_calls"] - 1:
            return None
        return variables["idx"], list(variables["buffer"].get(task) or [None] * variables["len_tensors"])
    except KeyError:  # mode "any", or a torch that keeps the gradients elsewhere
        return None


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
