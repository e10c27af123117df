"""What a trace says of each hook by itself: why it did not fire, or what is surprising about it."""

from typing import NamedTuple

from hookviz import Hook, Trace


class HookReason(NamedTuple):
    """A hook that did not fire, or fired in a surprising way, and why."""

    name: str
    on: str
    cause: str
    is_proven: bool
    fired: int
    step: int | None
    sentence: str
    advice: str
    hook: Hook
    severity: str


def reasons(trace: Trace) -> list[HookReason]:
    """List the hooks of ``trace.hooks`` that have a finding of their own."""
    found = [(row, row.finding) for row in trace.hooks if row.finding is not None]
    return [
        HookReason(
            row.name, row.on, one.kind, one.certainty != "open", row.fired, one.step, one.cause, one.advice, row.hook,
            one.severity,
        )
        for row, one in found
    ]  # fmt: skip
