"""The flat records of a trace, and its data frame, describe every step."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import recorded
from torch import nn

import hookviz as hv
from hookviz.analysis.step_records import COLUMNS


def record_network(statistics: Any = "all") -> hv.Trace:
    """Record two passes of a network, each with a step of an optimizer."""
    net = nn.Sequential(nn.Linear(20, 10), nn.Sequential(nn.ReLU(), nn.Linear(10, 2)))
    optimizer = torch.optim.SGD(net.parameters())
    with hv.record(net, statistics=statistics) as trace:
        for _ in range(2):
            net(torch.ones(4, 20)).sum().backward()
            optimizer.step()
    return trace


def the_record(trace: hv.Trace, **fields: Any) -> dict[str, Any]:
    """The only record with these fields."""
    (found,) = [row for row in trace.to_records() if all(row[name] == value for name, value in fields.items())]
    return found


def test_there_is_a_record_per_step_with_the_same_fields() -> None:
    trace = record_network()
    records = trace.to_records()
    assert len(records) == len(trace.steps) > 50
    assert {tuple(record) for record in records} == {tuple(COLUMNS)}
    assert [(r["step"], r["pass"], r["kind"], r["on"]) for r in records] == [
        (step.index, step.pass_id, step.kind, step.on) for step in trace.steps
    ]


def test_record_of_a_hook_has_its_place_and_the_norms_around_it() -> None:
    trace = recorded()
    row = the_record(trace, hook="c_hook")
    hook = trace.firings[2].hook
    assert hook is not None and (row["file"], row["line"]) == (hook.file, hook.line)
    assert (row["op"], row["effect"], row["norm_before"], row["norm_after"]) == ("MulBackward0", "replaced", 8.0, 10.0)
    assert (row["shape"], row["dtype"], row["module"]) == ((), "float32", None)


def test_record_of_another_step_has_the_line_of_code_that_the_player_marks() -> None:
    a = torch.ones(1, requires_grad=True)  # the line
    with hv.record() as trace:
        (a * 2).backward()
    row = the_record(trace, kind="arrive", on="a")
    assert row["file"].endswith("test_step_records.py")
    assert "# the line" in Path(__file__).read_text(encoding="utf-8").splitlines()[row["line"] - 1]


def test_statistics_of_several_tensors_are_those_of_all_their_numbers() -> None:
    x, y = torch.tensor([3.0, 0.0], requires_grad=True), torch.tensor([[4.0], [-2.0], [1.0]], requires_grad=True)
    with hv.record() as trace:
        (x.sum() * y.sum()).backward()
        torch.cat([x, y.flatten()]).backward(torch.tensor([3.0, 0.0, 4.0, -2.0, 1.0]))
    row = the_record(trace, kind="compute", op="CatBackward0")
    numbers = torch.tensor([3.0, 0.0, 4.0, -2.0, 1.0])
    assert (row["tensors"], row["shape"], row["dtype"]) == (2, None, "float32")
    assert (row["min"], row["max"], row["zero"]) == (-2.0, 4.0, 1)
    assert row["mean"] == pytest.approx(numbers.mean().item()) == pytest.approx(1.2)
    assert row["norm_after"] == pytest.approx(numbers.norm().item())


def test_statistics_that_were_not_read_are_none() -> None:
    row = the_record(record_network(statistics="norm"), kind="accumulate", on="net.0.weight", call=1, **{"pass": 0})
    assert row["norm_after"] > 0 and row["shape"] == (10, 20)
    assert [row[name] for name in ("min", "max", "mean", "zero")] == [None] * 4
    assert (row["nan"], row["inf"]) == (0, 0)  # the finite norm says so


def test_data_frame_has_the_records_as_rows_with_fixed_types() -> None:
    trace = record_network()
    frame, records = trace.to_pandas(), trace.to_records()
    assert list(frame.columns) == list(COLUMNS) and len(frame) == len(records)
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == COLUMNS
    for name in COLUMNS:
        cells = frame[name].astype(object).where(frame[name].notna(), None)
        assert [cell for cell in cells if not isinstance(cell, tuple)] == [
            record[name] for record in records if not isinstance(record[name], tuple)
        ], name
    empty = hv.Trace().to_pandas()
    assert len(empty) == 0 and {name: str(kind) for name, kind in empty.dtypes.items()} == COLUMNS


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = recorded()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match='pip install pandas"'):
        trace.to_pandas()
    assert len(trace.to_records()) == len(trace.steps)
