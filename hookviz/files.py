"""A trace as a file: versioned JSON, read back exactly as it was written."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookviz.trace import HookRow, StepRow, TensorRow, Trace
from hookviz.values import Row
from hookviz.words import say

FORMAT, VERSION = "hookviz", 1

_ROWS: dict[str, Callable[..., Any]] = {"tensors": TensorRow, "hook_rows": HookRow, "rows": StepRow}


def encode(trace: Trace) -> dict[str, Any]:
    """The trace as JSON's own types; steps, tensors and hooks as columns, which are shorter than objects."""
    columns = {name: _columns(getattr(trace, name), kind) for name, kind in _ROWS.items()}
    return {
        "format": FORMAT,
        "version": VERSION,
        "ops": trace.ops,
        "edges": [[*start, *end] for start, end in trace.edges.items()],
        "roots": trace.roots,
        "notes": trace.notes,
        "values": [_encode_value(row) for row in trace.values],
        **columns,
    }


def _columns(rows: list[Any], kind: Any) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in kind._fields}


def _encode_value(row: Row) -> list[Any]:
    shape, dtype, device, numbers, statistics, note = row
    return [shape, dtype, device, _encode(numbers), _encode(statistics), note]


def _encode(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return [_encode(part) for part in x]
    if isinstance(x, complex) or (isinstance(x, float) and not math.isfinite(x)):
        return str(x)  # JSON has neither
    return x


def decode(data: dict[str, Any]) -> Trace:
    """The trace that ``encode`` wrote."""
    rows = {name: _decode_rows(data[name], kind) for name, kind in _ROWS.items()}
    edges = {(a, b): (c, d) for a, b, c, d in data["edges"]}
    roots = [[(node, output) for node, output in places] for places in data["roots"]]
    values = [_decode_value(row) for row in data["values"]]
    return Trace(ops=data["ops"], edges=edges, roots=roots, notes=data["notes"], values=values, **rows)


def _decode_rows(columns: dict[str, list[Any]], kind: Any) -> list[Any]:
    return [kind(*map(_tuples, row)) for row in zip(*(columns[name] for name in kind._fields), strict=True)]


def _tuples(x: Any) -> Any:
    return tuple(_tuples(part) for part in x) if isinstance(x, list) else x


def _decode_value(row: list[Any]) -> Row:
    shape, dtype, device, numbers, statistics, note = row
    counted = None if statistics is None else tuple(_decode(statistics))
    return (tuple(shape), dtype, device, _decode(numbers), counted, note)


def _decode(x: Any) -> Any:
    if isinstance(x, list):
        return [_decode(part) for part in x]
    if isinstance(x, str):
        return complex(x) if "j" in x else float(x)
    return x


def load(path: str | Path) -> Trace:
    """The trace that ``Trace.save`` wrote to ``path``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no trace, a damaged one, or one of a newer version; the message says which.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(say("error.load.missing", path=path)) from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(say("error.load.json", path=path, why=error)) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("version"), int):
        raise ValueError(say("error.load.format", path=path))
    if data["version"] > VERSION:
        raise ValueError(say("error.load.newer", path=path, version=data["version"], known=VERSION))
    try:
        return decode(data)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(say("error.load.broken", path=path, why=repr(error))) from None
