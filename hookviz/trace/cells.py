"""Change the cells of tables by what their columns declare: renumber indexes, leave out what must not be shown."""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import fields
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from hookviz.trace.columns import Long, Refers
from hookviz.trace.named_tables import NamedTables
from hookviz.trace.tables import TraceTables

Change = Callable[[Any, Any], Any]
"""A function that takes a cell, and what the changes of all cells share, and returns what replaces it, or ``LOST``."""
Choice = Callable[[Any], Change | None]
"""A function that returns the change of what is declared so; None if that has none, though its parts may have some."""
Numbers = Mapping[str, Mapping[int, int]]
"""For each table whose rows have new indexes: old index → new index; rows that are missing here are lost."""
LOST: Any = object()
"""What a change returns for a cell that refers to a lost row, or must not be shown.

If the cell may be None, it is None then. If it is one of several in a tuple, list, set or dict of any length, these
are left without it. If its column has a default, it is that. Otherwise what holds it is lost, too: at last the row.
"""


@cache
def declared_tables() -> Mapping[str, Any]:
    """Return what a trace declares: the name of each field that a file holds → its type, with all marks.

    >>> declared_tables()["hooked"]
    list[list[typing.Annotated[int, Refers(table='hook_rows', or_end=False)]]]
    """
    hints = get_type_hints(TraceTables, include_extras=True)
    return {field.name: hints[field.name] for field in fields(TraceTables) if field.init}


@cache
def declared_columns(row_type: type) -> Mapping[str, Any]:
    """Return the columns of a row: name → type, with all marks; empty if ``row_type`` is no NamedTuple."""
    return get_type_hints(row_type, include_extras=True) if hasattr(row_type, "_fields") else {}


def row_type_of(declared: Any) -> type | None:
    """Return the type of the rows of a table; None if ``declared`` is not a list of rows with columns."""
    (*_, inner) = get_args(declared) or (None,)
    is_table = get_origin(declared) is list and isinstance(inner, type) and bool(declared_columns(inner))
    return inner if is_table else None


def marks_of(declared: Any) -> tuple[Any, ...]:
    """Return the marks of a type: those of ``Annotated``."""
    return declared.__metadata__ if get_origin(declared) is Annotated else ()


@cache
def is_long(declared: Any) -> bool:
    """Return whether texts in something that is declared so may be as long as a source file.

    >>> from hookviz.trace.columns import LongText
    >>> is_long(tuple[str, LongText | None]), is_long(str)
    (True, False)
    """
    columns = declared_columns(declared).values() if isinstance(declared, type) else ()
    is_marked = any(isinstance(mark, Long) for mark in marks_of(declared))
    return is_marked or any(map(is_long, (*get_args(declared), *columns)))


def make_change(declared: Any, choose: Choice) -> Change | None:
    """Return the change of a cell, row or table that is declared so; None if nothing in it changes."""
    chosen = choose(declared)
    if chosen is not None:
        return chosen
    origin, parts = get_origin(declared), get_args(declared)
    if origin is Annotated:
        return make_change(parts[0], choose)
    if origin in (Union, UnionType):
        return _change_one_of(parts, choose)
    if origin is dict:
        return _change_items(make_change(_pair_of(parts), choose))
    if origin in (list, set) or (origin is tuple and parts[1:] == (...,)):
        return _change_each(make_change(parts[0], choose))
    if origin is tuple:
        return _change_places([(make_change(part, choose), LOST) for part in parts])
    columns = declared_columns(declared) if isinstance(declared, type) else {}
    defaults = getattr(declared, "_field_defaults", {})
    return _change_places([(make_change(column, choose), defaults.get(name, LOST)) for name, column in columns.items()])


def _change_one_of(options: tuple[Any, ...], choose: Choice) -> Change | None:
    """Return the change of a cell that is one of several types: None, something, or a tuple of it."""
    tuples = [one for one in options if get_origin(one) is tuple]
    of_tuple = make_change(tuples[0], choose) if tuples else None
    changes = [make_change(one, choose) for one in options if one is not NoneType and one not in tuples]
    of_other = next(filter(None, changes), None)
    if of_tuple is None and of_other is None:
        return None
    may_be_none = NoneType in options

    def change(x: Any, shared: Any) -> Any:
        chosen = of_tuple if tuples and isinstance(x, tuple) else of_other
        if x is None or chosen is None:
            return x
        changed = chosen(x, shared)
        return None if changed is LOST and may_be_none else changed

    return change


def _change_items(of_item: Change | None) -> Change | None:
    if of_item is None:
        return None
    return lambda x, shared: dict(item for one in x.items() if (item := of_item(one, shared)) is not LOST)


def _change_each(of_part: Change | None) -> Change | None:
    if of_part is None:
        return None
    return lambda x, shared: type(x)(part for one in x if (part := of_part(one, shared)) is not LOST)


def _change_places(changes: list[tuple[Change | None, Any]]) -> Change | None:
    """Return the change of a tuple or row, from the change and the default of each of its places."""
    changing = [(place, change, default) for place, (change, default) in enumerate(changes) if change is not None]
    if not changing:
        return None

    def change_row(row: Any, shared: Any) -> Any:
        cells = list(row)
        for place, change, default in changing:
            cell = change(cells[place], shared)
            if cell is LOST:
                if default is LOST:
                    return LOST
                cell = default
            cells[place] = cell
        return tuple.__new__(type(row), cells)

    return change_row


def change_tables(trace: NamedTables, change_of: Choice, shared: Any = None) -> None:
    """Change all tables of a trace, in place; ``change_of`` returns the change of a whole table, None for none."""
    for name, declared in declared_tables().items():
        change = change_of(declared)
        if change is not None:
            setattr(trace, name, change(getattr(trace, name), shared))
    trace.clear_caches()


def renumber_tables(trace: NamedTables, numbers: Numbers) -> None:
    """Replace the indexes in all tables of a trace, in place; the tables themselves keep their order."""
    change_tables(trace, partial(_renumbering, tables=frozenset(numbers)), numbers)


def make_renumbering(row_type: type, numbers: Numbers) -> Callable[[Any], Any]:
    """Return a function that takes a row and returns it with new indexes."""
    change = _renumbering(row_type, tables=frozenset(numbers))
    return lambda row: row if change is None else change(row, numbers)


@cache
def _renumbering(declared: Any, *, tables: Set[str]) -> Change | None:
    """Return the change that renumbers references to ``tables``, made once: a long recording drops many passes."""

    def choose(part: Any) -> Change | None:
        mark = _reference_of(part)
        return partial(_renumber, mark.table) if mark is not None and mark.table in tables else None

    return make_change(declared, choose)


def _renumber(table: str, index: int, numbers: Numbers) -> Any:
    return numbers[table].get(index, LOST)


def find_broken_references(trace: TraceTables) -> Iterator[tuple[str, int]]:
    """Yield (table, index) of each row with an index that the table it refers to does not have."""
    for name, declared in declared_tables().items():
        table: Any = getattr(trace, name)
        parts = get_args(declared)
        row_type = _pair_of(parts) if isinstance(table, dict) else parts[0] if parts else None
        check = make_change(row_type, partial(_choose_check, trace))
        if check is None or not isinstance(table, list | set | dict):
            continue
        for index, row in enumerate(table.items() if isinstance(table, dict) else table):
            try:
                check(row, None)
            except IndexError:
                yield name, index


def _choose_check(trace: TraceTables, declared: Any) -> Change | None:
    mark = _reference_of(declared)
    return None if mark is None else partial(_check_index, len(getattr(trace, mark.table)) + mark.or_end)


def _check_index(size: int, index: int, _: None) -> int:
    if not 0 <= index < size:
        raise IndexError(index)
    return index


def _reference_of(declared: Any) -> Refers | None:
    """Return what an index refers to; None for anything else."""
    return next((mark for mark in marks_of(declared) if isinstance(mark, Refers)), None)


def _pair_of(parts: tuple[Any, ...]) -> Any:
    """Return the type of the items of a dict, from those of its keys and its values."""
    return tuple.__class_getitem__(parts)
