"""Tables that keep their most frequent rows in a compact form, and expand them when they are read.

A ``StepRow`` takes about 200 bytes, and the cyclic garbage collector visits it as long as it exists. A plain tuple of
numbers takes 90 bytes, and the collector stops tracking it at its first visit.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Generic, SupportsIndex, TypeVar, overload

from hookviz.trace.rows import StepRow
from hookviz.trace.value_rows import ValueRow, get_stored_rows

RowT = TypeVar("RowT")


class CompactRows(list[RowT], Generic[RowT]):
    """A list of rows, some of which are compact until somebody reads them."""

    compact_type: ClassVar[type]
    """The exact type of compact rows; no expanded row has it."""

    def __init__(self, rows: Any = ()) -> None:
        super().__init__(rows)
        self._expanded_count = len(self)
        """No row before this index is compact."""
        self.is_closed = False
        """Whether the recording is over, which appended the rows."""

    @staticmethod
    def expand(rows: Iterable[Any]) -> list[Any]:
        """Return ``rows`` with the compact ones expanded."""
        raise NotImplementedError

    append_compact: ClassVar[Callable[[Any, Any], None]] = list.append
    """Append a compact row."""

    def _expand_all(self) -> None:
        super().__setitem__(slice(self._expanded_count, None), self.expand(get_stored_rows(self, self._expanded_count)))
        self._expanded_count = len(self)

    def __iter__(self) -> Iterator[RowT]:
        self._expand_all()
        return super().__iter__()

    def __reversed__(self) -> Iterator[RowT]:
        self._expand_all()
        return super().__reversed__()

    @overload
    def __getitem__(self, index: SupportsIndex) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowT]: ...
    def __getitem__(self, index: Any) -> Any:
        """Return one row, or several; a single compact row is expanded alone."""
        if type(index) is slice:
            self._expand_all()
            return super().__getitem__(index)
        row: Any = super().__getitem__(index)
        if type(row) is self.compact_type:
            (row,) = self.expand([row])
            self[index] = row
        return row

    def pop(self, index: SupportsIndex = -1) -> RowT:
        """Remove a row and return it."""
        self._expanded_count = min(self._expanded_count, len(self) - 1)
        (expanded,) = self.expand([super().pop(index)])
        row: RowT = expanded
        return row

    def __eq__(self, other: object) -> bool:
        self._expand_all()
        if isinstance(other, CompactRows):
            other._expand_all()
        return super().__eq__(other)

    __hash__ = None

    def __repr__(self) -> str:
        self._expand_all()
        return super().__repr__()


_make_row = partial(tuple.__new__, StepRow)  # StepRow._make without Python code: expansion makes thousands of rows
_DEFAULTS = StepRow(0, "call")
_FROM_EFFECT = _DEFAULTS[StepRow._fields.index("effect") :]
_AFTER_PARTS = _DEFAULTS[StepRow._fields.index("parts") + 1 :]


class StepRows(CompactRows[StepRow]):
    """The steps of a trace.

    Two kinds of step can be compact: the arrival of a gradient along a single edge, and the computation of a node.

    >>> rows = StepRows()
    >>> rows.append_compact((0, 1, 0, 5, 2, 0, 5))
    >>> rows.append_compact((0, 1, 5, 6))
    >>> [(row.kind, row.node, row.after) for row in rows]
    [('arrive', 1, 5), ('compute', 1, 6)]
    """

    compact_type = tuple

    @staticmethod
    def expand(rows: Iterable[Any]) -> list[StepRow]:
        """Expand (pass, node, before, after) to a computation, and an arrival from seven numbers.

        These are (pass, node, output, after, source node, its slot, value that it sent).
        """
        fields = [
            row
            if row.__class__ is not tuple
            else (row[0], "arrive", row[1], row[2], None, None, None, row[3], None, (row[4:],), *_AFTER_PARTS)
            if row[4:]
            else (row[0], "compute", row[1], None, None, None, row[2], row[3], *_FROM_EFFECT)
            for row in rows
        ]
        return list(map(_make_row, fields))


class ValueRows(CompactRows[ValueRow]):
    """The values of a trace. A compact value is the number of a float32 scalar on the CPU.

    >>> values = ValueRows()
    >>> values.append_compact(2.5)
    >>> values[0]
    ((), 'float32', 'cpu', 2.5, None, None)
    """

    compact_type = float

    @staticmethod
    def expand(rows: Iterable[Any]) -> list[ValueRow]:
        """Expand numbers to rows."""
        return [((), "float32", "cpu", row, None, None) if row.__class__ is float else row for row in rows]
