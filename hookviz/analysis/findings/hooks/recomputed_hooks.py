"""Find hooks that ran in the forward pass and not in the recomputation of a checkpoint, or the other way round."""

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.hooks.firings import iter_firings
from hookviz.analysis.findings.hooks.program_text import find_hook_line
from hookviz.support.messages import N_, _, join_sentences
from hookviz.trace import FORWARD_HOOK_KINDS, TraceData

_SENTENCES = {
    False: N_("{hook} changed what {on} computed in the forward pass, and not when the checkpoint computed it again."),
    True: N_("{hook} changed what {on} computed when the checkpoint computed it again, and not in the forward pass."),
}
"""Whether the hook changed something in the recomputation → what is so."""


def list_recomputed_hooks(trace: TraceData) -> list[Finding]:
    """List the hooks that changed what a module computed at one of both times: the gradients are of another function.

    A checkpoint calls its modules again in the backward pass, with the hooks that they have then.
    """
    if not any(call.recomputed for call in trace.calls):
        return []
    ran, cut_short = _list_runs(trace), {row.call for row in trace.rows if row.kind == "cut_short"}
    found: dict[tuple[int, bool], Finding] = {}
    for calls in _list_calls(trace).values():
        if not calls[True] or len(calls[False]) != len(calls[True]):
            continue  # perhaps only some of the calls were computed again
        if not cut_short.isdisjoint(calls[True]):
            continue  # the checkpoint had all that it needed before the turn of the hooks
        for again in (False, True):
            others = [run for call in calls[not again] for run in ran.get(call, ())]
            changing = {hook for hook, _step, effect in others if effect not in ("kept", None)}
            for hook, step, effect in (run for call in calls[again] for run in ran.get(call, ())):
                if effect in ("edited", "replaced") and hook not in changing:
                    found.setdefault((hook, again), _describe_difference(trace, hook, step, again))
    return list(found.values())


def _list_calls(trace: TraceData) -> dict[tuple[int, int], dict[bool, list[int]]]:
    """Return module and pass → whether they were computed again → the calls."""
    found: dict[tuple[int, int], dict[bool, list[int]]] = {}
    for row in (row for row in trace.rows if row.kind == "call"):
        call = trace.calls[row.own_call]
        found.setdefault((call.module, row.pass_id), {False: [], True: []})[call.recomputed].append(row.own_call)
    return found


def _list_runs(trace: TraceData) -> dict[int, list[tuple[int, int, str | None]]]:
    """Return call → hook, step and effect of each forward hook that ran in it."""
    found: dict[int, list[tuple[int, int, str | None]]] = {}
    for step, index, _row in iter_firings(trace, *FORWARD_HOOK_KINDS):
        row = trace.rows[step]
        if row.call is not None:
            is_equal = row.effect == "replaced" and trace.steps[step].before == trace.steps[step].after
            found.setdefault(row.call, []).append((index, step, "kept" if is_equal else row.effect))
    return found


def _describe_difference(trace: TraceData, index: int, step: int, again: bool) -> Finding:
    hook, row = trace.hook(index), trace.hook_rows[index]
    names = {"hook": hook.label, "on": hook.on, "where": row.removed_at or ""}
    is_gone = row.removed_at is not None and not again
    cause = _("So the gradients are those of another function than the one whose output was used.")
    if is_gone:
        cause = join_sentences([_("It was removed at {where}.").format(**names), cause])
    where, role = (row.removed_at, "removed") if is_gone else (row.registered_at, "registered")
    finding = Finding(
        step,
        "recomputed",
        _(_SENTENCES[again]).format(**names),
        "warning",
        cause=cause,
        advice=_("Let the hooks do the same from the forward pass until the backward pass is over."),
        hooks=(hook,),
    )
    return put_line(finding, *find_hook_line(hook, where, role))
