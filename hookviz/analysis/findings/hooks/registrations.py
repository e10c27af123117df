"""Find hooks that there are too many of: registered again and again, copied with a model, or left by a lost handle."""

from itertools import pairwise
from typing import Any

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.hooks.firings import function_of, iter_firings, list_hooks_at
from hookviz.analysis.findings.hooks.program_text import find_hook_line
from hookviz.analysis.findings.parameters.missing_gradients import join_owners, tell_same
from hookviz.support.messages import N_, _, join_list, join_sentences
from hookviz.support.source_code import describe_place, split_place
from hookviz.trace import HOOK_KINDS, MODULE_HOOK_KINDS, HookRow, TraceData, UnfiredRow
from hookviz.trace.hooks import shared_label

REGISTER_ONCE = N_("Register it once, or keep each handle and call its remove() before you register the hook again.")
_COPY = N_("One of them is a copy of the other, made after the hook was registered.")
_COPIED_OBJECT = N_(
    "{hook} belongs to an object, which was copied, too: what fires on the copy fills the copied object, and the "
    "original one sees nothing of it."
)
_COPY_FIRST = N_("Make the copy before you register the hook, or remove the hook from the copy.")
_REGISTER_ANEW = N_("If the original object should see both, register its hook on the copy as well.")


def list_repeated_hooks(trace: TraceData) -> list[Finding]:
    """List the functions that are registered on the same owner again, and fire each time.

    Either they fire more often from pass to pass, because each pass registers them once more; or the same function or
    object was registered twice, and changes what it is given. One that only looks may do so twice.
    """
    steps = _group_steps(trace)
    groups: dict[Any, dict[int, set[int | str]]] = {}
    for group, fired in steps.items():
        for row in (trace.rows[step] for step in fired):
            assert row.hook is not None
            groups.setdefault(group, {}).setdefault(row.pass_id, set()).add(trace.hook_rows[row.hook].key)
    piles: dict[Any, list[Any]] = {}
    for group, keys in groups.items():
        is_removed = all(trace.hook_rows[index].until is not None for index in list_hooks_at(trace, steps[group]))
        if not is_removed and (_pile_up(keys) or _changes_again(trace, steps[group])):
            kind, _owner, *source = group
            piles.setdefault((kind, *source), []).append(group)
    return [
        _describe_pile(trace, groups[first], steps[first], [steps[one] for one in more])
        for first, *more in piles.values()
    ]


def _group_steps(trace: TraceData) -> dict[Any, list[int]]:
    """Return kind, owner and function → the steps at which its hooks fired, without those of other objects."""
    found: dict[Any, list[int]] = {}
    first: dict[Any, int | str] = {}
    for step, _index, hook in iter_firings(trace, *HOOK_KINDS):
        owner = _find_owner(trace, hook)
        if owner is None or not isinstance(hook.key, int):
            continue
        group = hook.kind, owner, *function_of(hook), hook.held
        if not hook.bound or hook.again or first.setdefault(group, hook.key) == hook.key:
            found.setdefault(group, []).append(step)
    return found


def _changes_again(trace: TraceData, steps: list[int]) -> bool:
    """Return whether what was registered once more than before changed something at one of some steps."""
    rows = [trace.rows[step] for step in steps]
    again = [row for row in rows if row.hook is not None and trace.hook_rows[row.hook].again]
    return any(row.effect in ("edited", "replaced") for row in again)


def _find_owner(trace: TraceData, hook: HookRow) -> object | None:
    """Return what identifies the owner of a hook in all passes: a module, an optimizer, or the name of a leaf."""
    if "global" in hook.flags:
        return "global"
    if hook.module is not None or hook.optimizer is not None:
        return hook.module, hook.optimizer
    return None if hook.node is None else trace.lookup.leaf_names.get(hook.node)


def _pile_up(keys: dict[int, set[int | str]]) -> bool:
    """Return whether each pass has the hooks of the one before, and in the end more than at first."""
    passes = list(keys.values())
    has_all = all(before <= after for before, after in pairwise(passes))
    return has_all and len(passes) > 1 and len(passes[-1]) > len(passes[0])


def _describe_pile(
    trace: TraceData, keys: dict[int, set[int | str]], steps: list[int], others: list[list[int]]
) -> Finding:
    """Describe a function that piles up on one owner, and on the owners of the steps of ``others``."""
    last = trace.rows[steps[-1]]
    assert last.hook is not None
    hook, row = trace.hook(last.hook), trace.hook_rows[last.hook]
    count = f"{len(next(reversed(keys.values()))):,}"
    counts = {"fired": f"{len(steps):,}", "passes": f"{len(keys):,}"}
    places = [trace.hook_rows[index].registered_at for index in list_hooks_at(trace, steps)]
    where = join_list(list(dict.fromkeys(place for place in places if place is not None)))
    hooks = [hook, *(trace.hook(index) for more in others if (index := trace.rows[more[-1]].hook) is not None)]
    sentences = [
        _("{hook} on {on} fired {fired} times in {passes} passes.").format(hook=hook.label, on=hook.on, **counts)
    ]
    if others:
        names = join_owners(hooks, (one.on for one in hooks[1:]))
        text = _("{hook} was registered several times on {others}, too.")
        sentences.append(text.format(hook=shared_label(hooks), others=names))
    finding = Finding(
        steps[-1],
        "repeated",
        join_sentences(sentences),
        "warning",
        tuple(keys),
        cause=join_sentences([_describe_cause(hook.on, count, where), *_count_at_ends(keys)]),
        advice=_(REGISTER_ONCE),
        hooks=tuple(hooks),
    )
    return put_line(finding, *find_hook_line(hook, row.registered_at))


def _count_at_ends(keys: dict[int, set[int | str]]) -> list[str]:
    """Say how many of them there were in the first pass and in the last one, if they grew."""
    if not _pile_up(keys):
        return []
    counts = [f"{len(passed):,}" for passed in keys.values()]
    text = _("In the first pass {first} of them fired, in the last one {last}.")
    return [text.format(first=counts[0], last=counts[-1])]


def _describe_cause(on: str, count: str, where: str) -> str:
    at = _(" ({where})").format(where=where) if where else ""
    return _("It was registered {count} times on {on}{where}.").format(count=count, on=on, where=at)


# -- hooks that a copy of their module has, too


def list_copied_hooks(trace: TraceData) -> list[Finding]:
    """List the hooks that were registered once and fired on several modules; those of one function together.

    Torch numbers hooks as they are registered, and ``copy.deepcopy`` of a module copies the number with the hook.
    """
    steps: dict[tuple[str, int | str], dict[int, int]] = {}
    for step, index, row in iter_firings(trace, *MODULE_HOOK_KINDS):
        if row.module is not None and "global" not in row.flags:
            steps.setdefault((row.kind, row.key), {}).setdefault(index, step)
    found: dict[object, Finding] = {}
    for firings in steps.values():
        firings = _keep_copies(trace, firings)
        if len({trace.hook_rows[index].module for index in firings}) > 1:
            finding = _make_copied(trace, firings)
            found.setdefault((finding.hooks[0].name, finding.file, finding.line), finding)
    return list(found.values())


def _keep_copies(trace: TraceData, firings: dict[int, int]) -> dict[int, int]:
    """Keep the hooks of the first one's function, on modules that share no parameter with its module.

    Hooks of two processes may have one number; and what ``copy.copy`` makes has the same hooks for good.
    """
    rows = {index: trace.hook_rows[index] for index in firings}
    first = next(iter(rows.values()))
    assert first.module is not None
    own = f"{trace.modules[first.module].name}."
    leaves = {node for node, name in trace.lookup.leaf_names.items() if name.startswith(own)}
    calls = (trace.owners.get(start) for (start, _slot), (end, _output) in trace.edges.items() if end in leaves)
    using = {trace.calls[call].module for call in calls if call is not None} - {first.module}
    kept = {index for index, row in rows.items() if function_of(row) == function_of(first) and row.module not in using}
    return {index: step for index, step in firings.items() if index in kept}


def _make_copied(trace: TraceData, firings: dict[int, int]) -> Finding:
    first, second = list(firings)[:2]
    hook, other, row = trace.hook(first), trace.hook(second), trace.hook_rows[first]
    names = {"hook": hook.label, "on": hook.on, "other": other.on}
    finding = Finding(
        firings[second],
        "copied",
        _("{hook} was registered once and fires on two modules: {on} and {other}.").format(**names),
        "remark",
        cause=join_sentences([_(_COPY), *([_(_COPIED_OBJECT).format(**names)] if row.bound else [])]),
        advice=_(_REGISTER_ANEW if row.bound else _COPY_FIRST),
        hooks=(hook, other),
    )
    return put_line(finding, *find_hook_line(hook, row.registered_at))


# -- hooks whose handle was overwritten


def list_overwritten_handles(trace: TraceData) -> list[Finding]:
    """List the hooks that changed something after the removal, those of one function and one variable together.

    One that only looks does no harm. It is a warning if the hook that was removed has the same function, as in a loop
    over layers; a program may well keep a hook, and use the variable again for another one.
    """
    groups: dict[object, dict[object, int]] = {}
    for step, _index, hook in iter_firings(trace, *HOOK_KINDS):
        if _was_spared(hook, step) and trace.rows[step].effect in ("edited", "replaced"):
            group = hook.kind, *function_of(hook), hook.overwritten_at, hook.spared_at
            groups.setdefault(group, {}).setdefault(hook.key, step)
    return [_make_overwritten(trace, list(steps.values())) for steps in groups.values()]


def _was_spared(hook: HookRow, step: int) -> bool:
    """Return whether another hook was removed in the place of this one before a step, at a line that is known."""
    return bool(hook.overwritten_at and hook.spared_at) and hook.spared is not None and hook.spared <= step


def _make_overwritten(trace: TraceData, steps: list[int]) -> Finding:
    """Describe the hooks that changed something at some steps."""
    indexes = list_hooks_at(trace, steps)
    row, hooks = trace.hook_rows[indexes[0]], tuple(map(trace.hook, indexes))
    hook, removed_at = hooks[0], describe_place(*split_place(row.spared_at))
    text = _("{hook} on {on} still fires after remove() was called ({removed}), and changes what it gets.")
    sentence = text.format(hook=hook.label, on=hook.on, removed=removed_at)
    cause = _(
        "Its handle was overwritten ({overwritten}): the variable got the handle of another hook, and remove() took "
        "away that one."
    )
    others: list[HookRow | UnfiredRow] = [*trace.hook_rows, *trace.unfired_rows]
    removed = [other for other in others if other.key == row.overwritten_by]
    is_same = any(function_of(other) == function_of(row) for other in removed)
    finding = Finding(
        steps[0],
        "overwritten",
        join_sentences([sentence, *tell_same(hooks)]),
        "warning" if is_same else "remark",
        cause=cause.format(overwritten=describe_place(*split_place(row.overwritten_at))),
        advice=_("Keep each handle, as in a list, and call remove() on each."),
        hooks=hooks,
    )
    return put_line(finding, *find_hook_line(hook, row.overwritten_at, "overwrites"))
