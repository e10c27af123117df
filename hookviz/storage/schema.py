"""The format of a saved trace: what stands in the file, of which types, in which ranges and of which sizes.

A file is one JSON object, ``File``. Most of it is tables: each is an object with a column for each field of its rows,
which are described in ``hookviz.trace.rows``. What one part of a file has to do with another, types cannot tell: that
is in ``hookviz.storage.integrity``.
"""

import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from hookviz.storage.format import LONGEST_NAME, LONGEST_TEXT
from hookviz.support.messages import say
from hookviz.support.printable import printable, truncate
from hookviz.trace.reason_rows import Verdict
from hookviz.trace.rows import Effect, Subject, Synchroniser

MOST = 2**53
"""No number of a row, a place or a pass is larger: up to here JavaScript's numbers are whole."""
DIMENSIONS = 128
"""A tensor has no more; most of torch's operations stop at 64."""
WHY = 200
"""Characters of a fault that an error message quotes."""

Index = Annotated[int, Meta(ge=0, le=MOST)]
"""The number of a row in some table, or of a place; or a count."""
IndexOrNone = Annotated[int, Meta(ge=-1, le=MOST)]
"""The same, where -1 stands for none."""
Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
"""What a tensor, an op, a module, a hook or a file is called. It is repeated wherever the thing is shown."""
Prose = Annotated[str, Meta(max_length=LONGEST_TEXT)]
"""A source text, an error, a note."""
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Strange = Literal["nan", "inf", "-inf"]
"""JSON has no such numbers."""
Real = float | Strange
Several = Index | None | tuple[Index | None, ...]
"""The value or the reason of a step: one, none, or several."""


class Number(Struct):
    """A number that JSON does not have, where a text may stand as well: ``inf``, or ``1+2j``."""

    number: Annotated[str, Meta(max_length=100)]


class Tensors(Struct):
    """Rows of ``TensorRow``."""

    pass_id: list[Index]
    node: list[Index]
    output: list[Index]
    name: list[Name]
    leaf: list[bool]
    retains_grad: list[bool]
    data: list[Index | None]
    grad: list[Index | None]


class Saved(Struct):
    """Rows of ``SavedRow``."""

    pass_id: list[Index] = []
    node: list[Index] = []
    name: list[Name] = []
    value: list[Several] = []
    plain: list[Any] = []
    """A setting: None, true, a number, a text, a ``Number``, or a list of settings; see ``integrity``."""
    why: list[Literal["hooks", "changed", "large", "many", "none"] | None] = []


class Scales(Struct):
    """Rows of ``ScaleRow``."""

    pass_id: list[Index] = []
    scale: list[float | Number] = []
    at: list[tuple[Index, ...]] = []
    others: list[tuple[Index, ...]] = []


class Hooks(Struct):
    """Rows of ``HookRow``."""

    kind: list[Name]
    node: list[IndexOrNone]
    output: list[IndexOrNone]
    key: list[Whole | Name]
    name: list[Name]
    file: list[Name | None]
    line: list[Index | None]
    text: list[Prose | None]
    mark: list[Index | None]
    module: list[IndexOrNone]
    flags: list[tuple[Literal["with_kwargs", "always_call", "global"], ...]]


class Modules(Struct):
    """Rows of ``ModuleRow``: modules, and in the same way optimizers."""

    name: list[Name]
    kind: list[Name]


class Calls(Struct):
    """Rows of ``CallRow``."""

    module: list[Index]
    number: list[Index]
    parent: list[Index | None]
    recomputed: list[bool]


Note = tuple[Name, tuple[tuple[Name, Prose], ...]]
"""(key, arguments) of a sentence, as ``hookviz.trace.notes`` describes it."""
Part = tuple[IndexOrNone, Index, Index | None]
"""(node, which of its inputs, value) of what came along one edge."""


class Steps(Struct):
    """Rows of ``StepRow``. A column is left out where each row has the default of ``StepRow`` in it."""

    pass_id: list[Index]
    kind: list[Name]
    node: list[IndexOrNone] = []
    output: list[IndexOrNone] = []
    hook: list[Index | None] = []
    place: list[tuple[Index, Index] | None] = []
    before: list[Several] = []
    after: list[Several] = []
    effect: list[Effect | None] = []
    parts: list[tuple[Part, ...]] = []
    cause: list[Index | None] = []
    call: list[IndexOrNone] = []
    optimizer: list[IndexOrNone] = []
    labels: list[tuple[tuple[Name, ...], tuple[Name, ...]]] = []
    subject: list[Subject] = []
    in_backward: list[bool] = []
    found_inf: list[bool] = []
    synchroniser: list[Synchroniser | None] = []
    ranks: list[Index | None] = []
    region: list[Name | None] = []
    error: list[Prose | None] = []
    note: list[Note | None] = []


class Reasons(Struct):
    """Rows of ``ReasonRow``."""

    reading: list[Name] = []
    source: list[Prose | None] = []
    verdict: list[Verdict] = []
    notes: list[tuple[Note, ...]] = []


Shape = Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(max_length=DIMENSIONS)]
Statistics = tuple[Real | None, Real | None, Real | None, Real, Index | None, Index | None, Index | None]
"""(min, max, mean, norm, nan, inf, zero); null for what was not read."""
Value = tuple[Shape, Name, Name, Any, Statistics | None, Note | None]
"""(shape, dtype, device, numbers, statistics, note); the numbers are nested as the shape says."""


class File(Struct):
    """A saved trace. What has a default may be missing."""

    format: Literal["hookviz"]
    version: Literal[2]
    ops: list[Name]
    edges: list[tuple[Index, Index, Index, Index]]
    """From a node and which of its inputs, to a node and which of its outputs."""
    owners: list[tuple[Index, Index]]
    roots: list[list[tuple[Index, Index]]]
    hooked: list[list[Index]]
    remarks: list[Note]
    dropped: Index
    values: list[Value]
    tensors: Tensors
    hook_rows: Hooks
    modules: Modules
    optimizers: Modules
    calls: Calls
    rows: Steps
    saved: Saved = field(default_factory=Saved)
    scales: Scales = field(default_factory=Scales)
    reasons: Reasons = field(default_factory=Reasons)
    explained: list[Several] = []
    """For each step the rows of its reasons; empty where torch was missing when the trace was saved."""
    outside: list[Index] = []
    rank: Index | None = None
    ranks: Index | None = None
    statistics: Literal["all", "norm"] = "all"


class DamagedError(ValueError):
    """What was read is no trace that this hookviz could show; the text says what is wrong, and where."""


Checked = TypeVar("Checked", bound=Struct)


def checked(data: Any, kind: type[Checked]) -> Checked:
    """What a JSON file holds as a ``kind`` of file, once it is seen to be one.

    Raises:
        DamagedError: something is missing, or of another type, range or size; the message says what, and where.

    >>> checked({"format": "hookviz", "version": 2}, File)
    Traceback (most recent call last):
    hookviz.storage.schema.DamagedError: there is no ops
    """
    try:
        file = msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise DamagedError(_plainly(str(error))) from None
    except UnicodeEncodeError:  # half of a character, where one of a few words is expected
        raise DamagedError(say("damaged.surrogate")) from None
    for name, table in _tables(file).items():
        optional = table.__struct_fields__[len(table.__struct_fields__) - len(table.__struct_defaults__) :]
        columns = {column: len(getattr(table, column)) for column in table.__struct_fields__}
        if len({length for column, length in columns.items() if length or column not in optional}) > 1:
            raise DamagedError(say("damaged.columns", table=name))
    return file


def _tables(file: Struct) -> dict[str, Struct]:
    """The tables of a file, by their names."""
    found = {name: getattr(file, name) for name in file.__struct_fields__}
    return {name: table for name, table in found.items() if isinstance(table, Struct)}


_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def _plainly(message: str) -> str:
    """What msgspec says of a fault, in the words of somebody who does not know its types.

    >>> _plainly("Expected `int | null`, got `str` - at `$.rows.hook[3]`")
    'rows.hook[3]: expected a whole number or null, got a text'
    """
    fault, _, where = message.partition(" - at ")
    fault = fault.replace("Object missing required field", "there is no").replace("enum value", "value")
    fault = re.sub("`([^`]*)`", lambda quoted: _type_in_words(quoted[1]), fault)
    place = where.strip("`").removeprefix("$.").replace("[...]", "")
    told = f"{place}: {fault[:1].lower()}{fault[1:]}" if place else f"{fault[:1].lower()}{fault[1:]}"
    return shortened(told)


def _type_in_words(kinds: str) -> str:
    return " or ".join(_WORDS.get(kind, kind) for kind in kinds.split(" | "))


def shortened(text: str) -> str:
    """A fault on one line of bounded length, whatever text of the file it quotes."""
    return truncate(printable(text[: 2 * WHY]), WHY)
