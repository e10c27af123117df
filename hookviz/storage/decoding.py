"""Check the data of a JSON file against the format and build a trace from it."""

from collections.abc import Callable
from typing import Any

from hookviz.storage.format import ROW_TYPES, TraceT
from hookviz.storage.schema import DamagedError, NumberText, TraceFile, check_file, shorten_fault
from hookviz.support.messages import say
from hookviz.support.progress import progress_if_long
from hookviz.trace import HookPlace, Note
from hookviz.trace.value_rows import ValueRow


def decode_trace(data: Any, trace_type: type[TraceT]) -> TraceT:
    """Check ``data``, which ``encode_trace`` has made, and return it as a ``trace_type``.

    Raises:
        DamagedError: ``data`` does not follow the format; the message says where.
    """
    try:
        return _decode_file(check_file(data), trace_type)
    except RecursionError:
        raise DamagedError(say("damaged.nested")) from None


def _decode_file(file: TraceFile, trace_type: type[TraceT]) -> TraceT:
    rows_of_tables = (len(getattr(getattr(file, name), row_type._fields[0])) for name, row_type in ROW_TYPES.items())
    count = len(file.values) + sum(rows_of_tables)
    with progress_if_long(say("progress.reading", n="{n}", total="{total}"), count) as tick:
        rows: dict[str, Any] = {name: _decode_rows(file, name, row, tick) for name, row in ROW_TYPES.items()}
        values = [_decode_value(row) for row in file.values]
        tick(len(values))
    return trace_type(
        values=values,
        ops=file.ops,
        edges={(a, b): (c, d) for a, b, c, d in file.edges},
        owners=dict(file.owners),
        roots=file.roots,
        hooked=file.hooked,
        pass_numbers=file.pass_numbers,
        outside=set(file.outside),
        rank=file.rank,
        ranks=file.ranks,
        statistics=file.statistics,
        remarks=[Note(*note) for note in file.remarks],
        dropped=file.dropped,
        **rows,
    )


def _decode_rows(file: TraceFile, table_name: str, row_type: Any, tick: Callable[..., object]) -> list[Any]:
    """Return the rows of one table as ``row_type``."""
    table = getattr(file, table_name)
    count = max(len(getattr(table, column)) for column in row_type._fields)
    columns = (_decode_column(column, getattr(table, column), row_type, count) for column in row_type._fields)
    rows = list(map(row_type, *columns))
    tick(len(rows))
    return rows


def _decode_column(column: str, cells: list[Any], row_type: Any, count: int) -> list[Any]:
    """Return the ``count`` cells of a column: those of the file, or the default if the file has none."""
    if len(cells) == count:
        return [None if x is None else _DECODERS[column](x) for x in cells] if column in _DECODERS else cells
    return [row_type._field_defaults[column]] * count


def _decode_place(x: Any) -> HookPlace:
    return HookPlace(*x)


def _decode_note(x: Any) -> Note:
    return Note(*x)


def _decode_setting(x: Any) -> Any:
    """Decode a setting of an op.

    A setting may be a text, so a number that JSON cannot write (``inf``, ``1+2j``) is kept in an object.
    """
    if isinstance(x, NumberText):
        return _decode_number(x.number)
    if isinstance(x, dict):
        return _decode_number(x.get("number", x))
    return tuple(_decode_setting(part) for part in x) if isinstance(x, list) else x


def _decode_rates(x: Any) -> tuple[Any, ...]:
    return tuple(map(_decode_setting, x))


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "plain": _decode_setting,
    "scale": _decode_setting,
    "rates": _decode_rates,
    "place": _decode_place,
    "note": _decode_note,
}
"""Column → the function that decodes its cells; the cells of other columns are used unchanged."""


def _decode_value(row: tuple[Any, ...]) -> ValueRow:
    shape, dtype, device, numbers, statistics, note = row
    decoded = None if statistics is None else tuple(map(_decode_numbers, statistics))
    return (shape, dtype, device, _decode_numbers(numbers), decoded, None if note is None else Note(*note))


def _decode_numbers(x: Any) -> Any:
    """Decode a number, or lists of numbers at any depth."""
    if isinstance(x, list):
        return [_decode_numbers(part) for part in x]
    return _decode_number(x) if isinstance(x, str) else x


def _decode_number(text: Any) -> complex:
    """Read a number that JSON cannot write from its text."""
    try:
        return complex(text) if "j" in text else float(text)
    except (TypeError, ValueError):
        raise DamagedError(say("damaged.number", text=shorten_fault(repr(text)))) from None
