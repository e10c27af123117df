"""What is known of each kind of hook before any of them runs: its name, where torch keeps it, what it is called with.

A new kind of hook is declared here. What is special about how it runs has a class in ``hookviz.recorder``.
"""

from typing import Literal, NamedTuple, get_args

from hookviz.support.messages import N_, _

TensorHookKind = Literal["tensor_hook", "post_accumulate_hook"]
NodeHookKind = Literal["node_pre_hook", "node_post_hook"]
ForwardHookKind = Literal["forward_pre_hook", "forward_hook"]
BackwardHookKind = Literal["full_backward_pre_hook", "full_backward_hook", "backward_hook"]
ModuleHookKind = Literal[ForwardHookKind, BackwardHookKind]
"""The kinds of module hooks; ``backward_hook`` is the legacy kind, which torch has deprecated."""
StepHookKind = Literal["step_pre_hook", "step_post_hook"]
"""The kinds of optimizer hooks, which run before and after each step."""
HookKind = Literal[TensorHookKind, "multi_grad_hook", NodeHookKind, ModuleHookKind, StepHookKind]
"""The kinds of hooks; a step in which a hook ran has the kind of its hook."""

TENSOR_HOOK_KINDS: tuple[TensorHookKind, ...] = get_args(TensorHookKind)
"""The kinds of hooks that a person registers on one tensor."""
ON_TENSOR_KINDS = (*TENSOR_HOOK_KINDS, "multi_grad_hook")
"""The kinds of hooks whose owner is a tensor."""
NODE_HOOK_KINDS: tuple[NodeHookKind, ...] = get_args(NodeHookKind)
FORWARD_HOOK_KINDS: tuple[ForwardHookKind, ...] = get_args(ForwardHookKind)
MODULE_HOOK_KINDS: tuple[ModuleHookKind, ...] = get_args(ModuleHookKind)
STEP_HOOK_KINDS: tuple[StepHookKind, ...] = get_args(StepHookKind)
HOOK_KINDS: tuple[HookKind, ...] = get_args(HookKind)


class HookFacts(NamedTuple):
    """What is known of a kind of hook."""

    name: str
    """What it is called in tables and sentences."""
    method: str
    """The function or method of its owner that registers it."""
    parameters: tuple[str, ...]
    """The parameters of its function."""
    kept: str
    """The attribute of its owner with the dict that keeps it; for a node, which has none, a phrase."""
    when: str = ""
    """When it runs and what it may return, if the panel says that."""
    prefix: str = ""
    """The text before its label in the picture."""
    with_kwargs: tuple[str, ...] = ()
    """The parameters of its function if it is registered with ``with_kwargs=True``."""
    changes: Literal["gradient", "grad", ""] = ""
    """What a node's box shows anew after it: the gradient that has arrived, or ``.grad``."""


HOOK_FACTS: dict[str, HookFacts] = {
    "tensor_hook": HookFacts(N_("tensor hook"), "register_hook", ("grad",), "_backward_hooks", changes="gradient"),
    "multi_grad_hook": HookFacts(
        N_("multi-grad hook"),
        "register_multi_grad_hook",
        ("grads",),
        "_backward_hooks",
        N_("Torch registered it on each of several tensors."),
    ),
    "node_pre_hook": HookFacts(
        N_("node pre-hook"),
        "register_prehook",
        ("grad_outputs",),
        N_("pre-hooks of {on}"),
        prefix=N_("pre"),
        changes="gradient",
    ),
    "post_accumulate_hook": HookFacts(
        N_("post-accumulate hook"),
        "register_post_accumulate_grad_hook",
        ("param",),
        "_post_accumulate_grad_hooks",
        prefix=N_("after .grad"),
        changes="grad",
    ),
    "node_post_hook": HookFacts(
        N_("node hook"), "register_hook", ("grad_inputs", "grad_outputs"), N_("hooks of {on}"), prefix=N_("post")
    ),
    "forward_pre_hook": HookFacts(
        N_("forward pre-hook"),
        "register_forward_pre_hook",
        ("module", "args"),
        "_forward_pre_hooks",
        N_("It runs before forward, and may return new inputs."),
        N_("forward pre"),
        ("module", "args", "kwargs"),
    ),
    "forward_hook": HookFacts(
        N_("forward hook"),
        "register_forward_hook",
        ("module", "args", "output"),
        "_forward_hooks",
        N_("It runs after forward, and may return another output."),
        N_("forward"),
        ("module", "args", "kwargs", "output"),
    ),
    "full_backward_pre_hook": HookFacts(
        N_("full backward pre-hook"),
        "register_full_backward_pre_hook",
        ("module", "grad_output"),
        "_backward_pre_hooks",
        N_("It runs before the backward of the module, and may return another grad_output."),
        N_("backward pre"),
    ),
    "full_backward_hook": HookFacts(
        N_("full backward hook"),
        "register_full_backward_hook",
        ("module", "grad_input", "grad_output"),
        "_backward_hooks",
        N_("It runs when the gradients of the inputs are ready, and may return another grad_input."),
        N_("backward"),
    ),
    "backward_hook": HookFacts(
        N_("legacy backward hook"),
        "register_backward_hook",
        ("module", "grad_input", "grad_output"),
        "_backward_hooks",
        N_("A legacy hook: it sits on the node of the first output tensor, and sees only what that node sends."),
        N_("legacy backward"),
    ),
    "step_pre_hook": HookFacts(
        N_("step pre-hook"),
        "register_step_pre_hook",
        ("optimizer", "args", "kwargs"),
        "_optimizer_step_pre_hooks",
        N_("It runs before the step, and may return new arguments for it."),
    ),
    "step_post_hook": HookFacts(
        N_("step post-hook"),
        "register_step_post_hook",
        ("optimizer", "args", "kwargs"),
        "_optimizer_step_post_hooks",
        N_("It runs after the step; its return value is not used."),
    ),
}
"""Kind of hook → what is known of it, in the order in which hooks fire at one place."""

_OTHER_NAMES: dict[str, str] = {
    "state_dict_pre_hook": N_("state_dict pre-hook"),
    "state_dict_post_hook": N_("state_dict hook"),
    "load_state_dict_pre_hook": N_("load_state_dict pre-hook"),
    "load_state_dict_post_hook": N_("load_state_dict hook"),
    "parameter_registration_hook": N_("parameter registration hook"),
    "buffer_registration_hook": N_("buffer registration hook"),
    "module_registration_hook": N_("module registration hook"),
}
"""Kind of hook that is listed and never recorded → its name."""


def name_of_kind(kind: str) -> str:
    """Name a kind of hook.

    >>> name_of_kind("node_post_hook")
    'node hook'
    """
    return _(HOOK_FACTS[kind].name if kind in HOOK_FACTS else _OTHER_NAMES.get(kind, kind))
