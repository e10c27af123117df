"""The user's code in a player: texts that all its runs share, the line of each step, and what a page takes as title."""

import ast
from collections.abc import Callable
from textwrap import dedent

from hookviz.analysis.findings.parameters.cutting_code import parse_source
from hookviz.analysis.step_lines import StepLines
from hookviz.player.payload import CodeLine, SourceText
from hookviz.player.step_words import describe_content
from hookviz.support.messages import N_, _
from hookviz.trace import LineRow, SourceRow, Step, TraceData

MAX_LINES = 30
"""A text of more lines is sent from just above the first line that a step belongs to until just below the last."""
MARGIN = 3
"""The lines that are sent above and below."""
MAX_TITLE = 90
"""The most characters of a statement in a title."""


class CodeTexts:
    """The texts of the user's code that the steps of a player belong to, each once."""

    def __init__(self) -> None:
        self._indices: dict[SourceRow, int] = {}
        self._used: dict[SourceRow, set[int]] = {}

    def add(self, lines: StepLines) -> Callable[[Step], CodeLine | None]:
        """Add the texts of the lines of a trace; return what finds the lines of a step of it in all texts."""
        indices: dict[int, int] = {}
        for number, used in lines.used_lines().items():
            source = lines.sources[number]
            indices[number] = self._indices.setdefault(source, len(self._indices))
            self._used.setdefault(source, set()).update(used)

        def find_lines(step: Step) -> CodeLine | None:
            found = lines.line(step)
            if found is None:
                return None
            running, made = (
                place[1] if place is not None and place[0] == found.source else None
                for place in (lines.running_line(step), lines.making_line(step))
            )
            return indices[found.source], running, found.note, None if made == running else made

        return find_lines

    def texts(self) -> list[SourceText]:
        """Return all texts that were added."""
        return [_text(_trim(source, self._used[source])) for source in self._indices]


def _trim(source: SourceRow, used: set[int]) -> SourceRow:
    """Return the part of ``source`` around the lines that are used."""
    lines = source.text.splitlines(keepends=True)
    if len(lines) <= MAX_LINES or not used:
        return source
    first = max(min(used) - MARGIN, source.line)
    last = min(max(used) + MARGIN, source.line + len(lines) - 1)
    part = "".join(lines[first - source.line : last + 1 - source.line])
    return source._replace(line=first, text=part, whole=source.whole and part == source.text)


def _text(source: SourceRow) -> SourceText:
    return {"title": _title(source), "text": source.text, "first_line": source.line}


def _title(source: SourceRow) -> str:
    """Return the file or notebook cell of a text; with its lines if it is not the whole file."""
    if source.whole:
        return source.file or ""
    last = source.line + max(len(source.text.splitlines()) - 1, 0)
    text = N_("{file}, lines {first}–{last}") if source.file else N_("lines {first}–{last}")
    return _(text).format(file=source.file or "", first=source.line, last=last)


def describe_program(trace: TraceData) -> str:
    """Return what a trace is about: the statement of its only pass, else the script and how many passes it ran.

    Without the program it is what the steps are about.
    """
    about = describe_content(trace)
    start = next((row for row in trace.lines if row.pass_id is not None), None)
    if start is None:
        return about
    file = (trace.sources[start.source].file or "").rpartition("/")[2]
    if len(trace.lookup.passes) > 1:
        return _("{file}: {about}").format(file=file, about=about) if file else about
    statement = _find_statement(trace, start)
    return statement if 0 < len(statement) <= MAX_TITLE else about


def _find_statement(trace: TraceData, start: LineRow) -> str:
    """Return the innermost statement around the line that started a pass, on one line; empty if it cannot be read."""
    source = trace.sources[start.source]
    text, line = dedent(source.text), start.line - source.line + 1
    around = [
        node
        for node in ast.walk(parse_source(source.text))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    # Outer statements come first. Of several in one line, that with ``backward`` started the pass.
    simple = [node for node in around if not hasattr(node, "body")]
    found = [ast.get_source_segment(text, node) or "" for node in simple]
    chosen = [segment for segment in found if "backward" in segment or "grad(" in segment] or found
    return " ".join(chosen[-1].split()) if chosen else ""
