"""One running backward pass: what its observers see becomes steps; if it fails, the engine's order tells where."""

import threading
from collections.abc import Container, Sequence
from typing import Any, cast

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.node_numbering import NodeNumbers
from hookviz.autograd.torch_internals import current_task
from hookviz.recorder.exception_tracker import describe_exception
from hookviz.recorder.fingerprint import Fingerprint, Gradients, single_or_tuple, value_of
from hookviz.recorder.hook_observer import Hook, HookDictObserver, HookIteration
from hookviz.recorder.modules.graph_owners import GraphOwners
from hookviz.recorder.passes.gradient_flow import GradientFlow
from hookviz.recorder.passes.gradient_probe import MultiGradInputs
from hookviz.recorder.passes.hook_kinds import HOOKS_OF_KIND, Change
from hookviz.recorder.passes.hook_registry import HookRegistry
from hookviz.recorder.torch.unwrapped_hooks import collected_gradients
from hookviz.support.groups import group
from hookviz.support.interpreter import SharedSwitch
from hookviz.trace import NodeOutput, StepKind, StepRow, TraceData, identity_of

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
        return HOOKS_OF_KIND[dict_observer.kind].enter(self, dict_observer, arguments)

    def before_hook(self, hook: Hook) -> None:
        """Read the collected gradients if ``hook``, which runs next, is a multi-grad hook.

        torch drops them after it.
        """
        collected = collected_gradients(hook, current_task()) if self.hooks.unwrap(hook).waits else None
        self._multi_grad_inputs = None if collected is None else MultiGradInputs(self.probe, *collected)

    def hook_fired(
        self,
        dict_observer: HookDictObserver,
        entry: tuple[Any, Hook],
        iteration: HookIteration[Fingerprint | None],
        arguments: tuple[Any, ...],
    ) -> Any:
        """Record that one of the user's hooks has run, by comparing the gradients before it with those after it."""
        kind, last = HOOKS_OF_KIND[dict_observer.kind], iteration.last
        gradients = kind.gradients(arguments)
        count = kind.count_replaceable(arguments, gradients)
        now, effect = self.probe.compare(last[:count], gradients[:count])
        # After the gradients comes grad_output, which hooks may not change.
        outputs, output_effect = self.probe.compare(last[count:], gradients[count:])
        if not self.hooks.has_run(entry[1]):
            return now
        hook = self.hooks.hook_number(dict_observer, entry)
        if self._refused_hook is None and kind.is_refused(self, dict_observer, arguments):
            self._refused_hook = hook
        change = kind.judge(self, dict_observer, Change(_values_of(last[:count]), _values_of(now), effect))
        if (effect, output_effect) == ("kept", "edited"):
            change = Change(_values_of(last[count:]), _values_of(outputs), output_effect, "grad_output")
        if self._multi_grad_inputs is not None and self.trace.hook_rows[hook].kind == "multi_grad_hook":
            change = self._judge_multi_grad(entry[1], self._multi_grad_inputs, change)
        step = self._log_hook(dict_observer, entry, iteration, hook, change, outputs)
        edited = (now if change.effect == "edited" else []) + (outputs if output_effect == "edited" else [])
        place = None if dict_observer.output is None else dict_observer.place
        self.edits.note(place, edited, step, self._sent)
        return now + outputs

    def _judge_multi_grad(self, hook: Hook, inputs: MultiGradInputs, change: Change) -> Change:
        """Return what a multi-grad hook did to all of its gradients, from what it did to the last one."""
        before, after, other_effect = inputs.compare_with_now(change.before[0], change.after[0])
        names = self.hooks.tensor_names(hook, len(before))
        effect = change.effect if other_effect == "kept" else other_effect
        return change._replace(before=before, after=after, effect=effect, labels=(names, names))

    def _log_hook(
        self,
        dict_observer: HookDictObserver,
        entry: tuple[Any, Hook],
        iteration: HookIteration[Fingerprint | None],
        hook: int,
        change: Change,
        outputs: list[Fingerprint | None],
    ) -> int:
        return self._log(
            cast(StepKind, self.trace.hook_rows[hook].kind),  # the step of a hook has the kind of the hook
            dict_observer.node,
            dict_observer.output,
            hook=hook,
            place=self.hooks.find_place(iteration.hooks, entry),
            before=single_or_tuple(change.before),
            after=single_or_tuple(change.after),
            effect=change.effect,
            parts=tuple((None, 0, value_of(g)) for g in outputs),
            subject=change.subject,
            call=self.hooks.call_number(dict_observer, entry),
            labels=change.labels,
            **iteration.effects._asdict(),
        )

    def node_ran(self, node: int, outputs: Gradients, inputs: Gradients) -> None:
        """Record that a node without hooks of the user's behind it has computed ``outputs`` from ``inputs``."""
        if node in self._leaves:
            self._note_inputs(node, inputs)
            self.log_accumulate(node, inputs)
        else:
            # An observer may have been put in front of the node while it ran: it saw no inputs.
            incoming = self._incoming.pop(node) if node in self._incoming else self.collect_inputs(node, inputs)
            self.send(node, self._log_compute(node, outputs, incoming))

    def leave(self, dict_observer: HookDictObserver, last: list[Fingerprint | None]) -> None:
        """Handle the last observer of a dict: what it saw is what moves on."""
        HOOKS_OF_KIND[dict_observer.kind].leave(self, dict_observer, last)

    # -- how the pass ended

    def log_failure(self, error: BaseException) -> None:
        """Record that the pass raised: name the hook or node that did, and keep no reference to the exception."""
        fields = describe_exception(error)
        if self.running:
            dict_observer, iteration = list(self.running.items())[-1]
            hook, call = self.hooks.find_culprit(dict_observer, iteration)
            self._log("exception", dict_observer.node, dict_observer.output, hook=hook, call=call, **fields)
        elif self._refused_hook is not None:
            row = self.trace.hook_rows[self._refused_hook]
            self._log("exception", row.node, row.output, hook=self._refused_hook, **fields)
        else:
            node = self._find_failing_node() if self._computing is None else self._computing
            self._log("exception", node, **fields)

    def note_unreported_failure(self) -> None:
        """Note which hooks were running when the pass raised an exception that has its step elsewhere."""
        for dict_observer, iteration in self.running.items():
            hook, call = self.hooks.find_culprit(dict_observer, iteration)
            if hook is not None:
                dict_observer.session.unseen_firings.add(identity_of(self.trace.hook_rows[hook]))
                self._blame(hook, call)

    def _blame(self, hook: int, call: int | None) -> None:
        """Note in the step of the exception that it was raised in a hook, if no other hook is known."""
        last = len(self.trace.rows) - 1
        row = self.trace.rows[last] if last >= 0 else None
        if row is not None and row.kind == "exception" and row.hook is None:
            owner = self.trace.hook_rows[hook]
            self.trace.rows[last] = row._replace(hook=hook, node=owner.node, output=owner.output, call=call)

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
                fingerprint = self.arrive(place, gradient)
            elif gradient is not None:
                fingerprint = self.probe.fingerprint(gradient)
            if place in self._retained:
                self._retain(place, fingerprint)
            self._log("returned", *place, after=value_of(fingerprint))


def _values_of(fingerprints: list[Fingerprint | None]) -> list[int | None]:
    return [value_of(fingerprint) for fingerprint in fingerprints]


def next_node(
    snapshot: GraphSnapshot, ran: Container[int], sent: Container[int], targets: Sequence[NodeOutput] | None
) -> int | None:
    """Return the node that the engine runs after the nodes in ``ran``.

    Of the ready nodes the engine takes the one with the highest sequence number. ``sent`` holds the nodes to which a
    gradient has been sent: the node of a leaf is ready only if it is among them. ``targets`` holds the places whose
    gradients were requested, if only some were: nodes that lead to no target do not run. The result is None if no node
    is ready, or if several have the same sequence number, as leaves have.
    """
    needed = snapshot.out_edges.keys() if targets is None else _nodes_leading_to(snapshot, targets)
    waiting = {
        place[0] for node in needed if node not in ran for place in snapshot.out_edges[node] if place is not None
    }
    ready = [
        (node._sequence_nr(), number)
        for node in snapshot.nodes
        if (number := snapshot.numbers[id(node)]) in needed and number not in ran and number not in waiting
        if number in sent or number not in snapshot.leaves
    ]
    best = max(ready, default=(0, None))
    return best[1] if sum(number == best[0] for number, _ in ready) == 1 else None


def _nodes_leading_to(snapshot: GraphSnapshot, targets: Sequence[NodeOutput]) -> set[int]:
    """Return the nodes from which a path leads to one of ``targets``."""
    target_nodes = {node for node, _ in targets}
    predecessors = group(
        (place[0], node) for node, edges in snapshot.out_edges.items() for place in edges if place is not None
    )
    leading: set[int] = set()
    queue = [node for target in target_nodes for node in predecessors.get(target, ())]
    while queue:
        node = queue.pop()
        if node not in leading:
            leading.add(node)
            queue += predecessors.get(node, ())
    return leading


class RunningPass:
    """A running pass, with everything that has to be released when it ends."""

    def __init__(self, trace: TraceData, owners: GraphOwners, numbering: NodeNumbers, node_observers: Any) -> None:
        self.snapshot = GraphSnapshot(trace, numbering)
        self.observer = PassObserver(trace, self.snapshot, owners)
        self.node_observers = node_observers
        self.thread = threading.get_ident()
        self.dict_observers: set[HookDictObserver] = set()
        self.earlier_exception: int | None = None
        """The exception that was propagating when the pass began, for ``ExceptionTracker.leave``."""
        self.inputs: list[NodeOutput | None] = []
        """Places of the gradients that ``autograd.grad`` was asked for."""
        self.is_large = False
        """Whether the pass has so many nodes that the garbage collector would run during it."""
        self._paused: SharedSwitch | None = None

    def observe_all_nodes(self) -> None:
        """Put an observer in front of every node."""
        self.node_observers.observe_all_nodes(self)

    def pause(self, switch: SharedSwitch) -> None:
        """Take a ``switch`` that pauses part of the interpreter until ``resume``, if the pass is large."""
        if self.is_large:
            self._paused = switch
            switch.acquire(self)

    def resume(self) -> None:
        """Release the switch that ``pause`` took."""
        if self._paused is not None:
            self._paused.release(self)
            self._paused = None
