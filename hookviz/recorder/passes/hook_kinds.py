"""What is special about each kind of hook on the graph of a pass: what torch calls it with, and what a call tells.

The two kinds of forward hooks belong to a module call (``hookviz.recorder.modules.module_call``), those of optimizers
to a step (``hookviz.recorder.followers.optimizer_steps``).
"""

from typing import Any, NamedTuple

import torch

from hookviz.autograd.tensor_types import is_tensor
from hookviz.autograd.torch_internals import read_grad
from hookviz.recorder.fingerprint import Fingerprint, Gradients
from hookviz.recorder.hook_observer import HookDictObserver
from hookviz.recorder.passes.gradient_flow import GradientFlow
from hookviz.trace.rows import Subject

Fingerprints = list[Fingerprint | None]


class Change(NamedTuple):
    """What a hook did: values of the trace before and after it, and its effect."""

    before: list[int | None]
    after: list[int | None]
    effect: str
    subject: Subject = "gradient"
    labels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


class GraphHooks:
    """Hooks that torch calls with a tuple of gradients as their first argument."""

    def gradients(self, arguments: tuple[Any, ...]) -> list[torch.Tensor | None]:
        """Return the tensors that a hook gets; those that it may not replace come last."""
        return list(arguments[0])

    def count_replaceable(self, arguments: tuple[Any, ...], gradients: Gradients) -> int:
        """Return how many of the gradients a hook may replace."""
        return len(gradients)

    def enter(self, flow: GradientFlow, on: HookDictObserver, arguments: tuple[Any, ...]) -> Fingerprints:
        """Record what happened before the first hook of a dict is called, and return what it gets."""
        return [flow.probe.fingerprint(tensor) for tensor in self.gradients(arguments)]

    def leave(self, flow: GradientFlow, on: HookDictObserver, last: Fingerprints) -> None:
        """Pass on what came out of the last hook of a dict."""

    def judge(self, flow: GradientFlow, on: HookDictObserver, change: Change) -> Change:
        """Return what a hook did, from what the observers before and after it saw."""
        return change

    def is_refused(self, flow: GradientFlow, on: HookDictObserver, arguments: tuple[Any, ...]) -> bool:
        """Return whether torch will refuse what a hook returned."""
        return False


class TensorHooks(GraphHooks):
    """Hooks of a tensor, also those that are parts of a multi-grad hook: torch calls them with one gradient."""

    def gradients(self, arguments: tuple[Any, ...]) -> list[torch.Tensor | None]:
        """Return the gradient."""
        return [arguments[0]]

    def enter(self, flow: GradientFlow, on: HookDictObserver, arguments: tuple[Any, ...]) -> Fingerprints:
        """Record that the gradient has arrived."""
        return [flow.arrive(on.place, arguments[0])]

    def leave(self, flow: GradientFlow, on: HookDictObserver, last: Fingerprints) -> None:
        """Pass the gradient on to the node of the tensor."""
        flow.tensor_hooks_ended(on.place, last[0])


class PostAccumulateHooks(GraphHooks):
    """Hooks of a leaf whose ``.grad`` was written: torch calls them with the leaf."""

    def gradients(self, arguments: tuple[Any, ...]) -> list[torch.Tensor | None]:
        """Return ``.grad`` and the leaf."""
        tensor = arguments[0]  # the leaf, or the result of the previous hook, which torch is about to refuse
        if not is_tensor(tensor):
            return [None, None]
        return [read_grad(tensor) if tensor.is_leaf else None, tensor]

    def enter(self, flow: GradientFlow, on: HookDictObserver, arguments: tuple[Any, ...]) -> Fingerprints:
        """Record that the gradient was accumulated."""
        flow.log_accumulate(on.node)
        return super().enter(flow, on, arguments)

    def judge(self, flow: GradientFlow, on: HookDictObserver, change: Change) -> Change:
        """A hook that left ``.grad`` alone changed the leaf itself."""
        before, after = change.before, change.after
        is_data = before[:1] == after[:1] and before != after
        index = 1 if is_data else 0
        return Change([before[index]], [after[index]], change.effect, "data" if is_data else "gradient")

    def is_refused(self, flow: GradientFlow, on: HookDictObserver, arguments: tuple[Any, ...]) -> bool:
        """Torch refuses everything but None, and calls the next hook with it first."""
        return arguments[0] is not flow.find_leaf(on.node)


class NodePreHooks(GraphHooks):
    """Hooks in front of a node: torch calls them with the gradients of its outputs."""

    def enter(self, flow: GradientFlow, on: HookDictObserver, arguments: tuple[Any, ...]) -> Fingerprints:
        """Record what has arrived at the node."""
        return flow.collect_inputs(on.node, arguments[0])

    def leave(self, flow: GradientFlow, on: HookDictObserver, last: Fingerprints) -> None:
        """Let the node compute with what came out."""
        flow.node_begins(on.node, last)


class NodePostHooks(GraphHooks):
    """Hooks behind a node: torch calls them with the gradients that it sends, and with those that it got."""

    def enter(self, flow: GradientFlow, on: HookDictObserver, arguments: tuple[Any, ...]) -> Fingerprints:
        """Record that the node has computed."""
        return flow.node_computed(on.node, *arguments)

    def leave(self, flow: GradientFlow, on: HookDictObserver, last: Fingerprints) -> None:
        """Send what came out."""
        flow.send(on.node, last)


class FullBackwardPreHooks(GraphHooks):
    """Full backward pre-hooks of a module: torch calls them with the module and ``grad_output``."""

    def gradients(self, arguments: tuple[Any, ...]) -> list[torch.Tensor | None]:
        """Return ``grad_output``."""
        return list(arguments[1])


class FullBackwardHooks(GraphHooks):
    """Full backward hooks of a module: torch calls them with the module, ``grad_input`` and ``grad_output``."""

    def gradients(self, arguments: tuple[Any, ...]) -> list[torch.Tensor | None]:
        """Return ``grad_input``, and then ``grad_output``, which hooks may not replace."""
        return [*arguments[1], *arguments[2]]

    def count_replaceable(self, arguments: tuple[Any, ...], gradients: Gradients) -> int:
        """Return the number of gradients in ``grad_input``."""
        return len(arguments[1])


HOOKS_OF_KIND: dict[str, GraphHooks] = {
    "tensor_hook": TensorHooks(),
    "post_accumulate_hook": PostAccumulateHooks(),
    "node_pre_hook": NodePreHooks(),
    "node_post_hook": NodePostHooks(),
    "full_backward_pre_hook": FullBackwardPreHooks(),
    "full_backward_hook": FullBackwardHooks(),
}
"""Kind of the dict that holds the hooks → what is special about them."""
