"""Rules about the hooks that are registered on a model, and these hooks with their functions and owners."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import torch
from torch.nn import Module, MultiheadAttention, Sequential

from hookviz.autograd import module_tree
from hookviz.hook_listing.census import iter_named_modules
from hookviz.recorder.torch.hook_dicts import module_hook_dicts, user_hook_entries
from hookviz.recorder.torch.unwrapped_hooks import is_multi_grad_part, user_function
from hookviz.static_checks.static_finding import StaticFinding, make_finding, make_finding_of_cause
from hookviz.support.definitions import find_definition, list_loop_variables
from hookviz.support.printable import describe_type, make_printable
from hookviz.support.source_code import describe_function
from hookviz.support.terminal_text import truncate
from hookviz.trace import MODULE_HOOK_KINDS
from hookviz.trace.hook_facts import TENSOR_HOOK_KINDS


@dataclass(frozen=True)
class RegisteredHook:
    """A hook that is registered now. It refers to live objects, so it is kept only while the rules run."""

    kind: str
    on: str
    """The name of the owner."""
    owner: Module | torch.nn.Parameter
    function: Any
    """The function of the user."""
    with_kwargs: bool
    dict_id: int
    """Identifies the dict that keeps it."""

    @property
    def label(self) -> str:
        """The short name of its function."""
        return describe_function(self.function).label


class NamedModel:
    """A model, its modules by the names that a recording gives them, and its hooks."""

    def __init__(self, root: Module) -> None:
        self.modules = list(iter_named_modules(root))
        self.parameter_count = len({id(parameter) for parameter in module_tree.all_parameters(root)})
        self.hooks = list(self._list_hooks())

    def _list_hooks(self) -> Iterator[RegisteredHook]:
        seen: set[int] = set()
        for name, module in self.modules:
            owners = {f"{name}.{own}": parameter for own, parameter in module_tree.own_parameters(module)}
            for kept in module_hook_dicts(module, name):
                if id(kept.hooks) in seen:  # of a parameter with two names
                    continue
                seen.add(id(kept.hooks))
                for key, hook in user_hook_entries(kept.hooks):
                    kind = "multi_grad_hook" if is_multi_grad_part(hook) else kept.kind
                    owner = owners.get(kept.on, module)
                    function, takes_kwargs = user_function(hook), "with_kwargs" in kept.flags_of(key)
                    yield RegisteredHook(kind, kept.on, owner, function, takes_kwargs, id(kept.hooks))


def find_in_hooks(model: NamedModel) -> Iterator[StaticFinding]:
    """Find what is wrong with the hooks of a model, whatever their functions do."""
    rules = (_find_frozen, _find_never_called, _find_legacy, _find_repeated, _find_wrapped, find_late_binding)
    yield from chain.from_iterable(rule(model) for rule in rules)


def _find_frozen(model: NamedModel) -> Iterator[StaticFinding]:
    """Hooks on frozen parameters, and backward hooks on modules in which every parameter is frozen."""
    for hook in model.hooks:
        if isinstance(hook.owner, torch.nn.Parameter):
            if hook.kind in TENSOR_HOOK_KINDS and not hook.owner.requires_grad:
                yield make_finding("frozen_parameter", "warning", hook.on, hook=hook.label)
        elif hook.kind in ("full_backward_hook", "full_backward_pre_hook"):
            frozen = [not parameter.requires_grad for parameter in module_tree.all_parameters(hook.owner)]
            if frozen and all(frozen):
                yield make_finding("frozen_module", "remark", hook.on, hook=hook.label)


def _find_never_called(model: NamedModel) -> Iterator[StaticFinding]:
    """Hooks on modules that are never called: without a forward, or whose container uses only their parameters."""
    attentions = {
        id(module.out_proj): name
        for name, module in model.modules
        if isinstance(module, MultiheadAttention) and type(module).forward is MultiheadAttention.forward
    }
    for hook in model.hooks:
        if hook.kind not in MODULE_HOOK_KINDS or not isinstance(hook.owner, Module):
            continue
        if not module_tree.has_forward(hook.owner):
            yield make_finding_of_cause("no_forward", hook.on, hook=hook.label, **{"class": type(hook.owner).__name__})
        elif id(hook.owner) in attentions:
            yield make_finding_of_cause("attention", hook.on, hook=hook.label, caller=attentions[id(hook.owner)])


def _find_legacy(model: NamedModel) -> Iterator[StaticFinding]:
    for hook in model.hooks:
        if hook.kind == "backward_hook":
            yield make_finding("legacy", "warning", hook.on, hook=hook.label)


def _find_repeated(model: NamedModel) -> Iterator[StaticFinding]:
    """Functions that are registered more than once in one dict."""
    groups: dict[tuple[Any, ...], list[RegisteredHook]] = {}
    for hook in model.hooks:
        groups.setdefault((hook.dict_id, *_behaviour(hook.function)), []).append(hook)
    for first, *others in groups.values():
        if others:
            yield make_finding("repeated", "warning", first.on, hook=first.label, count=len(others) + 1)


def _behaviour(function: Any) -> tuple[Any, ...]:
    """A key that two functions share only if they do the same: one function, or one lambda made anew."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__self__"):
        bound = getattr(function, "__self__", None)
        return (id(function),) if bound is None else (id(bound), getattr(function, "__name__", id(function)))
    # A closure is the same only if it is over the same variables, and defaults if they are the same objects.
    values = (function.__closure__, function.__defaults__, (function.__kwdefaults__ or {}).values())
    return code, id(function.__globals__), *(tuple(map(id, each or ())) for each in values)


def _find_wrapped(model: NamedModel) -> Iterator[StaticFinding]:
    """Full backward hooks because of which torch will not let a module edit its input in place."""
    names = {id(module): name for name, module in model.modules}
    editors = {id(module): module for _, module in model.modules if _edits_in_place(module)}
    for _, module in model.modules:
        if type(module).forward is Sequential.forward:
            parts = [part for _, part in module_tree.children(module)]
            editors |= {id(first): second for first, second in pairwise(parts) if _edits_in_place(second)}
    for hook in model.hooks:
        editor = editors.get(id(hook.owner))
        if editor is not None and hook.kind in ("full_backward_hook", "full_backward_pre_hook"):
            yield make_finding("wrapped", "warning", hook.on, hook=hook.label, editor=names[id(editor)])


def _edits_in_place(module: Module) -> bool:
    """Whether it is an activation of PyTorch that writes its result over its input."""
    return type(module).__module__ == "torch.nn.modules.activation" and vars(module).get("inplace") is True


MAX_SHOWN_VALUE = 40
"""Letters of the loop variable's value that the finding shows."""


def find_late_binding(model: NamedModel) -> Iterator[StaticFinding]:
    """Find functions that a loop made several times, and that read the variable of this loop when they run."""
    made_from: dict[Any, list[RegisteredHook]] = {}
    for hook in model.hooks:
        code = getattr(hook.function, "__code__", None)
        if code is not None:
            made_from.setdefault(code, []).append(hook)
    for group in made_from.values():
        if len({id(hook.function) for hook in group}) > 1:
            yield from _find_in_copies(group)


def _find_in_copies(hooks: Sequence[RegisteredHook]) -> Iterator[StaticFinding]:
    """Find loop variables that several hooks, made of one piece of code, share."""
    definition, around = find_definition(hooks[0].function)
    for name in [] if definition is None else list_loop_variables(definition, around):
        sharing: dict[int, list[RegisteredHook]] = {}
        for hook in hooks:
            variable = _variable_of(hook.function, name)
            if variable is not None:
                sharing.setdefault(id(variable), []).append(hook)
        for group in sharing.values():
            if len({id(hook.function) for hook in group}) > 1:
                yield _describe_group(group, name)


def _variable_of(function: Any, name: str) -> Any:
    """Return what keeps the variable ``name`` that a function reads: a closure cell, or its globals; None if neither.

    A parameter of that name, such as in ``lambda grad, name=name: ...``, is the function's own.
    """
    code = function.__code__
    if name in code.co_varnames:
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    if name in cells:
        return cells[name]
    return function.__globals__ if name in code.co_names and name in function.__globals__ else None


def _describe_group(hooks: Sequence[RegisteredHook], name: str) -> StaticFinding:
    variable = _variable_of(hooks[0].function, name)
    try:
        value = variable[name] if isinstance(variable, dict) else variable.cell_contents
    except (KeyError, ValueError):  # the variable was deleted
        value = None
    is_plain = type(value) in (str, int, float, bool, type(None))  # the repr of another object is the user's code
    shown = truncate(make_printable(repr(value) if is_plain else describe_type(value)), MAX_SHOWN_VALUE)
    parts = {"hook": hooks[0].label, "count": len(hooks), "name": name, "value": shown}
    return make_finding("late_binding", "warning", hooks[0].on, **parts)
