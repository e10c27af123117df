"""Check the data of a JSON file against the format and build a trace from it."""

from typing import Any, get_args, get_origin

from hookviz.storage.schema import DamagedError, NumberText, check_file, shorten_fault
from hookviz.support.messages import _
from hookviz.support.progress import progress_if_long
from hookviz.trace import TraceData
from hookviz.trace.cells import Change, declared_columns, declared_tables, make_change, marks_of, row_type_of
from hookviz.trace.columns import Nested


def decode_trace(data: Any) -> TraceData:
    """Check ``data``, which ``encode_trace`` has made, and return the trace.

    Raises:
        DamagedError: ``data`` does not follow the format; the message says where.
    """
    try:
        return _decode_file(check_file(data))
    except RecursionError:
        raise DamagedError(_("its lists are nested too deeply")) from None


def _decode_file(file: Any) -> TraceData:
    tables = declared_tables()
    sizes = {name: _count_rows(getattr(file, name), declared) for name, declared in tables.items()}
    with progress_if_long(
        _("Reading the file: {n} of {total}").format(n="{n}", total="{total}"), sum(sizes.values())
    ) as tick:
        decoded = {}
        for name, declared in tables.items():
            decoded[name] = _decode_table(getattr(file, name), declared, sizes[name])
            tick(sizes[name])
    return TraceData(**decoded)


def _count_rows(table: Any, declared: Any) -> int:
    """Return the number of rows of a table; 0 for what is no table."""
    if row_type_of(declared) is None:
        return len(table) if isinstance(table, list) else 0
    return max(len(getattr(table, column)) for column in table.__struct_fields__)


def _decode_table(table: Any, declared: Any, count: int) -> Any:
    """Return a table of a file, or anything else in it, as a trace has it."""
    row_type = row_type_of(declared)
    if row_type is not None:
        columns = declared_columns(row_type).items()
        return list(map(row_type, *(_decode_column(row_type, *column, table, count) for column in columns)))
    if get_origin(declared) is dict:
        change = make_change(get_args(declared)[1], _choose_decoder)
        return dict(table) if change is None else {key: change(value, None) for key, value in table}
    if get_origin(declared) is set:
        return set(table)
    change = make_change(declared, _choose_decoder)
    return table if change is None else change(table, None)


def _decode_column(row_type: Any, name: str, declared: Any, table: Any, count: int) -> list[Any]:
    """Return the ``count`` cells of a column: those of the file, or the default if the file has none."""
    cells: list[Any] = getattr(table, name)
    if len(cells) < count:
        return [row_type._field_defaults[name]] * count
    change = make_change(declared, _choose_decoder)
    return cells if change is None else [change(cell, None) for cell in cells]


def _choose_decoder(declared: Any) -> Change | None:
    """Return the function that decodes a number that JSON may not be able to write, or a tuple with names."""
    if Nested() in marks_of(declared):
        return lambda x, _ignored: _decode_setting(x)
    if declared is Any or declared is float:
        return lambda x, _ignored: _decode_number(x)
    if isinstance(declared, type) and declared_columns(declared):
        return lambda x, _ignored: declared(*x)
    return None


def _decode_setting(x: Any) -> Any:
    return tuple(_decode_setting(part) for part in x) if isinstance(x, list) else _decode_number(x)


def _decode_number(x: Any) -> Any:
    """Decode a number, or lists of numbers at any depth."""
    if isinstance(x, list):
        return [_decode_number(part) for part in x]
    if isinstance(x, NumberText):
        return _read_number(x.number)
    return _read_number(x.get("number", x)) if isinstance(x, dict) else x


def _read_number(text: Any) -> complex:
    """Read a number that JSON cannot write from its text."""
    try:
        return complex(text) if "j" in text else float(text)
    except (TypeError, ValueError):
        raise DamagedError(_("{text} is not a number").format(text=shorten_fault(repr(text)))) from None
