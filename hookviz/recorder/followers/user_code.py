"""Writes down where the user's code starts passes and calls modules, and keeps its text."""

import inspect
import linecache
import re
import sys
import tokenize
from collections.abc import Collection, Container
from types import CodeType, FrameType
from typing import Any

import torch

from hookviz.analysis.assignments import read_program
from hookviz.autograd.variable_names import is_library_file
from hookviz.recorder.follower import Follower, PassStart
from hookviz.recorder.followers.called_code import Definition, list_definitions
from hookviz.support.source_code import list_notebook_cells, shorten_filename
from hookviz.support.wrapped_functions import is_installed_file
from hookviz.trace import LineRow, SourceRow, TraceData

MAX_LINES = 1_000
"""Files, notebook cells and functions up to this length are kept as a whole."""
PART_LINES = 60
"""The lines that are kept of a longer function, or of a longer program outside of functions."""
MAX_DEFINITIONS = 100
"""The most functions and classes that are kept because kept code names them."""


class UserCode(Follower):
    """Fills ``TraceData.sources`` and ``TraceData.lines``."""

    def __init__(self, trace: TraceData, given_names: Container[str], op_lines: Collection[tuple[str, int]]) -> None:
        self._trace, self._given_names, self._op_lines = trace, given_names, op_lines
        self._by_code: dict[int, tuple[CodeType, int | None]] = {}
        """``id`` of the code of a function → the code, so that no other gets its ``id``, and its source."""
        self._by_row: dict[SourceRow, int] = {}
        self._variables: dict[int, dict[str, Any]] = {}
        """Source → the variables of its module, until the recording ends."""

    def call_written(self, call: int, module: torch.nn.Module) -> None:
        """Note the line that calls a module, if the user's code calls it: not a module of torch, or another library."""
        frame = _calling_frame(sys._getframe(1))
        source = None if frame is None else self._source_of(frame)
        if frame is not None and source is not None:
            self._trace.lines.append(LineRow(source, frame.f_lineno, call=call))

    def pass_begins(self, start: PassStart) -> None:
        """Note the line that starts a pass, and which notebook cells assigned its tensors.

        A name that the user has given says nothing about a variable.
        """
        pass_id, first_tensor = start.snapshot.pass_id, start.snapshot.tensors.first_row
        frame = _calling_frame(sys._getframe(1))
        source = None if frame is None else self._source_of(frame)
        if frame is None or source is None:
            return
        names = sorted({row.name for row in self._trace.tensors[first_tensor:] if row.name.isidentifier()})
        given: dict[str, int | None] = {name: None for name in names if name in self._given_names}
        assigned = {**self._cells_of(names), **given}
        self._trace.lines.append(LineRow(source, frame.f_lineno, pass_id=pass_id, names=tuple(assigned.items())))

    def close(self) -> None:
        """Keep the functions and classes that kept code names, and those that these name.

        A function that calls no module, such as a helper in another file, leaves no line; it may cut the graph. Note
        the lines of kept code that ran an op that can cut.
        """
        self._add_definitions()
        places = {(shorten_filename(filename), line) for filename, line in self._op_lines}
        for index, row in enumerate(self._trace.sources):
            last = row.line + row.text.count("\n")
            inside = sorted(line for file, line in places if file == row.file and row.line <= line <= last)
            self._trace.lines += [LineRow(index, line) for line in inside]

    def _add_definitions(self) -> None:
        waiting = [(self._trace.sources[source].text, found) for source, found in self._variables.items()]
        self._variables.clear()
        most = len(self._trace.sources) + MAX_DEFINITIONS
        for text, variables in waiting:  # grows meanwhile
            for definition in list_definitions(text, variables):
                if len(self._trace.sources) == most:
                    return
                row = _read_definition(definition, self._trace.sources)
                if row is not None:
                    self._add(row)
                    waiting.append((row.text, definition.variables))

    def _source_of(self, frame: FrameType) -> int | None:
        """Return the index of the text that a frame runs; None if Python has none."""
        code, line = frame.f_code, frame.f_lineno
        known = self._by_code.get(id(code))
        if known is None:
            row = _read_source(code, line)
            known = self._by_code[id(code)] = code, None if row is None else self._add(row)
            if known[1] is not None:
                self._variables.setdefault(known[1], frame.f_globals)
        index = known[1]
        if index is not None and not _has_line(self._trace.sources[index], line):  # of a long text only a part is kept
            row = _read_source(code, line)
            index = None if row is None else self._add(row)
            self._by_code[id(code)] = code, index
        return index

    def _add(self, row: SourceRow) -> int:
        index = self._by_row.setdefault(row, len(self._trace.sources))
        if index == len(self._trace.sources):
            self._trace.sources.append(row)
        return index

    def _cells_of(self, names: list[str]) -> dict[str, int | None]:
        """Return name → the notebook cell that bound it last; None if that cell may not have done so."""
        found: dict[str, int | None] = {}
        for filename, failed in list_notebook_cells() if names else ():
            text = "".join(linecache.getlines(filename))
            program = read_program(text) if any(name in text for name in names) else None
            bound = {} if program is None else program.module_names()
            for name in bound.keys() & set(names):
                may_be_skipped = failed or (bound[name] and name in found)
                row = None if may_be_skipped else _read_file(filename)
                found[name] = None if row is None else self._add(row)
        return found


def _is_forward_of_module(code: CodeType) -> bool:
    """Return whether a function is the forward of a module, not that of an ``autograd.Function``, as of checkpoint."""
    return code.co_name == "forward" and code.co_varnames[:1] == ("self",)


def _calling_frame(frame: FrameType) -> FrameType | None:
    """Return the innermost frame that is neither ours nor torch's, if it runs the user's own code.

    None if a module of torch stands between, such as ``Sequential``: the user's line calls that module.
    """
    caller: FrameType | None = frame
    while caller is not None and is_library_file(caller.f_code.co_filename):
        caller = None if _is_forward_of_module(caller.f_code) else caller.f_back
    if caller is None or is_installed_file(caller.f_code.co_filename):
        return None
    filename = caller.f_code.co_filename
    while caller.f_code.co_name in _INNER_NAMES:
        outer = caller.f_back
        if outer is None or outer.f_code.co_filename != filename:
            break
        caller = outer
    return caller


_INNER_NAMES = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>"})
"""What runs inside a statement of the function around it."""


def _has_line(row: SourceRow, line: int) -> bool:
    return row.whole or row.line <= line < row.line + row.text.count("\n")


def _read_file(filename: str) -> SourceRow | None:
    """Return a whole file or cell; None if it is too long, or Python does not have its text."""
    lines = linecache.getlines(filename)
    if not lines or len(lines) > MAX_LINES:
        return None
    return SourceRow(shorten_filename(filename), 1, "".join(lines), True)


def _read_definition(definition: Definition, kept: list[SourceRow]) -> SourceRow | None:
    """Return the text of a function or class; None if it is kept or too long, or Python does not have it."""
    filename, name = definition.code.co_filename, definition.class_name
    file, lines = shorten_filename(filename), linecache.getlines(filename)
    near = [row for row in kept if row.file == file]
    if any(row.whole for row in near):
        return None
    head = re.compile(rf"\s*class {name}\b")
    heads = (number for number, line in enumerate(lines, 1) if head.match(line))
    first = next(heads, 0) if name else definition.code.co_firstlineno
    if not 0 < first <= len(lines):
        return None
    length = _count_block_lines(filename, first)
    is_kept = any(row.line < first + length and first < row.line + row.text.count("\n") for row in near)
    text = "".join(lines[first - 1 : first - 1 + length])
    return None if is_kept or length > MAX_LINES else SourceRow(file, first, text, False)


def _count_block_lines(filename: str, first: int) -> int:
    """Return the number of lines of the function or class in line ``first``; 1 for a lambda inside a statement."""
    lines = linecache.getlines(filename)
    known, count = _block_lines.get((filename, first), (None, 0))
    if known is lines:
        return count
    try:
        count = len(inspect.getblock(lines[first - 1 :]))
    except (SyntaxError, tokenize.TokenError):
        count = 1
    _block_lines[filename, first] = lines, count
    return count


_block_lines: dict[tuple[str, int], tuple[list[str], int]] = {}
"""File and first line → the lines of the file, and how many the block has: counting takes longer than a small pass.

A file that has changed has other lines in ``linecache``.
"""


def _read_source(code: CodeType, line: int) -> SourceRow | None:
    """Return the file of ``code`` if it is short, else its function, or the lines around ``line``."""
    lines = linecache.getlines(code.co_filename)
    if not 0 < line <= len(lines):
        return None
    whole = _read_file(code.co_filename)
    if whole is not None:
        return whole
    first, last = 1, len(lines)
    if code.co_name != "<module>":
        first = code.co_firstlineno
        last = first - 1 + _count_block_lines(code.co_filename, first)
    if last - first >= MAX_LINES or not first <= line <= last:
        first, last = max(first, line - PART_LINES // 2), min(last, line + PART_LINES // 2)
    return SourceRow(shorten_filename(code.co_filename), first, "".join(lines[first - 1 : last]), False)
