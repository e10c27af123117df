"""What follows from the declaration of a column: renumbering, and checks of indexes."""

from typing import Any

import pytest

from hookviz.storage.integrity import find_fault
from hookviz.trace import ModuleRow, StepRow, TraceData, UnfiredRow, UpdateRow
from hookviz.trace.cells import make_renumbering


def test_lost_rows_leave_none_or_nothing_behind() -> None:
    renumber = make_renumbering(StepRow, {"rows": {}, "ops": {1: 0}, "roots": {2: 0}})
    step = StepRow(2, "arrive", node=4, cause=7, parts=((1, 0, 5), (4, 0, 6)))
    assert renumber(step) == StepRow(0, "arrive", parts=((0, 0, 5), (None, 0, 6)))
    update = UpdateRow(3, (0.1,), without_grad=(1, 2))
    renumber = make_renumbering(UpdateRow, {"rows": {3: 1}, "parameters": {2: 0}})
    assert renumber(update) == update._replace(step=1, without_grad=(0,))


@pytest.mark.parametrize(
    ("table", "value"),
    [
        ("edges", {(0, 0): (7, 0)}),
        ("outside", {9}),
        ("roots", [[(6, 0)]]),
        ("updates", [UpdateRow(0, (), without_grad=(0,))]),
    ],
)
def test_an_index_of_no_row_is_found(table: str, value: Any) -> None:
    trace = TraceData(ops=["A"], rows=[StepRow(0, "unobserved")], roots=[[]], hooked=[[]], pass_numbers=[1])
    assert find_fault(trace) == ""
    setattr(trace, table, value)
    assert f"row 0 of {table} does not fit the rest of the trace" in find_fault(trace)


def test_what_comes_after_the_last_row_may_be_meant() -> None:
    trace = TraceData(modules=[ModuleRow("net", "Linear")], rows=[StepRow(0, "unobserved")])
    trace.unfired_rows = [UnfiredRow("tensor_hook", "", 1, "f", None, None, None, None, since=1, until=1)]
    assert find_fault(trace) == ""
