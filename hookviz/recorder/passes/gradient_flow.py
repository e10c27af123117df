"""Follows the gradients of one backward pass: sent by a node, arriving at a tensor, accumulated into ``.grad``.

A hook may edit one of them in place, and others with it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import torch

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.tensor_types import has_few_numbers
from hookviz.autograd.torch_internals import read_grad
from hookviz.recorder.fingerprint import Fingerprint, Gradients, SentGradient, fingerprint_of, value_numbers, value_of
from hookviz.recorder.passes.gradient_probe import GradientProbe
from hookviz.trace import NodeOutput, StepKind, StepRow, TraceData
from hookviz.trace.compact_rows import StepRows


class InPlaceEdits:
    """Notes what hooks have written to, so that a change of another gradient has a cause."""

    def __init__(self) -> None:
        self._edits: list[tuple[int, int]] = []
        """(storage that a hook wrote to in place, the step of that hook)."""
        self._parts: dict[NodeOutput, tuple[int, int]] = {}
        """Place at which one gradient waits for others → the step of a hook that wrote to it, and its value then."""

    def __bool__(self) -> bool:
        return bool(self._edits)

    def find_cause(self, storage: int) -> int | None:
        """Return the step of the last hook that wrote to a storage."""
        return next((step for edited, step in reversed(self._edits) if edited == storage), None)

    def note(
        self,
        place: NodeOutput | None,
        edited: Sequence[Fingerprint | None],
        step: int,
        sent: Mapping[NodeOutput, list[SentGradient]],
    ) -> None:
        """Note that the hook of a step has written to gradients at ``place``, and which others have the same memory.

        The engine keeps the first gradient that is sent to a place as it is, until a second one is added to it.
        """
        for now in edited:
            if now is None or not now.storage:
                continue
            self._edits.append((now.storage, step))
            for other, gradients in sent.items():
                is_alone = other != place and len(gradients) == 1
                if is_alone and now.value is not None and gradients[0][2].is_at_address_of(now):
                    self._parts[other] = step, now.value

    def take_part(self, place: NodeOutput) -> tuple[int, int] | None:
        """Return the step that changed the first gradient sent to a place while it waited, and its value, once."""
        return self._parts.pop(place, None)


Parts = tuple[tuple[int | None, int, int | None], ...]


class GradientFlow:
    """Writes the steps of gradients between hooks, holding only numbers.

    No gradient outlives the call that passes it.
    """

    def __init__(self, trace: TraceData, snapshot: GraphSnapshot) -> None:
        self.trace, self.number = trace, snapshot.pass_id
        self._rows = cast("StepRows", trace.rows)
        self.probe = GradientProbe(trace)
        self.checks_each_gradient = True
        """Whether each small gradient is measured where it is sent and again where it arrives.

        If no code of the user's runs, nothing can change a gradient on its way, so the second measurement is left out;
        likewise in a large graph without known hooks, where a change by an unknown hook shows in the version or the
        address.
        """
        self.observed_in_front: set[int] = set()
        """The nodes with an observer in front of them, which sees their inputs."""
        self.unreadable_grads: set[int] = set()
        """The leaves whose ``.grad`` other threads write to while the pass runs, so that it cannot be read."""
        self._leaves, self._retained, self._grads = (
            snapshot.leaves,
            snapshot.tensors.retained,
            snapshot.tensors.grads_before,
        )
        self._out_edges, self._partly_observed = snapshot.out_edges, snapshot.partly_observed
        self._sent: dict[NodeOutput, list[SentGradient]] = {}
        """Place at which a gradient will arrive → the gradients that were sent there."""
        self._arrived: dict[NodeOutput, Fingerprint | None] = {}
        """Place at which a gradient has arrived → its fingerprint at the last observer of its tensor's hooks."""
        self._incoming: dict[int, list[Fingerprint | None]] = {}
        """Node → its input gradients, until it has computed."""
        self._grad_before: dict[int, int | None] = {}
        """Leaf → the value of its ``.grad`` before accumulation."""
        self.edits = InPlaceEdits()
        self.on_accumulate: Callable[[int, torch.Tensor | None, torch.Tensor], None]
        """What is told that a ``.grad`` was written: the step, the gradient if known, the leaf."""
        self._computing: int | None = None
        """The node that is computing now, as far as an observer in front of it shows."""

    def seed(self, place: NodeOutput, gradient: torch.Tensor | None) -> None:
        """Record the seed: ``gradient`` enters the graph at ``place``."""
        if gradient is None:
            return
        fingerprint = fingerprint_of(gradient, self.probe.measure(gradient))
        self._log("seed", *place, after=fingerprint.value)
        self._sent.setdefault(place, []).append((None, 0, fingerprint))

    def arrive(self, place: NodeOutput, gradient: torch.Tensor | None) -> Fingerprint | None:
        """Record a gradient that is complete at ``place``: its parts, and a change since they were sent."""
        sent = self._sent.pop(place, [])
        if gradient is None:
            return None
        if len(sent) == 1 and place not in self._partly_observed:
            node, slot, before = sent[0]
            now, expected = self._compare_with_last(before, gradient)
            parts: Parts = ((node, slot, expected),)
        else:
            sent = self._log_edited_part(place, sent)
            now = fingerprint_of(gradient, self.probe.measure(gradient))
            expected = now.value
            # If some parts come from unobserved nodes, the observed parts do not add up to the gradient.
            parts = (
                ()
                if place in self._partly_observed
                else tuple((node, slot, fingerprint.value) for node, slot, fingerprint in sent)
            )
        if now.value != expected:  # it was changed after it was sent
            self._log_change(place, expected, now)
        if len(parts) != 1:
            self._log("arrive", *place, after=now.value, parts=parts)
        elif parts[0][0] is not None:  # a seed that arrives alone has its step already
            self._rows.append_compact((self.number, *place, now.value, *parts[0]))
        return now

    def _log_edited_part(self, place: NodeOutput, sent: list[SentGradient]) -> list[SentGradient]:
        """Record that the first gradient that was sent to a place was written to while it waited for the others."""
        edit = self.edits.take_part(place)
        if edit is None or place in self._partly_observed:
            return sent
        cause, value = edit
        node, slot, first = sent[0]
        self._log("aliased", *place, before=first.value, after=value, cause=cause)
        return [(node, slot, replace(first, value=value)), *sent[1:]]

    def _compare_with_last(self, before: Fingerprint, gradient: torch.Tensor) -> tuple[Fingerprint, int | None]:
        """Return the fingerprint of the gradient now, and its value number when it was last seen.

        The two have the same value number unless the gradient has changed.
        """
        if not self.checks_each_gradient and not self.edits and before.is_of(gradient):
            return before, before.value  # clearly the same, and nobody has written to it
        now = fingerprint_of(gradient)
        is_edited = self.edits.find_cause(now.storage) is not None
        seems_unchanged = now.is_unwritten_since(before) and not is_edited
        if seems_unchanged and not (self.checks_each_gradient and has_few_numbers(gradient)):
            now.value = before.value
            return now, before.value
        now.value = self.probe.measure(gradient)
        if now.is_at_address_of(before) and self.probe.have_same_numbers(before, now):
            self.trace.values.pop()  # the measurement only showed that nothing changed
            now.value = before.value
            return now, before.value
        return now, before.value

    def _log_change(self, place: NodeOutput, expected: int | None, now: Fingerprint) -> None:
        """Record that a gradient has changed since it was last seen, and the in-place edit that caused it if known."""
        cause = self.edits.find_cause(now.storage)
        kind: StepKind = "aliased" if cause is not None else "unknown_hook"
        self._log(kind, *place, before=expected, after=now.value, cause=cause)

    def collect_inputs(self, node: int, gradients: Gradients) -> list[Fingerprint | None]:
        """Fingerprint the input gradients of a node. Its tensors' hooks have run, and ``retain_grad`` has stored."""
        if not (self._arrived or self._retained):
            if len(gradients) == 1:
                return [self.arrive((node, 0), gradients[0])]
            return [self.arrive((node, output), gradient) for output, gradient in enumerate(gradients)]
        inputs: list[Fingerprint | None] = []
        for output, gradient in enumerate(gradients):
            place = (node, output)
            if place in self._arrived:
                fingerprint = self._after_tensor_hooks(place, self._arrived.pop(place), gradient)
            else:
                fingerprint = self.arrive(place, gradient)
            if place in self._retained:
                self._retain(place, fingerprint)
            inputs.append(fingerprint)
        return inputs

    def _after_tensor_hooks(
        self, place: NodeOutput, before: Fingerprint | None, gradient: torch.Tensor | None
    ) -> Fingerprint | None:
        """Fingerprint a gradient after its tensor's hooks; compare it with what the last observer among them saw."""
        if gradient is None or before is None:
            return self.probe.fingerprint(gradient)
        now, expected = self._compare_with_last(before, gradient)
        if now.value != expected:
            self._log_change(place, expected, now)
        return now

    def _retain(self, place: NodeOutput, fingerprint: Fingerprint | None) -> None:
        reference, before = self._retained.pop(place)
        tensor = reference()
        if tensor is None or fingerprint is None:
            return
        stored = None if before is None else read_grad(tensor)  # with an old gradient, the sum is stored
        after = fingerprint.value if stored is None else self.probe.measure(stored)
        self._log("retain_grad", *place, before=before, after=after)

    def _log_compute(
        self, node: int, gradients: Gradients, incoming: list[Fingerprint | None]
    ) -> list[Fingerprint | None]:
        """Record that a node has computed. Its outputs are measured now, since the nodes that get them may fail."""
        self._computing = None
        fingerprints: list[Fingerprint | None] = []
        for gradient in gradients:
            fingerprint = None if gradient is None else fingerprint_of(gradient)
            if gradient is not None and fingerprint is not None:
                if fingerprint.layout is not None:
                    fingerprint.value = self.probe.value_if_view(gradient, fingerprint, incoming)
                if fingerprint.value is None:
                    fingerprint.value = self.probe.measure(gradient)
            fingerprints.append(fingerprint)
        self._rows.append_compact((self.number, node, value_numbers(incoming), value_numbers(fingerprints)))
        return fingerprints

    def node_begins(self, node: int, inputs: list[Fingerprint | None]) -> None:
        """Note that a node computes next, with the input gradients that came out of the hooks in front of it."""
        self._incoming[node] = inputs
        self._computing = node
        if node in self._leaves:
            leaf = self.find_leaf(node)
            self._grad_before[node] = None if leaf is None else value_of(self.probe.fingerprint(read_grad(leaf)))

    def node_computed(self, node: int, outputs: Gradients, inputs: Gradients) -> list[Fingerprint | None]:
        """Record that a node has computed ``outputs`` from ``inputs``; return what it is about to send."""
        self._note_inputs(node, inputs)
        if node in self._leaves:
            self.log_accumulate(node, inputs)
            return []
        return self._log_compute(node, outputs, self._incoming.pop(node, []))

    def tensor_hooks_ended(self, place: NodeOutput, fingerprint: Fingerprint | None) -> None:
        """Note the gradient that came out of the hooks of a tensor."""
        self._arrived[place] = fingerprint

    def send(self, node: int, fingerprints: list[Fingerprint | None]) -> None:
        """Note that a node sends gradients along its edges."""
        for slot, (fingerprint, place) in enumerate(zip(fingerprints, self._out_edges.get(node, ()), strict=False)):
            if place is not None and fingerprint is not None:
                self._sent.setdefault(place, []).append((node, slot, fingerprint))

    def log_accumulate(self, node: int, gradients: Gradients = ()) -> None:
        """Record once that AccumulateGrad has written ``.grad``, though several observers may call this."""
        if node not in self._grad_before:
            return
        before = self._grad_before.pop(node)
        incoming = self._incoming.pop(node, [None])[0]
        leaf = self.find_leaf(node)
        self._computing = None
        if incoming is None or leaf is None or read_grad(leaf) is None:
            return
        after, gradient = incoming.value, gradients[0] if gradients else None
        if before is None:
            gradient = read_grad(leaf)
        else:
            after = None if node in self.unreadable_grads else self.probe.measure(read_grad(leaf))
        self.on_accumulate(self._log("accumulate", node, 0, before=before, after=after), gradient, leaf)

    def find_leaf(self, node: int) -> torch.Tensor | None:
        """Return the leaf of an AccumulateGrad node, if it still exists."""
        return self._leaves[node]()

    def _note_inputs(self, node: int, gradients: Gradients) -> None:
        """Note the inputs of a node, unless an observer in front of it did so."""
        if node not in self.observed_in_front:
            self._incoming[node] = self.collect_inputs(node, gradients)
            if node in self._leaves:  # no user code runs in this pass, so ``.grad`` is as it was at the start
                self._grad_before[node] = self._grads.get(node)

    def _log(self, kind: StepKind, node: int | None, output: int | None = None, **fields: Any) -> int:
        self._rows.append(StepRow(self.number, kind, node, output, **fields))
        return len(self._rows) - 1
