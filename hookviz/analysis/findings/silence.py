"""Findings about what did not happen: hooks that did not fire, and parameters that got no gradient."""

from dataclasses import replace

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.missing_gradients import MissingGradient, list_missing_gradients
from hookviz.analysis.missing_gradients.none_gradients import NONE_RETURNED
from hookviz.analysis.missing_gradients.places import CUTS
from hookviz.analysis.missing_gradients.table import join_names
from hookviz.analysis.unfired import UnfiredHook, list_relevant_hooks
from hookviz.support.messages import _, join_list, join_sentences
from hookviz.trace import TraceData

MAX_HOOKS = 20
"""The most hooks that the findings name one by one; ``trace.unfired`` has all."""

Held = dict[str, tuple[str, ...]]
"""Parameter → the optimizers that hold it."""

_INTENDED_CAUSES = frozenset({"limited", "no_grad", "inference"})
_UNSEEN_CAUSES = frozenset({"compiled", "never_called.compiled", "not_called.compiled"})
"""With these, a hook may have run where hookviz cannot look."""


def list_silence(trace: TraceData) -> list[Finding]:
    """List the hooks that did not fire, or fired surprisingly, and the parameters that got no gradient.

    Hooks and parameters behind the same cut are one finding. Older hooks that have nothing to do with what ran are left
    to ``trace.unfired``. ``find_unreached`` reports what an optimizer holds of the modules that were not called.
    """
    held = _find_held(trace)
    missing = [
        row
        for row in list_missing_gradients(trace)
        if row.place != "uncalled" or not held.keys() >= set(row.parameters)
    ]
    hooks = list_relevant_hooks(trace)
    behind = [[hook for hook in hooks if _is_behind(hook, row)] for row in missing]
    explained = {id(hook) for group in behind for hook in group}
    others = [hook for hook in hooks if id(hook) not in explained]
    findings = [_make_missing(row, group, held) for row, group in zip(missing, behind, strict=True)]
    findings += [_make_silent(hook) for hook in others[:MAX_HOOKS]]
    if len(others) > MAX_HOOKS:
        more = _(
            "{count} more hooks did not fire, or fired in a way that you may not expect: trace.unfired lists all."
        ).format(count=f"{len(others) - MAX_HOOKS:,}")
        findings.append(Finding(None, "unfired", more, "remark"))
    return findings


def _is_behind(hook: UnfiredHook, row: MissingGradient) -> bool:
    """Whether a hook did not fire because of the cut that kept the gradients from the parameters of ``row``."""
    if row.line is not None:
        return (hook.file, hook.line) == (row.file, row.line)
    return hook.cut == row.sentence


# -- hooks


def _make_silent(row: UnfiredHook) -> Finding:
    """Make the finding of a hook: a warning if its cause is proven, and nothing shows that it is intended.

    To remove an older hook before the model runs is a usual way to switch it off.
    """
    is_intended = row.cause in _INTENDED_CAUSES or (row.cause == "removed" and row.is_older)
    is_trouble = not row.fired and row.is_proven and not is_intended
    sentence = join_sentences([_describe_silence(row), row.sentence, row.advice])
    kind = "odd_hook" if row.fired else "unfired"
    finding = Finding(row.step, kind, sentence, "warning" if is_trouble else "remark")
    if row.line is not None:
        return replace(finding, line=row.line, file=row.file, line_role="cuts")
    return replace(finding, line=row.hook.line, file=row.hook.file, line_role="hook")


def _describe_silence(row: UnfiredHook) -> str:
    if row.fired:
        head = _("{hook} on {on} fired in a way that you may not expect.")
    elif row.cause in _UNSEEN_CAUSES:
        head = _("{hook} on {on} was not seen to fire.")
    else:
        head = _("{hook} on {on} did not fire.")
    return head.format(hook=row.hook.label, on=row.on)


# -- parameters


def _find_held(trace: TraceData) -> Held:
    """Map the parameters that optimizers hold to the names of these; empty if no optimizer took a step."""
    names = [optimizer.name for optimizer in trace.optimizers]
    held = [row for row in trace.parameters if row.optimizers and trace.updates]
    return {name: tuple(names[number] for number in row.optimizers) for row in held for name in row.names}


def _make_missing(row: MissingGradient, hooks: list[UnfiredHook], held: Held) -> Finding:
    """Make the finding of parameters without a gradient.

    It is a warning if the graph is cut between them and the loss, and a remark if that may well be intended: the module
    was not called, or ran without a graph.
    """
    head = _("No gradient reaches {on}.").format(on=join_names(row.parameters))
    sentence = join_sentences([head, row.sentence, *_describe_hooks(hooks), *_describe_untrained(row, held)])
    severity = "warning" if row.place in CUTS else "remark"
    role = "backward" if row.place == NONE_RETURNED else "cuts"
    return Finding(row.step, "cut", sentence, severity, line=row.line, file=row.file, line_role=role)


def _describe_hooks(hooks: list[UnfiredHook]) -> list[str]:
    """Name the hooks behind the cut: those that did not fire, and those that were called with None."""
    sentences: list[str] = []
    silent, called = [hook for hook in hooks if not hook.fired], [hook for hook in hooks if hook.fired]
    if silent:
        one, many = (
            _("For the same reason {hooks} did not fire."),
            _("For the same reason {count} hooks did not fire: {hooks}."),
        )
        sentences.append(_name_hooks(silent, one, many))
    if called:
        one, many = (
            _("For the same reason {hooks} got None."),
            _("For the same reason {count} hooks got None: {hooks}."),
        )
        sentences.append(_name_hooks(called, one, many))
    return sentences


def _name_hooks(hooks: list[UnfiredHook], one: str, many: str) -> str:
    names = tuple(_("{hook} on {on}").format(hook=hook.hook.label, on=hook.on) for hook in hooks)
    return (one if len(names) == 1 else many).format(hooks=join_names(names), count=f"{len(names):,}")


def _describe_untrained(row: MissingGradient, held: Held) -> list[str]:
    """Say that the optimizers train none of the parameters, or which of them no optimizer holds."""
    names = tuple(name for name in row.parameters if name not in held)
    if names:
        return (
            [_("These are not in any optimizer that took a step, either: {on}.").format(on=join_names(names))]
            if held
            else []
        )
    optimizers = dict.fromkeys(optimizer for name in row.parameters for optimizer in held[name])
    return [
        _("{optimizer} holds them, but cannot train them without a gradient.").format(
            optimizer=join_list(tuple(optimizers))
        )
    ]
