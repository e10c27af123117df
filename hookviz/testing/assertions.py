"""Assertions for tests: gradients reach the parameters, and the hooks of a model fire."""

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch.nn import Module

from hookviz.analysis.hook_counts import HookCount
from hookviz.api.trace import Trace
from hookviz.autograd import graph, module_tree
from hookviz.autograd.torch_internals import DisableTorchFunction
from hookviz.hook_listing import hooks
from hookviz.recorder import record
from hookviz.support.messages import N_, _, join_list
from hookviz.support.printable import describe_type
from hookviz.testing.hook_leaks import describe_hook
from hookviz.trace import HOOK_KINDS, Hook

_NOT_A_MODEL = N_("The model must be a torch.nn.Module; this is {kind}.")


def assert_gradients_reach(model: Module, loss: torch.Tensor, *, except_: str | Iterable[str] = ()) -> None:
    """Assert that a backward pass from ``loss`` would give a gradient to every parameter that requires grad.

    This walks the autograd graph and runs nothing. Frozen parameters (``requires_grad=False``) do not count. That a
    gradient arrives does not mean that it is not 0.

    Args:
        model: the model that ``loss`` was computed with.
        loss: a tensor of any shape, before its backward pass.
        except_: names of parameters that need not be reached, as in ``named_parameters()``: one pattern such as
            ``"head.*"``, or several.

    Raises:
        AssertionError: ``loss`` does not reach a parameter; the message lists all that it does not reach.
        TypeError: ``model`` is not a module, ``loss`` is not a tensor, or a pattern is not a text.
        ValueError: a pattern matches no parameter, or the graph is too deep to be walked.

    >>> import torch
    >>> from hookviz.testing import assert_gradients_reach
    >>> model = torch.nn.ModuleDict({"body": torch.nn.Linear(2, 2), "head": torch.nn.Linear(2, 1)})
    >>> loss = model["head"](model["body"](torch.ones(1, 2)).detach()).sum()
    >>> assert_gradients_reach(model, loss, except_="body.*")
    >>> assert_gradients_reach(model, loss)
    Traceback (most recent call last):
    AssertionError: The loss does not reach 2 of 4 parameters that require grad:
      body.weight
      body.bias
    No parameter of body is reached: forward does not call it, or the graph is cut on the way to the loss. ...
    """
    __tracebackhide__ = True
    _check_types(model, loss)
    with DisableTorchFunction():
        names = _names_of_parameters(model)
        expected = {key: known for key, known in names.items() if known[1].requires_grad}
        excluded = _excluded_names([name for known, _ignored in names.values() for name in known], except_)
        reached = _reached_leaves(loss)
        missing = [
            known for key, (known, _ignored) in expected.items() if key not in reached and excluded.isdisjoint(known)
        ]
    if missing:
        parts = {"missing": f"{len(missing):,}", "total": f"{len(expected):,}"}
        listed = [f"  {' = '.join(known)}" for known in missing]
        reached_names = [name for key, (known, _ignored) in names.items() if key in reached for name in known]
        gap = _describe_gap(loss, [known[0] for known in missing], reached_names)
        raise AssertionError(
            "\n".join(
                [
                    _("The loss does not reach {missing} of {total} parameters that require grad:").format(**parts),
                    *listed,
                    gap,
                ]
            )
        )


def assert_hooks_fire(model: Module, run: Callable[[], object], *, except_: str | Iterable[str] = ()) -> None:
    """Assert that every hook on ``model``, its modules and its parameters fires while ``run`` runs.

    ``run`` runs once, recorded by ``hookviz.record(model)``, and should do what the hooks are there for: the forward
    pass, and the backward pass if there are backward hooks. Hooks of all modules (global ones), hooks that run on
    saving and loading, and hooks that ``run`` itself registers do not count.

    Args:
        model: the model with the hooks.
        run: a function without arguments.
        except_: names of the functions of hooks that need not fire: one pattern, or several.

    Raises:
        AssertionError: a hook did not fire; the message lists all that did not.
        TypeError: ``model`` is not a module, ``run`` cannot be called, or a pattern is not a text.
        ValueError: a pattern matches no hook.
        Exception: what ``run`` raises.

    >>> import torch
    >>> from hookviz.testing import assert_hooks_fire
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    >>> handle = model[0].register_forward_hook(lambda module, args, output: None)
    >>> assert_hooks_fire(model, lambda: model(torch.ones(1, 2)))
    >>> assert_hooks_fire(model, lambda: model[1](torch.ones(1, 2)))
    Traceback (most recent call last):
    AssertionError: 1 of 1 hooks did not fire:
      forward hook λ module, args, output: None on model.0 ...
    """
    __tracebackhide__ = True
    if not isinstance(model, Module):
        raise TypeError(_(_NOT_A_MODEL).format(kind=describe_type(model)))
    if not callable(run):
        raise TypeError(
            _("run must be a function without arguments that runs the model; this is {kind}.").format(
                kind=describe_type(run)
            )
        )
    registered = [hook for hook in hooks(model) if hook.kind in HOOK_KINDS and "global" not in hook.flags]
    excluded = _excluded_names([hook.name for hook in registered], except_)
    with record(model) as trace:
        run()
    silent = [row for row in _find_silent(registered, trace) if row.name not in excluded]
    if silent:
        head = _("{silent} of {total} hooks did not fire:").format(
            silent=f"{len(silent):,}", total=f"{len(registered):,}"
        )
        raise AssertionError("\n".join([head, *map(_describe_hook, silent)]))


def _check_types(model: object, loss: object) -> None:
    if not isinstance(model, Module):
        raise TypeError(_(_NOT_A_MODEL).format(kind=describe_type(model)))
    if not isinstance(loss, torch.Tensor):
        raise TypeError(_("The loss must be a tensor; this is {kind}.").format(kind=describe_type(loss)))


def _names_of_parameters(model: Module) -> dict[int, tuple[list[str], torch.nn.Parameter]]:
    """Map the ``id`` of each parameter to all its names and to itself."""
    found: dict[int, tuple[list[str], torch.nn.Parameter]] = {}
    for path, module in module_tree.named_modules(model, every_path=True):
        for name, parameter in module_tree.own_parameters(module):
            found.setdefault(id(parameter), ([], parameter))[0].append(f"{path}.{name}" if path else name)
    return found


def _excluded_names(names: Collection[str], except_: str | Iterable[str]) -> set[str]:
    """Return the names that match a pattern.

    Raises:
        TypeError: a pattern is not a text.
        ValueError: a pattern matches none of ``names``.
    """
    found: set[str] = set()
    for pattern in [except_] if isinstance(except_, str) else except_:
        if not isinstance(pattern, str):
            raise TypeError(
                _('except_ takes names or patterns such as "head.*"; this is {kind}.').format(
                    kind=describe_type(pattern)
                )
            )
        matching = {name for name in names if fnmatchcase(name, pattern)}
        if not matching:
            listed = join_list(dict.fromkeys(names)) or "None"
            raise ValueError(
                _("No name matches the pattern {pattern} in except_. The names are: {names}.").format(
                    pattern=pattern, names=listed
                )
            )
        found |= matching
    return found


def _reached_leaves(loss: torch.Tensor) -> set[int]:
    """Return the ``id`` of each leaf that a backward pass from ``loss`` reaches."""
    root, _ignored = graph.edge_of(loss)
    try:
        nodes = [] if root is None else graph.reachable_nodes([root])
    except graph.TooDeep as error:
        raise ValueError(error.advice) from None
    leaves = {id(leaf) for node in nodes if (leaf := graph.leaf_of(node)) is not None}
    graph.release(nodes)
    return leaves


def _describe_gap(loss: torch.Tensor, missing: Sequence[str], reached: Collection[str]) -> str:
    """Say where the way to the parameters ends, as far as the names of the parameters tell."""
    if not loss.requires_grad:
        return _("The loss has no history: it was computed under torch.no_grad() or was detached.")
    outermost = dict.fromkeys(_outermost_unreached(name, reached) for name in missing)
    modules = [module for module in outermost if module]
    return (
        _(
            "No parameter of {modules} is reached: forward does not call it, or the graph is cut on the way to the "
            "loss. Look for detach(), .item(), .data, torch.no_grad() or a hook that replaces the output."
        ).format(modules=join_list(modules))
        if modules
        else _("Other parameters of the same modules are reached: forward probably does not use these.")
    )


def _outermost_unreached(name: str, reached: Collection[str]) -> str:
    """Return the path of the outermost module around a parameter in which nothing is reached; empty if none."""
    parts = name.split(".")[:-1]
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if not any(other.startswith(f"{path}.") for other in reached):
            return path
    return ""


def _find_silent(registered: Sequence[Hook], trace: Trace) -> list[HookCount]:
    """List the hooks among ``registered`` that did not fire."""
    keys = {_key_of(hook) for hook in registered}
    return [row for row in trace.hooks if not row.fired and _key_of(row.hook) in keys]


def _key_of(hook: Hook) -> tuple[Any, ...]:
    """What identifies a hook in both the list of hooks and a trace; one multi-grad hook has several owners."""
    place = None if hook.kind == "multi_grad_hook" else hook.on
    return hook.kind, place, hook.name, hook.file, hook.line


def _describe_hook(row: HookCount) -> str:
    why = "" if row.finding is None else f"\n    {row.finding.cause} {row.finding.advice}"
    return f"  {describe_hook(row.hook)}{why}"
