"""A trace as a file: versioned JSON, read back exactly as it was written."""

import json
import math
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookviz.storage.format import FORMAT, LARGEST, LONGEST_NAME, LONGEST_TEXT, ROWS, VERSION, Kind
from hookviz.support.atomic_files import path_of
from hookviz.support.interpreter import gc_paused
from hookviz.support.messages import say
from hookviz.support.printable import printable
from hookviz.support.progress import maybe
from hookviz.trace import StepRow, TraceData
from hookviz.trace.value_rows import ValueRow


@gc_paused()
def encode(trace: TraceData) -> dict[str, Any]:
    """The trace as JSON's own types; steps, tensors and hooks as columns, which are shorter than objects."""
    with maybe(say("progress.writing", n="{n}", total="{total}"), _size(trace)) as tick:
        columns = {name: _columns(getattr(trace, name), kind, tick) for name, kind in ROWS.items()}
        values = [_encode_value(row) for row in trace.values]
        tick(len(values))
    return {
        "format": FORMAT,
        "version": VERSION,
        "ops": [op[:LONGEST_NAME] for op in trace.ops],
        "edges": [[*start, *end] for start, end in trace.edges.items()],
        "owners": list(trace.owners.items()),
        "roots": trace.roots,
        "hooked": trace.hooked,
        "outside": sorted(trace.outside),
        "rank": trace.rank,
        "ranks": trace.ranks,
        "statistics": trace.statistics,
        "remarks": [_marked(note, LONGEST_TEXT) for note in trace.remarks],
        "dropped": trace.dropped,
        "values": values,
        "explained": trace.explained,
        **columns,
    }


_AS_THEY_ARE = {int, bool, type(None)}
"""JSON writes these as they are: of a large trace, most columns."""


def _size(trace: TraceData) -> int:
    """How many things a file of this trace holds."""
    return len(trace.values) + sum(len(getattr(trace, name)) * len(kind._fields) for name, kind in ROWS.items())


def _columns(rows: list[Any], kind: Any, tick: Callable[..., object]) -> dict[str, list[Any]]:
    columns = {}
    for place, name in enumerate(kind._fields):
        most = LONGEST_TEXT if name in ("text", "error", "note") else LONGEST_NAME
        column = [row[place] for row in rows]
        tick(len(rows))
        if kind is StepRow and name in kind._field_defaults and column.count(kind._field_defaults[name]) == len(column):
            continue
        columns[name] = column if _AS_THEY_ARE.issuperset(map(type, column)) else [_marked(x, most) for x in column]
    return columns


def _marked(x: Any, most: int) -> Any:
    """A setting of an op may be a number that JSON does not have; unlike a value's it may also be a text.

    Of a text that is longer than the format allows, the first ``most`` characters.
    """
    if isinstance(x, str):
        return x[:most]
    if isinstance(x, tuple):
        return [_marked(part, most) for part in x]
    known = _encode(x)
    return {"number": known} if isinstance(known, str) else x


def _encode_value(row: ValueRow) -> list[Any]:
    shape, dtype, device, numbers, statistics, note = row
    return [shape, dtype, device, _encode(numbers), _encode(statistics), note and _marked(note, LONGEST_TEXT)]


def _encode(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return [_encode(part) for part in x]
    if isinstance(x, complex) or (isinstance(x, float) and not math.isfinite(x)):
        return str(x)  # JSON has neither
    return x


@gc_paused()
def read(path: str | Path, make: type[Kind]) -> Kind:
    """The trace in the file ``path``, as a ``make``: see ``hookviz.load``."""
    from hookviz.storage.decoding import decode  # only now: hookviz is imported more often than a file is read
    from hookviz.storage.integrity import fault_of
    from hookviz.storage.schema import DamagedError

    place = path_of(path)
    named = printable(str(place))
    data = _parsed(_read(place, named), named)
    try:
        trace = decode(data, make)
        fault = fault_of(trace)
    except DamagedError as error:
        fault = str(error)
    if fault:
        raise ValueError(say("error.load.broken", path=named, why=fault))
    return trace


def _read(path: Path, named: str) -> bytes:
    """All bytes of a file; a pipe or a device, which may have no end, is not opened."""
    try:
        found = path.stat()
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise ValueError(say("error.load.kind", path=named))
        if found.st_size > LARGEST:
            raise ValueError(say("error.load.large", path=named, most=f"{LARGEST // 2**20:,}"))
        with path.open("rb") as file:
            return file.read(found.st_size)
    except FileNotFoundError:
        raise FileNotFoundError(say("error.load.missing", path=named)) from None
    except OSError as error:
        raise type(error)(say("error.load.read", path=named, why=error.strerror)) from None


class _ConstantError(ValueError):
    """Python reads NaN and Infinity, which JSON does not have and ``save`` never writes."""


def _refuse(name: str) -> None:
    raise _ConstantError(say("damaged.constant", name=name))


def _parsed(content: bytes, named: str) -> Any:
    """The JSON object of a trace of this version."""
    try:
        data = json.loads(content.decode("utf-8"), parse_constant=_refuse)
    except (UnicodeDecodeError, json.JSONDecodeError, _ConstantError, RecursionError) as error:
        raise ValueError(say("error.load.json", path=named, why=error)) from None
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        raise ValueError(say("error.load.json", path=named, why=say("damaged.digits"))) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or type(data.get("version")) is not int:
        raise ValueError(say("error.load.format", path=named))
    if data["version"] > VERSION:
        version = data["version"] if data["version"] < 10**6 else "…"
        raise ValueError(say("error.load.newer", path=named, version=version, known=VERSION))
    return data
