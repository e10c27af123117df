"""Tests how torch behaves where hookviz relies on it: each small program checks one behaviour.

Each function returns whether torch still behaves as expected. ``hookviz check`` runs them all.
"""

import sys
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple, cast

import torch
from torch.autograd.graph import register_multi_grad_hook
from torch.utils.checkpoint import checkpoint

from hookviz.autograd import graph
from hookviz.autograd.torch_internals import (
    COMPILE_WRAPPER,
    DYNAMO,
    FOUND_INF,
    NODE_REGISTRATION,
    PYTHON_TRACER,
    RAW_SAVED,
    SAVED,
    SAVED_TENSORS_SHOW_THEIR_HOOKS,
    Use,
    begin_saving,
    call_module,
    current_node,
    current_task,
    disable_dispatch_modes,
    forward_hooks,
    next_sequence_number,
    remove_handle,
    resolve,
    run_engine,
    swap_tensors,
)
from hookviz.recorder.followers.optimizer_steps import STEP_CODE
from hookviz.recorder.record_entry import record
from hookviz.recorder.torch.compiled_regions import find_switch_calls, is_recomputing
from hookviz.recorder.torch.instrumentation import Watcher, instrumented_code
from hookviz.recorder.torch.unwrapped_hooks import collected_gradients, unwrap_hook
from hookviz.support.messages import N_


class Behaviour(NamedTuple):
    """A behaviour of torch that hookviz relies on."""

    relies: str
    """What hookviz relies on."""
    use: Use
    holds: Callable[[], bool]


BEHAVIOURS: list[Behaviour] = []
"""All behaviours, in the order of this file."""


def _relied_on(use: Use, relies: str, *, if_there: bool = True) -> Callable[[Callable[[], bool]], Callable[[], bool]]:
    """Add a behaviour to the list, unless the internal that it is about is missing: that is reported anyway."""

    def add(holds: Callable[[], bool]) -> Callable[[], bool]:
        if if_there:
            BEHAVIOURS.append(Behaviour(relies, use, holds))
        return holds

    return add


def _new_leaf() -> Any:  # torch's methods carry no types
    return torch.tensor(2.0, requires_grad=True)


# -- passes


@_relied_on("passes", N_("A hook can ask which node and which pass it runs in."))
def _hooks_know_their_node_and_pass() -> bool:
    seen: list[Any] = []
    out = _new_leaf() * 3
    node = out.grad_fn
    node.register_hook(lambda *_: seen.extend([current_node() is node, current_task() >= 0]))
    out.backward()
    return seen == [True, True] and current_task() == -1


@_relied_on(
    "passes", N_("Nodes are numbered in the order in which they are created, and the nodes of leaves come last.")
)
def _nodes_are_numbered_in_order() -> bool:
    first: int = next_sequence_number()
    out = (_new_leaf() * 3).exp()
    below = graph.reachable_nodes([node for node, _ in [graph.edge_of(out)] if node is not None])
    numbers = [node._sequence_nr() for node in below]
    return numbers == [first + 1, first, graph.LEAF_SEQUENCE] and next_sequence_number() == first + 2


@_relied_on(
    "node_hooks",
    N_(
        "Hooks run by kind: tensor hooks, then node pre-hooks, then node post-hooks; at a leaf also "
        "hooks after .grad is written."
    ),
)
def _hooks_run_by_kind() -> bool:
    ran: list[str] = []

    def says(name: str) -> Callable[..., None]:
        return lambda *_: ran.append(f"{name} {'.grad' if leaf.grad is not None else ''}".strip())

    leaf = _new_leaf()
    out = leaf * 3
    nodes = [(graph.edge_of(out)[0], "node"), (graph.edge_of(leaf)[0], "leaf")]
    for node, name in nodes:
        assert node is not None
        node.register_hook(says(f"{name} post"))
        node.register_prehook(says(f"{name} pre"))
    leaf.register_post_accumulate_grad_hook(says("leaf accumulated"))
    leaf.register_hook(says("leaf tensor"))
    out.register_hook(says("tensor"))
    out.backward()
    at_node, at_leaf = ["tensor", "node pre", "node post"], ["leaf tensor", "leaf pre"]
    return ran == [*at_node, *at_leaf, "leaf accumulated .grad", "leaf post .grad"]


@_relied_on(
    "node_hooks", N_("All post-hooks of a node are kept in one dict, and a registration can be given that dict.")
)
def _a_node_shares_one_hook_dict() -> bool:
    out = _new_leaf() * 3
    node: Any = out.grad_fn
    hooks = node.register_hook(print).hooks_dict_ref()
    again, _ = NODE_REGISTRATION._register_hook(hooks, print)
    return again is hooks and node.register_hook(print).hooks_dict_ref() is hooks and len(hooks) == 3


@_relied_on("tensor_hooks", N_("The engine reads a tensor's hook dict in each pass, in the order of the dict."))
def _hook_dicts_are_read_live() -> bool:
    ran: list[str] = []
    out = _new_leaf() * 3
    out.register_hook(lambda _: ran.append("theirs"))
    hooks: Any = out._backward_hooks
    theirs = list(hooks.items())
    hooks.clear()
    for key, hook in [(0, lambda _: ran.append("before")), *theirs, (-1, lambda _: ran.append("after"))]:
        hooks[key] = hook
    out.backward()
    return ran == ["before", "theirs", "after"]


@_relied_on("calls", N_("The source of the functions that report to hookviz can be read and instrumented."))
def _functions_can_be_instrumented() -> bool:
    functions = (run_engine, call_module, remove_handle, begin_saving, swap_tensors)
    codes = [instrumented_code(function, Watcher()) for function in functions]
    return torch.nn.Module.__call__ is call_module and len(codes) == len(functions)


# -- modules


@_relied_on(
    "calls", N_("A module's forward hooks are read in each call, in the order of their dict, with their flags.")
)
def _forward_hooks_are_read_in_each_call() -> bool:
    ran: list[str] = []
    module = torch.nn.Identity()
    module.register_forward_hook(lambda *_: ran.append("theirs"))
    *_, own = forward_hooks(module)
    theirs = list(own.hooks.items())
    own.hooks.clear()
    for key, hook in [(0, lambda *given: ran.append(f"before {len(given)}")), *theirs]:
        own.hooks[key] = hook
    own.with_kwargs[0] = True
    module(torch.ones(()))
    return ran == ["before 4", "theirs"]


@_relied_on("full_hooks", N_("A module's full backward hooks can be found from the node of its output."))
def _full_backward_hooks_are_found_behind_nodes() -> bool:
    module = torch.nn.Identity()
    module.register_full_backward_hook(lambda *_: None)
    out = module(_new_leaf() * 3)
    found = [unwrap_hook(hook) for hook in out.grad_fn.register_hook(print).hooks_dict_ref().values()]
    owners = [one.function for one in found if one.calls_others and one.at_output]
    return [len(owner.user_hooks) for owner in owners] == [1] and owners[0].module is module


@_relied_on("multi_grad", N_("A multi-grad hook shows which gradients it has collected."))
def _multi_grad_hooks_show_what_they_collect() -> bool:
    seen: list[Any] = []
    a, b = _new_leaf(), _new_leaf()
    register_multi_grad_hook([a, b], lambda _: None)
    hook = next(iter((a._backward_hooks or {}).values()))
    if not unwrap_hook(hook).waits:
        return False
    a.register_hook(lambda _: seen.append(collected_gradients(hook, current_task())))
    (a * b).backward()
    return len(seen) == 1


# -- optimizers


@_relied_on("optimizers", N_("An optimizer's step calls its hooks itself."))
def _step_hooks_are_called_by_the_step() -> bool:
    callers: list[CodeType] = []
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter])
    optimizer.register_step_pre_hook(lambda *_: callers.append(sys._getframe(1).f_code))
    optimizer.register_step_post_hook(lambda *_: callers.append(sys._getframe(1).f_code))
    optimizer.step()
    return len(callers) == 2 and all(code is STEP_CODE for code in callers)


@_relied_on("scaler", N_("A GradScaler keeps for each optimizer on which devices a gradient was Inf or NaN."))
def _scalers_keep_overflows() -> bool:
    parameter, scaler = _new_leaf(), torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD([parameter])
    scaler.scale(parameter * float("inf")).backward()
    scaler.unscale_(optimizer)
    state: Any = scaler._per_optimizer_states[id(optimizer)]
    return any(flag.item() for flag in state[FOUND_INF].values())


# -- saved tensors


@_relied_on(
    "formulas",
    N_("A node shows the tensors that it saved, and whether a hook unpacks them."),
    if_there=SAVED_TENSORS_SHOW_THEIR_HOOKS,
)
def _nodes_show_what_they_saved() -> bool:
    a, b = _new_leaf(), torch.tensor(5.0)
    out = a * b
    node = out.grad_fn
    raw, value = getattr(node, f"{RAW_SAVED}other"), getattr(node, f"{SAVED}other")
    return raw.unpack_hook is None and float(value) == 5.0


# -- dispatch modes, profilers, compiled code, checkpointing


@_relied_on("values", N_("hookviz can hide its own computations from dispatch modes."))
def _dispatch_modes_can_be_kept_out() -> bool:
    heard: list[Any] = []

    def hears(self: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        heard.append(function)
        return function(*args, **(kwargs or {}))

    tensor, mode = torch.ones(2), resolve("torch.utils._python_dispatch.TorchDispatchMode")
    with type("Hears", (mode,), {"__torch_dispatch__": hears})():
        tensor.add(1)
        before = len(heard)
        with disable_dispatch_modes():
            tensor.add(1)
    return 0 < before == len(heard)


@_relied_on("values", N_("hookviz can recognise a profiler that follows each Python call."))
def _following_profilers_are_recognised() -> bool:
    # Torch makes the class when it is imported; a profiler that really starts would print to stderr in some builds.
    return any(made.__name__ == PYTHON_TRACER for made in object.__subclasses__())


@_relied_on("compiled", N_("Torch enters and leaves a compiled function through a call that hookviz can see."))
def _compiled_functions_are_switched_to() -> bool:
    wrapper = _inner_code(resolve(f"{DYNAMO}._TorchDynamoContext.__call__").__code__, COMPILE_WRAPPER)
    return wrapper is not None and {*find_switch_calls(wrapper).values()} == {True, False}


def _inner_code(code: CodeType, name: str) -> CodeType | None:
    """Return the code of the function with the qualified ``name`` that is defined in ``code``."""
    return next((one for one in code.co_consts if isinstance(one, CodeType) and one.co_qualname == name), None)


@_relied_on("checkpoint", N_("hookviz can recognise when checkpointing recomputes something."))
def _checkpointing_is_recognised() -> bool:
    found: dict[bool, list[bool]] = {}
    for reentrant in (True, False):
        seen = found.setdefault(reentrant, [])

        def run(x: torch.Tensor, seen: list[bool] = seen) -> torch.Tensor:
            seen.append(is_recomputing())
            return x.exp()

        checkpoint(run, _new_leaf(), use_reentrant=reentrant).backward()
    return all(seen == [False, True] for seen in found.values())


# -- all together


def _run_sample() -> list[float]:
    """Return the gradients of a small program with a hook of each frequent kind."""
    torch.manual_seed(0)
    a, net = _new_leaf(), cast("Any", torch.nn.Linear(1, 1))
    net.register_forward_hook(lambda module, given, out: out * 2)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] + 1,))
    c = a.view(1) * 3
    c.register_hook(lambda grad: grad * 10)
    net.weight.register_post_accumulate_grad_hook(lambda parameter: None)
    net(c).sum().backward()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *_: None)
    optimizer.step()
    return [x.item() for x in (a.grad, net.weight.grad, net.weight)]


@_relied_on(
    "passes", N_("A small program is recorded with all its hooks, and gets the same gradients as without recording.")
)
def _a_program_is_recorded_and_unchanged() -> bool:
    plain = _run_sample()
    with record() as trace, warnings.catch_warnings():
        warnings.simplefilter("error")
        recorded = _run_sample()
    fired = [step.kind for step in trace.firings]
    expected = ["forward_hook", "full_backward_hook", "tensor_hook", "post_accumulate_hook", "step_post_hook"]
    return plain == recorded and sorted(fired) == sorted(expected) and not trace.notes
