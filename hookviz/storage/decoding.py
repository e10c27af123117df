"""A trace out of what a JSON file holds, once that is seen to be of the format."""

from collections.abc import Callable
from typing import Any

from hookviz.storage.format import ROWS, VERSION, Kind
from hookviz.storage.schema import DamagedError, File, Number, checked, shortened
from hookviz.storage.version_1 import FileVersion1, upgraded
from hookviz.support.messages import say
from hookviz.support.progress import maybe
from hookviz.trace import HookPlace, Note
from hookviz.trace.value_rows import ValueRow


def decode(data: Any, make: type[Kind]) -> Kind:
    """The trace that ``encode`` wrote as ``data``, as a ``make``.

    Raises:
        DamagedError: it is not of the format; the message says what is wrong.
    """
    try:
        file = upgraded(checked(data, FileVersion1)) if data["version"] < VERSION else checked(data, File)
        return _decode_file(file, make)
    except RecursionError:
        raise DamagedError(say("damaged.nested")) from None


def _decode_file(file: File, make: type[Kind]) -> Kind:
    count = len(file.values) + sum(len(getattr(getattr(file, name), kind._fields[0])) for name, kind in ROWS.items())
    with maybe(say("progress.reading", n="{n}", total="{total}"), count) as tick:
        rows: dict[str, Any] = {name: _decode_rows(file, name, kind, tick) for name, kind in ROWS.items()}
        values = [_decode_value(row) for row in file.values]
        tick(len(values))
    return make(
        values=values,
        ops=file.ops,
        edges={(a, b): (c, d) for a, b, c, d in file.edges},
        owners=dict(file.owners),
        roots=file.roots,
        hooked=file.hooked,
        outside=set(file.outside),
        rank=file.rank,
        ranks=file.ranks,
        statistics=file.statistics,
        remarks=[Note(*note) for note in file.remarks],
        dropped=file.dropped,
        explained=file.explained,
        **rows,
    )


def _decode_rows(file: File, name: str, kind: Any, tick: Callable[..., object]) -> list[Any]:
    table = getattr(file, name)
    count = max(len(getattr(table, column)) for column in kind._fields)
    rows = list(map(kind, *(_decode_column(table, column, kind, count) for column in kind._fields)))
    tick(len(rows))
    return rows


def _decode_column(table: Any, name: str, kind: Any, count: int) -> list[Any]:
    """What ``count`` rows of a table have under one name: what the file holds, or the default."""
    cells: list[Any] = getattr(table, name)
    if len(cells) == count:
        return [None if x is None else _READ[name](x) for x in cells] if name in _READ else cells
    if name not in kind._field_defaults:
        raise DamagedError(say("damaged.column", table=type(table).__name__.lower(), column=name))
    return [kind._field_defaults[name]] * count


def _place(x: Any) -> HookPlace:
    return HookPlace(*x)


def _note(x: Any) -> Note:
    return Note(*x)


def _setting(x: Any) -> Any:
    """A setting of an op: a number that JSON does not have stands in an object, since it may be a text as well."""
    if isinstance(x, Number):
        return _number(x.number)
    if isinstance(x, dict):
        return _number(x.get("number", x))
    return tuple(_setting(part) for part in x) if isinstance(x, list) else x


def _notes(x: Any) -> tuple[Note, ...]:
    return tuple(Note(*note) for note in x)


_READ: dict[str, Callable[[Any], Any]] = {
    "plain": _setting,
    "scale": _setting,
    "place": _place,
    "note": _note,
    "notes": _notes,
}
"""Column → what makes of what stands in the file what stands in a row."""


def _decode_value(row: tuple[Any, ...]) -> ValueRow:
    shape, dtype, device, numbers, statistics, note = row
    counted = None if statistics is None else tuple(map(_decode, statistics))
    return (shape, dtype, device, _decode(numbers), counted, None if note is None else Note(*note))


def _decode(x: Any) -> Any:
    if isinstance(x, list):
        return [_decode(part) for part in x]
    return _number(x) if isinstance(x, str) else x


def _number(text: Any) -> complex:
    """A number that JSON does not have."""
    try:
        return complex(text) if "j" in text else float(text)
    except (TypeError, ValueError):
        raise DamagedError(say("damaged.number", text=shortened(repr(text)))) from None
