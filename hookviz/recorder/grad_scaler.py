"""Losses that a GradScaler has scaled: which gradients carry its scale, and when it is taken out of them again."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch.amp.grad_scaler import GradScaler

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.node_marks import NodeMarks
from hookviz.recorder.optimizer_steps import OptimizerTracker
from hookviz.recorder.replacement import Here, Replacement, notifier
from hookviz.recorder.session import Session
from hookviz.trace import ScaleRow, StepRow


class ScaleTracker:
    """Knows the scales of a recording."""

    def __init__(self, session: Session, optimizers: OptimizerTracker) -> None:
        self.session, self.trace, self.optimizers = session, session.trace, optimizers
        self._scaled: NodeMarks[float] = NodeMarks()
        """For each node that scaled a loss: by how much."""
        self._last: dict[int, float] = {}
        """``id`` of a scaler → its scale when it was last seen."""

    def scaled(self, scaler: GradScaler, result: Any) -> None:
        """``scaler`` has scaled a loss, or several."""
        scale = self._last[id(scaler)] = scaler.get_scale()
        for loss in result if isinstance(result, (list, tuple)) else (result,):
            if scaler.is_enabled() and isinstance(loss, torch.Tensor) and loss.grad_fn is not None:
                self._scaled.put(loss.grad_fn, scale)

    def mark_pass(self, snapshot: GraphSnapshot) -> None:
        """Note which nodes of a pass that begins get scaled gradients."""
        if not self._scaled:
            return
        scaled = {id(node): scale for node in snapshot.all_nodes if (scale := self._scaled.get(node)) is not None}
        if not scaled:
            return
        factors = _factors(snapshot, scaled)
        numbers = snapshot.numbers
        counted = Counter(factor for found in factors.values() if len(found) == 1 for factor in found)
        for scale in sorted(scale for scale in counted if scale != 1):
            others = (numbers[id(node)] for node in snapshot.nodes if factors.get(id(node)) != {scale})
            at = (numbers[id(node)] for node in snapshot.nodes if id(node) in scaled)
            self.session.notes.say("note.scaled")
            self.trace.scales.append(ScaleRow(snapshot.pass_id, scale, tuple(at), tuple(others)))

    def unscaled(self, scaler: GradScaler, optimizer: torch.optim.Optimizer) -> None:
        """``scaler`` has divided the gradients of ``optimizer`` by its scale."""
        if not scaler.is_enabled():
            return
        state = scaler._per_optimizer_states[id(optimizer)]
        found: Any = state["found_inf_per_device"]
        overflow = any(flag.item() for flag in found.values())
        number = self.optimizers.number(optimizer)
        self._log("unscale", scaler.get_scale(), 1.0, optimizer=number, found_inf=overflow)

    def updated(self, scaler: GradScaler) -> None:
        """``scaler`` may have another scale now."""
        before, now = self._last.get(id(scaler)), scaler.get_scale()
        if before is not None and before != now:
            self._last[id(scaler)] = now
            self._log("rescale", before, now)

    def _log(self, kind: str, before: float, after: float, **known: Any) -> None:
        values = self.trace.values
        values += [((), "float", "", scale, None, None) for scale in (before, after)]
        number = max(len(self.trace.roots) - 1, 0)  # it belongs to the pass before it
        row = StepRow(number, kind, before=len(values) - 2, after=len(values) - 1, **known)
        self.trace.rows.append(row)

    def sweep(self) -> None:
        """Forget the nodes that are gone."""
        self._scaled.sweep()

    def close(self) -> None:
        """Forget all nodes."""
        self._scaled.clear()


def _factors(snapshot: GraphSnapshot, scaled: dict[int, float]) -> dict[int, set[float]]:
    """``id`` of a node → the products of scales on all ways to it from the roots."""
    found: dict[int, set[float]] = {}
    queue = [(node, 1.0) for node in snapshot.root_nodes]
    while queue:
        node, factor = queue.pop()
        known = found.setdefault(id(node), set())
        if factor in known:
            continue
        known.add(factor)
        below = factor * scaled.get(id(node), 1.0)
        queue += [(following, below) for following, _ in node.next_functions if following is not None]
    return found


class _Scaling(Protocol):
    """A recording, as far as it knows of scales."""

    scales: ScaleTracker


def replacements(here: Here, after: Here) -> Iterator[Replacement]:
    """What stands in the place of a scaler's methods: ``here`` before a pass, and ``after`` it."""

    def scaled(recording: _Scaling, result: Any, scaler: GradScaler, *_: Any) -> None:
        recording.scales.scaled(scaler, result)

    def unscaled(recording: _Scaling, _: None, scaler: GradScaler, optimizer: Any) -> None:
        recording.scales.unscaled(scaler, optimizer)

    def updated(recording: _Scaling, _: None, scaler: GradScaler, *__: Any) -> None:
        recording.scales.updated(scaler)

    for name, where, notify in (("scale", here, scaled), ("unscale_", after, unscaled), ("update", after, updated)):
        yield Replacement(GradScaler, name, notifier(where, notify))
