"""A loaded trace equals the saved one; any other file is refused with a reason."""

import dataclasses
import json
import math
from pathlib import Path

import pytest
import torch
from scenes import leaf, recorded

import hookviz as hv
from hookviz.storage.files import VERSION
from hookviz.trace import TraceData


@pytest.fixture
def trace() -> hv.Trace:
    return recorded()


def save_and_load(trace: hv.Trace, path: Path | str) -> hv.Trace:
    trace.save(path)
    return hv.load(path)


def assert_equal_reprs(one: hv.Trace, other: hv.Trace) -> None:
    """Assert that all tables agree in types and the sign of zero, with NaN equal to NaN."""
    tables = [field.name for field in dataclasses.fields(TraceData) if field.compare]
    assert repr([getattr(one._data, name) for name in tables]) == repr([getattr(other._data, name) for name in tables])


def test_a_saved_trace_is_loaded_exactly(trace: hv.Trace, tmp_path: Path) -> None:
    loaded = save_and_load(trace, f"{tmp_path}/lesson.json")  # a path may be a str
    assert loaded == trace
    assert [step.sentence for step in loaded.steps] == [step.sentence for step in trace.steps]
    assert loaded.figure(3).svg() == trace.figure(3).svg()
    assert loaded.firings.texts() == trace.firings.texts()


UNUSUAL_TENSORS = [
    torch.tensor([math.nan, math.inf, -math.inf, -0.0]),
    torch.tensor([complex(math.nan, -math.inf), complex(-0.0, 0.0), 1 - 2j]),
    torch.tensor(5e-324, dtype=torch.float64),
    torch.full((100,), math.nan),
    torch.ones(100, dtype=torch.complex64),
    torch.zeros(0, 5),
    torch.tensor([2**62]),
    torch.eye(2).to_sparse(),
]
UNUSUAL_NAMES = ["损失😀", "</script>", 'say "hi"\\', "line\nline", "\ud800", "\x00"]


def test_unusual_values_and_names_are_loaded_exactly(tmp_path: Path) -> None:
    trace = hv.Trace(TraceData(values=[hv.Value.of(tensor).row for tensor in UNUSUAL_TENSORS]))
    assert_equal_reprs(save_and_load(trace, tmp_path / "t.json"), trace)
    tensors = {name: leaf(2.0) for name in UNUSUAL_NAMES}
    with hv.record(names=tensors) as trace:
        torch.stack([*tensors.values()]).sum().backward()
    assert {*UNUSUAL_NAMES} <= {row.name for row in trace._data.tensors}
    assert save_and_load(trace, tmp_path / "t.json") == trace


def test_a_file_is_versioned_strict_json(trace: hv.Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "t.json")
    data = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert (data["format"], data["version"]) == ("hookviz", VERSION)


# -- files without a valid trace


HEAD = '{"format": "hookviz", "version": '


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        (f'{HEAD}1, "ops": ["Mul', "Unterminated string"),
        ("[" * 100_000, "recursion"),
        ("[]", "Expected `object`, got `array`"),
        ('{"format": "other", "version": 1}', "Invalid enum value 'other'"),
        (f"{HEAD}2}}", "Invalid enum value 2"),
        (f'{HEAD}1, "rank": ' + "7" * 5_000 + "}", "limit"),
    ],
    ids=lambda text: ascii(text[:40]),
)
def test_a_file_without_a_trace_is_refused_with_the_reason(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ValueError, match=reason) as caught:
        hv.load(tmp_path / "t.json")
    assert "t.json" in str(caught.value) and len(str(caught.value)) < 500
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_recording_is_not_saved_under_the_name_of_a_page(trace: hv.Trace, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"choose another name than lesson\.html, such as trace\.json, or .* to_html"):
        trace.save(tmp_path / "lesson.html")
    assert not [*tmp_path.iterdir()]
