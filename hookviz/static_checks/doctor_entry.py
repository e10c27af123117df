"""The public function ``doctor``."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch.nn import Module

from hookviz.analysis.findings.finding import SEVERITIES
from hookviz.autograd import variable_names
from hookviz.autograd.torch_internals import DisableTorchFunction, require_internals
from hookviz.static_checks.function_rules import find_in_function
from hookviz.static_checks.hook_rules import NamedModel, find_in_hooks
from hookviz.static_checks.hook_syntax import read_hook
from hookviz.static_checks.static_finding import StaticFinding
from hookviz.support.messages import _, join_sentences
from hookviz.support.printable import describe_type
from hookviz.support.source_code import describe_function
from hookviz.support.table import Table, cells_of, head_of
from hookviz.trace.hook_facts import name_of_kind


def doctor(thing: Module | Callable[..., Any]) -> Table[StaticFinding]:
    """Check a model with its hooks, or a hook function, by rules that need no pass. Nothing is run or changed.

    - For a model: hooks that cannot fire, are registered twice, share a loop variable or use the legacy API; whether
      PyTorch can call each hook; what the hooks do with their arguments.
    - For a function: whether a hook can be called with as many arguments; edits in place; outputs that it keeps with
      their graph; returned values that are probably unintended. The kind of hook is guessed from the parameters.

    A finding is an error (certainly broken), a warning (a known mistake) or a remark (perhaps intended). What depends
    on a pass, such as whether a hook fires, is not judged: the text below the table says how to record one.

    Args:
        thing: a model, or a function, method or callable object that is, or will be, a hook.

    Returns:
        A table of findings, the worst first: a list in Python, empty if nothing was found.

    Raises:
        TypeError: ``thing`` is neither a module nor a function.

    >>> import torch, hookviz as hv
    >>> def double(grad):
    ...     grad *= 2
    >>> [(finding.severity, finding.kind) for finding in hv.doctor(double)]
    [('warning', 'edits.gradient')]
    >>> len(hv.doctor(torch.nn.Linear(2, 2)))
    0
    """
    require_internals()
    if isinstance(thing, Module):
        model = NamedModel(thing)
        with DisableTorchFunction():
            findings = [*find_in_hooks(model), *_find_in_functions(model)]
        counts = {"hooks": len(model.hooks), "modules": len(model.modules), "parameters": model.parameter_count}
        return _make_table(
            findings,
            _(
                "Checked: the hooks ({hooks}), modules ({modules}) and parameters ({parameters}) as they are "
                "now. Not checked: which hooks fire, what they change, and the gradients. For these, record "
                'a pass: "with hookviz.record(model) as trace:".'
            ).format(**{name: f"{count:,}" for name, count in counts.items()}),
        )
    if not callable(thing) or isinstance(thing, type):
        raise TypeError(
            _("doctor() takes a model (a torch.nn.Module) or a hook function; this is {kind}.").format(
                kind=describe_type(thing)
            )
        )
    return _make_table(find_in_function(thing), _describe_scope(thing))


def _describe_scope(function: Callable[..., Any]) -> str:
    """Say what was looked at of a function, and for which kind of hook it was taken."""
    name, hook = describe_function(function).label, read_hook(function)
    if hook is None:
        return _(
            "Checked: the parameters of {name}; Python has no source for it. To see what it does, "
            'register it and record a pass: "with hookviz.record() as trace:".'
        ).format(name=name)
    kind = name_of_kind(hook.kind) if hook.kind else _("hook of unknown kind")
    return _(
        "Checked: the parameters and the source of {name}, treated as a {kind} because of its "
        "parameters. Not checked: whether it fires, and what it changes. To see these, register it "
        'and record a pass: "with hookviz.record() as trace:".'
    ).format(name=name, kind=kind)


def _find_in_functions(model: NamedModel) -> Iterator[StaticFinding]:
    """Check the functions of a model's hooks, each once for each kind; those of torch itself are left out."""
    seen: set[tuple[Any, str]] = set()
    for hook in model.hooks:
        code = getattr(hook.function, "__code__", None)
        key = (code or id(hook.function)), hook.kind
        if key in seen or (code is not None and variable_names.is_library_file(code.co_filename)):
            continue
        seen.add(key)
        yield from find_in_function(hook.function, hook.kind, with_kwargs=hook.with_kwargs)


def _make_table(findings: Iterable[StaticFinding], scope: str) -> Table[StaticFinding]:
    """Make the table of the findings, the worst first, and below them what was looked at and what needs a pass."""
    ranked = sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    return Table(ranked, head_of(ranked), cells_of, join_sentences([_("Nothing was found."), scope]), below=scope)
