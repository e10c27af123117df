"""Remove confidential data from a trace: the source code of hooks, or the numbers of tensors."""

import re
from collections.abc import Set
from dataclasses import replace
from functools import partial
from typing import Any

from hookviz.support.printable import check_flag
from hookviz.trace.cells import LOST, Change, change_tables, make_change, marks_of
from hookviz.trace.columns import Secret, Shows
from hookviz.trace.notes import Note
from hookviz.trace.rows import BACKWARD_LOCATION, StepRow
from hookviz.trace.trace import TraceData
from hookviz.trace.value_rows import ValueRow


def redact(trace: TraceData, *, source: bool = True, values: bool = True) -> TraceData:
    """Return a copy of ``trace`` without source code or values; ``trace`` itself does not change.

    ``source=False`` removes the source text, file and line of hooks; a lambda, whose name is its text, is renamed to
    ``lambda``. ``values=False`` removes all numbers from tensors and all numbers computed from them, the settings that
    operations saved, the scales of a GradScaler, and whether it found Inf or NaN; shapes, dtypes and devices stay.
    Either one also removes the program around the passes, which shows its source and often its numbers, and notes and
    the messages of exceptions, which may quote anything. The names of tensors, modules, functions and exceptions
    always stay.

    Raises:
        TypeError: ``source`` or ``values`` is not a boolean.
    """
    for name, flag in (("source", source), ("values", values)):
        check_flag(name, flag)
    if source and values:
        return trace
    remarks = [] if source else [Note.of("redacted.source")]
    remarks += [] if values else [Note.of("redacted.values")]
    ends = [note for note in trace.remarks if note.fact == "raised"]
    remarks += [Note.of("raised", error=str(dict(note.details)["error"]).partition(":")[0]) for note in ends]
    others = len(trace.remarks) - len(ends)
    remarks += [Note.of("redacted.notes", count=others)] if others else []
    secrets: set[Secret] = {*(() if source else ("source",)), *(() if values else ("values",))}
    copy = replace(trace, remarks=remarks, rows=[_without_message(row) for row in trace.rows])
    change_tables(copy, partial(make_change, choose=partial(_choose_secret, secrets)))
    if not source:
        copy.hook_rows = [row._replace(name=_name_without_source(row.name)) for row in copy.hook_rows]
        copy.unfired_rows = [row._replace(name=_name_without_source(row.name)) for row in copy.unfired_rows]
        copy.saved = [row._replace(plain=None) if row.name == BACKWARD_LOCATION else row for row in copy.saved]
    if not values:
        copy.values = [_without_numbers(row) for row in copy.values]
    return copy


def _choose_secret(secrets: Set[Secret], declared: Any) -> Change | None:
    """Return the change of a cell that shows one of ``secrets``: it is lost."""
    shown = next((mark.secrets for mark in marks_of(declared) if isinstance(mark, Shows)), ())
    return (lambda *_ignored: LOST) if secrets & set(shown) else None


def _name_without_source(name: str) -> str:
    """Return the name of a hook; that of a lambda, which is its text, is only ``lambda``."""
    shown = re.sub(r"\blambda\b.*", "lambda", name, flags=re.DOTALL)
    # The lambda may have been inside one or more partial(...).
    return shown if shown == name else shown + ")" * shown.count("(")


def _without_numbers(row: ValueRow) -> ValueRow:
    shape, dtype, device, *_ignored = row
    return (shape, dtype, device, None, None, Note.of("redacted.value"))


def _without_message(row: StepRow) -> StepRow:
    if row.kind == "exception" and row.error is not None:
        return row._replace(error=row.error.partition(":")[0])
    if row.kind == "unobserved":
        return row._replace(note=Note.of("redacted.unobserved"))
    return row
