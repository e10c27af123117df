"""Encode traces as versioned JSON, read trace files, and decode what they hold."""

import json
import math
import stat
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from hookviz.storage.integrity import find_fault
from hookviz.storage.schema import (
    FORMAT,
    MAX_FILE_SIZE,
    MAX_NAME_LENGTH,
    MAX_TEXT_LENGTH,
    VERSION,
    NumberText,
    check_file,
)
from hookviz.support.atomic_files import to_path
from hookviz.support.interpreter import gc_paused
from hookviz.support.messages import _
from hookviz.support.printable import make_printable
from hookviz.support.terminal_text import truncate
from hookviz.trace import TraceData
from hookviz.trace.cells import Change, declared_columns, declared_tables, is_long, make_change, marks_of, row_type_of
from hookviz.trace.columns import Nested

MAX_FAULT_LENGTH = 200
"""In characters: an error message shortens longer faults."""


@gc_paused()
def encode_trace(trace: TraceData) -> dict[str, Any]:
    """Convert ``trace`` to JSON types. Tables become columns, which take less space than one object per row."""
    encoded = {name: _encode_table(getattr(trace, name), declared) for name, declared in declared_tables().items()}
    return {"format": FORMAT, "version": VERSION, **encoded}


_JSON_TYPES = {int, bool, type(None)}
"""Cells of these types need no conversion; most columns of a large trace have no others."""


def _encode_table(table: Any, declared: Any) -> Any:
    """Convert a table, or anything else in a trace, to JSON types."""
    row_type = row_type_of(declared)
    if row_type is not None:
        return _encode_columns(table, row_type)
    if isinstance(table, dict):
        return [list(item) for item in table.items()]
    if isinstance(table, set):
        return sorted(table)
    return _encode_cell(table, MAX_TEXT_LENGTH if is_long(declared) else MAX_NAME_LENGTH)


def _encode_columns(rows: list[Any], row_type: Any) -> dict[str, list[Any]]:
    """Convert the rows of a table to columns; a column that has only defaults is left out."""
    columns = {}
    for index, (name, declared) in enumerate(declared_columns(row_type).items()):
        column = [row[index] for row in rows]
        defaults = row_type._field_defaults
        if name in defaults and column.count(defaults[name]) == len(column):
            continue
        max_length = MAX_TEXT_LENGTH if is_long(declared) else MAX_NAME_LENGTH
        needs_no_encoding = _JSON_TYPES.issuperset(map(type, column))
        columns[name] = column if needs_no_encoding else [_encode_cell(x, max_length) for x in column]
    return columns


def _encode_cell(x: Any, max_length: int) -> Any:
    """Convert a cell to JSON types, and cut texts to ``max_length`` characters."""
    if isinstance(x, str):
        return x[:max_length]
    if isinstance(x, tuple | list):
        return [_encode_cell(part, max_length) for part in x]
    if isinstance(x, complex) or (isinstance(x, float) and not math.isfinite(x)):
        return {"number": str(x)}  # JSON cannot write complex numbers, NaN or infinity
    return x


@gc_paused()
def read_trace(path: str | Path) -> TraceData:
    """Read the file ``path``: see ``hookviz.load``."""
    file = to_path(path)
    content = _read_bytes(file)
    try:
        trace = decode_trace(json.loads(content.decode()))
        fault = find_fault(trace)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        fault = str(error)
    if fault:
        raise ValueError(
            _(
                "{path} is damaged, or not a trace: {why}. Load a file that trace.save(...) or hookviz run --record "
                "FILE wrote."
            ).format(path=make_printable(str(file)), why=_shorten(fault))
        )
    return trace


def _shorten(text: str) -> str:
    """Return a fault on one line of at most ``MAX_FAULT_LENGTH`` characters, however long the text."""
    return truncate(make_printable(text[: 2 * MAX_FAULT_LENGTH]), MAX_FAULT_LENGTH)


def _read_bytes(path: Path) -> bytes:
    """Read all bytes of a file. Pipes and devices are refused, since they may never end."""
    status = path.stat()
    is_special = not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode))
    if is_special or status.st_size > MAX_FILE_SIZE:
        raise ValueError(
            _("{path} is not read: hookviz reads ordinary files of up to {most} MB.").format(
                path=make_printable(str(path)), most=f"{MAX_FILE_SIZE // 2**20:,}"
            )
        )
    with path.open("rb") as file:
        return file.read(status.st_size)


# -- from checked JSON to a trace


def decode_trace(data: Any) -> TraceData:
    """Check ``data``, which ``encode_trace`` has made, and return the trace.

    Raises:
        ValueError, msgspec.ValidationError, RecursionError: ``data`` does not follow the format.
    """
    file = check_file(data)
    return TraceData(**{name: _decode_table(getattr(file, name), one) for name, one in declared_tables().items()})


def _decode_table(table: Any, declared: Any) -> Any:
    """Return a table of a file, or anything else in it, as a trace has it."""
    row_type = row_type_of(declared)
    if row_type is not None:
        count = max(len(getattr(table, column)) for column in table.__struct_fields__)
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


def _read_number(number: Any) -> complex:
    """Read a number that JSON cannot write from its text."""
    text = str(number)
    return complex(text) if "j" in text else float(text)
