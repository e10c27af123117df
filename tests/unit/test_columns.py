"""What follows from the declaration of a column: renumbering, checks of indexes, and what a page may show."""

from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest

from hookviz.storage.integrity import find_fault
from hookviz.trace import CutRow, ModuleRow, StepRow, TraceData, UnfiredRow, UpdateRow
from hookviz.trace.cells import declared_columns, declared_tables, make_renumbering, marks_of, row_type_of
from hookviz.trace.columns import OneOf, Refers

ROW_TYPES = {row_type: None for row_type in map(row_type_of, declared_tables().values()) if row_type is not None}
REFERRING = [
    (row_type, name)
    for row_type in ROW_TYPES
    for name, column in declared_columns(row_type).items()
    if "Refers" in str(column)
]
OLD, NEW = 3, 8
NUMBERS = {name: {OLD: NEW} for name in declared_tables()}


def example(declared: Any) -> Any:
    """Return a cell that is declared so, with ``OLD`` for each index, and for each part that may be None."""
    origin, parts = get_origin(declared), get_args(declared)
    if origin is Annotated:
        words = [mark.words[0] for mark in marks_of(declared) if isinstance(mark, OneOf)]
        return words[0] if words else example(parts[0])
    if origin in (Union, UnionType):
        return example(next(part for part in reversed(parts) if part is not NoneType))
    if origin is tuple:
        return (example(parts[0]),) * 2 if parts[1:] == (...,) else tuple(map(example, parts))
    return {int: OLD, str: "x", float: 0.5, bool: True}.get(declared)


def indexes_in(cell: Any, declared: Any) -> list[int]:
    """Return what stands in a cell where an index is declared."""
    origin, parts = get_origin(declared), get_args(declared)
    if origin is Annotated and any(isinstance(mark, Refers) for mark in marks_of(declared)):
        return [cell]
    if origin is Annotated:
        return indexes_in(cell, parts[0])
    if origin in (Union, UnionType):
        return indexes_in(cell, next(part for part in reversed(parts) if part is not NoneType))
    if origin is tuple:
        declarations = parts[:1] * len(cell) if parts[1:] == (...,) else parts
        return [index for part, one in zip(cell, declarations, strict=True) for index in indexes_in(part, one)]
    return []


@pytest.mark.parametrize(("row_type", "name"), REFERRING, ids=lambda part: getattr(part, "__name__", part))
def test_each_column_with_indexes_is_renumbered(row_type: Any, name: str) -> None:
    columns = declared_columns(row_type)
    row = row_type(*map(example, columns.values()))
    renumbered = make_renumbering(row_type, NUMBERS)(row)
    before, after = (indexes_in(getattr(one, name), columns[name]) for one in (row, renumbered))
    assert before and set(before) == {OLD} and after == [NEW] * len(before)


def test_lost_rows_leave_none_or_nothing_behind() -> None:
    renumber = make_renumbering(StepRow, {"rows": {}, "ops": {1: 0}, "roots": {2: 0}})
    step = StepRow(2, "arrive", node=4, cause=7, parts=((1, 0, 5), (4, 0, 6)))
    assert renumber(step) == StepRow(0, "arrive", parts=((0, 0, 5), (None, 0, 6)))
    update = UpdateRow(3, (0.1,), without_grad=(1, 2))
    renumber = make_renumbering(UpdateRow, {"rows": {3: 1}, "parameters": {2: 0}})
    assert renumber(update) == update._replace(step=1, without_grad=(0,))


@pytest.mark.parametrize(
    ("tables", "place"),
    [
        ({"hooked": [[5]]}, "row 0 of hooked"),
        ({"edges": {(0, 0): (7, 0)}}, "row 0 of edges"),
        ({"owners": {0: 3}}, "row 0 of owners"),
        ({"outside": {9}}, "row 0 of outside"),
        ({"roots": [[(6, 0)]]}, "row 0 of roots"),
        ({"cut_rows": [CutRow("detach", "graph", None, None, None, 3)]}, "row 0 of cut_rows"),
        ({"unfired_rows": [UnfiredRow("tensor_hook", "", 1, "f", None, None, None, None, since=2)]}, "of unfired_rows"),
        ({"updates": [UpdateRow(0, (), without_grad=(0,))]}, "row 0 of updates"),
        ({"rows": [StepRow(2, "unobserved")]}, "row 0 of rows"),
    ],
)  # fmt: skip
def test_an_index_of_no_row_is_found(tables: dict[str, Any], place: str) -> None:
    trace = TraceData(ops=["A"], rows=[StepRow(0, "unobserved")], roots=[[]], hooked=[[]], pass_numbers=[1])
    assert find_fault(trace) == ""
    for name, table in tables.items():
        setattr(trace, name, table)
    assert f"{place} does not fit the rest of the trace" in find_fault(trace)


def test_what_comes_after_the_last_row_may_be_meant() -> None:
    trace = TraceData(modules=[ModuleRow("net", "Linear")], rows=[StepRow(0, "unobserved")])
    trace.unfired_rows = [UnfiredRow("tensor_hook", "", 1, "f", None, None, None, None, since=1, until=1)]
    assert find_fault(trace) == ""
