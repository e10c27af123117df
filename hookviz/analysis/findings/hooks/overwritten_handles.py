"""Find hooks that go on after another one was removed in their place, because its handle had overwritten theirs."""

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.hooks.program_text import find_hook_line
from hookviz.analysis.findings.parameters.missing_gradients import join_owners
from hookviz.support.messages import _, join_sentences
from hookviz.support.source_code import describe_place, split_place
from hookviz.trace import HOOK_KINDS, HookRow, TraceData, UnfiredRow
from hookviz.trace.hooks import shared_label


def list_overwritten_handles(trace: TraceData) -> list[Finding]:
    """List the hooks that changed something after the removal, those of one function and one variable together.

    One that only looks does no harm. It is a warning if the hook that was removed has the same function, as in a loop
    over layers; a program may well keep a hook, and use the variable again for another one.
    """
    groups: dict[object, dict[object, int]] = {}
    for step in trace.lookup.steps_of_kinds(*HOOK_KINDS):
        row = trace.rows[step]
        hook = None if row.hook is None else trace.hook_rows[row.hook]
        if hook is None or not _was_spared(hook, step) or row.effect not in ("edited", "replaced"):
            continue
        group = hook.kind, *_function_of(hook), hook.overwritten_at, hook.spared_at
        groups.setdefault(group, {}).setdefault(hook.key, step)
    return [_make_overwritten(trace, list(steps.values())) for steps in groups.values()]


def _was_spared(hook: HookRow, step: int) -> bool:
    """Return whether another hook was removed in the place of this one before a step, at a line that is known."""
    return bool(hook.overwritten_at and hook.spared_at) and hook.spared is not None and hook.spared <= step


def _function_of(hook: HookRow | UnfiredRow) -> tuple[object, ...]:
    return hook.name, hook.file, hook.line


def _make_overwritten(trace: TraceData, steps: list[int]) -> Finding:
    """Describe the hooks that changed something at some steps."""
    indexes = [index for step in steps if (index := trace.rows[step].hook) is not None]
    row, hooks = trace.hook_rows[indexes[0]], tuple(map(trace.hook, indexes))
    hook, names = hooks[0], [one.on for one in hooks[1:]]
    file, line, role = find_hook_line(hook, row.overwritten_at, "overwrites")
    sentences = [
        _("{hook} on {on} still fires after remove() was called ({removed}), and changes what it gets.").format(
            hook=hook.label, on=hook.on, removed=describe_place(*split_place(row.spared_at))
        )
    ]
    if names:
        text = _("The same holds for {hook} on {others}.")
        sentences.append(text.format(hook=shared_label(hooks), others=join_owners(hooks, names)))
    cause = _(
        "Its handle was overwritten ({overwritten}): the variable got the handle of another hook, and remove() took "
        "away that one."
    )
    others: list[HookRow | UnfiredRow] = [*trace.hook_rows, *trace.unfired_rows]
    removed = [other for other in others if other.key == row.overwritten_by]
    is_same = any(_function_of(other) == _function_of(row) for other in removed)
    return Finding(
        steps[0],
        "overwritten",
        join_sentences(sentences),
        "warning" if is_same else "remark",
        file=file,
        line=line,
        line_role=role,
        cause=cause.format(overwritten=describe_place(*split_place(row.overwritten_at))),
        advice=_("Keep each handle, as in a list, and call remove() on each."),
        hooks=hooks,
    )
