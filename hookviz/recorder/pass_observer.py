"""One backward pass: what the observers see in it, written down as steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.recorder.exception_tracker import exception_text
from hookviz.recorder.fingerprint import Fingerprint, Gradients, Sent, fingerprint_of, mark_of, one, value_of, values_of
from hookviz.recorder.gradient_probe import GradientProbe
from hookviz.recorder.hook_observer import Hook, HookDictObserver, Observer, Run, handed
from hookviz.recorder.hook_registry import HookRegistry
from hookviz.recorder.multi_grad_hooks import Received, received
from hookviz.recorder.unwrapped_hooks import unwrap_hook
from hookviz.trace import Place, StepRow, TraceData
from hookviz.trace.folded_rows import StepRows
from hookviz.trace.value_rows import FEW, Deferred

if TYPE_CHECKING:
    from hookviz.recorder.call_tracker import CallTracker

Parts = tuple[tuple[int, int, int | None], ...]

SMALL = 256
"""In graphs with no more nodes than this hooks are expected that nobody has told of."""


class PassObserver:
    """Writes the steps of one backward pass. Holds numbers only; no gradient outlives the call that shows it."""

    def __init__(self, trace: TraceData, survey: GraphSnapshot, calls: "CallTracker") -> None:
        self.trace, self.number = trace, survey.pass_id
        self._rows = cast("StepRows", trace.rows)
        self._look = GradientProbe(trace)
        self.met = HookRegistry(trace, survey.pass_id, calls)
        self.task: int | None = None
        self.running: dict[HookDictObserver, Run[Fingerprint | None]] = {}
        self.careful = True
        """Whether each gradient of few numbers is looked at where it is sent as well as where it arrives. Where no code
        of a person's runs, nobody can change one on its way, and in a large graph without any known hook that is left
        out, too: if an unknown hook does change one, its version or its place in memory tells."""
        self.targets: list[Place] | None = None
        """Where the gradients arrive that were asked for, if only some were, so that not every node runs."""
        self.fronted: set[int] = set()
        """The nodes that have an observer in front of them, which sees what they are given."""
        self.written: set[int] = set()
        """The leaves to whose ``.grad`` others write while the pass runs, so that it cannot be read."""
        self._survey = survey
        self._leaves, self._retained = survey.leaves, survey.retained
        self._ways, self._blind = survey.ways, survey.blind
        self._sent: dict[Place, list[Sent]] = {}
        self._at: dict[Place, Fingerprint | None] = {}
        self._incoming: dict[int, list[Fingerprint | None]] = {}
        self._grad_before: dict[int, int | None] = {}
        self._edits: list[tuple[int, int]] = []
        self._computing: int | None = None
        self._received: Received | None = None
        """What the multi-grad hook that comes next is given."""
        self._refused: int | None = None
        """The first post-accumulate hook that returned something: torch runs them all before it refuses that."""

    # -- what the observers report

    def enter(self, stage: HookDictObserver, arguments: tuple[Any, ...]) -> list[Fingerprint | None]:
        """The first observer of a stage was called: note all that happened before it."""
        if stage.kind == "node_pre_hook":
            return self._reach(stage.node, arguments[0])
        if stage.kind == "node_post_hook":
            self._given(stage.node, arguments[1])
            if stage.node not in self._leaves:
                return self._computed(stage.node, arguments[0], self._incoming.pop(stage.node, []))
            self._accumulated(stage.node)
            return []
        if stage.kind == "tensor_hook":
            return [self._arrive((stage.node, stage.output), arguments[0])]
        if stage.kind == "post_accumulate_hook":
            self._accumulated(stage.node)
        return [self._look.glimpse(tensor) for tensor in handed(stage, arguments)]

    def coming(self, hook: Hook) -> None:
        """``hook`` is called next. What a multi-grad hook has collected is gone after it: it is looked at now."""
        found = unwrap_hook(hook)
        given = received(hook, torch._C._current_graph_task_id()) if found is not None and found.waits else None
        self._received = None if given is None else Received(self._look, *given)

    def fired(
        self, stage: HookDictObserver, entry: tuple[Any, Hook], run: Run[Fingerprint | None], arguments: tuple[Any, ...]
    ) -> Any:
        """One of the user's hooks has run: compare what was there before it with what is there now."""
        gradients = handed(stage, arguments)
        count = len(arguments[1]) if stage.kind == "full_backward_hook" else len(gradients)
        now, effect = self._look.compare(run.last[:count], gradients[:count])
        beside, written = self._look.compare(
            run.last[count:], gradients[count:]
        )  # grad_output, which nobody may change
        if not self.met.ran(entry[1]):
            return now
        hook = self.met.row(stage, entry)
        row = self.trace.hook_rows[hook]
        before, after = [value_of(g) for g in run.last[:count]], [value_of(g) for g in now]
        of = None
        if stage.kind == "post_accumulate_hook":
            of = "data" if before[:1] == after[:1] and before != after else None
            before, after = ([x[1 if of else 0]] for x in (before, after))
            if self._refused is None and arguments[0] is not self._leaves[stage.node]():
                self._refused = hook
        if (effect, written) == ("kept", "edited"):
            of, effect = "grad_output", written
            before, after = [value_of(g) for g in run.last[count:]], [value_of(g) for g in beside]
        labels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        if row.kind == "multi_grad_hook" and self._received is not None:
            before, after, others = self._received.since(before[0], after[0])
            effect = effect if others == "kept" else others
            names = self.met.names(entry[1], len(before))
            labels = names, names
        step = self._log(
            row.kind,
            stage.node,
            stage.output,
            hook=hook,
            place=self.met.place(stage, run.hooks, entry),
            before=one(before),
            after=one(after),
            effect=effect,
            parts=tuple((-1, 0, value_of(g)) for g in beside),
            of=of,
            call=self.met.call(stage, entry),
            labels=labels,
        )
        edited = (now if effect == "edited" else []) + (beside if written == "edited" else [])
        self._edits += [(g.storage, step) for g in edited if g is not None and g.storage]
        return now + beside

    def ran(self, node: int, made: Gradients, given: Gradients) -> None:
        """A node behind which no hook of a person's stands has made these gradients of those that it was given."""
        if node in self._leaves:
            self._given(node, given)
            self._accumulated(node)
        else:
            incoming = self._incoming.pop(node, []) if node in self.fronted else self._reach(node, given)
            self._send(node, self._computed(node, made, incoming))

    def _given(self, node: int, gradients: Gradients) -> None:
        """Note what a node was given, if no observer in front of it did."""
        if node not in self.fronted:
            self._incoming[node] = self._reach(node, gradients)
            if node in self._leaves:  # nothing of a person's runs in this pass: ``.grad`` was what it was at the start
                self._grad_before[node] = self._survey.grads.get(node)

    def leave(self, stage: HookDictObserver, last: list[Fingerprint | None]) -> None:
        """The last observer of a stage was called: what it saw is what goes on from here."""
        if stage.kind == "node_pre_hook":
            self._incoming[stage.node] = last
            self._computing = stage.node
            if stage.node in self._leaves:
                self._grad_before[stage.node] = value_of(self._leaf_grad(stage.node))
        elif stage.kind == "node_post_hook":
            self._send(stage.node, last)
        elif stage.kind == "tensor_hook":
            self._at[stage.node, stage.output] = last[0]

    # -- the steps in between

    def seed(self, place: Place, gradient: torch.Tensor | None) -> None:
        """Backward starts: ``gradient`` goes in at ``place``."""
        if gradient is None:
            return
        glimpse = fingerprint_of(gradient, self._look.measure(gradient))
        self._log("seed", *place, after=glimpse.value)
        self._sent.setdefault(place, []).append((-1, 0, glimpse))

    def _arrive(self, place: Place, gradient: torch.Tensor | None) -> Fingerprint | None:
        """A gradient is complete at ``place``: say what made it, and whether it is what was sent."""
        sent = self._sent.pop(place, [])
        if gradient is None:
            return None
        if len(sent) == 1 and place not in self._blind:
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
            parts = () if place in self._blind else tuple((node, slot, glimpse.value) for node, slot, glimpse in sent)
        if now.value != expected:  # it was changed on its way, before it arrives
            self._tell(place, expected, now)
        if len(parts) != 1:
            self._log("arrive", *place, after=now.value, parts=parts)
        elif parts[0][0] >= 0:  # a seed that arrives alone has had its step
            self._rows.fold((self.number, *place, now.value, *parts[0]))
        return now

    def _untouched(self, before: Fingerprint, gradient: torch.Tensor) -> bool:
        """Whether it is clear at first sight that this is the gradient that was seen, and that nobody wrote to it."""
        if self.careful or self._edits or before.identity != id(gradient):
            return False
        return before.mark == mark_of(gradient)

    def _follow(self, before: Fingerprint, gradient: torch.Tensor) -> tuple[Fingerprint, int | None]:
        """The gradient now, and its value when it was seen last: the same number unless it changed on the way."""
        if self._untouched(before, gradient):
            return before, before.value
        now = fingerprint_of(gradient)
        surely = now.mark == before.mark and not any(spot == now.storage for spot, _ in self._edits)
        if surely and not (self.careful and gradient.numel() <= FEW):
            now.value = before.value
            return now, before.value
        now.value = self._look.measure(gradient)
        if now.mark[0] == before.mark[0] and self._look.alike(before, now):
            self.trace.values.pop()  # measured only to see that nothing changed
            now.value = before.value
            return now, before.value
        return now, before.value

    def _tell(self, place: Place, expected: int | None, now: Fingerprint) -> None:
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
                glimpse = self._since(place, self._at.pop(place), gradient)
            else:
                glimpse = self._arrive(place, gradient)
            if place in self._retained:
                self._retain(place, glimpse)
            reached.append(glimpse)
        return reached

    def _since(self, place: Place, before: Fingerprint | None, gradient: torch.Tensor | None) -> Fingerprint | None:
        """The gradient after the tensor's hooks, checked against what the last observer among them saw."""
        if gradient is None or before is None:
            return self._look.glimpse(gradient)
        now, expected = self._follow(before, gradient)
        if now.value != expected:
            self._tell(place, expected, now)
        return now

    def _retain(self, place: Place, glimpse: Fingerprint | None) -> None:
        reference, before = self._retained.pop(place)
        tensor = reference()
        if tensor is None or glimpse is None:
            return
        stored = None if before is None else tensor.grad  # on top of an old gradient: the sum is stored
        after = glimpse.value if stored is None else self._look.measure(stored)
        self._log("retain_grad", *place, before=before, after=after)

    def _computed(
        self, node: int, gradients: Gradients, incoming: list[Fingerprint | None]
    ) -> list[Fingerprint | None]:
        """A node has computed: what it sends is measured now, for what it is sent to may fail."""
        self._computing = None
        glimpses: list[Fingerprint | None] = []
        for gradient in gradients:
            glimpse = None if gradient is None else fingerprint_of(gradient)
            if gradient is not None and glimpse is not None:
                if glimpse.layout is not None:
                    glimpse.value = self._rearranged(gradient, glimpse, incoming)
                if glimpse.value is None:
                    glimpse.value = self._look.measure(gradient)
            glimpses.append(glimpse)
        self._rows.fold((self.number, node, values_of(incoming), values_of(glimpses)))
        return glimpses

    def _rearranged(
        self, gradient: torch.Tensor, glimpse: Fingerprint, incoming: Sequence[Fingerprint | None]
    ) -> int | None:
        """The value of a large gradient that only shows the incoming one with its dimensions in another order."""
        origin = incoming[0] if len(incoming) == 1 else None
        if origin is None or origin.value is None or (origin.mark, origin.layout) != (glimpse.mark, glimpse.layout):
            return None
        row, shape = self.trace.values[origin.value], tuple(gradient.shape)
        self.trace.values.append(row.reshaped(shape) if isinstance(row, Deferred) else (shape, *row[1:]))
        return len(self.trace.values) - 1

    def _send(self, node: int, glimpses: list[Fingerprint | None]) -> None:
        for slot, (glimpse, place) in enumerate(zip(glimpses, self._ways.get(node, ()), strict=False)):
            if place is not None and glimpse is not None:
                self._sent.setdefault(place, []).append((node, slot, glimpse))

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
        return None if leaf is None else self._look.glimpse(leaf.grad)

    # -- how it ended

    def failed(self, error: BaseException) -> None:
        """The pass raised: say which hook or node did, and keep no reference to the exception."""
        text = exception_text(error)
        if self.running:
            stage, run = list(self.running.items())[-1]
            later = [entry for entry in run.hooks[run.position + 1 :] if not isinstance(entry[1], Observer)]
            hook, call = self.met.culprit(stage, later[0]) if later else (None, -1)
            self._log("exception", stage.node, stage.output, hook=hook, error=text, call=call)
        elif self._refused is not None:
            row = self.trace.hook_rows[self._refused]
            self._log("exception", row.node, row.output, hook=self._refused, error=text)
        else:
            self._log("exception", self._failing() if self._computing is None else self._computing, error=text)

    def _failing(self) -> int:
        """The node that was about to run, or did, and what it was given; -1 if it cannot be found by elimination.

        What it was given is what was sent to it: where several gradients are summed up, an observer stands in front.
        """
        ran = {row.node for row in self.trace.rows[self._survey.first_row :] if self._is_run(row)}
        if not (ran or self._incoming):  # the engine has not begun
            return -1
        node = self._survey.next_of(ran, {node for node, _ in self._sent}, self.targets)
        for place in sorted(place for place in self._sent if place[0] == node):
            sent = self._sent.pop(place)
            if len(sent) == 1 and sent[0][0] >= 0:  # a seed that arrives alone has had its step
                ((source, slot, glimpse),) = sent
                self._rows.fold((self.number, *place, glimpse.value, source, slot, glimpse.value))
        return node

    def _is_run(self, row: StepRow) -> bool:
        return row.pass_id == self.number and row.kind in ("compute", "accumulate")

    def returned(self, places: list[Place | None], gradients: Gradients) -> None:
        """``torch.autograd.grad`` gives back ``gradients`` for the tensors at ``places``."""
        for place, gradient in zip(places, gradients, strict=True):
            if place is None:
                continue
            glimpse = None
            if place in self._sent:
                glimpse = self._arrive(place, gradient)
            elif gradient is not None:
                glimpse = self._look.glimpse(gradient)
            if place in self._retained:
                self._retain(place, glimpse)
            self._log("returned", *place, after=value_of(glimpse))

    # -- small helpers

    def _log(self, kind: str, node: int, output: int = -1, **known: Any) -> int:
        self._rows.append(StepRow(self.number, kind, node, output, **known))
        return len(self._rows) - 1
