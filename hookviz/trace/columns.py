"""How a column of a table is declared: what its cells refer to, how long they may be, and what they show.

A column is declared once, as a field of its row. What a file may hold, which indexes it checks, what is renumbered when
passes are dropped or traces are aligned, and what a page without source or numbers leaves out, follow from that.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

Secret = Literal["source", "values"]
"""What a page can be made without: the source of the user's code, or the numbers of tensors."""


@dataclass(frozen=True)
class Refers:
    """The mark of a cell that holds the index of a row of ``table``."""

    table: str
    or_end: bool = False
    """Whether it may also be the number of rows, for what comes after the last one."""


@dataclass(frozen=True)
class Shows:
    """The mark of a cell that shows the source of the user's code, or the numbers of tensors."""

    secrets: tuple[Secret, ...]


@dataclass(frozen=True)
class Between:
    """The mark of a whole number within limits other than those of an index."""

    low: int
    high: int


@dataclass(frozen=True)
class AtMost:
    """The mark of a tuple with a limited number of parts."""

    count: int


@dataclass(frozen=True)
class OneOf:
    """The mark of a text that is one of a few words."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Nested:
    """The mark of a setting that may be a tuple of settings; the numbers of a tensor are nested lists."""


@dataclass(frozen=True)
class Long:
    """The mark of a text that may be as long as a source file; other texts are names."""


CallIndex = Annotated[int, Refers("calls")]
CutIndex = Annotated[int, Refers("cut_rows")]
HookIndex = Annotated[int, Refers("hook_rows")]
ModuleIndex = Annotated[int, Refers("modules")]
NodeIndex = Annotated[int, Refers("ops")]
OptimizerIndex = Annotated[int, Refers("optimizers")]
ParameterIndex = Annotated[int, Refers("parameters")]
PassIndex = Annotated[int, Refers("roots")]
SourceIndex = Annotated[int, Refers("sources")]
StepIndex = Annotated[int, Refers("rows")]
ValueIndex = Annotated[int, Refers("values")]

PassOrNext = Annotated[int, Refers("roots", or_end=True)]
"""A pass, or the one that would have come next."""
StepCount = Annotated[int, Refers("rows", or_end=True)]
"""The number of steps that there were at some time, which is the index of the step that came next."""
ValueIndexes: TypeAlias = ValueIndex | tuple[ValueIndex | None, ...] | None
"""One value, several, or none."""

HookKey = Annotated[int, Between(-(2**63), 2**63 - 1)] | str
"""The key of a hook in its dict."""

Setting: TypeAlias = Annotated[Any, Nested(), Shows(("values",))]
"""A number, a text, None, or a tuple of these."""

LongText = Annotated[str, Long()]
SourceText = Annotated[str, Long(), Shows(("source",))]
SourcePlace = Annotated[str, Shows(("source",))]
"""The file of the user's code, or its file and line."""
SourceLine = Annotated[int, Shows(("source",))]
"""A line in a file, counted from 1."""
HeldCell = Annotated[tuple[str, str], Shows(("source",))]
"""Name and value of what a function holds, such as a variable that it closes over."""
ProgramText = Annotated[str, Long(), Shows(("source", "values"))]
"""A text of the user's program, which often has the numbers of tensors in it."""
