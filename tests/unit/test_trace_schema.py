"""The JSON Schema of trace files is up to date, describes every field, and finds damages in a file."""

import copy
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hookviz.trace import KINDS
from tests.proof.mutants import KINDS_OF_TRACE, saved

SCHEMA = json.loads((files("hookviz.storage") / "trace.schema.json").read_text(encoding="utf-8"))


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(SCHEMA)


def faults(data: Any) -> list[str]:
    """Where a file does not follow the schema."""
    return [error.json_path for error in validator().iter_errors(data)]


def test_schema_follows_draft_2020_12() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(SCHEMA)


def definitions() -> Iterator[tuple[str, dict[str, Any]]]:
    yield from SCHEMA["$defs"].items()


def test_every_field_has_a_description() -> None:
    fields = [(name, field, about) for name, table in definitions() for field, about in table["properties"].items()]
    assert len(fields) > 90
    assert [(name, field) for name, field, about in fields if not about.get("description")] == []
    texts = [about["description"] for _, _, about in fields] + [table["description"] for _, table in definitions()]
    assert [text for text in texts if "``" in text or "\n" in text] == []


@pytest.mark.parametrize("name", KINDS_OF_TRACE)
def test_saved_trace_follows_the_schema_and_has_no_other_fields(name: str) -> None:
    data = json.loads(saved(name))
    assert faults(data) == []
    tables = dict(definitions())
    assert set(data) <= set(tables["TraceFile"]["properties"])
    for field, about in tables["TraceFile"]["properties"].items():
        if "$ref" in about and field in data:
            assert set(data[field]) <= set(tables[about["$ref"].rpartition("/")[2]]["properties"]), field


def test_kinds_of_steps_are_listed() -> None:
    assert dict(definitions())["StepColumns"]["properties"]["kind"]["items"] == {"enum": list(KINDS)}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["version"], 3),
        (["dropped"], -1),
        (["ops"], ["x" * 10_001]),
        (["rows", "kind", 0], "tensor_hok"),
        (["rows", "node", 0], "first"),
        (["edges", 0], [0, 0, 1]),
        (["hook_rows", "kind", 0], "arrive"),
        (["values", 0, 0], [-1]),
        (["statistics"], "some"),
    ],
)
def test_damaged_file_breaks_the_schema_at_the_damage(path: list[Any], value: Any) -> None:
    data = copy.deepcopy(json.loads(saved("graph")))
    at = data
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    where = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    found = faults(data)
    assert found and all(fault.startswith(where) for fault in found)


def test_file_without_a_table_breaks_the_schema() -> None:
    data = json.loads(saved("graph"))
    del data["rows"]
    assert faults(data) == ["$"]
