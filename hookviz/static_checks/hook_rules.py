"""Rules about the hooks that are registered on a model."""

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

import torch
from torch.nn import Module, MultiheadAttention, Sequential

from hookviz.autograd import module_tree
from hookviz.static_checks.late_binding import find_late_binding
from hookviz.static_checks.registered_hooks import NamedModel, RegisteredHook
from hookviz.static_checks.static_finding import StaticFinding, make_finding, make_finding_of_cause
from hookviz.trace import MODULE_HOOK_KINDS
from hookviz.trace.hook_facts import TENSOR_HOOK_KINDS


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
