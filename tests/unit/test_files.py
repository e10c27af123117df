"""A loaded trace equals the saved one; any other file is refused with a reason."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenes import hook_everything, leaf, scene

import hookviz as hv
from hookviz.autograd.tensor_statistics import measure
from hookviz.storage.decoding import decode_trace
from hookviz.storage.files import VERSION, encode_trace
from hookviz.trace import (
    EFFECTS,
    MISSING_REASONS,
    SUBJECTS,
    HookPlace,
    HookRow,
    Note,
    SavedRow,
    ScaleRow,
    StepRow,
    TensorRow,
)
from tests.requirements import needs_saved_tensors


@pytest.fixture
def trace() -> hv.Trace:
    tensors = scene()
    hook_everything(tensors)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
        tensors.e.backward()
    return trace


def save_and_load(trace: hv.Trace, path: Path) -> hv.Trace:
    trace.save(path)
    return hv.load(path)


def assert_equal_reprs(one: hv.Trace, other: hv.Trace) -> None:
    """Assert that all tables agree in types and the sign of zero, with NaN equal to NaN."""
    tables = [field.name for field in dataclasses.fields(one) if field.compare]
    assert repr([getattr(one, name) for name in tables]) == repr([getattr(other, name) for name in tables])


def test_a_saved_trace_is_loaded_exactly(trace: hv.Trace, tmp_path: Path) -> None:
    loaded = save_and_load(trace, tmp_path / "lesson.json")
    assert loaded == trace
    assert [step.sentence for step in loaded.steps] == [step.sentence for step in trace.steps]
    assert loaded.figure(3).source == trace.figure(3).source
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
    trace = hv.Trace(values=[measure(tensor)])
    loaded = save_and_load(trace, tmp_path / "t.json")
    assert loaded.values[0][3:] == trace.values[0][3:] or repr(loaded.values) == repr(trace.values)
    assert_equal_reprs(loaded, trace)


UNUSUAL_NAMES = ["损失", "<b>", "</script>", 'say "hi"', "a\\b", "line\nline", "\u202e", "\ud800", "😀", "\x00"]


@pytest.mark.parametrize("name", UNUSUAL_NAMES, ids=ascii)
def test_an_unusual_name_is_loaded_exactly(name: str, tmp_path: Path) -> None:
    x = leaf(2.0)
    with hv.record(names={name: x}) as trace:
        (x * 3).backward()
    assert name in [row.name for row in trace.tensors]
    assert save_and_load(trace, tmp_path / "t.json") == trace


notes = st.builds(Note, st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=2).map(tuple))
numbers = st.floats() | st.complex_numbers() | st.integers(-(2**62), 2**62) | st.booleans()
nested_numbers = st.recursive(numbers, lambda x: st.lists(x, max_size=3), max_leaves=8)
statistics = st.tuples(*[st.floats()] * 4, *[st.integers(0, 10**9)] * 3)
rows = st.builds(
    lambda *parts: parts,
    st.lists(st.integers(0, 9), max_size=3).map(tuple),
    st.text(),
    st.text(),
    st.none() | nested_numbers,
    st.none() | statistics,
    st.none() | notes,
)
indexes = st.none() | st.integers(0, 99)
one_or_more_indexes = indexes | st.lists(indexes, max_size=3).map(tuple)
node_indexes = st.none() | st.integers(0, 2**53)
counts = st.integers(0, 2**53)
steps = st.builds(
    StepRow,
    pass_id=st.integers(0, 3),
    kind=st.text(),
    node=node_indexes,
    output=node_indexes,
    hook=indexes,
    effect=st.sampled_from((None, *EFFECTS)),
    cause=indexes,
    call=node_indexes,
    optimizer=node_indexes,
    labels=st.tuples(*[st.lists(st.text(), max_size=2).map(tuple)] * 2),
    place=st.none() | st.builds(HookPlace, st.integers(0, 9), st.integers(0, 9)),
    before=one_or_more_indexes,
    after=one_or_more_indexes,
    parts=st.lists(st.tuples(st.none() | st.integers(0, 9), st.integers(0, 9), indexes), max_size=3).map(tuple),
    error=st.none() | st.text(),
    subject=st.sampled_from(SUBJECTS),
    in_backward=st.booleans(),
    found_inf=st.booleans(),
    synchroniser=st.sampled_from((None, "ddp", "fsdp")),
    ranks=indexes,
    region=st.none() | st.text(),
    note=st.none() | notes,
)
plain_values = (
    st.none() | st.text() | numbers | st.recursive(numbers, lambda x: st.lists(x, max_size=3).map(tuple), max_leaves=8)
)
saved = st.builds(
    SavedRow,
    pass_id=counts,
    node=counts,
    value=one_or_more_indexes,
    plain=plain_values,
    why=st.sampled_from(MISSING_REASONS),
)
tensors = st.builds(TensorRow, pass_id=counts, node=counts, output=counts, data=indexes, grad=indexes)
lines = st.none() | counts
flags = st.lists(st.sampled_from(("with_kwargs", "always_call", "global")), max_size=2).map(tuple)
keys = st.integers(-(2**63), 2**63 - 1)
hooks = st.builds(
    HookRow, node=node_indexes, output=node_indexes, key=keys, line=lines, mark=lines, module=node_indexes, flags=flags
)
traces = st.builds(
    hv.Trace,
    saved=st.lists(saved, max_size=3),
    ops=st.lists(st.text(), max_size=3),
    edges=st.dictionaries(st.tuples(*[st.integers(0, 9)] * 2), st.tuples(*[st.integers(0, 9)] * 2), max_size=4),
    tensors=st.lists(tensors, max_size=3),
    hook_rows=st.lists(hooks, max_size=3),
    values=st.lists(rows, max_size=4),
    rows=st.lists(steps, max_size=4),
    remarks=st.lists(notes, max_size=2),
    hooked=st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=2),
    roots=st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=2), max_size=2),
)


@given(traces)
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
def test_generated_traces_are_decoded_exactly(trace: hv.Trace) -> None:
    text = json.dumps(encode_trace(trace), ensure_ascii=False, allow_nan=False)
    assert_equal_reprs(decode_trace(json.loads(text), hv.Trace), trace)


def test_saved_values_and_reasons_are_loaded_exactly(tmp_path: Path) -> None:
    x = leaf(1.0, -2.0)
    with hv.record() as trace:
        (x.clamp(-math.inf, 1.5).prod() * torch.tensor(2j)).real.backward()
    assert any(row.plain == -math.inf for row in trace.saved)
    loaded = save_and_load(trace, tmp_path / "t.json")
    assert_equal_reprs(loaded, trace)
    assert [loaded.why(i) for i in range(len(loaded.steps))] == [trace.why(i) for i in range(len(trace.steps))]


def test_an_infinite_gradient_scale_is_decoded() -> None:
    trace = hv.Trace(scales=[ScaleRow(0, math.inf, (0,), ())])
    assert decode_trace(json.loads(json.dumps(encode_trace(trace))), hv.Trace) == trace


@needs_saved_tensors
def test_omitted_saved_values_stay_omitted_in_the_file(tmp_path: Path) -> None:
    y = sum((torch.randn(60, requires_grad=True).exp().sum() for _ in range(40)), torch.zeros(()))
    with hv.record() as trace:
        y.backward()
    assert "many" in {row.why for row in trace.saved}
    assert_equal_reprs(save_and_load(trace, tmp_path / "t.json"), trace)


def test_a_file_is_versioned_strict_json(trace: hv.Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "t.json")
    data = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert (data["format"], data["version"]) == ("hookviz", VERSION)


def test_a_path_may_be_a_str(trace: hv.Trace, tmp_path: Path) -> None:
    assert save_and_load(trace, f"{tmp_path}/t.json") == trace


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
    data = encode_trace(trace)
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("hello", "it is not JSON"),
        ("[]", "it is JSON, but"),
        ("3", "it is JSON, but"),
        ("{}", "it is JSON, but"),
        ('{"format": "hookviz"}', "it is JSON, but"),
        ('{"format": "other", "version": 1}', "it is JSON, but"),
        ('{"format": "hookviz", "version": "1"}', "it is JSON, but"),
        ('{"format": "hookviz", "version": 2}', "a trace of version 2; this hookviz reads version 1"),
        ('{"format": "hookviz", "version": 1}', "is a damaged trace"),
    ],
    ids=ascii,
)
def test_a_file_without_a_trace_is_refused_with_the_reason(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ValueError, match=reason) as caught:
        hv.load(tmp_path / "t.json")
    assert "t.json" in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ValueError, match="it is not JSON"):
        hv.load(tmp_path / "t.json")


def test_too_deeply_nested_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="it is not JSON"):
        hv.load(tmp_path / "t.json")


def nested_lists(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


DAMAGE_FUNCTIONS = {
    "no values": lambda data: data.pop("values"),
    "no kinds": lambda data: data["rows"].pop("kind"),
    "a step without a kind": lambda data: data["rows"]["kind"].pop(),
    "edges are a number": lambda data: data.update(edges=3),
    "steps are a list": lambda data: data.update(rows=[]),
    "a value is too short": lambda data: data["values"].append([1]),
    "an invalid value": lambda data: data["values"].append(["x"] * 6),
    "empty values": lambda data: data["values"].clear(),
    "empty ops": lambda data: data.update(ops=[]),
    "ops are a number": lambda data: data.update(ops=3),
    "notes are numbers": lambda data: data.update(remarks=[3]),
    "an unknown kind": replace_step_column("kind", "nothing"),
    "an unknown pass": replace_step_column("pass_id", 7),
    "an unknown node": replace_step_column("node", 99),
    "an unknown hook": replace_step_column("hook", 99),
    "an unknown value": replace_step_column("after", 99),
    "an unknown effect": replace_step_column("effect", "nothing"),
    "no labels": replace_step_column("labels", []),
    "a place that is a number": replace_step_column("place", 5),
    "a value that is nested too deeply": replace_step_column("before", nested_lists(900)),
    "a shape that is a text": lambda data: data["values"][0].__setitem__(0, "abc"),
    "an empty value": lambda data: data["values"][0].__setitem__(slice(3, 6), [None] * 3),
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
    "an unknown reason for a missing value": lambda data: data["saved"].update(why=["?"] * len(data["saved"]["why"])),
}


@pytest.mark.parametrize("change", DAMAGE_FUNCTIONS.values(), ids=DAMAGE_FUNCTIONS)
def test_a_damaged_trace_is_refused(change: Any, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(damaged_json(change))
    with pytest.raises(ValueError, match=r"t\.json is a damaged trace"):
        hv.load(tmp_path / "t.json")


def test_a_failed_save_keeps_the_old_file(trace: hv.Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "t.json")
    unencodable_trace = hv.Trace(rank=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        unencodable_trace.save(tmp_path / "t.json")
    assert hv.load(tmp_path / "t.json") == trace
