"""The observers on the nodes of a pass: one behind each, and one in front only where that cannot see enough."""

from typing import Any

from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.torch_internals import FUNCTION_OF_NODE, DisableTorchFunction, current_node, current_task
from hookviz.recorder.hook_dicts import entries
from hookviz.recorder.hook_observer import HookDictObserver, Observer
from hookviz.recorder.late_hooks import LateHooks
from hookviz.recorder.observer_registry import ObserverRegistry
from hookviz.recorder.running_pass import RunningPass
from hookviz.recorder.session import Session
from hookviz.support.interpreter import gc_paused

Dict = dict[Any, Any]


class Probed(Exception):
    """Raised in the place of a registration, by which nothing is registered."""

    def __init__(self, hooks: Dict | None) -> None:
        super().__init__()
        self.hooks = hooks
        """The hooks of this kind that the node has."""


class _Probe:
    """To register it on a node shows which hooks are there."""

    def __call__(self, *_: Any) -> None:
        """Never called."""


PROBE = _Probe()


class NodeObserver(Observer):
    """The observer behind every node of a pass; it is called for each of them, so what it does counts."""

    __slots__ = ("lock", "numbers", "pass_observer", "passes", "session")

    def __init__(self, session: Session, running_pass: RunningPass) -> None:
        super().__init__(None)
        self.session, self.lock, self.passes = session, session.lock, session.passes
        self.pass_observer, self.numbers = running_pass.observer, running_pass.snapshot.numbers

    def __call__(self, *arguments: Any) -> None:
        """A node has computed; as for any observer, what goes wrong in here must not reach the engine."""
        observer, passes = self.pass_observer, self.passes
        try:
            with self.lock, DisableTorchFunction():
                if passes.nodes_got_hooks:
                    passes.observe_all_nodes()
                if observer.task != current_task() and passes.current() is not observer:
                    return  # another pass through the same node
                number = self.numbers.get(id(current_node()))
                if number is not None:
                    observer.ran(number, *arguments)
        except Exception as error:
            self.session.report_internal_error(error)


class NodeObservers:
    """Observes the nodes of one pass.

    A single observer stands behind every node and asks the engine where it is. What a node was given it sees only after
    the node has computed, and of one that fails it sees nothing. So another one stands in front of a node that runs a
    person's code, or sums up several gradients, or at which the pass begins; and of all nodes where one that fails
    cannot be found by elimination (several devices compute at once; not all nodes are looked at) or may have hooks that
    nobody reported. It does not hold the pass, which holds it: a pass is freed as soon as it is over.
    """

    def __init__(self, session: Session, registry: ObserverRegistry, late: LateHooks) -> None:
        self.session, self.registry, self.late = session, registry, late
        self.observer: NodeObserver
        self._dicts: list[Dict] = []
        """The hooks behind each of the nodes, in their order."""
        self._numbers: dict[int, int] = {}
        """``id`` of such a dict → its node, once somebody asks."""
        self._awake = False
        """Whether an observer stands in front of every node."""

    # -- putting observers in place

    def install(self, running_pass: RunningPass, everywhere: bool) -> None:
        """Put the observers in place: ``everywhere`` in front as well, or where they are needed."""
        snapshot, numbers, hooked = (
            running_pass.snapshot,
            running_pass.snapshot.numbers,
            self._install_behind(running_pass),
        )
        self._awake = everywhere or self.late.unexplained(hooked.values())
        theirs = set() if self._awake else _running_user_code(running_pass.snapshot)
        quiet = not (self._awake or theirs or hooked or running_pass.stages or snapshot.unpack_hooks)
        fronts = snapshot.summing_nodes | theirs | {numbers.get(id(node), -1) for node in snapshot.root_nodes}
        for node in snapshot.nodes:
            number = numbers[id(node)]
            if self._awake or number in fronts:
                self._front(running_pass, node, number)
            if number in hooked:
                self._hand_over(running_pass, number, hooked[number])
        if quiet:  # nothing runs in the pass but torch: what the collector would find is there afterwards, too
            running_pass.rest(gc_paused)
            running_pass.observer.checks_each = False
            return
        for node in snapshot.nodes:
            if numbers[id(node)] in snapshot.leaves:  # hooks may change ``.grad``, or look at it
                self._front(running_pass, node, numbers[id(node)])

    def _install_behind(self, running_pass: RunningPass) -> dict[int, Dict]:
        """Put the observer behind each node; the hooks of the nodes behind which a person's stand, too."""
        hooked: dict[int, Dict] = {}
        self.observer = NodeObserver(self.session, running_pass)
        for node in running_pass.snapshot.nodes:
            hooks: Any = node.register_hook(
                self.observer
            )  # of an observer torch gives back the dict: see ``torch_patches``
            self._dicts.append(hooks)
            if len(hooks) > 1 and entries(hooks):
                hooked[running_pass.snapshot.numbers[id(node)]] = hooks
        return hooked

    def wake(self, running_pass: RunningPass) -> None:
        """Put an observer in front of every node: hooks may be there, or come, that nobody reports."""
        if not self._awake:
            self._awake = running_pass.observer.checks_each = True
            running_pass.wake()
            for node in running_pass.snapshot.nodes:
                self._front(running_pass, node, running_pass.snapshot.numbers[id(node)])

    def _front(self, running_pass: RunningPass, node: Node, number: int) -> None:
        observed_in_front = running_pass.observer.observed_in_front
        if number in observed_in_front:
            return
        observed_in_front.add(number)
        stage = HookDictObserver(self.session, "node_pre_hook", None, number)
        observer = Observer(stage)
        hooks: Any = node.register_prehook(observer)
        stage.dict = hooks
        self.registry.join(running_pass, stage, observer)

    def _hand_over(self, running_pass: RunningPass, number: int, hooks: Dict) -> None:
        """Hooks of a person's stand in ``hooks``: observers between them take the place of the one for all."""
        del hooks[self.observer]
        self.registry.observe(running_pass, "node_post_hook", hooks, number, -1)

    def registered(self, running_pass: RunningPass, hooks: Dict) -> None:
        """A hook was added to a node during the pass, behind it or in front: it may be on another graph."""
        if self.observer in hooks:
            if not self._numbers:
                numbers = running_pass.snapshot.numbers
                pairs = zip(self._dicts, running_pass.snapshot.nodes, strict=True)
                self._numbers = {id(known): numbers[id(node)] for known, node in pairs}
            self._hand_over(running_pass, self._numbers[id(hooks)], hooks)
        else:  # torch is about to give the dict to its node: until then an observer there would get another
            self.session.passes.nodes_got_hooks = True

    def uninstall(self) -> None:
        """Take the observers behind the nodes away; those in front go with their stages."""
        for hooks in self._dicts:  # put there by ``install``, as far as it came
            hooks.pop(self.observer, None)
        self._dicts.clear()
        self._numbers.clear()


def _running_user_code(snapshot: GraphSnapshot) -> set[int]:
    """The nodes in which code of a person's runs: their backward is Python, or they have hooks in front.

    Of the nodes that a recording saw being made it knows that they have none, but a leaf's may be older.
    """
    kinds = {type(node) for node in snapshot.nodes}
    python = {kind for kind in kinds if hasattr(kind, FUNCTION_OF_NODE)}
    leaves = {kind for kind in kinds if kind.__name__ == graph.LEAF_OP}
    return {
        snapshot.numbers[id(node)]
        for node in snapshot.nodes
        if type(node) in python or (type(node) in leaves and _has_hooks_in_front(node))
    }


def _has_hooks_in_front(node: Node) -> bool:
    """Whether hooks of a person's stand in front of ``node``, whenever they were registered."""
    try:
        node.register_prehook(PROBE)
    except Probed as found:
        return bool(entries(found.hooks))
    return True
