"""Find hooks that fire on two modules because one of these is a copy of the other."""

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.hooks.program_text import find_hook_line
from hookviz.support.messages import N_, _, join_sentences
from hookviz.trace import MODULE_HOOK_KINDS, TraceData

_COPY = N_("One of them is a copy of the other (copy.deepcopy), made after the hook was registered.")
_COPIED_OBJECT = N_(
    "{hook} belongs to an object, which was copied, too: what fires on the copy fills the copied object, and the "
    "original one sees nothing of it."
)
_COPY_FIRST = N_("Make the copy before you register the hook, or remove the hook from the copy.")
_REGISTER_ANEW = N_("If the original object should see both, register its hook on the copy as well.")


def list_copied_hooks(trace: TraceData) -> list[Finding]:
    """List the hooks that were registered once and fired on several modules; those of one function together.

    Torch numbers hooks as they are registered, and ``copy.deepcopy`` of a module copies the number with the hook.
    """
    steps: dict[tuple[str, int | str], dict[int, int]] = {}
    for step in trace.lookup.steps_of_kinds(*MODULE_HOOK_KINDS):
        index = trace.rows[step].hook
        row = None if index is None else trace.hook_rows[index]
        if index is not None and row is not None and row.module is not None and "global" not in row.flags:
            steps.setdefault((row.kind, row.key), {}).setdefault(index, step)
    found: dict[object, Finding] = {}
    for firings in steps.values():
        if len({trace.hook_rows[index].module for index in firings}) > 1:
            finding = _make_copied(trace, firings)
            found.setdefault((finding.hooks[0].name, finding.file, finding.line), finding)
    return list(found.values())


def _make_copied(trace: TraceData, firings: dict[int, int]) -> Finding:
    first, second = list(firings)[:2]
    hook, other, row = trace.hook(first), trace.hook(second), trace.hook_rows[first]
    file, line, role = find_hook_line(hook, row.registered_at)
    names = {"hook": hook.label, "on": hook.on, "other": other.on}
    return Finding(
        firings[second],
        "copied",
        _("{hook} was registered once and fires on two modules: {on} and {other}.").format(**names),
        "remark",
        file=file,
        line=line,
        line_role=role,
        cause=join_sentences([_(_COPY), *([_(_COPIED_OBJECT).format(**names)] if row.bound else [])]),
        advice=_(_REGISTER_ANEW if row.bound else _COPY_FIRST),
        hooks=(hook, other),
    )
