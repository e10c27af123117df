"""What the commands print for programs (``--json``), for pull requests (``--markdown``) and as their overview."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

import hookviz as hv
from hookviz.__main__ import main
from hookviz.command_line.command_table import COMMANDS
from hookviz.command_line.entry_point import build_parser
from hookviz.command_line.report_types import REPORTS
from hookviz.command_line.table_output import write_markdown
from hookviz.support.table import Table

MODULE = """
import torch

def edit(grad):
    grad *= 2

net = torch.nn.Linear(1, 1)
net.weight.register_hook(edit)
"""
ARGUMENTS = {
    "findings": ["nan.json"],
    "hooks": ["nan.json"],
    "text": ["nan.json"],
    "diff": ["nan.json", "other.json"],
    "doctor": ["mine:net"],
    "check": [],
}


def edit(grad: torch.Tensor) -> torch.Tensor:
    return grad * 2


def save(name: str, number: float, *, with_hook: bool = True) -> None:
    """Save a pass whose gradient is NaN if ``number`` is 0, with a hook that fires and one that does not."""
    net, x = torch.nn.Linear(1, 1), torch.tensor(number, requires_grad=True)
    net.register_forward_hook(lambda module, args, output: None)
    if with_hook:
        x.register_hook(edit)
    with hv.record(net) as trace:
        net.forward(x.reshape(1))
        (x / x).backward()
    trace.save(name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MODULE)
    save("nan.json", 0.0)
    save("other.json", 3.0, with_hook=False)
    return tmp_path


def refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def read_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command, and parse what it prints as strict JSON."""
    capsys.readouterr()
    main(arguments)
    return json.loads(capsys.readouterr().out, parse_constant=refuse)


def close(schema: Any) -> Any:
    """Return a schema that allows no key which it does not describe."""
    for one in schema["$defs"].values():
        one["additionalProperties"] = False
    return schema


@pytest.mark.parametrize("command", REPORTS)
def test_json_of_a_command_follows_its_schema_and_has_no_other_keys(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = close(read_json(["schema", command], capsys))
    Draft202012Validator.check_schema(schema)
    report = read_json([command, *ARGUMENTS[command], "--json"], capsys)
    assert [error.message for error in Draft202012Validator(schema).iter_errors(report)] == []
    assert any(isinstance(part, list) and part for part in report.values())


def test_numbers_that_json_lacks_are_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = read_json(["text", "nan.json", "--json", "--steps", "2-5"], capsys)["steps"]
    assert [step["step"] for step in steps] == [1, 2, 3, 4] and "nan" in [step["norm_after"] for step in steps]


NAMES = ["a|b", "`x`", "__init__", "grad * 2 * 3", "<lambda>", "d['k']", "~~y~~", "a\\b", "&amp;", "#1"]


def test_markdown_shows_names_and_code_as_they_are() -> None:
    table = Table([(name, name) for name in NAMES], ("na|me", "`on`"), lambda row: row, below="*below* <b>")
    rendered = MarkdownIt("commonmark").enable("table").render("\n".join(write_markdown(table, ["_above_"])))
    cells = re.findall(r"<t[hd]>(.*?)</t[hd]>|<p>(.*?)</p>", rendered)
    shown = [html.unescape(cell or text) for cell, text in cells]
    assert shown == ["_above_", "na|me", "`on`", *[name for name in NAMES for _ in range(2)], "*below* <b>"]


def test_without_arguments_every_command_is_listed_with_an_example_that_it_understands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    examples = [line.partition("  #")[0].split() for line in capsys.readouterr().out.splitlines() if "  # " in line]
    assert [name for _hookviz, name, *_rest in examples] == list(COMMANDS)
    for _hookviz, *arguments in examples:
        build_parser().parse_args(arguments)


def test_the_page_for_agents_is_short_and_shows_what_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["for-agents"]) == 0
    page = capsys.readouterr().out
    assert len(page.split()) <= 600
    names = {"model": torch.nn.Linear(1, 1), "x": torch.ones(1)}
    for program in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(program, names)
    shown = {
        line.partition("  #")[0] for line in page.splitlines() if line.startswith("hookviz ") and "pass.json" in line
    }
    for line in shown | set(re.findall(r"`hookviz ([^`]+)`", page)):
        build_parser().parse_args(line.removeprefix("hookviz ").split())
