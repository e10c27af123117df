"""What a multi-grad hook is given: the gradients of several tensors, which torch collects in the hook's closure."""

import weakref
from typing import Any

import torch

from hookviz.recorder.fingerprint import value_of
from hookviz.recorder.gradient_probe import GradientProbe
from hookviz.recorder.unwrapped_hooks import closure_variables


def tensor_index(hook: Any) -> int | None:
    """Which of its tensors a part of a multi-grad hook is on; None where the hook does not wait for all of them."""
    place = closure_variables(hook).get("idx")
    return place if isinstance(place, int) else None


def collected_gradients(hook: Any, task: int) -> tuple[int, list[torch.Tensor | None]] | None:
    """Which of its tensors a part of a multi-grad hook is on, and the gradients that came for the others before.

    They are there when the hook is about to run: where a gradient has not come, or never will, is None. Before that,
    and for a hook that runs at the first of its gradients, there is nothing to tell.
    """
    inside = closure_variables(hook)
    try:
        come = inside["count"].get(task, 0)
        if come and come != inside["nb_calls"] - 1:
            return None
        return inside["idx"], list(inside["buffer"].get(task) or [None] * inside["len_tensors"])
    except KeyError:  # a hook of mode "any", or a torch that keeps them elsewhere
        return None


class MultiGradInputs:
    """The gradients that a multi-grad hook is about to be given, seen without holding them while it runs."""

    def __init__(self, probe: GradientProbe, place: int, gradients: list[torch.Tensor | None]) -> None:
        self._probe, self._place = probe, place
        self._before = [probe.fingerprint(gradient) for gradient in gradients]
        self._tensors = [None if gradient is None else weakref.ref(gradient) for gradient in gradients]

    def since(self, before: int | None, after: int | None) -> tuple[list[int | None], list[int | None], str]:
        """The values of all before and after the hook, and what it did to those that came before the last.

        ``before`` and ``after`` are the values of the last one, at which the hook ran. One that nobody holds any more
        is as it was.
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
