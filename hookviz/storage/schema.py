"""The format of trace files: version, limits, and the schema, which follows from what the tables of a trace declare.

A file is one JSON object. A table is an object with one column (a list) for each field of its rows; a column is left
out if every row has the default in it. A dict is a list of pairs. ``integrity`` checks what types cannot say.
"""

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from hookviz.support.messages import _
from hookviz.trace.cells import declared_columns, declared_tables, row_type_of
from hookviz.trace.columns import AtMost, Between, Long, OneOf

FORMAT, VERSION = "hookviz", 1

MAX_NAME_LENGTH, MAX_TEXT_LENGTH = 10_000, 1_000_000
"""In characters. Names have the lower limit because a player repeats them; texts are source texts, errors and notes."""
MAX_FILE_SIZE = 2**29
"""In bytes. Reading a file takes about ten times its size in memory, and the views of the trace take more."""
MAX_INDEX = 2**53
"""The largest index: JavaScript represents whole numbers exactly up to here."""


class NumberText(Struct):
    """A number that JSON cannot write: ``nan``, ``inf``, ``1+2j``."""

    number: Annotated[str, Meta(max_length=100)]


def file_type(declared: Any) -> Any:
    """Return what a file holds for something that a row or trace declares so: a type that msgspec checks.

    >>> file_type(tuple[int, ...])
    tuple[typing.Annotated[int, msgspec.Meta(ge=0, le=9007199254740992)], ...]
    """
    origin, parts = get_origin(declared), get_args(declared)
    if origin is Annotated:
        return _marked_type(declared)
    if origin in (Union, UnionType):
        return Union[tuple(part if part is NoneType else file_type(part) for part in parts)]  # noqa: UP007
    if origin is dict:
        return list[_tuple_of(*parts)]  # type: ignore[misc]
    if origin in (list, set):
        return list[file_type(parts[0])]  # type: ignore[misc]
    if origin is tuple:
        return _tuple_of(*parts)
    return _plain_type(declared)


def _tuple_of(*parts: Any) -> Any:
    """Return what a file holds for a tuple of these parts."""
    return tuple.__class_getitem__(tuple(part if part is ... else file_type(part) for part in parts))


def _plain_type(declared: Any) -> Any:
    """Return what a file holds for a type without parts and marks, or for a NamedTuple."""
    if declared is int:
        return Annotated[int, Meta(ge=0, le=MAX_INDEX)]
    if declared is float:
        return float | NumberText
    if declared is str:
        return Annotated[str, Meta(max_length=MAX_NAME_LENGTH)]
    columns = declared_columns(declared) if isinstance(declared, type) else None
    return _tuple_of(*columns.values()) if columns else declared


def _marked_type(declared: Any) -> Any:
    inner, *marks = get_args(declared)
    for mark in marks:
        if isinstance(mark, Between):
            return Annotated[int, Meta(ge=mark.low, le=mark.high)]
        if isinstance(mark, OneOf):
            return Literal[mark.words]
        if isinstance(mark, AtMost):
            return Annotated[file_type(inner), Meta(max_length=mark.count)]
        if isinstance(mark, Long):
            return Annotated[str, Meta(max_length=MAX_TEXT_LENGTH)]
    return file_type(inner)


@cache
def _columns_type(row_type: type) -> type[Struct]:
    """Return the type of the columns of a table; those whose field has a default may be left out."""
    defaults = getattr(row_type, "_field_defaults", {})
    columns: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, declared in declared_columns(row_type).items():
        cells = list.__class_getitem__(file_type(declared))
        columns.append((name, cells, msgspec.field(default_factory=list)) if name in defaults else (name, cells))
    return msgspec.defstruct(f"{row_type.__name__}s", columns, module=__name__)


@cache
def trace_file_type() -> type[Struct]:
    """Return the type of a trace file."""
    fields: list[tuple[str, Any]] = [("format", Literal[FORMAT]), ("version", Literal[VERSION])]
    for name, declared in declared_tables().items():
        row_type = row_type_of(declared)
        fields.append((name, file_type(declared) if row_type is None else _columns_type(row_type)))
    return msgspec.defstruct("TraceFile", fields, module=__name__)


def check_file(data: Any) -> Any:
    """Convert the data of a JSON file to a ``trace_file_type()``, and check types, ranges and sizes.

    Raises:
        ValueError, msgspec.ValidationError: something is missing, or has a wrong type, range or size.

    >>> check_file({"format": "hookviz", "version": 1})
    Traceback (most recent call last):
    msgspec.ValidationError: Object missing required field `ops`
    """
    file: Any = msgspec.convert(data, trace_file_type())
    tables = ((name, getattr(file, name)) for name in file.__struct_fields__)
    for name, table in ((name, one) for name, one in tables if isinstance(one, Struct)):
        optional = table.__struct_fields__[len(table.__struct_fields__) - len(table.__struct_defaults__) :]
        columns = {column: len(getattr(table, column)) for column in table.__struct_fields__}
        if len({length for column, length in columns.items() if length or column not in optional}) > 1:
            raise ValueError(_("the columns of {table} differ in length").format(table=name))
    return file


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def make_schema() -> dict[str, Any]:
    """Describe the types, ranges and sizes of everything in a trace file, in the words of JSON Schema.

    How the tables refer to each other, which ``hookviz.load`` checks, too, is beyond a schema.

    >>> sorted(make_schema()["$defs"]["TraceFile"]["properties"])[:3]
    ['calls', 'clips', 'cut_rows']
    """
    return {"$schema": DIALECT, "title": f"hookviz trace, version {VERSION}", **msgspec.json.schema(trace_file_type())}
