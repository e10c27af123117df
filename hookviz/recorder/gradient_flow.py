"""The gradients of one backward pass on their way: sent by a node, arriving at a tensor, written into ``.grad``."""

from collections.abc import Sequence
from typing import Any, cast

import torch

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.recorder.fingerprint import Fingerprint, Gradients, Sent, fingerprint_of, mark_of, values_of
from hookviz.recorder.gradient_probe import GradientProbe
from hookviz.trace import Place, StepRow, TraceData
from hookviz.trace.folded_rows import StepRows
from hookviz.trace.value_rows import FEW, Deferred

Parts = tuple[tuple[int, int, int | None], ...]


class GradientFlow:
    """Writes the steps of gradients between hooks. Holds numbers only: no gradient outlives the call that shows it."""

    def __init__(self, trace: TraceData, snapshot: GraphSnapshot) -> None:
        self.trace, self.number = trace, snapshot.pass_id
        self._rows = cast("StepRows", trace.rows)
        self._look = GradientProbe(trace)
        self.checks_each = True
        """Whether each gradient of few numbers is looked at where it is sent as well as where it arrives. Where no code
        of a person's runs, nobody can change one on its way, and in a large graph without any known hook that is left
        out, too: if an unknown hook does change one, its version or its place in memory shows it."""
        self.observed_in_front: set[int] = set()
        """The nodes that have an observer in front of them, which sees what they are given."""
        self.written: set[int] = set()
        """The leaves to whose ``.grad`` others write while the pass runs, so that it cannot be read."""
        self._leaves, self._retained, self._grads = (
            snapshot.leaves,
            snapshot.tensors.retained,
            snapshot.tensors.grads_before,
        )
        self._out_edges, self._partly_observed = snapshot.out_edges, snapshot.partly_observed
        self._sent: dict[Place, list[Sent]] = {}
        """Where a gradient is about to arrive → what was sent there."""
        self._at: dict[Place, Fingerprint | None] = {}
        """Where a gradient has arrived → what the last observer among the hooks of its tensor saw."""
        self._incoming: dict[int, list[Fingerprint | None]] = {}
        """What each node was given that has not computed yet."""
        self._grad_before: dict[int, int | None] = {}
        """The value of a leaf's ``.grad`` before it is written to."""
        self._edits: list[tuple[int, int]] = []
        """(memory that a hook wrote to in place, the step in which it did)."""
        self._computing: int | None = None
        """The node that computes now, as far as an observer in front of it knows."""

    def seed(self, place: Place, gradient: torch.Tensor | None) -> None:
        """Backward starts: ``gradient`` goes in at ``place``."""
        if gradient is None:
            return
        fingerprint = fingerprint_of(gradient, self._look.measure(gradient))
        self._log("seed", *place, after=fingerprint.value)
        self._sent.setdefault(place, []).append((-1, 0, fingerprint))

    def _arrive(self, place: Place, gradient: torch.Tensor | None) -> Fingerprint | None:
        """A gradient is complete at ``place``: say what made it, and whether it is what was sent."""
        sent = self._sent.pop(place, [])
        if gradient is None:
            return None
        if len(sent) == 1 and place not in self._partly_observed:
            node, slot, before = sent[0]
            if node >= 0 and self._untouched(before, gradient):
                self._rows.fold((self.number, *place, before.value, node, slot, before.value))
                return before
            now, expected = self._follow(before, gradient)
            parts: Parts = ((node, slot, expected),)
        else:
            now = fingerprint_of(gradient, self._look.measure(gradient))
            expected = now.value
            # Where some of what arrives comes from nodes that are not looked at, the rest is no sum.
            parts = (
                ()
                if place in self._partly_observed
                else tuple((node, slot, fingerprint.value) for node, slot, fingerprint in sent)
            )
        if now.value != expected:  # it was changed on its way, before it arrives
            self._log_change(place, expected, now)
        if len(parts) != 1:
            self._log("arrive", *place, after=now.value, parts=parts)
        elif parts[0][0] >= 0:  # a seed that arrives alone has had its step
            self._rows.fold((self.number, *place, now.value, *parts[0]))
        return now

    def _untouched(self, before: Fingerprint, gradient: torch.Tensor) -> bool:
        """Whether it is clear at first sight that this is the gradient that was seen, and that nobody wrote to it."""
        if self.checks_each or self._edits or before.identity != id(gradient):
            return False
        return before.mark == mark_of(gradient)

    def _follow(self, before: Fingerprint, gradient: torch.Tensor) -> tuple[Fingerprint, int | None]:
        """The gradient now, and its value when it was seen last: the same number unless it changed on the way."""
        if self._untouched(before, gradient):
            return before, before.value
        now = fingerprint_of(gradient)
        surely = now.mark == before.mark and not any(spot == now.storage for spot, _ in self._edits)
        if surely and not (self.checks_each and gradient.numel() <= FEW):
            now.value = before.value
            return now, before.value
        now.value = self._look.measure(gradient)
        if now.mark[0] == before.mark[0] and self._look.alike(before, now):
            self.trace.values.pop()  # measured only to see that nothing changed
            now.value = before.value
            return now, before.value
        return now, before.value

    def _log_change(self, place: Place, expected: int | None, now: Fingerprint) -> None:
        """A gradient is not what it was when it was last seen: by whose edit, if that is known?"""
        cause = next((step for spot, step in reversed(self._edits) if spot == now.storage), None)
        kind = "aliased" if cause is not None else "unknown_hook"
        self._log(kind, *place, before=expected, after=now.value, cause=cause)

    def _reach(self, node: int, gradients: Gradients) -> list[Fingerprint | None]:
        """All gradients of a node are here, its tensors' hooks have run, retain_grad has stored."""
        if not (self._at or self._retained):
            if len(gradients) == 1:
                return [self._arrive((node, 0), gradients[0])]
            return [self._arrive((node, output), gradient) for output, gradient in enumerate(gradients)]
        reached: list[Fingerprint | None] = []
        for output, gradient in enumerate(gradients):
            place = (node, output)
            if place in self._at:
                fingerprint = self._since(place, self._at.pop(place), gradient)
            else:
                fingerprint = self._arrive(place, gradient)
            if place in self._retained:
                self._retain(place, fingerprint)
            reached.append(fingerprint)
        return reached

    def _since(self, place: Place, before: Fingerprint | None, gradient: torch.Tensor | None) -> Fingerprint | None:
        """The gradient after the tensor's hooks, checked against what the last observer among them saw."""
        if gradient is None or before is None:
            return self._look.fingerprint(gradient)
        now, expected = self._follow(before, gradient)
        if now.value != expected:
            self._log_change(place, expected, now)
        return now

    def _retain(self, place: Place, fingerprint: Fingerprint | None) -> None:
        reference, before = self._retained.pop(place)
        tensor = reference()
        if tensor is None or fingerprint is None:
            return
        stored = None if before is None else tensor.grad  # on top of an old gradient: the sum is stored
        after = fingerprint.value if stored is None else self._look.measure(stored)
        self._log("retain_grad", *place, before=before, after=after)

    def _computed(
        self, node: int, gradients: Gradients, incoming: list[Fingerprint | None]
    ) -> list[Fingerprint | None]:
        """A node has computed: what it sends is measured now, for what it is sent to may fail."""
        self._computing = None
        fingerprints: list[Fingerprint | None] = []
        for gradient in gradients:
            fingerprint = None if gradient is None else fingerprint_of(gradient)
            if gradient is not None and fingerprint is not None:
                if fingerprint.layout is not None:
                    fingerprint.value = self._rearranged(gradient, fingerprint, incoming)
                if fingerprint.value is None:
                    fingerprint.value = self._look.measure(gradient)
            fingerprints.append(fingerprint)
        self._rows.fold((self.number, node, values_of(incoming), values_of(fingerprints)))
        return fingerprints

    def _rearranged(
        self, gradient: torch.Tensor, fingerprint: Fingerprint, incoming: Sequence[Fingerprint | None]
    ) -> int | None:
        """The value of a large gradient that only shows the incoming one with its dimensions in another order."""
        origin = incoming[0] if len(incoming) == 1 else None
        if (
            origin is None
            or origin.value is None
            or (origin.mark, origin.layout) != (fingerprint.mark, fingerprint.layout)
        ):
            return None
        row, shape = self.trace.values[origin.value], tuple(gradient.shape)
        self.trace.values.append(row.reshaped(shape) if isinstance(row, Deferred) else (shape, *row[1:]))
        return len(self.trace.values) - 1

    def _send(self, node: int, fingerprints: list[Fingerprint | None]) -> None:
        for slot, (fingerprint, place) in enumerate(zip(fingerprints, self._out_edges.get(node, ()), strict=False)):
            if place is not None and fingerprint is not None:
                self._sent.setdefault(place, []).append((node, slot, fingerprint))

    def _accumulated(self, node: int) -> None:
        """AccumulateGrad has written; said once, by whichever observer comes first."""
        if node not in self._grad_before:
            return
        before = self._grad_before.pop(node)
        incoming = self._incoming.pop(node, [None])[0]
        leaf = self._leaves[node]()
        self._computing = None
        if incoming is None or leaf is None or leaf.grad is None:
            return
        after = incoming.value if before is None else None if node in self.written else self._look.measure(leaf.grad)
        self._log("accumulate", node, 0, before=before, after=after)

    def _leaf_grad(self, node: int) -> Fingerprint | None:
        leaf = self._leaves[node]()
        return None if leaf is None else self._look.fingerprint(leaf.grad)

    def _given(self, node: int, gradients: Gradients) -> None:
        """Note what a node was given, if no observer in front of it did."""
        if node not in self.observed_in_front:
            self._incoming[node] = self._reach(node, gradients)
            if node in self._leaves:  # nothing of a person's runs in this pass: ``.grad`` was what it was at the start
                self._grad_before[node] = self._grads.get(node)

    def _log(self, kind: str, node: int, output: int = -1, **known: Any) -> int:
        self._rows.append(StepRow(self.number, kind, node, output, **known))
        return len(self._rows) - 1
