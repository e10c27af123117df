"""A loaded trace equals the saved one; any other file is refused with a reason."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import hook_everything, leaf, scene

import hookviz as hv
from hookviz.storage.files import VERSION, encode_trace
from hookviz.trace import TraceData


@pytest.fixture
def trace() -> hv.Trace:
    tensors = scene()
    hook_everything(tensors)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
        tensors.e.backward()
    return trace


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
    torch.full((100,), math.inf),
    torch.ones(100, dtype=torch.complex64),
    torch.zeros(0),
    torch.zeros(0, 5),
    torch.tensor(True),
    torch.tensor([2**62]),
    torch.eye(2).to_sparse(),
]


@pytest.mark.parametrize("tensor", UNUSUAL_TENSORS, ids=repr)
def test_an_unusual_value_is_loaded_exactly(tensor: torch.Tensor, tmp_path: Path) -> None:
    trace = hv.Trace(TraceData(values=[hv.Value.of(tensor).row]))
    loaded = save_and_load(trace, tmp_path / "t.json")
    assert loaded._data.values[0][3:] == trace._data.values[0][3:] or repr(loaded._data.values) == repr(
        trace._data.values
    )
    assert_equal_reprs(loaded, trace)


UNUSUAL_NAMES = ["损失😀", "</script>", 'say "hi"\\', "line\nline", "\ud800", "\x00"]


@pytest.mark.parametrize("name", UNUSUAL_NAMES, ids=ascii)
def test_an_unusual_name_is_loaded_exactly(name: str, tmp_path: Path) -> None:
    x = leaf(2.0)
    with hv.record(names={name: x}) as trace:
        (x * 3).backward()
    assert name in [row.name for row in trace._data.tensors]
    assert save_and_load(trace, tmp_path / "t.json") == trace


def test_saved_values_and_reasons_are_loaded_exactly(tmp_path: Path) -> None:
    x = leaf(1.0, -2.0)
    with hv.record() as trace:
        (x.clamp(-math.inf, 1.5).prod() * torch.tensor(2j)).real.backward()
    assert any(row.plain == -math.inf for row in trace._data.saved)
    loaded = save_and_load(trace, tmp_path / "t.json")
    assert_equal_reprs(loaded, trace)
    assert [loaded.why(i) for i in range(len(loaded.steps))] == [trace.why(i) for i in range(len(trace.steps))]


def test_a_file_is_versioned_strict_json(trace: hv.Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "t.json")
    data = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert (data["format"], data["version"]) == ("hookviz", VERSION)


def test_a_long_trace_makes_a_small_file(tmp_path: Path) -> None:
    x = leaf(1.0)
    y = x
    for _ in range(2000):
        y = y + 1
    with hv.record() as trace:
        y.backward()
    trace.save(tmp_path / "t.json")
    assert (tmp_path / "t.json").stat().st_size / len(trace.steps) < 150


# -- files without a valid trace


def test_a_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no file .*none\.json"):
        hv.load(tmp_path / "none.json")


def replace_step_column(name: str, value: Any) -> Any:
    """Return a change that sets the column ``name`` of every step to ``value``."""
    return lambda data: data["rows"].update({name: [value] * len(data["rows"]["kind"])})


def damaged_json(change: Any) -> str:
    """Return the JSON of a valid trace after ``change`` has edited its data."""
    x = leaf(2.0)
    with hv.record() as trace:
        (x * 3).backward()
    data = encode_trace(trace._data)
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ('{"format": "hookviz", "version": 1, "ops": ["Mul', "damaged trace: its JSON breaks off"),
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "it is JSON, but"),
        ("{}", "it is JSON, but"),
        ('{"format": "hookviz"}', "it is JSON, but"),
        ('{"format": "other", "version": 1}', "it is JSON, but"),
        ('{"format": "hookviz", "version": "1"}', "it is JSON, but"),
        ('{"format": "hookviz", "version": 2}', "a trace of version 2; this hookviz reads version 1"),
        ('{"format": "hookviz", "version": 1}', "is a damaged trace"),
    ],
    ids=lambda text: ascii(text[:40]),
)
def test_a_file_without_a_trace_is_refused_with_the_reason(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ValueError, match=reason) as caught:
        hv.load(tmp_path / "t.json")
    assert "t.json" in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


DAMAGE_FUNCTIONS = {
    "edges are a number": lambda data: data.update(edges=3),
    "steps are a list": lambda data: data.update(rows=[]),
    "an unknown pass": replace_step_column("pass_id", 7),
    "an unknown node": replace_step_column("node", 99),
    "an unknown hook": replace_step_column("hook", 99),
    "an unknown value": replace_step_column("after", 99),
    "an unknown effect": replace_step_column("effect", "nothing"),
    "no labels": replace_step_column("labels", []),
    "a place that is a number": replace_step_column("place", 5),
    "calls that call each other": lambda data: data.update(
        modules={"name": ["m"], "kind": ["M"]},
        calls={"module": [0, 0], "number": [1, 2], "parent": [1, 0], "recomputed": [False, False]},
    ),
    "a call inside itself": lambda data: data.update(
        modules={"name": ["m"], "kind": ["M"]},
        calls={"module": [0], "number": [1], "parent": [0], "recomputed": [False]},
    ),
    "an unknown saved value": lambda data: data["saved"].update(value=[99] * len(data["saved"]["value"])),
    "a saved value of an unknown node": lambda data: data["saved"].update(node=[99] * len(data["saved"]["node"])),
    "an unknown reason for a missing value": lambda data: data["saved"].update(why=["?"] * len(data["saved"]["name"])),
}


@pytest.mark.parametrize("change", DAMAGE_FUNCTIONS.values(), ids=DAMAGE_FUNCTIONS)
def test_a_damaged_trace_is_refused(change: Any, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(damaged_json(change))
    with pytest.raises(ValueError, match=r"t\.json is a damaged trace"):
        hv.load(tmp_path / "t.json")


def test_a_failed_save_keeps_the_old_file(trace: hv.Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "t.json")
    unencodable_trace = hv.Trace(TraceData(rank=object()))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        unencodable_trace.save(tmp_path / "t.json")
    assert hv.load(tmp_path / "t.json") == trace


def test_a_recording_is_not_saved_under_the_name_of_a_page(trace: hv.Trace, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"choose another name than lesson\.html, such as trace\.json, or .* to_html"):
        trace.save(tmp_path / "lesson.html")
    assert not [*tmp_path.iterdir()]
