"""The schema of trace files: the type, range and size of everything in a file.

A file is one JSON object, ``TraceFile``. Most of its fields are tables: objects with one column (a list) for each field
of the rows in ``hookviz.trace.rows``. Types cannot express how tables refer to each other; ``integrity`` checks that.
"""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from hookviz.storage.format import MAX_NAME_LENGTH, MAX_TEXT_LENGTH
from hookviz.support.columns import truncate
from hookviz.support.messages import say
from hookviz.support.printable import make_printable
from hookviz.trace.missing_rows import CutKind
from hookviz.trace.rows import Effect, GradMode, Subject, Synchroniser

MAX_INDEX = 2**53
"""The largest index: JavaScript represents whole numbers exactly up to here."""
MAX_DIMENSIONS = 128
"""The most dimensions of a tensor; most operations of torch allow only 64."""
MAX_FAULT_LENGTH = 200
"""In characters: an error message shortens longer faults."""

Index = Annotated[int, Meta(ge=0, le=MAX_INDEX)]
"""The index of a row, a position, or a count."""
Name = Annotated[str, Meta(max_length=MAX_NAME_LENGTH)]
"""The name of a tensor, an op, a module, a hook or a file. A player repeats names, so they are limited in length."""
LongText = Annotated[str, Meta(max_length=MAX_TEXT_LENGTH)]
"""A source text, the message of an error, or an argument of a note."""
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
NonFiniteText = Literal["nan", "inf", "-inf"]
"""Numbers that JSON cannot write, as text."""
FileFloat = float | NonFiniteText
Indexes = Index | None | tuple[Index | None, ...]
"""The values of a step: one index, several, or none."""


class NumberText(Struct):
    """A number that JSON cannot write (``inf``, ``1+2j``), in a cell that may also hold a text."""

    number: Annotated[str, Meta(max_length=100)]


class TensorColumns(Struct):
    """Columns of ``TensorRow``."""

    pass_id: list[Index]
    node: list[Index]
    output: list[Index]
    name: list[Name]
    leaf: list[bool]
    retains_grad: list[bool]
    data: list[Index | None]
    grad: list[Index | None]


class SavedColumns(Struct):
    """Columns of ``SavedRow``."""

    pass_id: list[Index]
    node: list[Index]
    name: list[Name]
    value: list[Indexes]
    plain: list[Any]
    """A setting: null, a boolean, a number, a text, a ``NumberText``, or a list of these; ``integrity`` checks it."""
    why: list[Literal["hooks", "changed", "large", "many", "none", "torch"] | None]


class ScaleColumns(Struct):
    """Columns of ``ScaleRow``."""

    pass_id: list[Index]
    scale: list[float | NumberText]
    at: list[tuple[Index, ...]]
    others: list[tuple[Index, ...]]


class HookColumns(Struct):
    """Columns of ``HookRow``."""

    kind: list[Name]
    node: list[Index | None]
    output: list[Index | None]
    key: list[Int64 | Name]
    name: list[Name]
    file: list[Name | None]
    line: list[Index | None]
    text: list[LongText | None]
    mark: list[Index | None]
    module: list[Index | None]
    flags: list[tuple[Literal["with_kwargs", "always_call", "global"], ...]]


class ModuleColumns(Struct):
    """Columns of ``ModuleRow``, which describes modules and optimizers."""

    name: list[Name]
    kind: list[Name]


class CallColumns(Struct):
    """Columns of ``CallRow``."""

    module: list[Index]
    number: list[Index]
    parent: list[Index | None]
    recomputed: list[bool]
    mode: list[GradMode]
    takes_grad: list[bool | None]
    gives_grad: list[bool | None]
    returned: list[Name | None]


FileNote = tuple[Name, tuple[tuple[Name, LongText], ...]]
"""(key, arguments) of a ``Note`` (``hookviz.trace.notes``)."""
FilePart = tuple[Index | None, Index, Index | None]
"""(node, slot, value) of the gradient that came along one edge."""


class StepColumns(Struct):
    """Columns of ``StepRow``. A column is left out if every row has the default of ``StepRow`` in it."""

    pass_id: list[Index]
    kind: list[Name]
    node: list[Index | None] = []
    output: list[Index | None] = []
    hook: list[Index | None] = []
    place: list[tuple[Index, Index] | None] = []
    before: list[Indexes] = []
    after: list[Indexes] = []
    effect: list[Effect | None] = []
    parts: list[tuple[FilePart, ...]] = []
    cause: list[Index | None] = []
    call: list[Index | None] = []
    optimizer: list[Index | None] = []
    labels: list[tuple[tuple[Name, ...], tuple[Name, ...]]] = []
    subject: list[Subject] = []
    in_backward: list[bool] = []
    found_inf: list[bool] = []
    synchroniser: list[Synchroniser | None] = []
    ranks: list[Index | None] = []
    region: list[Name | None] = []
    error: list[LongText | None] = []
    note: list[FileNote | None] = []


class SourceColumns(Struct):
    """Columns of ``SourceRow``."""

    file: list[Name | None]
    line: list[Index]
    text: list[LongText]
    whole: list[bool]


class LineColumns(Struct):
    """Columns of ``LineRow``."""

    source: list[Index]
    line: list[Index]
    pass_id: list[Index | None]
    call: list[Index | None]
    names: list[tuple[tuple[Name, Index | None], ...]]


class MissingColumns(Struct):
    """Columns of ``MissingRow``."""

    name: list[Name]
    owner: list[Name]
    module: list[Index | None]
    cuts: list[tuple[Index, ...]]


class CutColumns(Struct):
    """Columns of ``CutRow``."""

    op: list[Name]
    kind: list[CutKind]
    file: list[Name | None]
    line: list[Index | None]
    text: list[LongText | None]
    step: list[Index | None]


class UnfiredColumns(Struct):
    """Columns of ``UnfiredRow``."""

    kind: list[Name]
    on: list[Name]
    key: list[Int64 | Name]
    name: list[Name]
    file: list[Name | None]
    line: list[Index | None]
    text: list[LongText | None]
    mark: list[Index | None]
    flags: list[tuple[Literal["with_kwargs", "always_call", "global"], ...]]
    since: list[Index | None]
    until: list[Index | None]
    removed_at: list[Name | None]
    registered_at: list[Name | None]
    module: list[Index | None]
    evidence: list[tuple[tuple[Name, Name], ...]]
    node: list[Index | None]


Shape = Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(max_length=MAX_DIMENSIONS)]


class ParameterColumns(Struct):
    """Columns of ``ParameterRow``."""

    names: list[tuple[Name, ...]]
    shape: list[Shape]
    requires_grad: list[bool]
    called: list[bool]
    held: list[bool]
    optimizers: list[tuple[Index, ...]]
    model: list[Name]


class NonfiniteColumns(Struct):
    """Columns of ``NonfiniteRow``."""

    call: list[Index]
    module: list[Index]
    name: list[Name]
    kind: list[Literal["nan", "inf"]]


class UpdateColumns(Struct):
    """Columns of ``UpdateRow``."""

    step: list[Index]
    rates: list[tuple[float | NumberText | None, ...]]
    without_grad: list[tuple[Index, ...]]
    zero: list[bool]
    eval_norms: list[tuple[Index, ...]]


FileStatistics = tuple[
    FileFloat | None, FileFloat | None, FileFloat | None, FileFloat, Index | None, Index | None, Index | None
]
"""(min, max, mean, norm, nan, inf, zero); null for a statistic that was not read."""
FileValue = tuple[Shape, Name, Name, Any, FileStatistics | None, FileNote | None]
"""(shape, dtype, device, numbers, statistics, note); the numbers are lists, nested by the dimensions of the shape."""


class TraceFile(Struct):
    """A trace file."""

    format: Literal["hookviz"]
    version: Literal[1]
    ops: list[Name]
    edges: list[tuple[Index, Index, Index, Index]]
    """(node, slot, next node, its output): the edge from an input of a node to an output of the next."""
    owners: list[tuple[Index, Index]]
    roots: list[list[tuple[Index, Index]]]
    hooked: list[list[Index]]
    remarks: list[FileNote]
    dropped: Index
    values: list[FileValue]
    tensors: TensorColumns
    hook_rows: HookColumns
    modules: ModuleColumns
    optimizers: ModuleColumns
    calls: CallColumns
    rows: StepColumns
    saved: SavedColumns
    scales: ScaleColumns
    sources: SourceColumns
    lines: LineColumns
    missing_rows: MissingColumns
    cut_rows: CutColumns
    unfired_rows: UnfiredColumns
    parameters: ParameterColumns
    nonfinite: NonfiniteColumns
    updates: UpdateColumns
    outside: list[Index]
    pass_numbers: list[Annotated[int, Meta(ge=1, le=MAX_INDEX)]]
    rank: Index | None
    ranks: Index | None
    statistics: Literal["all", "norm"] | None


class DamagedError(ValueError):
    """A file does not hold a valid trace; the message says what is wrong, and where."""


def check_file(data: Any) -> TraceFile:
    """Convert the data of a JSON file to a ``TraceFile``, and check types, ranges and sizes.

    Raises:
        DamagedError: something is missing, or has a wrong type, range or size; the message says what, and where.

    >>> check_file({"format": "hookviz", "version": 1})
    Traceback (most recent call last):
    hookviz.storage.schema.DamagedError: there is no ops
    """
    try:
        file = msgspec.convert(data, TraceFile)
    except msgspec.ValidationError as error:
        raise DamagedError(_reword_error(str(error))) from None
    except UnicodeEncodeError:  # a lone surrogate in place of a literal
        raise DamagedError(say("damaged.surrogate")) from None
    for name, table in _get_tables(file).items():
        optional = table.__struct_fields__[len(table.__struct_fields__) - len(table.__struct_defaults__) :]
        columns = {column: len(getattr(table, column)) for column in table.__struct_fields__}
        if len({length for column, length in columns.items() if length or column not in optional}) > 1:
            raise DamagedError(say("damaged.columns", table=name))
    return file


def _get_tables(file: Struct) -> dict[str, Struct]:
    """Return the tables of a file: name → columns."""
    fields = {name: getattr(file, name) for name in file.__struct_fields__}
    return {name: table for name, table in fields.items() if isinstance(table, Struct)}


_JSON_TYPE_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def _reword_error(message: str) -> str:
    """Replace the Python type names in a message of msgspec by plain words, and put the path first.

    >>> _reword_error("Expected `int | null`, got `str` - at `$.rows.hook[3]`")
    'rows.hook[3]: expected a whole number or null, got a text'
    """
    fault, _, where = message.partition(" - at ")
    fault = fault.replace("Object missing required field", "there is no").replace("enum value", "value")
    fault = re.sub("`([^`]*)`", lambda quoted: _name_json_types(quoted[1]), fault)
    fault = f"{fault[:1].lower()}{fault[1:]}"
    path = where.strip("`").removeprefix("$.").replace("[...]", "")
    return shorten_fault(f"{path}: {fault}" if path else fault)


def _name_json_types(types: str) -> str:
    return " or ".join(_JSON_TYPE_NAMES.get(name, name) for name in types.split(" | "))


def shorten_fault(text: str) -> str:
    """Return a fault on one line of at most ``MAX_FAULT_LENGTH`` characters, however long the text."""
    return truncate(make_printable(text[: 2 * MAX_FAULT_LENGTH]), MAX_FAULT_LENGTH)
