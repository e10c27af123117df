"""Rows that act as a list in Python and show themselves as a table in Jupyter."""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Generic, TypeVar, overload

from hookviz.support.messages import _
from hookviz.support.printable import make_printable
from hookviz.support.terminal_text import find_terminal_width, measure_width, pad, wrap

MAX_CELL = 40
"""The longest cell that stays in its row if a table does not fit into the terminal."""

RowT = TypeVar("RowT")


class ShownRow:
    """A row of a table by itself: one line in Python, a table of one row in Jupyter."""

    __slots__ = ()

    def _columns(self) -> dict[str, str]:
        """The names and texts of the columns."""
        raise NotImplementedError

    def __repr__(self) -> str:
        columns = (f"{name} {make_printable(text)}" for name, text in self._columns().items() if text)
        return f"{type(self).__name__}: {' · '.join(columns)}"

    def _repr_html_(self) -> str:
        columns = self._columns()
        return Table([self], tuple(columns), lambda _ignored: tuple(columns.values()))._repr_html_()


def head_of(rows: Sequence[ShownRow]) -> tuple[str, ...]:
    """Return the names of the columns of rows; an empty table shows none."""
    return tuple(rows[0]._columns()) if rows else ()


def cells_of(row: ShownRow) -> tuple[str, ...]:
    """Return the texts of the columns of a row."""
    return tuple(row._columns().values())


class Table(Sequence[RowT], Generic[RowT]):
    """An immutable list of rows that shows itself as a table.

    >>> numbers = Table([1, 4], ("n", "half"), lambda n: (str(n), str(n / 2)))
    >>> numbers[1], len(numbers)
    (4, 2)
    >>> print(numbers)
    n  half
    1  0.5
    4  2.0

    Without rows it shows the text ``nothing``, if given, and otherwise the text ``below`` under the table.
    """

    def __init__(
        self,
        rows: Iterable[RowT],
        head: Sequence[str],
        cells: Callable[[RowT], Sequence[str]],
        nothing: str | None = None,
        below: str = "",
    ) -> None:
        self._rows = tuple(rows)
        self._head = tuple(head)
        self._cells = cells
        self._nothing = nothing
        self._below = below

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> "Table[RowT]": ...
    def __getitem__(self, index: int | slice) -> "RowT | Table[RowT]":
        if isinstance(index, slice):
            return Table(self._rows[index], self._head, self._cells, self._nothing)
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(self._rows)

    def texts(self) -> list[tuple[str, ...]]:
        """Return the texts of the cells, row by row, without the head."""
        return [tuple(self._cells(row)) for row in self._rows]

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._head

    @property
    def caption(self) -> str:
        """The text below the table; of a table without rows the text in its place."""
        return self._below if self._rows else self._nothing or ""

    def __repr__(self) -> str:
        return "\n".join([*self.lines(), *([self._below] if self._below and self._rows else [])])

    def lines(self, width: int | None = None) -> list[str]:
        """Return the lines of the table, with the head; without rows, the text ``nothing`` if there is one.

        Args:
            width: the longest line, in columns; that of the terminal if None. If the table is wider, all columns but
                the first that have a cell of more than ``MAX_CELL`` characters stand below each row, wrapped and with
                their names. A line may still be longer, but nothing is left out.
        """
        if not self._rows and self._nothing is not None:
            return [self._nothing]
        width = find_terminal_width() if width is None else width
        lines = [tuple(map(make_printable, line)) for line in (self._head, *self.texts())]
        widths = [max(measure_width(line[i]) for line in lines) for i in range(len(self._head))]
        is_wide = sum(widths) + 2 * (len(widths) - 1) > width
        below = [index for index, longest in enumerate(widths) if is_wide and index and longest > MAX_CELL]
        beside = [index for index in range(len(widths)) if index not in below]
        text_lines: list[str] = []
        for number, line in enumerate(lines):
            text_lines.append("  ".join(pad(line[i], widths[i]) for i in beside).rstrip())
            if number:
                text_lines += [
                    text for i in below if line[i] for text in _wrap_below(f"{lines[0][i]}: {line[i]}", width)
                ]
        return text_lines

    def _repr_html_(self) -> str:
        if not self._rows:
            nothing = self._nothing or _("None.")
            return f'<p class="hv-table">{escape(nothing)}</p>'
        head = "".join(f'<th scope="col" style="text-align: left">{escape(cell)}</th>' for cell in self._head)
        rows = "".join("<tr>" + "".join(map(_render_cell, line)) + "</tr>" for line in self.texts())
        below = f"<p>{escape(make_printable(self._below))}</p>" if self._below else ""
        return f'<table class="hv-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{below}'


def _wrap_below(text: str, width: int) -> list[str]:
    """Wrap the text of a cell that stands below its row."""
    return [f"    {line}" for line in wrap(text, max(width, MAX_CELL) - 4, break_words=False)]


def _render_cell(text: str) -> str:
    return f'<td style="text-align: left; unicode-bidi: isolate">{escape(make_printable(text))}</td>'
