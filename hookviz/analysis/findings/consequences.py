"""Puts together what follows from one cause: silent hooks, parameters without gradient, idle optimizers."""

import builtins
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.hooks.silent_hooks import ExplainedHook
from hookviz.analysis.findings.parameters.missing_gradients import (
    MissingGradient,
    join_names,
    join_owners,
    list_missing_gradients,
)
from hookviz.analysis.findings.parameters.places import CUTS
from hookviz.analysis.findings.training.program_calls import read_line
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _, join_first, join_list, join_sentences
from hookviz.trace import Hook, TraceData
from hookviz.trace.hooks import shared_label, shows_line

MAX_HOOKS = 20
"""The most findings about hooks that did not fire; ``trace.hooks`` has all."""
_UNCALLED = ("not_called", "no_forward", "bypassed", "substituted")
"""Kinds of findings about hooks whose module was not called."""

_MAKES_LEAF = re.compile(r"requires_grad_\(\s*(True)?\s*\)|requires_grad\s*=\s*True")
"""Code that makes a tensor require grad."""
_UNRELATED = (OSError, NameError, ImportError, SyntaxError, KeyboardInterrupt, SystemExit)
"""Exceptions that no gradient brings about."""
_UNFINISHED = ("missing", "unreached")
"""Kinds of findings that are open if an exception ended the program: the steps that it would have taken are missing."""

_OWN_NAMES = ("caller", "module", "inner")
"""The arguments of a sentence that differ from owner to owner, though the cause is the same."""


class Holding(NamedTuple):
    """What is known of a parameter that optimizers hold."""

    optimizers: tuple[str, ...]
    moves: bool
    """Whether something moves it that needs no gradient."""


Held = dict[str, Holding]
"""Parameter → what is known of it, if an optimizer holds it."""


def list_silence(trace: TraceData, silent_hooks: Iterable[ExplainedHook], others: Sequence[Finding]) -> list[Finding]:
    """List the hooks that did not fire, or fired surprisingly, and the parameters that got no gradient.

    Hooks and parameters behind the same cut are one finding, as are equal hooks of several owners. ``others`` are the
    other findings: those that follow from one of these are told there, and left out of the result.
    """
    held = _find_held(trace)
    rows = list_missing_gradients(trace)
    missing = [row for row in rows if not _is_told_elsewhere(row, held)]
    hooks = [hook for hook in silent_hooks if hook.is_relevant]
    behind = [[hook for hook in hooks if _is_behind(hook, row)] for row in missing]
    explained = {id(hook) for group in behind for hook in group}
    cuts = [
        _make_missing(row, group, held, _makes_leaf(trace, row)) for row, group in zip(missing, behind, strict=True)
    ]
    groups = _group_equal([hook for hook in hooks if id(hook) not in explained])
    silent = _join_equal([_make_silent(group) for group in groups[:MAX_HOOKS]])
    if len(groups) > MAX_HOOKS:
        more = _("{count} more hooks did not fire, or fired in a way that you may not expect: see trace.hooks.")
        text = more.format(count=f"{sum(map(len, groups[MAX_HOOKS:])):,}")
        silent.append(Finding(None, "unknown", text, "remark", certainty="open"))
    return _put_together(trace, [*cuts, *silent, *others])


# -- hooks


def _is_behind(hook: ExplainedHook, row: MissingGradient) -> bool:
    """Whether a hook did not fire because of the cut that kept the gradients from the parameters of ``row``."""
    place = hook.cause.place
    if place is None:
        return False
    if row.place.code is not None:
        return place.code == row.place.code
    return place.sentence == row.place.sentence


def _group_equal(hooks: Iterable[ExplainedHook]) -> list[list[ExplainedHook]]:
    """Put the hooks of one function with the same cause together, whatever their owners are."""
    groups: dict[object, list[ExplainedHook]] = {}
    for hook in hooks:
        source, cause = hook.hook.source_, hook.cause
        arguments = tuple(sorted((name, text) for name, text in cause.arguments.items() if name not in _OWN_NAMES))
        key = hook.hook.kind, source, cause.key, arguments, cause.place, hook.severity
        groups.setdefault(key, []).append(hook)
    return list(groups.values())


def _join_equal(findings: Iterable[Finding]) -> list[Finding]:
    """Tell hooks of several functions that are silent for one cause together."""
    found: dict[object, Finding] = {}
    for finding in findings:
        key = finding.kind, finding.severity, finding.certainty, finding.cause, finding.advice
        found[key] = _add_consequence(found[key], finding) if key in found else finding
    return list(found.values())


def _make_silent(group: Sequence[ExplainedHook]) -> Finding:
    """Make the finding of a hook, and of equal ones on other owners."""
    first, finding = group[0], group[0].make_finding()
    if len(group) == 1:
        return finding
    names = list(dict.fromkeys(hook.hook.on for hook in group if hook.hook.on != first.hook.on))
    same = [hook for hook in group if hook.hook.on == first.hook.on]
    more: list[str] = []
    if len(same) > 1:
        more.append(_("It was registered there {count} times.").format(count=f"{len(same):,}"))
    if names:
        label, others = shared_label([hook.hook for hook in group]), join_owners([first.hook], names)
        more.append(_("The same holds for {hook} on {others}.").format(hook=label, others=others))
    hooks = tuple(hook.hook for hook in group)
    return replace(finding, sentence=join_sentences([finding.sentence, *more]), hooks=hooks)


# -- parameters


def _is_told_elsewhere(row: MissingGradient, held: Held) -> bool:
    """Whether ``find_unreached`` tells of parameters of modules that were not called, or nothing trains them anyway."""
    if row.place.key == "no_pass":  # a model that was only evaluated
        return held.keys().isdisjoint(row.parameters)
    return row.place.key == "uncalled" and held.keys() >= set(row.parameters)


def _find_held(trace: TraceData) -> Held:
    """Map the parameters that optimizers hold to what is known of them; empty if no optimizer took a step."""
    moves, names, held = TrainingFacts(trace).moves, [optimizer.name for optimizer in trace.optimizers], Held()
    for number, row in enumerate(trace.parameters if trace.updates else ()):
        if row.optimizers:
            optimizers = tuple(names[one] for one in row.optimizers)
            held.update(dict.fromkeys(row.names, Holding(optimizers, moves.needs_no_gradient(number))))
    return held


def _makes_leaf(trace: TraceData, row: MissingGradient) -> bool:
    """Whether the line that cuts makes a leaf of what it cut off, whose own gradient is wanted."""
    return row.place.code is not None and bool(_MAKES_LEAF.search(read_line(trace, row.place.code)))


def _make_missing(row: MissingGradient, hooks: list[ExplainedHook], held: Held, is_new_leaf: bool) -> Finding:
    """Make the finding of parameters without a gradient.

    It is a warning if an optimizer holds one of them that nothing else moves, or if there is no optimizer and the graph
    is cut; else it may well be intended: the module was not called, ran without a graph, or is perhaps not used.
    """
    sentence = _("No gradient reaches {on}.").format(on=join_names(row.parameters))
    is_held = any(name in held and not held[name].moves for name in row.parameters)
    is_harm = is_held or (row.place.key in CUTS and not held and not is_new_leaf)
    finding = Finding(
        row.place.step,
        "cut",
        sentence,
        "warning" if is_harm else "remark",
        cause=join_sentences([row.place.sentence, *_describe_hooks(hooks), *_describe_untrained(row, held)]),
        advice=row.advice,
        certainty="proven" if row.place.is_proven else "likely",
        hooks=tuple(hook.hook for hook in hooks),
        parameters=row.parameters,
    )
    return put_line(finding, row.place.code, row.place.line_role)


def _describe_hooks(hooks: list[ExplainedHook]) -> list[str]:
    """Name the hooks behind the cut: those that did not fire, and those that were called with None."""
    silent = [_name_hook(hook.hook) for hook in hooks if not hook.fired]
    called = [_name_hook(hook.hook) for hook in hooks if hook.fired]
    said = (
        (silent, _("For the same reason {hooks} did not fire.")),
        (called, _("For the same reason {hooks} got None.")),
    )
    return [text.format(hooks=join_first(list(dict.fromkeys(names)))) for names, text in said if names]


def _name_hook(hook: Hook) -> str:
    """Name a hook and its owner, with its line if that is known."""
    if hook.line is None or shows_line(hook):
        return _("{hook} on {on}").format(hook=hook.label, on=hook.on)
    return _("{hook} on {on} (defined in line {line})").format(hook=hook.label, on=hook.on, line=hook.line)


def _describe_untrained(row: MissingGradient, held: Held) -> list[str]:
    """Say that the optimizers train none of the parameters, or which of them no optimizer holds."""
    names = tuple(name for name in row.parameters if name not in held)
    if names:
        if not held:
            return []
        if len(names) == len(row.parameters):
            return [_("No optimizer that took a step holds them, either.")]
        return [_("These are not in any optimizer that took a step, either: {on}.").format(on=join_names(names))]
    if any(held[name].moves for name in row.parameters):
        return []
    optimizers = dict.fromkeys(optimizer for name in row.parameters for optimizer in held[name].optimizers)
    return [_("{optimizer} holds them.").format(optimizer=join_list(tuple(optimizers)))]


# -- what follows from another finding


def _put_together(trace: TraceData, findings: list[Finding]) -> list[Finding]:
    """Tell findings that follow from another one there."""
    has_ended = any(finding.kind == "exception" and finding.severity == "error" for finding in findings)
    findings = [finding for finding in findings if not (has_ended and finding.kind in _UNFINISHED)]
    findings = _weaken_exceptions(trace, findings)
    dropped: set[int] = set()
    merged = {id(finding): finding for finding in findings}
    for finding in findings:
        others = (one for one in findings if one is not finding and id(one) not in dropped)
        origin = next((one for one in others if _explains(one, finding)), None)
        if origin is not None:
            merged[id(origin)] = _add_consequence(merged[id(origin)], merged[id(finding)])
            dropped.add(id(finding))
    return [merged[id(finding)] for finding in findings if id(finding) not in dropped]


def _weaken_exceptions(trace: TraceData, findings: list[Finding]) -> list[Finding]:
    """Say of an exception of the program itself that it may follow from the other findings."""
    is_bad = any(finding.is_bad and finding.kind not in ("exception", "raised") for finding in findings)
    advice = _("It may follow from what is found below: look there first.")
    return [
        replace(finding, advice=advice)
        if is_bad and finding.about == "program" and not finding.cause and _may_follow(trace, finding)
        else finding
        for finding in findings
    ]


def _may_follow(trace: TraceData, finding: Finding) -> bool:
    """Whether an exception can come of numbers or gradients, as one about a file or a name cannot."""
    error = "" if finding.step is None else trace.rows[finding.step].error or ""
    kind = getattr(builtins, re.split(r"\W", error, maxsplit=1)[0], Exception)
    return not (isinstance(kind, type) and issubclass(kind, _UNRELATED))


def _explains(origin: Finding, finding: Finding) -> bool:
    """Return whether ``finding`` follows from the cause of ``origin``."""
    if origin.kind == "exception":
        return finding.kind == "raised" and finding.step == origin.step
    if finding.kind == "edited_in_place":
        return origin.kind == "zero" and origin.step == finding.step
    if finding.kind == "overwritten":
        piled = {(hook.label, hook.on) for hook in origin.hooks}
        return origin.kind == "repeated" and piled >= {(hook.label, hook.on) for hook in finding.hooks}
    if finding.kind == "not_called":
        is_equal = (origin.severity, origin.certainty) == (finding.severity, finding.certainty)
        return is_equal and origin.kind in ("not_called", "substituted") and _covers_hooks(origin, finding)
    if not finding.parameters or not origin.hooks:
        return False
    if finding.kind == "frozen" and not finding.hooks:
        return origin.kind == "frozen" and _covers(origin, finding)
    return finding.kind == "unreached" and origin.kind in _UNCALLED and _covers(origin, finding)


def _covers(origin: Finding, finding: Finding) -> bool:
    """Return whether each parameter of ``finding`` is one that a hook of ``origin`` is on, or in such a module."""
    owners = {hook.on for hook in origin.hooks}
    return all(name in owners or any(name.startswith(f"{owner}.") for owner in owners) for name in finding.parameters)


def _covers_hooks(origin: Finding, finding: Finding) -> bool:
    """Return whether each hook of ``finding`` is on something in a module that has a hook of ``origin``."""
    owners = [f"{hook.on}." for hook in origin.hooks]
    return all(any(hook.on.startswith(owner) for owner in owners) for hook in finding.hooks)


def _add_consequence(origin: Finding, finding: Finding) -> Finding:
    if finding.kind in ("edited_in_place", "overwritten"):
        return origin
    if origin.kind == "exception" or finding.kind == "not_called" or not finding.parameters:
        named = list(dict.fromkeys(_name_hook(hook) for hook in finding.hooks if hook not in origin.hooks))
        text = _("For the same reason {hooks} did not fire.").format(hooks=join_first(named)) if named else ""
    else:
        text = finding.sentence
    cause = join_sentences([origin.cause, text])
    hooks = (*origin.hooks, *finding.hooks)
    return replace(origin, cause=cause, hooks=hooks, parameters=(*origin.parameters, *finding.parameters))
