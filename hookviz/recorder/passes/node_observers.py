"""Observers on the nodes of a pass: one behind each node, and one in front where that is not enough."""

from typing import Any

from torch.autograd.graph import Node

from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.torch_internals import FUNCTION_OF_NODE, DisableTorchFunction, current_node, current_task
from hookviz.recorder.hook_observer import HookDictObserver, Observer
from hookviz.recorder.passes.observer_registry import LateHooks, ObserverRegistry
from hookviz.recorder.passes.pass_observer import RunningPass
from hookviz.recorder.session import Session
from hookviz.recorder.torch.hook_dicts import user_hook_entries
from hookviz.support.interpreter import gc_paused

Dict = dict[Any, Any]


class ProbeResult(Exception):
    """Raised instead of registering a probe; nothing is registered."""

    def __init__(self, hooks: Dict | None) -> None:
        super().__init__()
        self.hooks = hooks
        """The hooks of this kind on the node."""


def probe(*_: Any) -> None:
    """Stand for a hook that is never registered, nor called: trying to register it shows the hooks of a node."""


class NodeObserver(Observer):
    """The observer behind every node of a pass. It is called for each node, so its speed counts."""

    __slots__ = ("lock", "numbers", "pass_observer", "passes", "session")

    def __init__(self, session: Session, running_pass: RunningPass) -> None:
        super().__init__(None)
        self.session, self.lock, self.passes = session, session.lock, session.passes
        self.pass_observer, self.numbers = running_pass.observer, running_pass.snapshot.numbers

    def __call__(self, *arguments: Any) -> None:
        """Report that a node has computed. Exceptions of hookviz must not reach the engine."""
        observer, passes = self.pass_observer, self.passes
        try:
            with self.lock, DisableTorchFunction():
                if passes.nodes_got_hooks:
                    passes.observe_all_nodes()
                if observer.task != current_task() and passes.current() is not observer:
                    return  # another pass through the same node
                number = self.numbers.get(id(current_node()))
                if number is not None:
                    observer.node_ran(number, *arguments)
        except Exception as error:
            self.session.report_internal_error(error)


class NodeObservers:
    """Observes the nodes of one pass.

    A single observer stands behind every node and asks the engine which node it is. It sees the inputs of a node only
    after the node has computed, and sees nothing of a node that fails. So another observer stands in front of a node
    that runs the user's code, sums several gradients, or is a root of the pass. All nodes get one if a failing node
    cannot be found by elimination (several devices compute at once; not all nodes are observed) or if nodes may have
    hooks that were registered unseen. A NodeObservers does not hold its running pass, which holds it, so that the pass
    is freed as soon as it ends.
    """

    def __init__(self, session: Session, registry: ObserverRegistry, late: LateHooks) -> None:
        self.session, self.registry, self.late = session, registry, late
        self.observer: NodeObserver
        self._dicts: list[Dict] = []
        """The hook dict behind each node, in the order of the nodes."""
        self._numbers: dict[int, int] = {}
        """``id`` of such a dict → its node, filled on first use."""
        self._observes_all = False
        """Whether there is an observer in front of every node."""

    # -- putting observers in place

    def install(self, running_pass: RunningPass, everywhere: bool) -> None:
        """Install the observers: behind every node, and in front of all nodes (``everywhere``) or where needed."""
        snapshot, numbers = running_pass.snapshot, running_pass.snapshot.numbers
        hooked = self._install_behind(running_pass)
        self._observes_all = everywhere or self.late.has_unknown_node_hooks(hooked.values())
        user_code = set() if self._observes_all else _nodes_running_user_code(snapshot)
        runs_only_torch = not (
            self._observes_all or user_code or hooked or running_pass.dict_observers or snapshot.unpack_hooks
        )
        fronts = snapshot.summing_nodes | user_code | {numbers.get(id(node), -1) for node in snapshot.root_nodes}
        for node in snapshot.nodes:
            number = numbers[id(node)]
            if self._observes_all or number in fronts:
                self._install_in_front(running_pass, node, number)
            if number in hooked:
                self._observe_between_hooks(running_pass, number, hooked[number])
        if runs_only_torch:  # only torch runs in the pass: garbage collection can wait until it is over
            running_pass.pause(gc_paused)
            running_pass.observer.checks_each_gradient = False
            return
        for node in snapshot.nodes:
            if numbers[id(node)] in snapshot.leaves:  # hooks may change ``.grad`` or read it
                self._install_in_front(running_pass, node, numbers[id(node)])

    def _install_behind(self, running_pass: RunningPass) -> dict[int, Dict]:
        """Install the observer behind each node, and return node → dict for the nodes with hooks of the user's."""
        hooked: dict[int, Dict] = {}
        self.observer = NodeObserver(self.session, running_pass)
        for node in running_pass.snapshot.nodes:
            # For an observer the patched method returns the dict: see ``torch_patches``.
            hooks: Any = node.register_hook(self.observer)
            self._dicts.append(hooks)
            if len(hooks) > 1 and user_hook_entries(hooks):
                hooked[running_pass.snapshot.numbers[id(node)]] = hooks
        return hooked

    def observe_all_nodes(self, running_pass: RunningPass) -> None:
        """Put an observer in front of every node, because unreported hooks may be there or come."""
        if not self._observes_all:
            self._observes_all = running_pass.observer.checks_each_gradient = True
            running_pass.resume()
            for node in running_pass.snapshot.nodes:
                self._install_in_front(running_pass, node, running_pass.snapshot.numbers[id(node)])

    def _install_in_front(self, running_pass: RunningPass, node: Node, number: int) -> None:
        observed_in_front = running_pass.observer.observed_in_front
        if number in observed_in_front:
            return
        observed_in_front.add(number)
        dict_observer = HookDictObserver(self.session, "node_pre_hook", None, number)
        observer = Observer(dict_observer)
        hooks: Any = node.register_prehook(observer)
        dict_observer.dict = hooks
        self.registry.add_registered(running_pass, dict_observer, observer)

    def _observe_between_hooks(self, running_pass: RunningPass, number: int, hooks: Dict) -> None:
        """Replace the common observer in ``hooks`` by observers between the user's hooks."""
        del hooks[self.observer]
        self.registry.observe(running_pass, "node_post_hook", hooks, number, None)

    def hook_registered(self, running_pass: RunningPass, hooks: Dict) -> None:
        """Handle a hook that was added during the pass, in front of a node or behind it, maybe on another graph."""
        if self.observer in hooks:
            if not self._numbers:
                numbers = running_pass.snapshot.numbers
                pairs = zip(self._dicts, running_pass.snapshot.nodes, strict=True)
                self._numbers = {id(hook_dict): numbers[id(node)] for hook_dict, node in pairs}
            self._observe_between_hooks(running_pass, self._numbers[id(hooks)], hooks)
        else:  # torch has not given the dict to its node yet: an observer would get another dict
            self.session.passes.nodes_got_hooks = True

    def uninstall(self) -> None:
        """Remove the observers behind the nodes. Those in front are removed with their dict observers."""
        for hooks in self._dicts:  # as many as ``install`` got to
            hooks.pop(self.observer, None)
        self._dicts.clear()
        self._numbers.clear()


def _nodes_running_user_code(snapshot: GraphSnapshot) -> set[int]:
    """Return the nodes that run the user's code: their backward is in Python, or they have hooks in front.

    Nodes that were made during the recording have no unknown hooks, but the node of a leaf may be older.
    """
    kinds = {type(node) for node in snapshot.nodes}
    python_kinds = {kind for kind in kinds if hasattr(kind, FUNCTION_OF_NODE)}
    leaf_kinds = {kind for kind in kinds if kind.__name__ == graph.LEAF_OP}
    return {
        snapshot.numbers[id(node)]
        for node in snapshot.nodes
        if type(node) in python_kinds or (type(node) in leaf_kinds and _has_hooks_in_front(node))
    }


def _has_hooks_in_front(node: Node) -> bool:
    """Return whether the user's hooks stand in front of ``node``, whenever they were registered."""
    try:
        node.register_prehook(probe)
    except ProbeResult as result:
        return bool(user_hook_entries(result.hooks))
    return True
