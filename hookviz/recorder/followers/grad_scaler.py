"""Follows a GradScaler: which gradients carry its scale, and when it unscales them."""

from collections import Counter
from typing import Any

import torch
from torch.amp.grad_scaler import GradScaler

from hookviz.autograd.graph import NodeMarks
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.tensor_types import is_tensor
from hookviz.autograd.torch_internals import FOUND_INF
from hookviz.recorder.follower import Follower, PassStart
from hookviz.recorder.followers.optimizer_steps import OptimizerTracker
from hookviz.recorder.session import Session
from hookviz.trace import ScaleRow, StepKind, StepRow


class ScaleTracker(Follower):
    """Remembers the scales of a recording."""

    def __init__(self, session: Session, optimizers: OptimizerTracker) -> None:
        self.session, self.trace, self.optimizers = session, session.trace, optimizers
        self._scales_by_node: NodeMarks[float] = NodeMarks()
        """The scale of each node that scaled a loss."""
        self._last_scales: IdentityMap[float] = IdentityMap()
        """Scaler → its last known scale."""

    def loss_scaled(self, scaler: GradScaler, result: Any) -> None:
        """Remember that ``scaler`` has scaled one loss or several."""
        scale = scaler.get_scale()
        self._last_scales.put(scaler, scale)
        for loss in result if isinstance(result, (list, tuple)) else (result,):
            if scaler.is_enabled() and is_tensor(loss) and loss.grad_fn is not None:
                self._scales_by_node.put(loss.grad_fn, scale)

    def pass_begins(self, start: PassStart) -> None:
        """Note which nodes of the pass get scaled gradients."""
        snapshot = start.snapshot
        if not self._scales_by_node:
            return
        scaled = {
            id(node): scale for node in snapshot.all_nodes if (scale := self._scales_by_node.get(node)) is not None
        }
        if not scaled:
            return
        factors = _scale_factors(snapshot, scaled)
        numbers = snapshot.numbers
        counts = Counter(factor for scales in factors.values() if len(scales) == 1 for factor in scales)
        for scale in sorted(scale for scale in counts if scale != 1):
            others = (numbers[id(node)] for node in snapshot.nodes if factors.get(id(node)) != {scale})
            scaling_nodes = (numbers[id(node)] for node in snapshot.nodes if id(node) in scaled)
            self.session.notes.say("scaled")
            self.trace.scales.append(ScaleRow(snapshot.pass_id, scale, tuple(scaling_nodes), tuple(others)))

    def gradients_unscaled(self, scaler: GradScaler, optimizer: torch.optim.Optimizer) -> None:
        """Add a step: ``scaler`` has divided the gradients of ``optimizer`` by its scale."""
        if not scaler.is_enabled():
            return
        state = scaler._per_optimizer_states[id(optimizer)]
        found_inf: Any = state[FOUND_INF]
        overflow = any(flag.item() for flag in found_inf.values())
        number = self.optimizers.number(optimizer)
        self._log("unscale", scaler.get_scale(), 1.0, optimizer=number, found_inf=overflow)

    def scale_updated(self, scaler: GradScaler) -> None:
        """Add a step if ``scaler`` has changed its scale."""
        before, now = self._last_scales.get(scaler), scaler.get_scale()
        if before is not None and before != now:
            self._last_scales.put(scaler, now)
            self._log("rescale", before, now)

    def _log(self, kind: StepKind, before: float, after: float, **fields: Any) -> None:
        values = self.trace.values
        values += [((), "float", "", scale, None, None) for scale in (before, after)]
        number = self.session.last_pass
        row = StepRow(number, kind, before=len(values) - 2, after=len(values) - 1, **fields)
        self.trace.rows.append(row)

    def close(self) -> None:
        """Forget all nodes."""
        self._scales_by_node.clear()


def _scale_factors(snapshot: GraphSnapshot, scaled: dict[int, float]) -> dict[int, set[float]]:
    """Map the ``id`` of each node to the products of scales along all paths from the roots to it."""
    factors: dict[int, set[float]] = {}
    queue = [(node, 1.0) for node in snapshot.root_nodes]
    while queue:
        node, factor = queue.pop()
        known = factors.setdefault(id(node), set())
        if factor in known:
            continue
        known.add(factor)
        below = factor * scaled.get(id(node), 1.0)
        queue += [(following, below) for following, _ in node.next_functions if following is not None]
    return factors
