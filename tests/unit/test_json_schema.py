"""``hookviz schema`` describes saved traces for other programs, and finds damages in a file."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from scenes import hook_everything, scene

import hookviz as hv
from hookviz.command_line.entry_point import main


@pytest.fixture
def validator(capsys: pytest.CaptureFixture[str]) -> Draft202012Validator:
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture
def data(tmp_path: Path) -> Any:
    """A saved trace, as another program reads it."""
    tensors = scene()
    hook_everything(tensors)
    with hv.record() as trace:
        tensors.e.backward()
    trace.save(tmp_path / "trace.json")
    return json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))


def test_saved_trace_follows_the_schema_and_has_no_other_tables(validator: Draft202012Validator, data: Any) -> None:
    assert list(validator.iter_errors(data)) == []
    assert set(data) == set(validator.schema["$defs"]["TraceFile"]["properties"])


@pytest.mark.parametrize(
    ("path", "cell"), [(("version",), 3), (("rows", "kind", 0), "tensor_hok"), (("edges", 0), [0, 0, 1])]
)
def test_damage_breaks_the_schema_where_it_is(
    validator: Draft202012Validator, data: Any, path: tuple[Any, ...], cell: object
) -> None:
    at = data
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = cell
    found = [tuple(error.absolute_path) for error in validator.iter_errors(data)]
    assert found and all(where[: len(path)] == path for where in found)


def test_file_without_a_table_breaks_the_schema(validator: Draft202012Validator, data: Any) -> None:
    del data["calls"]
    assert [error.validator for error in validator.iter_errors(data)] == ["required"]
