"""One backward pass: what the observers see in it, written down as steps."""

from typing import Any

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.torch_internals import current_task
from hookviz.recorder.engine_order import next_node
from hookviz.recorder.exception_tracker import exception_text
from hookviz.recorder.fingerprint import Fingerprint, Gradients, single_or_tuple, value_of
from hookviz.recorder.gradient_flow import GradientFlow
from hookviz.recorder.graph_owners import GraphOwners
from hookviz.recorder.hook_observer import Hook, HookDictObserver, HookIteration, Observer, extract_gradients
from hookviz.recorder.hook_registry import HookRegistry
from hookviz.recorder.multi_grad_hooks import MultiGradInputs, collected_gradients
from hookviz.recorder.unwrapped_hooks import unwrap_hook
from hookviz.trace import Place, StepRow, TraceData
from hookviz.trace.rows import Subject

SMALL = 256
"""In graphs with no more nodes than this hooks are expected that were registered unseen."""


class PassObserver(GradientFlow):
    """What the observers of one pass report to: it writes down what hooks do, and how the pass ends."""

    def __init__(self, trace: TraceData, snapshot: GraphSnapshot, owners: GraphOwners) -> None:
        super().__init__(trace, snapshot)
        self.hooks = HookRegistry(trace, snapshot.pass_id, owners)
        self.task: int | None = None
        self.running: dict[HookDictObserver, HookIteration[Fingerprint | None]] = {}
        self.targets: list[Place] | None = None
        """Where the gradients arrive that were asked for, if only some were, so that not every node runs."""
        self._snapshot = snapshot
        self._received: MultiGradInputs | None = None
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
        return [self._look.fingerprint(tensor) for tensor in extract_gradients(stage, arguments)]

    def hook_follows(self, hook: Hook) -> None:
        """``hook`` is called next. What a multi-grad hook has collected is gone after it: it is looked at now."""
        found = unwrap_hook(hook)
        given = collected_gradients(hook, current_task()) if found is not None and found.waits else None
        self._received = None if given is None else MultiGradInputs(self._look, *given)

    def fired(
        self,
        stage: HookDictObserver,
        entry: tuple[Any, Hook],
        run: HookIteration[Fingerprint | None],
        arguments: tuple[Any, ...],
    ) -> Any:
        """One of the user's hooks has run: compare what was there before it with what is there now."""
        gradients = extract_gradients(stage, arguments)
        count = len(arguments[1]) if stage.kind == "full_backward_hook" else len(gradients)
        now, effect = self._look.compare(run.last[:count], gradients[:count])
        # Behind the gradients comes grad_output, which nobody may change.
        outputs, written = self._look.compare(run.last[count:], gradients[count:])
        if not self.hooks.ran(entry[1]):
            return now
        hook = self.hooks.row(stage, entry)
        row = self.trace.hook_rows[hook]
        before, after = [value_of(g) for g in run.last[:count]], [value_of(g) for g in now]
        subject: Subject = "gradient"
        if stage.kind == "post_accumulate_hook":
            subject = "data" if before[:1] == after[:1] and before != after else "gradient"
            before, after = ([x[1 if subject == "data" else 0]] for x in (before, after))
            if self._refused is None and arguments[0] is not self._leaves[stage.node]():
                self._refused = hook
        if (effect, written) == ("kept", "edited"):
            subject, effect = "grad_output", written
            before, after = [value_of(g) for g in run.last[count:]], [value_of(g) for g in outputs]
        labels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        if row.kind == "multi_grad_hook" and self._received is not None:
            before, after, others = self._received.since(before[0], after[0])
            effect = effect if others == "kept" else others
            names = self.hooks.names(entry[1], len(before))
            labels = names, names
        step = self._log(
            row.kind,
            stage.node,
            stage.output,
            hook=hook,
            place=self.hooks.place(stage, run.hooks, entry),
            before=single_or_tuple(before),
            after=single_or_tuple(after),
            effect=effect,
            parts=tuple((-1, 0, value_of(g)) for g in outputs),
            subject=subject,
            call=self.hooks.call(stage, entry),
            labels=labels,
        )
        edited = (now if effect == "edited" else []) + (outputs if written == "edited" else [])
        self._edits += [(g.storage, step) for g in edited if g is not None and g.storage]
        return now + outputs

    def ran(self, node: int, made: Gradients, given: Gradients) -> None:
        """A node behind which no hook of a person's stands has made these gradients of those that it was given."""
        if node in self._leaves:
            self._given(node, given)
            self._accumulated(node)
        else:
            incoming = self._incoming.pop(node, []) if node in self.observed_in_front else self._reach(node, given)
            self._send(node, self._computed(node, made, incoming))

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

    # -- how it ended

    def failed(self, error: BaseException) -> None:
        """The pass raised: say which hook or node did, and keep no reference to the exception."""
        text = exception_text(error)
        if self.running:
            stage, run = list(self.running.items())[-1]
            later = [entry for entry in run.hooks[run.position + 1 :] if not isinstance(entry[1], Observer)]
            hook, call = self.hooks.culprit(stage, later[0]) if later else (None, -1)
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
        ran = {row.node for row in self.trace.rows[self._snapshot.first_row :] if self._is_run(row)}
        if not (ran or self._incoming):  # the engine has not begun
            return -1
        node = next_node(self._snapshot, ran, {node for node, _ in self._sent}, self.targets)
        for place in sorted(place for place in self._sent if place[0] == node):
            sent = self._sent.pop(place)
            if len(sent) == 1 and sent[0][0] >= 0:  # a seed that arrives alone has had its step
                ((source, slot, fingerprint),) = sent
                self._rows.fold((self.number, *place, fingerprint.value, source, slot, fingerprint.value))
        return node

    def _is_run(self, row: StepRow) -> bool:
        return row.pass_id == self.number and row.kind in ("compute", "accumulate")

    def returned(self, places: list[Place | None], gradients: Gradients) -> None:
        """``torch.autograd.grad`` gives back ``gradients`` for the tensors at ``places``."""
        for place, gradient in zip(places, gradients, strict=True):
            if place is None:
                continue
            fingerprint = None
            if place in self._sent:
                fingerprint = self._arrive(place, gradient)
            elif gradient is not None:
                fingerprint = self._look.fingerprint(gradient)
            if place in self._retained:
                self._retain(place, fingerprint)
            self._log("returned", *place, after=value_of(fingerprint))
