"""Encode traces as versioned JSON, read trace files, and decode what they hold."""

import json
import math
import stat
from pathlib import Path
from typing import Any, get_args, get_origin

from hookviz.storage.integrity import find_fault
from hookviz.storage.schema import (
    FORMAT,
    MAX_FILE_SIZE,
    MAX_NAME_LENGTH,
    MAX_TEXT_LENGTH,
    VERSION,
    DamagedError,
    NumberText,
    check_file,
    shorten_fault,
)
from hookviz.support.atomic_files import to_path
from hookviz.support.interpreter import gc_paused
from hookviz.support.messages import N_, _
from hookviz.support.printable import make_printable
from hookviz.trace import TraceData
from hookviz.trace.cells import Change, declared_columns, declared_tables, is_long, make_change, marks_of, row_type_of
from hookviz.trace.columns import Nested

_NOT_JSON = N_("{path} is not a trace: it is not JSON ({why}). Load a file that {writers} wrote.")
_DAMAGED_JSON = N_(
    "{path} is a damaged trace: its JSON breaks off or has a fault ({why}). Copy it again, or record it again with "
    "{writers}."
)
_WRITERS = N_("trace.save(...) or hookviz run --record FILE")
"""What writes a trace, in Python and in a terminal."""
_BEGINNING = f'{{"format": "{FORMAT}"'.encode()
"""How the file of a trace begins."""


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
    name = make_printable(str(file))
    data = _parse_json(_read_bytes(file, name), name)
    try:
        trace = decode_trace(data)
        fault = find_fault(trace)
    except DamagedError as error:
        fault = str(error)
    if fault:
        raise ValueError(
            _("{path} is a damaged trace: {why}. Copy it again, or record it again.").format(path=name, why=fault)
        )
    return trace


def _fill(text: str, name: str, **parts: object) -> str:
    """Fill a message about the file ``name``."""
    return text.format(path=name, writers=_(_WRITERS), **parts)


def _read_bytes(path: Path, name: str) -> bytes:
    """Read all bytes of a file. Pipes and devices are refused, since they may never end."""
    try:
        status = path.stat()
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise ValueError(_fill(_("{path} is not an ordinary file: load a file that {writers} wrote."), name))
        if status.st_size > MAX_FILE_SIZE:
            raise ValueError(
                _(
                    "{path} is larger than {most} MB, and hookviz does not read larger files. Record less: "
                    "hv.record(keep=10) or hookviz run --keep 10 keeps the last passes."
                ).format(path=name, most=f"{MAX_FILE_SIZE // 2**20:,}")
            )
        with path.open("rb") as file:
            return file.read(status.st_size)
    except FileNotFoundError:
        raise FileNotFoundError(
            _fill(_("There is no file {path}: check the name, or write a trace there with {writers}."), name)
        ) from None
    except IsADirectoryError as error:
        raise IsADirectoryError(
            _("{path} cannot be read: it is a folder. Name a file in it.").format(path=name)
        ) from error
    except OSError as error:
        raise type(error)(_("{path} cannot be read: {why}.").format(path=name, why=error.strerror)) from None


class _ConstantError(ValueError):
    """The file contains NaN or Infinity: Python reads them, but they are not JSON and ``save`` never writes them."""


def _refuse_constant(constant: str) -> None:
    raise _ConstantError(_("{name} is not a number in JSON").format(name=constant))


def _parse_json(content: bytes, name: str) -> Any:
    """Parse the JSON object of a trace file whose version this hookviz can read."""
    if not content.strip():
        raise ValueError(_fill(_("{path} is empty. Record it again with {writers}."), name))
    try:
        data = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except (UnicodeDecodeError, json.JSONDecodeError, _ConstantError, RecursionError) as error:
        is_cut = isinstance(error, json.JSONDecodeError) and content.startswith(_BEGINNING)
        text = _DAMAGED_JSON if is_cut else _NOT_JSON
        raise ValueError(_fill(_(text), name, why=error)) from None
    except ValueError:  # Python refuses whole numbers of more than 4,300 digits
        raise ValueError(_fill(_(_NOT_JSON), name, why=_("a number has too many digits"))) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or type(data.get("version")) is not int:
        raise ValueError(
            _fill(
                _("{path} is not a trace: it is JSON, but hookviz did not write it. Load a file that {writers} wrote."),
                name,
            )
        )
    if data["version"] > VERSION:
        version = data["version"] if data["version"] < 10**6 else "…"
        raise ValueError(
            _(
                "{path} is a trace of version {version}; this hookviz reads version {known}. Update hookviz to open it."
            ).format(path=name, version=version, known=VERSION)
        )
    return data


# -- from checked JSON to a trace


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


def _read_number(text: Any) -> complex:
    """Read a number that JSON cannot write from its text."""
    try:
        return complex(text) if "j" in text else float(text)
    except (TypeError, ValueError):
        raise DamagedError(_("{text} is not a number").format(text=shorten_fault(repr(text)))) from None
