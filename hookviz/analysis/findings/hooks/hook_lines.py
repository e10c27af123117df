"""The line that a finding about a hook shows: where the hook was registered or removed, or else where it is defined."""

from hookviz.analysis.findings.hooks.program_text import find_return
from hookviz.support.source_code import split_place
from hookviz.trace import Hook


def find_hook_line(hook: Hook, where: str | None, role: str = "registered") -> tuple[str | None, int | None, str]:
    """Return file, line and role of a place; those of the function of the hook if the place is not known."""
    file, line = split_place(where)
    return (hook.file, hook.line, "hook") if line is None else (file, line, role)


def find_returning_line(hook: Hook, where: str | None = None) -> tuple[str | None, int | None, str]:
    """Return file, line and role of the line of a hook that returns a value; without one, as ``find_hook_line``."""
    line = find_return(hook)
    return find_hook_line(hook, where) if line is None else (hook.file, line, "returns")
