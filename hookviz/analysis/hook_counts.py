"""Count how often each hook fired, in each pass."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.hooks.silent_hooks import list_silent_hooks
from hookviz.support.messages import N_, _, join_sentences
from hookviz.support.table import ShownRow, Table, cells_of, head_of
from hookviz.trace import HOOK_KINDS, Hook, TraceData
from hookviz.trace.hook_facts import name_of_kind

_NO_HOOKS = N_(
    "No hook was registered on what hookviz looked at: the models that were given, what was called, and the tensors "
    "and optimizers in your variables. A hook on a model that did not run is listed only if it was registered during "
    "the recording, or if you pass the model: hv.record(model)."
)
MAX_PASSES = 10
"""The table shows the counts of up to this many passes one by one."""


@dataclass(frozen=True, repr=False)
class HookCount(ShownRow):
    """A hook of a recording, and how often it fired."""

    hook: Hook
    """The hook, with its owner and the place of its source."""
    fired: int
    """How often it fired in the passes that the trace holds."""
    passes: tuple[int, ...]
    """How often it fired in each of these passes. A forward counts for the pass that follows it."""
    finding: Finding | None = None
    """Why it did not fire, or what is surprising about its firings; None if there is nothing to say."""

    @property
    def on(self) -> str:
        """The name of the tensor, node, module or optimizer."""
        return self.hook.on

    @property
    def name(self) -> str:
        """The name of the hook function."""
        return self.hook.name

    def _columns(self) -> dict[str, str]:
        why = "" if self.finding is None else join_sentences([self.finding.cause, self.finding.advice])
        columns = {_("hook"): self.hook.label, _("on"): self.on, _("kind"): name_of_kind(self.hook.kind)}
        columns |= {_("fired"): str(self.fired), _("in each pass"): _describe_counts(self.passes)}
        return columns | {_("where"): self.hook.where, _("why"): why}


class HookKey(NamedTuple):
    """What a hook has in common in a recording and in a census: torch numbers hooks, and a copied module keeps them."""

    key: int | str
    kind: str
    on: str
    name: str


def count_firings(trace: TraceData) -> dict[HookKey, HookCount]:
    """Count the firings of every hook that a trace knows: those that fired in order of their first firing."""
    firings = Counter((row.hook, row.pass_id) for row in trace.rows if row.hook is not None and row.kind in HOOK_KINDS)
    hooks: dict[HookKey, Hook] = {}
    numbers: dict[HookKey, list[int]] = {}
    for index in dict.fromkeys(hook for hook, _ignored in firings):
        hook = trace.hook(index)
        key = _make_key(trace.hook_rows[index].key, hook)
        hooks.setdefault(key, hook)
        numbers.setdefault(key, []).append(index)
    passes = trace.lookup.passes
    counts = {key: tuple(sum(firings[index, one] for index in numbers[key]) for one in passes) for key in hooks}
    found = {key: HookCount(hooks[key], sum(counts[key]), counts[key]) for key in hooks}
    for silent in list_silent_hooks(trace):
        key = _make_key(silent.key, silent.hook)
        count = found.get(key) or HookCount(silent.hook, 0, (0,) * len(passes))
        found[key] = count if count.finding is not None else replace(count, finding=silent.make_finding())
    return found


def _make_key(key: int | str, hook: Hook) -> HookKey:
    return HookKey(key, hook.kind, hook.on, hook.name)


def find_count(counts: dict[HookKey, HookCount], key: int | str, hook: Hook) -> HookCount | None:
    """Return the count of a hook that is registered now under ``key``; None if the trace does not know it."""
    return counts.get(_make_key(key, hook))


def list_hooks(trace: TraceData) -> Table[HookCount]:
    """List every hook of a recording, those that did not fire last."""
    counts = list(count_firings(trace).values())
    head = head_of(counts)
    if all(count.finding is None for count in counts):
        head = head[:-1]
    return Table(counts, head, lambda row: cells_of(row)[: len(head)], nothing=_(_NO_HOOKS))


def _describe_counts(passes: tuple[int, ...]) -> str:
    """Describe how often a hook fired in each pass, such as "1, 0, 2"; of many passes, in how many it fired.

    >>> _describe_counts((1, 0, 2)), _describe_counts((1,) * 50)
    ('1, 0, 2', 'in 50 of 50')
    """
    if len(passes) <= MAX_PASSES:
        return ", ".join([str(count) for count in passes])
    fired = sum(map(bool, passes))
    return _("in {count} of {total}").format(count=f"{fired:,}", total=f"{len(passes):,}")
