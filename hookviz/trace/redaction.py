"""Remove confidential data from a trace: the source code of hooks, or the numbers of tensors."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from hookviz.support.messages import say
from hookviz.support.printable import describe_type
from hookviz.trace.notes import Note
from hookviz.trace.rows import BACKWARD_LOCATION, HookRow, StepRow
from hookviz.trace.unfired_rows import UnfiredRow
from hookviz.trace.value_rows import ValueRow

if TYPE_CHECKING:
    from hookviz.trace.trace import TraceData

HookRowT = TypeVar("HookRowT", HookRow, UnfiredRow)


def redact(trace: "TraceData", *, source: bool = True, values: bool = True) -> "TraceData":
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
        if not isinstance(flag, bool):
            raise TypeError(say("error.flag", name=name, kind=describe_type(flag)))
    if source and values:
        return trace
    remarks = [] if source else [Note.of("redacted.source")]
    remarks += [] if values else [Note.of("redacted.values")]
    remarks += [Note.of("redacted.notes", count=len(trace.remarks))] if trace.remarks else []
    # The program around a pass has the values in it, too: ``a = torch.tensor(2.0)``.
    copy = replace(trace, remarks=remarks, rows=[_without_message(row) for row in trace.rows], sources=[], lines=[])
    if not source:
        copy.hook_rows = [_without_source(row) for row in trace.hook_rows]
        copy.unfired_rows = [
            _without_source(row)._replace(removed_at=None, registered_at=None) for row in trace.unfired_rows
        ]
        copy.cut_rows = [row._replace(file=None, line=None, text=None) for row in trace.cut_rows]
        copy.saved = [row._replace(plain=None) if row.name == BACKWARD_LOCATION else row for row in trace.saved]
    if not values:
        copy.values = [_without_numbers(row) for row in trace.values]
        copy.cut_rows = [row._replace(text=None) for row in copy.cut_rows]
        copy.saved, copy.scales, copy.nonfinite = [], [], []
        copy.updates = [row._replace(rates=(None,) * len(row.rates), zero=False) for row in trace.updates]
        copy.rows = [row._replace(found_inf=False) if row.kind == "unscale" else row for row in copy.rows]
    return copy


def _without_source(row: HookRowT) -> HookRowT:
    name = re.sub(r"\blambda\b.*", "lambda", row.name, flags=re.DOTALL)
    if name != row.name:
        name += ")" * name.count("(")  # the lambda was inside one or more partial(...)
    return row._replace(name=name, file=None, line=None, text=None, mark=None)


def _without_numbers(row: ValueRow) -> ValueRow:
    shape, dtype, device, *_ = row
    return (shape, dtype, device, None, None, Note.of("redacted.value"))


def _without_message(row: StepRow) -> StepRow:
    if row.kind == "exception" and row.error is not None:
        return row._replace(error=row.error.partition(":")[0])
    if row.kind == "unobserved":
        return row._replace(note=Note.of("redacted.unobserved"))
    return row
