"""Tables in which most rows are alike: such a row is kept as few plain numbers, and is written out where it is read.

A named tuple of a step takes some 200 bytes and is looked through by the cyclic collector for as long as it lives; a
plain tuple of numbers takes 90, and the collector lets go of it at first sight.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Generic, SupportsIndex, TypeVar, overload

from hookviz.trace.rows import StepRow
from hookviz.trace.value_rows import ValueRow, get_stored_rows

RowT = TypeVar("RowT")


class CompactRows(list[RowT], Generic[RowT]):
    """A list of rows, some of which are folded until somebody reads them."""

    folds: ClassVar[type]
    """What a folded row is; no row is of exactly this type."""

    def __init__(self, rows: Any = ()) -> None:
        super().__init__(rows)
        self._written = len(self)
        """Up to here no row is folded."""

    @staticmethod
    def unfolded(rows: Iterable[Any]) -> list[Any]:
        """``rows``, of which some may be folded, as they are read."""
        raise NotImplementedError

    fold: ClassVar[Callable[[Any, Any], None]] = list.append
    """Adds a folded row."""

    def _write_out(self) -> None:
        super().__setitem__(slice(self._written, None), self.unfolded(get_stored_rows(self, self._written)))
        self._written = len(self)

    def __iter__(self) -> Iterator[RowT]:
        self._write_out()
        return super().__iter__()

    def __reversed__(self) -> Iterator[RowT]:
        self._write_out()
        return super().__reversed__()

    @overload
    def __getitem__(self, index: SupportsIndex) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowT]: ...
    def __getitem__(self, index: Any) -> Any:
        """One row, or several."""
        if type(index) is slice:
            self._write_out()
            return super().__getitem__(index)
        found: Any = super().__getitem__(index)
        if type(found) is self.folds:
            (found,) = self.unfolded([found])
            self[index] = found
        return found

    def pop(self, index: SupportsIndex = -1) -> RowT:
        """Take a row out."""
        self._written = min(self._written, len(self) - 1)
        (found,) = self.unfolded([super().pop(index)])
        kept: RowT = found
        return kept

    def __eq__(self, other: object) -> bool:
        self._write_out()
        if isinstance(other, CompactRows):
            other._write_out()
        return super().__eq__(other)

    __hash__ = None

    def __repr__(self) -> str:
        self._write_out()
        return super().__repr__()


_make_row = partial(tuple.__new__, StepRow)  # as StepRow._make, in C alone: thousands of rows are written out at once
_DEFAULTS = StepRow(0, "")
_AFTER_EFFECT = _DEFAULTS[StepRow._fields.index("effect") :]
_AFTER_PARTS = _DEFAULTS[StepRow._fields.index("parts") + 1 :]


class StepRows(CompactRows[StepRow]):
    """The steps of a trace.

    Folded is the arrival of a gradient that was sent along one edge, and what a node makes of what it is given.

    >>> rows = StepRows()
    >>> rows.fold((0, 1, 0, 5, 2, 0, 5))
    >>> rows.fold((0, 1, 5, 6))
    >>> [(row.kind, row.node, row.after) for row in rows]
    [('arrive', 1, 5), ('compute', 1, 6)]
    """

    folds = tuple

    @staticmethod
    def unfolded(rows: Iterable[Any]) -> list[StepRow]:
        """(pass, node, before, after), and (pass, node, output, after, source, slot, what was sent there)."""
        written = [
            row
            if row.__class__ is not tuple
            else (row[0], "arrive", row[1], row[2], None, None, None, row[3], None, (row[4:],), *_AFTER_PARTS)
            if row[4:]
            else (row[0], "compute", row[1], -1, None, None, row[2], row[3], *_AFTER_EFFECT)
            for row in rows
        ]
        return list(map(_make_row, written))


class ValueRows(CompactRows[ValueRow]):
    """The values of a trace.

    Folded is a single float32 number in the memory of the computer.

    >>> values = ValueRows()
    >>> values.fold(2.5)
    >>> values[0]
    ((), 'float32', 'cpu', 2.5, None, None)
    """

    folds = float

    @staticmethod
    def unfolded(rows: Iterable[Any]) -> list[ValueRow]:
        """The numbers."""
        return [((), "float32", "cpu", row, None, None) if row.__class__ is float else row for row in rows]
