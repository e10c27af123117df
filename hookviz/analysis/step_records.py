"""The steps of a trace as flat records of plain data, and as a pandas data frame."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hookviz.analysis.step_lines import StepLines
from hookviz.support.messages import _
from hookviz.support.optional_modules import load_optional
from hookviz.trace import Step, TraceData
from hookviz.trace.values import Value, Values, as_tuple

if TYPE_CHECKING:
    import pandas as pd

StepRecord = dict[str, Any]
"""A step as plain data; ``Trace.to_records`` describes the fields."""

_COUNT, _COUNT_OR_NONE, _NUMBER, _TEXT = "int64", "Int64", "float64", "string"
COLUMNS = {
    "step": _COUNT,
    "pass": _COUNT,
    "kind": _TEXT,
    "on": _TEXT,
    "op": _TEXT,
    "module": _TEXT,
    "call": _COUNT_OR_NONE,
    "hook": _TEXT,
    "effect": _TEXT,
    "file": _TEXT,
    "line": _COUNT_OR_NONE,
    "tensors": _COUNT,
    "shape": "object",
    "dtype": _TEXT,
    "norm_before": _NUMBER,
    "norm_after": _NUMBER,
    "min": _NUMBER,
    "max": _NUMBER,
    "mean": _NUMBER,
    "nan": _COUNT_OR_NONE,
    "inf": _COUNT_OR_NONE,
    "zero": _COUNT_OR_NONE,
}
"""The fields of a record → their types in a data frame."""


def make_records(trace: TraceData) -> list[StepRecord]:
    """Return one record per step, in order."""
    lines = StepLines(trace)
    return [_make_record(step, lines) for step in trace.steps]


def make_data_frame(trace: TraceData) -> "pd.DataFrame":
    """Return the records as a data frame.

    Raises:
        ImportError: pandas is not installed; the message says how to install it.
    """
    missing = _(
        'to_pandas() needs pandas, which is not installed: install it with "pip install pandas", or use to_records().'
    )
    pandas = load_optional("pandas", missing)
    records = make_records(trace)
    columns = {name: [record[name] for record in records] for name in COLUMNS}
    frame: pd.DataFrame = pandas.DataFrame(
        {name: pandas.Series(columns[name], dtype=kind) for name, kind in COLUMNS.items()}
    )
    return frame


def _make_record(step: Step, lines: StepLines) -> StepRecord:
    call = _find_call(step)
    row = None if call is None else step.trace.calls[call]
    file, line = _find_place(step, lines)
    return {
        "step": step.index,
        "pass": step.pass_id,
        "kind": step.kind,
        "on": step.on,
        "op": None if step.node is None else step.trace.ops[step.node],
        "module": None if row is None else step.trace.module(row.module),
        "call": None if row is None else row.number,
        "hook": None if step.hook is None else step.hook.label,
        "effect": step.effect,
        "file": file,
        "line": line,
        **_describe_values(step),
    }


def _find_call(step: Step) -> int | None:
    """Return the module call that a step is about, or that made its node."""
    if step.row.call is not None:
        return step.row.call
    return None if step.node is None else step.trace.owners.get(step.node)


def _find_place(step: Step, lines: StepLines) -> tuple[str | None, int | None]:
    """Return (file, line): where the hook is defined or, for other steps, the line of code that the player marks."""
    if step.hook is not None:
        return step.hook.file, step.hook.line
    return lines.place(step) or (None, None)


def _describe_values(step: Step) -> dict[str, Any]:
    """Describe the tensors after the step, or before it if it has none after it."""
    before, after = _list_values(step.before), _list_values(step.after)
    shown = after or before
    low, high, mean, _ignored, nan, inf, zero = _merge_statistics(shown)
    return {
        "tensors": len(shown),
        "shape": shown[0].shape if len(shown) == 1 else None,
        "dtype": shown[0].dtype if len({value.dtype for value in shown}) == 1 else None,
        "norm_before": _merge_statistics(before)[3],
        "norm_after": _merge_statistics(after)[3],
        "min": low,
        "max": high,
        "mean": mean,
        "nan": nan,
        "inf": inf,
        "zero": zero,
    }


def _list_values(values: Values) -> list[Value]:
    several = as_tuple(values)
    return [value for value in several if value is not None]


def _merge_statistics(values: Sequence[Value]) -> tuple[Any, ...]:
    """Return the ``Statistics`` of all numbers in ``values``; None for a statistic that one of them lacks."""
    if not values or any(value.note is not None for value in values):
        return (None,) * 7
    filled = [value for value in values if 0 not in value.shape] or values[:1]
    if len(filled) == 1:
        return filled[0].statistics
    sizes = [math.prod(value.shape) for value in filled]
    merges: list[Callable[..., float]] = [
        min,
        max,
        partial(_average, sizes=sizes),
        lambda norms: math.hypot(*norms),
        sum,
        sum,
        sum,
    ]
    columns = zip(*(value.statistics for value in filled), strict=True)
    return tuple(_merge(function, parts) for function, parts in zip(merges, columns, strict=True))


def _merge(function: Callable[..., float], parts: Sequence[float | None]) -> float | None:
    """Apply ``function`` to ``parts``: None if one of them is None, NaN if one of them is NaN."""
    if None in parts:
        return None
    return math.nan if any(part != part for part in parts) else function(parts)


def _average(means: Sequence[float], sizes: Sequence[int]) -> float:
    return sum(mean * size for mean, size in zip(means, sizes, strict=True)) / sum(sizes)
