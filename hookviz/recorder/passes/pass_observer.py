"""Observes one backward pass: writes what its observers see as steps."""

from typing import Any, cast

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.torch_internals import current_task
from hookviz.recorder.exception_tracker import exception_text
from hookviz.recorder.fingerprint import Fingerprint, Gradients, single_or_tuple, value_of
from hookviz.recorder.hook_observer import Hook, HookDictObserver, HookIteration, Observer, extract_gradients
from hookviz.recorder.modules.graph_owners import GraphOwners
from hookviz.recorder.passes.gradient_flow import GradientFlow
from hookviz.recorder.passes.hook_registry import HookRegistry
from hookviz.recorder.passes.multi_grad_hooks import MultiGradInputs, collected_gradients
from hookviz.recorder.torch.engine_order import next_node
from hookviz.recorder.torch.unwrapped_hooks import unwrap_hook
from hookviz.trace import NodeOutput, StepKind, StepRow, TraceData, identity_of
from hookviz.trace.rows import Subject

SMALL_GRAPH = 256
"""In graphs with up to this many nodes hookviz also looks for hooks that were registered unseen."""


class PassObserver(GradientFlow):
    """Gets the reports of a pass's observers; writes what hooks do, and how the pass ends."""

    def __init__(self, trace: TraceData, snapshot: GraphSnapshot, owners: GraphOwners) -> None:
        super().__init__(trace, snapshot)
        self.hooks = HookRegistry(trace, snapshot.pass_id, owners)
        self.task: int | None = None
        self.running: dict[HookDictObserver, HookIteration[Fingerprint | None]] = {}
        self.targets: list[NodeOutput] | None = None
        """Places of the gradients that were requested, if only some were; then not every node runs."""
        self._snapshot = snapshot
        self._multi_grad_inputs: MultiGradInputs | None = None
        """The inputs of the multi-grad hook that runs next."""
        self._refused_hook: int | None = None
        """The first post-accumulate hook that returned something. torch runs the others before it refuses that."""

    # -- what the observers report

    def enter(self, dict_observer: HookDictObserver, arguments: tuple[Any, ...]) -> list[Fingerprint | None]:
        """Handle the first observer of a dict: record everything that happened before it."""
        if dict_observer.kind == "node_pre_hook":
            return self._collect_inputs(dict_observer.node, arguments[0])
        if dict_observer.kind == "node_post_hook":
            self._note_inputs(dict_observer.node, arguments[1])
            if dict_observer.node not in self._leaves:
                return self._log_compute(dict_observer.node, arguments[0], self._incoming.pop(dict_observer.node, []))
            self._log_accumulate(dict_observer.node)
            return []
        if dict_observer.kind == "tensor_hook":
            return [self._arrive(dict_observer.place, arguments[0])]
        if dict_observer.kind == "post_accumulate_hook":
            self._log_accumulate(dict_observer.node)
        return [self._probe.fingerprint(tensor) for tensor in extract_gradients(dict_observer, arguments)]

    def before_hook(self, hook: Hook) -> None:
        """Read the collected gradients if ``hook``, which runs next, is a multi-grad hook.

        torch drops them after it.
        """
        unwrapped = unwrap_hook(hook)
        collected = collected_gradients(hook, current_task()) if unwrapped is not None and unwrapped.waits else None
        self._multi_grad_inputs = None if collected is None else MultiGradInputs(self._probe, *collected)

    def hook_fired(
        self,
        dict_observer: HookDictObserver,
        entry: tuple[Any, Hook],
        iteration: HookIteration[Fingerprint | None],
        arguments: tuple[Any, ...],
    ) -> Any:
        """Record that one of the user's hooks has run, by comparing the gradients before it with those after it."""
        gradients = extract_gradients(dict_observer, arguments)
        count = len(arguments[1]) if dict_observer.kind == "full_backward_hook" else len(gradients)
        now, effect = self._probe.compare(iteration.last[:count], gradients[:count])
        # After the gradients comes grad_output, which hooks may not change.
        outputs, output_effect = self._probe.compare(iteration.last[count:], gradients[count:])
        if not self.hooks.has_run(entry[1]):
            return now
        hook = self.hooks.hook_number(dict_observer, entry)
        row = self.trace.hook_rows[hook]
        before, after = [value_of(g) for g in iteration.last[:count]], [value_of(g) for g in now]
        subject: Subject = "gradient"
        if dict_observer.kind == "post_accumulate_hook":
            subject = "data" if before[:1] == after[:1] and before != after else "gradient"
            before, after = ([x[1 if subject == "data" else 0]] for x in (before, after))
            if self._refused_hook is None and arguments[0] is not self._leaves[dict_observer.node]():
                self._refused_hook = hook
        if (effect, output_effect) == ("kept", "edited"):
            subject, effect = "grad_output", output_effect
            before, after = [value_of(g) for g in iteration.last[count:]], [value_of(g) for g in outputs]
        labels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        if row.kind == "multi_grad_hook" and self._multi_grad_inputs is not None:
            before, after, other_effect = self._multi_grad_inputs.compare_with_now(before[0], after[0])
            effect = effect if other_effect == "kept" else other_effect
            names = self.hooks.tensor_names(entry[1], len(before))
            labels = names, names
        step = self._log(
            cast(StepKind, row.kind),  # the step of a hook has the kind of the hook
            dict_observer.node,
            dict_observer.output,
            hook=hook,
            place=self.hooks.find_place(dict_observer, iteration.hooks, entry),
            before=single_or_tuple(before),
            after=single_or_tuple(after),
            effect=effect,
            parts=tuple((None, 0, value_of(g)) for g in outputs),
            subject=subject,
            call=self.hooks.call_number(dict_observer, entry),
            labels=labels,
        )
        edited = (now if effect == "edited" else []) + (outputs if output_effect == "edited" else [])
        self._edits += [(g.storage, step) for g in edited if g is not None and g.storage]
        return now + outputs

    def node_ran(self, node: int, outputs: Gradients, inputs: Gradients) -> None:
        """Record that a node without hooks of the user's behind it has computed ``outputs`` from ``inputs``."""
        if node in self._leaves:
            self._note_inputs(node, inputs)
            self._log_accumulate(node)
        else:
            # An observer may have been put in front of the node while it ran: it saw no inputs.
            incoming = self._incoming.pop(node) if node in self._incoming else self._collect_inputs(node, inputs)
            self._send(node, self._log_compute(node, outputs, incoming))

    def leave(self, dict_observer: HookDictObserver, last: list[Fingerprint | None]) -> None:
        """Handle the last observer of a dict: what it saw is what moves on."""
        if dict_observer.kind == "node_pre_hook":
            self._incoming[dict_observer.node] = last
            self._computing = dict_observer.node
            if dict_observer.node in self._leaves:
                self._grad_before[dict_observer.node] = value_of(self._fingerprint_grad(dict_observer.node))
        elif dict_observer.kind == "node_post_hook":
            self._send(dict_observer.node, last)
        elif dict_observer.kind == "tensor_hook":
            self._arrived[dict_observer.place] = last[0]

    # -- how the pass ended

    def log_failure(self, error: BaseException) -> None:
        """Record that the pass raised: name the hook or node that did, and keep no reference to the exception."""
        text = exception_text(error)
        if self.running:
            dict_observer, iteration = list(self.running.items())[-1]
            remaining = [
                entry for entry in iteration.hooks[iteration.position + 1 :] if not isinstance(entry[1], Observer)
            ]
            hook, call = self.hooks.find_culprit(dict_observer, remaining[0]) if remaining else (None, None)
            self._log("exception", dict_observer.node, dict_observer.output, hook=hook, error=text, call=call)
        elif self._refused_hook is not None:
            row = self.trace.hook_rows[self._refused_hook]
            self._log("exception", row.node, row.output, hook=self._refused_hook, error=text)
        else:
            self._log(
                "exception", self._find_failing_node() if self._computing is None else self._computing, error=text
            )

    def note_unreported_failure(self) -> None:
        """Note which hooks were running when the pass raised an exception that has its step elsewhere."""
        for dict_observer, iteration in self.running.items():
            rest = iteration.hooks[iteration.position + 1 :]
            entry = next((entry for entry in rest if not isinstance(entry[1], Observer)), None)
            hook = None if entry is None else self.hooks.find_culprit(dict_observer, entry)[0]
            if hook is not None:
                dict_observer.session.unseen_firings.add(identity_of(self.trace.hook_rows[hook]))

    def _find_failing_node(self) -> int | None:
        """Return the node that was running or about to run, and record its inputs; None if elimination cannot find it.

        Its input is the gradient that was sent to it: in front of a node that sums several gradients stands an
        observer.
        """
        ran = {row.own_node for row in self.trace.rows[self._snapshot.first_row :] if self._is_node_run(row)}
        if not (ran or self._incoming):  # the engine has not begun
            return None
        node = next_node(self._snapshot, ran, {node for node, _ in self._sent}, self.targets)
        for place in sorted(place for place in self._sent if place[0] == node):
            sent = self._sent.pop(place)
            if len(sent) == 1 and sent[0][0] is not None:  # a seed that arrives alone has its step already
                ((source, slot, fingerprint),) = sent
                self._rows.append_compact((self.number, *place, fingerprint.value, source, slot, fingerprint.value))
        return node

    def _is_node_run(self, row: StepRow) -> bool:
        return row.pass_id == self.number and row.kind in ("compute", "accumulate")

    def log_returned(self, places: list[NodeOutput | None], gradients: Gradients) -> None:
        """Record the ``gradients`` that ``torch.autograd.grad`` returns for the tensors at ``places``."""
        for place, gradient in zip(places, gradients, strict=True):
            if place is None:
                continue
            fingerprint = None
            if place in self._sent:
                fingerprint = self._arrive(place, gradient)
            elif gradient is not None:
                fingerprint = self._probe.fingerprint(gradient)
            if place in self._retained:
                self._retain(place, fingerprint)
            self._log("returned", *place, after=value_of(fingerprint))
