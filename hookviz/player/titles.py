"""The title of a page: the statement that started the pass, or the name of the script."""

import ast
from textwrap import dedent

from hookviz.player.step_words import describe_content
from hookviz.support.messages import _
from hookviz.trace import LineRow, TraceData

MAX_TITLE = 90
"""The most characters of a statement in a title."""


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
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    # Outer statements come first. Of several in one line, that with ``backward`` started the pass.
    simple = [node for node in around if not hasattr(node, "body")]
    found = [ast.get_source_segment(text, node) or "" for node in simple]
    chosen = [segment for segment in found if "backward" in segment or "grad(" in segment] or found
    return " ".join(chosen[-1].split()) if chosen else ""
