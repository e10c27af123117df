"""``hookviz schema`` describes saved traces for other programs, and finds damages in a file."""

import copy
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from scenes import recorded

from hookviz.command_line.entry_point import main


def test_saved_trace_follows_the_schema_and_has_no_other_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded().save(tmp_path / "trace.json")
    data = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    capsys.readouterr()  # what a hook printed
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert list(validator.iter_errors(data)) == []
    assert set(data) == set(schema["$defs"]["TraceFile"]["properties"])
    damaged = copy.deepcopy(data)
    damaged["rows"]["kind"][0] = "tensor_hok"
    assert [tuple(error.absolute_path) for error in validator.iter_errors(damaged)] == [("rows", "kind", 0)]
    del data["calls"]
    assert [error.validator for error in validator.iter_errors(data)] == ["required"]
