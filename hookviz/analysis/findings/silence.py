"""Findings about what did not happen: hooks that did not fire, and gradients that reached no parameter."""

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.missing_gradients import list_missing_gradients
from hookviz.analysis.missing_gradients.table import join_names
from hookviz.analysis.unfired import UnfiredHook, list_unfired_hooks
from hookviz.support.messages import join, say
from hookviz.trace import TraceData

MAX_HOOKS = 20
"""The most hooks that the findings name one by one; ``trace.unfired`` has all."""

_INTENDED_CAUSES = frozenset({"removed", "limited", "no_grad", "inference"})
_UNRELATED_CAUSES = frozenset({
    "never_called", "never_called.compiled", "nothing_called", "not_in_graph", "stray", "detour", "no_pass", "no_step",
    "gone", "unseen",
})  # fmt: skip
"""Causes that say that what ran has nothing to do with the hook. If the hook is older than the recording, that is as it
should be: a notebook keeps the models and tensors of its earlier cells."""
_CUTS = frozenset({"op", "between", "inside", "within", "after"})
"""The places where the code of a forward, or the code between two calls, ends the way."""


def list_silent_hooks(trace: TraceData) -> list[Finding]:
    """List the hooks that did not fire, or fired oddly.

    It is a warning if the recording proves the cause, and nothing shows that it is intended. Older hooks that have
    nothing to do with what ran are left to ``trace.unfired``.
    """
    hooks = [row for row in list_unfired_hooks(trace) if not (row.is_older and row.cause in _UNRELATED_CAUSES)]
    findings = [
        Finding(row.step, "odd_hook" if row.fired else "unfired", _describe_hook(row), _rate(row))
        for row in hooks[:MAX_HOOKS]
    ]
    if len(hooks) > MAX_HOOKS:
        more = say("finding.unfired.more", count=f"{len(hooks) - MAX_HOOKS:,}")
        findings.append(Finding(None, "unfired", more, "remark"))
    return findings


def _rate(row: UnfiredHook) -> str:
    is_trouble = not row.fired and row.is_proven and row.cause not in _INTENDED_CAUSES
    return "warning" if is_trouble else "remark"


def _describe_hook(row: UnfiredHook) -> str:
    key = "finding.odd_hook" if row.fired else "finding.unfired"
    return join("join.sentences", [say(key, hook=row.hook.label, on=row.on), row.sentence, row.advice])


def list_missing(trace: TraceData) -> list[Finding]:
    """List the places where the way of gradients ends, each with the parameters behind it.

    It is a warning if the way is cut between the parameters and the loss, and a remark if it may well be intended: the
    module was not called, or ran without a graph. Where an optimizer took steps, ``find_unreached`` tells of modules
    that were not called.
    """
    return [
        Finding(
            row.step,
            "cut",
            join("join.sentences", [say("finding.cut", on=join_names(row.parameters)), row.sentence]),
            "warning" if row.place in _CUTS else "remark",
        )
        for row in list_missing_gradients(trace)
        if not (row.place == "uncalled" and trace.updates)
    ]
