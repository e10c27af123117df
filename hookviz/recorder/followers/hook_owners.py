"""Notes about the owners of hooks what explains later why a hook did not fire."""

import weakref
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

import torch

from hookviz.autograd import module_tree
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.torch_internals import next_sequence_number
from hookviz.recorder.followers.hooked_objects import HookedModel, has_tensor_hooks
from hookviz.recorder.modules.call_tracker import CallTracker

Module = torch.nn.Module
Facts = dict[str, object]
"""Name → value of an ``Evidence``, see ``UnfiredRow``."""

SEEN_BY_PASSES = frozenset({"passes", "in_graph", "partial", "detour"})
"""The names of the evidence that comes from the graphs of passes."""


class TensorSightings:
    """What the passes saw of one tensor with hooks."""

    __slots__ = ("detour", "frozen", "in_graph", "partial", "passes", "reference")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.reference = weakref.ref(tensor)
        self.passes = self.frozen = self.in_graph = self.partial = 0
        self.detour = ""

    @property
    def counts(self) -> Counter[str]:
        """Name of an evidence → in how many passes it was seen."""
        names = ("passes", "frozen", "in_graph", "partial")
        return Counter({name: getattr(self, name) for name in names})


class TensorEvidence:
    """Counts the passes in which each tensor with hooks belongs to the graph."""

    def __init__(self) -> None:
        self._sightings: dict[int, TensorSightings] = {}
        self.passes = 0
        """The number of passes whose graph was observed as a whole."""

    def pass_begins(self, snapshot: GraphSnapshot, tensors: Iterable[torch.Tensor], *, is_partial: bool) -> None:
        """Look at the tensors with hooks, unless only a part of the graph is observed."""
        if len(snapshot.nodes) < len(snapshot.all_nodes):
            return
        self.passes += 1
        for tensor in tensors:
            if has_tensor_hooks(tensor):
                with suppress(RuntimeError):  # torch refuses everything about a stale output of unbind
                    self._see(tensor, snapshot, is_partial)

    def _see(self, tensor: torch.Tensor, snapshot: GraphSnapshot, is_partial: bool) -> None:
        sightings = self._sightings.get(id(tensor))
        if sightings is None or sightings.reference() is not tensor:
            sightings = self._sightings[id(tensor)] = TensorSightings(tensor)
        sightings.passes += 1
        sightings.frozen += not tensor.requires_grad
        if snapshot.place_of_tensor(tensor) is not None:
            sightings.in_graph += 1
            sightings.partial += is_partial
        elif not tensor.is_leaf:
            sightings.detour = _detour(tensor, snapshot)

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget what was seen of a tensor."""
        self._sightings.pop(id(tensor), None)

    def forget_dead_tensors(self) -> None:
        """Forget the tensors that no longer exist."""
        self._sightings = {key: one for key, one in self._sightings.items() if one.reference() is not None}

    def counts_of(self, tensor: torch.Tensor) -> Counter[str]:
        """Return the numbers of passes in which a tensor was seen, in the graph, and so on."""
        sightings = self._find(tensor)
        return Counter() if sightings is None else sightings.counts

    def _find(self, tensor: torch.Tensor) -> TensorSightings | None:
        sightings = self._sightings.get(id(tensor))
        return sightings if sightings is not None and sightings.reference() is tensor else None

    def evidence(self, tensor: torch.Tensor, since: Counter[str], until: Counter[str] | None) -> Facts:
        """Return what was seen of a tensor between two moments, given by its counts; None for now."""
        sightings = self._find(tensor)
        facts: Facts = {}
        is_frozen = not tensor.requires_grad
        if sightings is not None:
            counts = (sightings.counts if until is None else until) - since
            facts |= {name: counts[name] for name in ("passes", "in_graph", "partial") if counts[name]}
            is_frozen = counts["frozen"] == counts["passes"] if counts["passes"] else is_frozen
            facts |= {"detour": sightings.detour} if sightings.detour else {}
        if tensor.is_leaf:
            facts["leaf"] = "yes"
        if is_frozen:
            facts["frozen"] = "yes"
        return facts


def _detour(tensor: torch.Tensor, snapshot: GraphSnapshot) -> str:
    """Return the op that made ``tensor`` from a tensor of the graph; empty if no input of it is in the graph."""
    try:
        node = tensor.grad_fn
        is_beside = node is not None and any(id(following) in snapshot.numbers for following, _ in node.next_functions)
    except RuntimeError:  # a stale output of unbind
        return ""
    return type(node).__name__ if is_beside else ""


class UsedParameter:
    """A parameter that belonged to the graph of a pass."""

    __slots__ = ("is_older", "passes", "reference")

    def __init__(self, reference: "weakref.ref[torch.Tensor]") -> None:
        self.reference = reference
        self.is_older = False
        """Whether a part of that graph was made before the recording, perhaps in a call of the parameter's module."""
        self.passes = 0


class ModuleEvidence:
    """Notes which modules with hooks are used without being called, and where a module stands in its model."""

    def __init__(self, calls: CallTracker) -> None:
        self.calls = calls
        self.models: list[HookedModel] = []
        """At the end: the models that have to do with what ran."""
        self.partial_passes = 0
        """The number of passes that compute the gradients of some tensors only."""
        self._first_node: int = next_sequence_number()
        self._leaves: dict[int, UsedParameter] = {}

    def pass_begins(self, snapshot: GraphSnapshot, *, is_partial: bool) -> None:
        """Note which parameters belong to the graph."""
        self.partial_passes += is_partial
        for reference in snapshot.leaves.values():
            leaf = reference()
            if type(leaf) is not torch.Tensor and isinstance(leaf, torch.nn.Parameter):
                used = self._leaves.get(id(leaf))
                if used is None or used.reference() is not leaf:
                    used = self._leaves[id(leaf)] = UsedParameter(reference)
                used.is_older = snapshot.lowest_sequence < self._first_node
                used.passes += 1

    def forget(self, parameter: torch.Tensor) -> None:
        """Forget what was seen of a parameter."""
        self._leaves.pop(id(parameter), None)

    def are_used(self, parameters: Iterable[torch.Tensor]) -> UsedParameter | None:
        """Return the use of the first of ``parameters`` that belonged to the graph of a pass."""
        for parameter in parameters:
            used = self._leaves.get(id(parameter))
            if used is not None and used.reference() is parameter:
                return used
        return None

    @property
    def has_parameters(self) -> bool:
        """Whether any parameter belonged to the graph of a pass."""
        return bool(self._leaves)

    def evidence(self, module: Module) -> Facts:
        """Return what is known of a module: its calls, and without any what ran instead."""
        calls = self.calls.calls_of(module)
        facts: Facts = {"class": type(module).__name__, "called": calls}
        if self.partial_passes:
            facts["partial"] = self.partial_passes
        if not any(parameter.requires_grad for parameter in module_tree.all_parameters(module)):
            facts["frozen"] = "yes"
        if calls:
            return facts
        if not module_tree.has_forward(module):
            facts["no_forward"] = "yes"
        inner = (one for one in module_tree.all_modules(module) if one is not module and self.calls.calls_of(one))
        first = next(inner, None)
        facts |= {} if first is None else {"inner": self.calls.modules.label(first)}
        used = self.are_used(module_tree.all_parameters(module))
        facts |= {} if used is None else {"older" if used.is_older else "used": used.passes}
        return facts | self._surroundings(module)

    def _surroundings(self, module: Module) -> Facts:
        """Return the innermost module around ``module`` that was called, and whether one of them runs compiled."""
        facts: Facts = {}
        around = [outer for model in self.models for outer in model.modules_around(module)]
        called = next((outer for outer in around if self.calls.calls_of(outer)), None)
        if called is not None:
            facts |= {"caller": self.calls.modules.label(called), "caller_class": type(called).__name__}
        if any(self.calls.ran_compiled_code_of(one) for one in (module, *around)):
            facts["compiled"] = "yes"
        return facts

    def membership(self, tensor: torch.Tensor) -> Facts:
        """Return whether a parameter belongs to no module."""
        if not isinstance(tensor, torch.nn.Parameter):
            return {}
        is_held = any(id(tensor) in model.parameter_ids for model in self.models)
        return {} if is_held else {"parameter": "stray"}
