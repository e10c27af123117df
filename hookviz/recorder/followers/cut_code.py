"""Where in the user's code an op runs, and how it runs there."""

import linecache
from itertools import islice
from types import FrameType
from typing import NamedTuple

import torch

from hookviz.recorder.torch.grad_modes import APPLY_HAS_A_FRAME, grad_mode, is_function_running
from hookviz.support.columns import truncate
from hookviz.support.printable import make_printable
from hookviz.support.source_code import shorten_filename
from hookviz.trace.training_rows import CutKind

GRAPH_MAY_FOLLOW: tuple[CutKind, ...] = (
    ("function", "checkpoint") if APPLY_HAS_A_FRAME else ("function", "checkpoint", "no_grad")
)
"""The kinds of cuts that are none if the output gets a graph afterwards, as that of an ``autograd.Function`` does.

Without a frame of ``apply``, its own ops cannot be told from those of a ``no_grad`` block.
"""
MAX_CODE = 80
"""Longer code is shortened; an ellipsis says so."""


class OpCode(NamedTuple):
    """The place of an op in the user's code."""

    file: str | None
    line: int
    text: str | None


def read_code(frame: FrameType) -> OpCode:
    """Read the expression that ``frame`` computes just now; its text is None if Python does not have it."""
    code = frame.f_code
    positions = next(islice(code.co_positions(), max(frame.f_lasti, 0) // 2, None), (None,) * 4)
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    text = _cut_out(lines, *positions)
    shown = None if text is None else truncate(make_printable(text), MAX_CODE)
    return OpCode(shorten_filename(code.co_filename), frame.f_lineno, shown or None)


def _cut_out(lines: list[str], first: int | None, last: int | None, start: int | None, end: int | None) -> str | None:
    """Cut a part out of ``lines``; Python counts columns in bytes of UTF-8."""
    if first is None or last is None or start is None or end is None or not 0 < first <= last <= len(lines):
        return None
    part = [line.encode() for line in lines[first - 1 : last]]
    part[-1] = part[-1][:end]
    part[0] = part[0][start:]
    return b"".join(part).decode(errors="replace")


def find_mode() -> CutKind:
    """Return how the calling op runs: ``graph``, or where torch records none."""
    if torch.is_grad_enabled():
        return "graph"
    mode = grad_mode()
    if mode != "no_grad":
        return "graph" if mode == "grad" else mode
    return "function" if is_function_running() else "no_grad"
