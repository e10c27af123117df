"""Declares every private or undocumented part of PyTorch that hookviz uses.

A declaration has the path of the internal, the first release of torch that has it there, and its use in hookviz.
One wheel of each release from 2.0 to 2.15 was searched: "2.0" means 2.0 or earlier. There are three kinds:

- ``_function``, ``_class``, ``_dict``: looked up once, when hookviz is imported. Other modules import the
  object from here, so that using it costs no more than using torch's own name.
- ``_attribute``: a name that is read on an object (a tensor, a module), or in the code of a function. What reads it
  thousands of times, or along with others, writes the name itself.
- ``_lazy``: a path in a module of torch that takes long to import and that most programs never load.

``_function_or`` declares a function that an older torch has elsewhere, or lacks without harm to the user's program:
what stands in for it then loses a feature, and a note, or the text in the feature's place, says so.

``hookviz check`` compares this list with the installed torch; ``recorder/compatibility.py`` does that.
"""

import importlib
import inspect
from functools import partial
from typing import Any, Literal, NamedTuple

import torch

from hookviz.support.messages import N_, _
from hookviz.trace.hook_facts import HOOK_FACTS, TENSOR_HOOK_KINDS

Use = Literal[
    "passes", "node_hooks", "tensor_hooks", "calls", "full_hooks", "multi_grad", "optimizers", "values", "formulas",
    "saved_hooks", "compiled", "checkpoint", "ranks", "scaler", "listing",
    "cuts",
]  # fmt: skip
"""What hookviz uses an internal for; ``recorder/compatibility.py`` says it in words."""

Kind = Literal["function", "class", "dict", "attribute", "lazy"]

TESTED = ("2.6", "2.14")
"""The first and the last release of torch that hookviz was tested with."""


class Internal(NamedTuple):
    """One internal of torch."""

    path: str
    """Its full name, such as ``torch._C._current_autograd_node``; for an attribute, ``owner.name``."""
    since: str
    """The first release of torch that has it at this path."""
    use: Use
    kind: Kind
    gap: str = ""
    """What hookviz leaves out in a release that is older than ``since``; empty if it cannot do without this."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]


INTERNALS: list[Internal] = []
"""All internals, in the order of the declarations below."""


def resolve(path: str) -> Any:
    """Return the object at ``path`` in the installed torch; imports modules of torch as needed.

    Raises:
        LookupError: there is no such object.

    >>> resolve("torch.autograd.graph.Node").__name__
    'Node'
    """
    name, *rest = path.split(".")
    found = importlib.import_module(name)
    for part in rest:
        name = f"{name}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(name)
            except ImportError:
                raise LookupError(name) from None
    return found


def matches_kind(kind: Kind, found: object) -> bool:
    """Whether ``found`` is of the type that a declaration of this kind promises."""
    if kind == "function":
        return callable(found) and not isinstance(found, type)
    if kind == "class":
        return isinstance(found, type)
    return isinstance(found, dict) if kind == "dict" else True


_MISSING: list[str] = []
"""The paths of internals that are missing or of another kind; None stands in for each of them."""


def require_internals() -> None:
    """Refuse a torch in which internals are missing: a recording could disturb the user's program.

    Raises:
        RuntimeError: internals are missing; the message names them.
    """
    if _MISSING:
        raise RuntimeError(
            _(
                "This PyTorch ({version}) lacks what hookviz needs to record a program without disturbing "
                "it: {paths}. Run `hookviz check` to see what does not work."
            ).format(version=torch.__version__, paths=", ".join(_MISSING))
        )


def _find(path: str, kind: Kind) -> Any:
    """Return the object at ``path``; None if it is missing or of another kind."""
    try:
        found = resolve(path)
    except LookupError:
        return None
    return found if matches_kind(kind, found) else None


def _declare(path: str, since: str, use: Use, kind: Kind) -> Any:
    INTERNALS.append(Internal(path, since, use, kind))
    found = _find(path, kind)
    if found is None:
        _MISSING.append(path)
    return found


_function = partial(_declare, kind="function")
_class = partial(_declare, kind="class")
_dict = partial(_declare, kind="dict")


def _function_or(
    path: str, since: str, use: Use, *, older: str | None = None, stand_in: Any = None, gap: str = ""
) -> Any:
    """Declare a function; without it take the one at ``older``, else ``stand_in``, which leaves a gap."""
    found = _find(path, "function")
    if found is None and older is not None:
        return _declare(older, "2.0", use, "function")
    INTERNALS.append(Internal(path, since, use, "function", gap=gap))
    return stand_in if found is None else found


def _attribute(owner: str, name: str, since: str, use: Use, *, gap: str = "") -> str:
    INTERNALS.append(Internal(f"{owner}.{name}", since, use, "attribute", gap))
    return name


def _lazy(path: str, since: str, use: Use) -> str:
    INTERNALS.append(Internal(path, since, use, "lazy"))
    return path.rpartition(".")[2]


# -- the running node and pass; the order of nodes

current_node = _function("torch._C._current_autograd_node", "2.0", "passes")
"""The node whose hook is running: one observer serves all nodes and asks which one it is."""
current_task = _function("torch._C._current_graph_task_id", "2.0", "passes")
"""The number of the pass in which a hook runs, -1 outside: distinguishes nested passes and passes of other threads."""
next_sequence_number = _function("torch.autograd._get_sequence_nr", "2.1", "passes")
"""The number of the node that this thread makes next: shows which module call made a node."""
_attribute("torch._C._functions.AccumulateGrad", "_sequence_nr", "2.1", "passes")
run_engine = _function("torch.autograd.graph._engine_run_backward", "2.3", "passes")
"""Both ``backward`` and ``autograd.grad`` call it, with the roots as first argument: instrumented."""
ENGINE_FRAME = "_engine_run_backward"
"""Its name in a stack: identifies the innermost pass of a thread."""

# -- hooks on tensors and nodes

NODE_REGISTRATION = _class("torch.autograd.function._HookMixin", "2.0", "node_hooks")
"""Registers a node's hooks: it gets the dict that keeps them, which torch exposes nowhere else."""
_attribute("torch.autograd.function._HookMixin", "_register_hook", "2.0", "node_hooks")
_attribute("torch.utils.hooks.RemovableHandle", "hooks_dict_ref", "2.0", "node_hooks")
_attribute("torch.utils.hooks.RemovableHandle", "next_id", "2.0", "node_hooks")
remove_handle = _function("torch.utils.hooks.RemovableHandle.remove", "2.0", "node_hooks")
"""Public; instrumented, to notice that a hook was removed from its dict."""
_attribute("torch.Tensor", "_backward_hooks", "2.0", "tensor_hooks")
_attribute("torch.Tensor", "_post_accumulate_grad_hooks", "2.1", "tensor_hooks")
_attribute("torch.Tensor", "_base", "2.0", "cuts")
read_grad = _function("torch._C.TensorBase.grad.__get__", "2.2", "values")
"""Reads the ``.grad`` of a tensor past a property that a program puts in its place."""
TENSOR_HOOKS: dict[str, str] = {kind: HOOK_FACTS[kind].kept for kind in TENSOR_HOOK_KINDS}
"""Kind of hook → the attribute of a tensor that keeps the hooks of this kind."""
_attribute("torch.Tensor", "_version", "2.0", "values")

# -- hooks that torch registers on behalf of the user

ModuleBackwardHook = _class("torch.utils.hooks.BackwardHook", "2.0", "full_hooks")
"""Holds the lists of a module call's full backward hooks, copied when the module was called."""
_attribute("torch.utils.hooks.BackwardHook", "user_hooks", "2.0", "full_hooks")
_attribute("torch.utils.hooks.BackwardHook", "user_pre_hooks", "2.0", "full_hooks")
OUTPUT_HOOK = _attribute("torch.utils.hooks.BackwardHook", "setup_output_hook", "2.0", "full_hooks")
"""The method that makes the hook at a module's output; another method of the class makes the one at its input."""
LegacyModuleHook = _class("torch.nn.modules.module._WrappedHook", "2.0", "full_hooks")
"""What torch registers for a legacy backward hook: it holds the user's function, and the module weakly."""
MULTI_GRAD = "torch.autograd.graph.register_multi_grad_hook"
_attribute(MULTI_GRAD, "fn", "2.0", "multi_grad")
_attribute(MULTI_GRAD, "count", "2.0", "multi_grad")
_attribute(MULTI_GRAD, "ran_hook", "2.3", "multi_grad")
_attribute(MULTI_GRAD, "idx", "2.0", "multi_grad")
_attribute(MULTI_GRAD, "buffer", "2.0", "multi_grad")
_attribute(MULTI_GRAD, "nb_calls", "2.0", "multi_grad")
_attribute(MULTI_GRAD, "len_tensors", "2.1", "multi_grad")

# -- module calls, and the dicts in which modules keep their hooks

MODULES = "torch.nn.modules.module"
MODULE = f"{MODULES}.Module"
call_module = _function(f"{MODULE}._wrapped_call_impl", "2.1", "calls")
"""The function behind ``Module.__call__``: instrumented."""
CALL_FRAME = "_wrapped_call_impl"
MODULE_HOOKS = {
    "forward_pre_hook": _attribute(MODULE, "_forward_pre_hooks", "2.0", "calls"),
    "forward_hook": _attribute(MODULE, "_forward_hooks", "2.0", "calls"),
    "full_backward_pre_hook": _attribute(MODULE, "_backward_pre_hooks", "2.0", "full_hooks"),
    "full_backward_hook": _attribute(MODULE, "_backward_hooks", "2.0", "full_hooks"),
}
"""Kind of hook → the attribute of a module that keeps the hooks that run in its calls and in backward."""
global_forward_pre_hooks = _dict(f"{MODULES}._global_forward_pre_hooks", "2.0", "calls")
global_forward_hooks = _dict(f"{MODULES}._global_forward_hooks", "2.0", "calls")
_dict(f"{MODULES}._global_backward_pre_hooks", "2.0", "full_hooks")
_dict(f"{MODULES}._global_backward_hooks", "2.0", "full_hooks")
GLOBAL_MODULE_HOOKS = {kind: f"_global{name}" for kind, name in MODULE_HOOKS.items()}
"""Kind of hook → the variable of ``torch.nn.modules.module`` that keeps the hooks of all modules."""
_global_with_kwargs = _dict(f"{MODULES}._global_forward_hooks_with_kwargs", "2.6", "calls")
_global_always_called = _dict(f"{MODULES}._global_forward_hooks_always_called", "2.1", "calls")
_attribute(MODULE, "_forward_pre_hooks_with_kwargs", "2.0", "calls")
_attribute(MODULE, "_forward_hooks_with_kwargs", "2.0", "calls")
_attribute(MODULE, "_forward_hooks_always_called", "2.1", "calls")


class ForwardHooks(NamedTuple):
    """One dict of forward hooks, and for each flag the dict with the keys that have it; None if no hook can have it."""

    kind: str
    hooks: Any
    with_kwargs: Any
    always_called: Any
    shared: bool
    """Whether these are the global hooks, for all modules."""


def forward_hooks(module: Any) -> tuple[ForwardHooks, ...]:
    """The dicts with the hooks that torch runs in a call of ``module``, in the order in which torch runs them."""
    always, kwargs = module._forward_hooks_always_called, module._forward_hooks_with_kwargs
    return (
        ForwardHooks("forward_pre_hook", global_forward_pre_hooks, None, None, True),
        ForwardHooks("forward_pre_hook", module._forward_pre_hooks, module._forward_pre_hooks_with_kwargs, None, False),
        ForwardHooks("forward_hook", global_forward_hooks, _global_with_kwargs, _global_always_called, True),
        ForwardHooks("forward_hook", module._forward_hooks, kwargs, always, False),
    )


WITH_KWARGS, ALWAYS_CALLED = "_with_kwargs", "_always_called"
"""Suffixes that torch appends to the name of a hook dict, for the dict with the keys that have this flag."""
IS_FULL = _attribute(MODULE, "_is_full_backward_hook", "2.0", "full_hooks")
"""Full and legacy backward hooks share one dict; this says which of the two it has, None before the first hook."""
GLOBAL_IS_FULL = f"_global{IS_FULL}"
_attribute(MODULE, "_modules", "2.0", "calls")
_attribute(MODULE, "_buffers", "2.0", "calls")
_attribute(MODULE, "_parameters", "2.0", "calls")
swap_tensors = _function("torch.utils.swap_tensors", "2.3", "calls")
"""Public; instrumented, since it refuses tensors that have weak references."""

# -- hooks that run outside of passes: optimizer steps, saving and loading, registration

OPTIMIZERS = "torch.optim.optimizer"
OPTIMIZER = f"{OPTIMIZERS}.Optimizer"
global_step_pre_hooks = _dict(f"{OPTIMIZERS}._global_optimizer_pre_hooks", "2.0", "optimizers")
global_step_post_hooks = _dict(f"{OPTIMIZERS}._global_optimizer_post_hooks", "2.0", "optimizers")
GLOBAL_STEP_HOOKS = {"step_pre_hook": "_global_optimizer_pre_hooks", "step_post_hook": "_global_optimizer_post_hooks"}
"""Kind of hook → the variable of ``torch.optim.optimizer`` that torch reads by this name in each step."""
profile_step = _function(f"{OPTIMIZER}.profile_hook_step", "2.0", "optimizers")
"""Wraps every optimizer's ``step``: the code of its wrapper runs the hooks."""
clip_norm: Any = inspect.unwrap(torch.nn.utils.clip_grad_norm_)
clip_value: Any = inspect.unwrap(torch.nn.utils.clip_grad_value_)
"""Public; instrumented, to notice what they clip. Torch wraps both, and a program may hold the wrapper already."""
OPTIMIZER_HOOKS = {
    "step_pre_hook": _attribute(OPTIMIZER, "_optimizer_step_pre_hooks", "2.0", "optimizers"),
    "step_post_hook": _attribute(OPTIMIZER, "_optimizer_step_post_hooks", "2.0", "optimizers"),
    "state_dict_pre_hook": _attribute(OPTIMIZER, "_optimizer_state_dict_pre_hooks", "2.1", "listing"),
    "state_dict_post_hook": _attribute(OPTIMIZER, "_optimizer_state_dict_post_hooks", "2.1", "listing"),
    "load_state_dict_pre_hook": _attribute(OPTIMIZER, "_optimizer_load_state_dict_pre_hooks", "2.1", "listing"),
    "load_state_dict_post_hook": _attribute(OPTIMIZER, "_optimizer_load_state_dict_post_hooks", "2.1", "listing"),
}
"""Kind of hook → the attribute of an optimizer that keeps the hooks of this kind."""
SAVING_HOOKS = {
    "state_dict_pre_hook": _attribute(MODULE, "_state_dict_pre_hooks", "2.0", "listing"),
    "state_dict_post_hook": _attribute(MODULE, "_state_dict_hooks", "2.0", "listing"),
    "load_state_dict_pre_hook": _attribute(MODULE, "_load_state_dict_pre_hooks", "2.0", "listing"),
    "load_state_dict_post_hook": _attribute(MODULE, "_load_state_dict_post_hooks", "2.0", "listing"),
}
"""Kind of hook → the attribute of a module that keeps the hooks of this kind."""
REGISTRATION_HOOKS = {
    "parameter_registration_hook": _lazy(f"{MODULES}._global_parameter_registration_hooks", "2.0", "listing"),
    "buffer_registration_hook": _lazy(f"{MODULES}._global_buffer_registration_hooks", "2.0", "listing"),
    "module_registration_hook": _lazy(f"{MODULES}._global_module_registration_hooks", "2.0", "listing"),
}
"""Kind of hook → the variable of ``torch.nn.modules.module`` that keeps the hooks of this kind."""

# -- reading tensors unnoticed

DisableTorchFunction = _class("torch._C.DisableTorchFunction", "2.0", "values")
"""Within it, no ``__torch_function__`` of the user runs."""
push_function_mode = _function("torch._C._push_on_torch_function_stack", "2.0", "cuts")
pop_function_mode = _function("torch._C._pop_torch_function_stack", "2.0", "cuts")
count_function_modes = _function("torch._C._len_torch_function_stack", "2.0", "cuts")
"""The stack of this thread's ``TorchFunctionMode``: ours is taken off, and put back, below modes of the user."""
disable_dispatch_modes = _function("torch.utils._python_dispatch._disable_current_modes", "2.0", "values")
"""Within it, no ``TorchDispatchMode`` of the user sees what hookviz computes."""
dispatch_modes = _function("torch._C._len_torch_dispatch_stack", "2.0", "values")
"""The number of active dispatch modes."""
profiler_is_on = _function("torch.autograd._profiler_enabled", "2.0", "values")
switch_profiler = _function("torch.autograd._enable_record_function", "2.0", "values")
"""Whether the profiler records what runs: off while hookviz computes."""
PROFILER_STARTS = _attribute("torch.autograd.profiler", "_run_on_profiler_start", "2.2", "values")
"""Torch calls it by name before it starts a profiler."""
PYTHON_TRACER = "TraceContext"
"""The class of what torch gives to ``sys.setprofile`` while a profiler follows each Python call of a thread."""
StorageWeakRef = _class("torch.multiprocessing.reductions.StorageWeakRef", "2.0", "calls")
"""Recognises a storage whose tensor may be gone, without keeping its numbers."""
is_functorch_tensor = _function("torch._C._functorch.is_functorch_wrapped_tensor", "2.0", "values")
"""Whether a tensor wraps another for ``vmap`` or ``torch.func.grad``: it has no numbers to read."""
functorch_level = _function("torch._C._functorch.peek_interpreter_stack", "2.0", "values")
"""The innermost transform of ``torch.func`` that runs, None outside."""
FakeTensor = _class("torch._subclasses.FakeTensor", "2.0", "values")
"""The compiler's tensor without numbers: torch warns if its address is read."""

# -- tensors that nodes saved

_attribute("torch.autograd.graph.Node", "metadata", "2.0", "formulas")
SAVED, RAW_SAVED = "_saved_", "_raw_saved_"
"""Prefixes of a node's attributes: a saved value under its name in the formulas, and the same value packed, which
has the unpack hook."""
SAVED_BY_FUNCTION = ("saved_tensors", f"{RAW_SAVED}tensors")
"""The attributes of a node whose backward is written in Python: what it saved, and the same packed."""
_attribute(
    "torch._C._autograd.SavedTensor",
    "unpack_hook",
    "2.10",
    "formulas",
    gap=N_(
        "Formulas have no values, hooks on tensors that no variable holds any more have no names, "
        "and saved-tensor hooks around a forward pass before the recording are not noted: all three "
        "need PyTorch {since} or newer."
    ),
)
SAVED_TENSORS_SHOW_THEIR_HOOKS = hasattr(torch._C._autograd.SavedTensor, "unpack_hook")
"""Without this, reading a saved tensor might call an unpack hook of the user, so hookviz reads none."""
FUNCTION_OF_NODE = _attribute("torch.autograd.function.BackwardCFunction", "_forward_cls", "2.0", "formulas")
"""An attribute of the class of a node whose backward is written in Python: its ``Function``."""
saved_tensor_hooks = _function_or(
    "torch._C._autograd._top_saved_tensors_default_hooks",
    "2.8",
    "saved_hooks",
    stand_in=lambda ignore_tracing: None,
    gap=N_(
        "Saved-tensor hooks that were in force before a recording began are not noted: that needs "
        "PyTorch {since} or newer."
    ),
)
"""The active hooks (pack, unpack), None if there are none; with argument True also while torch traces."""
begin_saving = _function("torch.autograd.graph.saved_tensors_hooks.__enter__", "2.0", "saved_hooks")
"""Public; instrumented, to notice that hooks pack saved tensors from now on."""

# -- code that torch compiles, traces or recomputes

tracing_state = _function("torch._C._get_tracing_state", "2.0", "compiled")
"""The state of ``torch.jit.trace`` while it runs, else None."""
TracingContext = _class("torch._guards.TracingContext", "2.0", "compiled")
"""``try_get()``, since 2.2, is None unless ``torch.compile`` compiles in this thread."""
_attribute("torch._guards.TracingContext", "try_get", "2.2", "compiled")
fx_is_tracing = _function_or(
    "torch.fx._symbolic_trace.is_fx_symbolic_tracing", "2.9", "compiled", older="torch.fx._symbolic_trace.is_fx_tracing"
)
"""Whether ``torch.fx`` traces in this thread, outside of the compiler."""
_attribute(MODULE, "_compiled_call_impl", "2.1", "compiled")
DYNAMO = "torch._dynamo.eval_frame"
"""The module that runs compiled functions; torch loads it when it is first needed."""
COMPILE_SWITCH = _lazy(f"{DYNAMO}._maybe_set_eval_frame", "2.5", "compiled")
"""Torch calls it before and after each compiled function."""
_COMPILED_CALL = "_TorchDynamoContext.__call__"
_WRAPPER = ("compile_wrapper", "2.8") if torch.__version__ >= "2.8" else ("_fn", "2.0")
COMPILE_WRAPPER = f"{_COMPILED_CALL}.<locals>.{_attribute(f'{DYNAMO}.{_COMPILED_CALL}', *_WRAPPER, 'compiled')}"
"""The function that calls a compiled one, by its qualified name."""
COMPILE_BEGINS = _attribute(f"{DYNAMO}.{_COMPILED_CALL}", "_callback_from_stance", "2.6", "compiled")
"""The wrapper calls it when it switches to compiled code, and not when it switches back."""
STANCE = _lazy(f"{DYNAMO}._stance", "2.6", "compiled")
"""What ``torch.compiler.set_stance`` sets."""
COMPILER_UTILITIES = "torch._dynamo.utils"
COMPILE_COUNTERS = _lazy(f"{COMPILER_UTILITIES}.counters", "2.0", "compiled")
COMPILED_CODE = _lazy(f"{DYNAMO}._debug_get_cache_entry_list", "2.1", "compiled")
"""What the compiler has done since the process began, or since somebody cleared it; what it has made of a code."""
_lazy(f"{DYNAMO}.OptimizedModule", "2.0", "compiled")
COMPILED_MODEL = _attribute(f"{DYNAMO}.OptimizedModule", "_orig_mod", "2.0", "compiled")
"""The user's model, in what ``torch.compile`` returned for it."""
TRACE_RULES = "torch._dynamo.trace_rules"
_lazy(f"{TRACE_RULES}.SKIP_DIRS", "2.3", "compiled")
_lazy(f"{TRACE_RULES}.add", "2.3", "compiled")
COMPILED_AUTOGRAD = "torch._dynamo.compiled_autograd"
"""The module that compiles backward passes; if it is not loaded, the program does not do so."""
COMPILED_AUTOGRAD_IS_ON = _lazy(f"{COMPILED_AUTOGRAD}.compiled_autograd_enabled", "2.3", "compiled")
COMPILER_FOLDERS = ("_functorch", "_dynamo", "_inductor")
"""The folders of torch with functions that call compiled graphs."""
StopRecomputation = _class("torch.utils.checkpoint._StopRecomputationError", "2.1", "checkpoint")
"""Checkpointing raises and catches it once everything that backward needs is recomputed."""
RESTORING_FRAME = _attribute("torch.utils.checkpoint._CheckpointFrame", "recompute_fn", "2.1", "checkpoint")
"""Recomputes what the nodes of the running pass did not save."""
RECOMPUTING_FRAMES = (
    _attribute("torch.utils.checkpoint.CheckpointFunction", "backward", "2.0", "checkpoint"),
    RESTORING_FRAME,
)
"""The functions in ``torch/utils/checkpoint.py`` that recompute a forward pass."""

# -- several ranks

DDP = "torch.nn.parallel.DistributedDataParallel"
_attribute(DDP, "_active_ddp_module", "2.0", "ranks")
FULLY_SHARD = "torch.distributed.fsdp._fully_shard._fully_shard"
"""The module of torch with ``fully_shard``; if it is not loaded, the program does not use that."""
_lazy(f"{FULLY_SHARD}.FSDPModule", "2.6", "ranks")
_SHARD = "torch.distributed.fsdp._fully_shard"
_attribute(f"{FULLY_SHARD}.FSDPModule", "_get_fsdp_state", "2.6", "ranks")
_attribute(f"{_SHARD}._fsdp_state.FSDPState", "_fsdp_param_group", "2.6", "ranks")
UNSHARDED_PARAMETER = _attribute(f"{_SHARD}._fsdp_param.FSDPParam", "_unsharded_param", "2.6", "ranks")
"""The gathered parameter; it does not exist before the first forward pass."""
_attribute(f"{_SHARD}._fsdp_param.FSDPParam", "_module_info", "2.6", "ranks")
FSDP_PARAM_GROUPS = "_fsdp_param_groups"
"""Since torch 2.12: several groups of parameters instead of one."""
_attribute("torch.distributed.tensor.DTensor", "_local_tensor", "2.5", "ranks")
FSDP = "torch.distributed.fsdp"
"""The module of torch with ``FullyShardedDataParallel``."""
_attribute(f"{FSDP}._common_utils._FSDPState", "_handle", "2.1", "ranks")
_attribute(f"{FSDP}._init_utils._init_runtime_state", "_sync_gradients", "2.0", "ranks")

# -- scaled losses

_attribute("torch.amp.grad_scaler.GradScaler", "_per_optimizer_states", "2.3", "scaler")
FOUND_INF = "found_inf_per_device"
"""The entry of such a state with a flag for each device."""
