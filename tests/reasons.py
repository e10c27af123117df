"""What a trace says of each hook by itself: why it did not fire, or what is surprising about it."""

from typing import NamedTuple

from hookviz import Hook, Trace
from hookviz.analysis.findings.hooks.cause import Cause
from hookviz.analysis.findings.hooks.silent_hooks import list_silent_hooks
from hookviz.analysis.hook_counts import HookCount


class HookReason(NamedTuple):
    """A hook that did not fire, or fired in a surprising way, and why."""

    name: str
    on: str
    cause: str
    """The key of its explanation."""
    kind: str
    is_proven: bool
    is_placed: bool
    """Whether the trace shows where the cause is."""
    fired: int
    step: int | None
    sentence: str
    advice: str
    hook: Hook
    severity: str


def reasons(trace: Trace) -> list[HookReason]:
    """List the hooks of ``trace.hooks`` that have a finding of their own."""
    causes = {_identify(silent.hook): silent.cause for silent in list_silent_hooks(trace._data)}
    return [_make_reason(row, causes[_identify(row.hook)]) for row in trace.hooks if row.finding is not None]


def _make_reason(row: HookCount, cause: Cause) -> HookReason:
    one = row.finding
    assert one is not None
    return HookReason(
        row.name, row.on, cause.key, one.kind, one.certainty != "open", cause.place is not None, row.fired, one.step,
        one.cause, one.advice, row.hook, one.severity,
    )  # fmt: skip


def _identify(hook: Hook) -> tuple[str, str, str, int | None]:
    return hook.kind, hook.on, hook.name, hook.line
