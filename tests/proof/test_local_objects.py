"""What hookviz says of a hook does not depend on whether its owner still exists when the recording ends."""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from subprocess import run
from sys import executable
from tempfile import TemporaryDirectory

import pytest

import hookviz as hv
from hookviz.command_line.entry_point import main

from .local_objects import PROGRAMS, WAYS, make_script

SCRIPT = "test_script.py"


def describe(trace: hv.Trace) -> list[tuple[str, ...]]:
    """Return what the findings say, without the numbers of lines."""
    rows = [(row.severity, row.kind, row.certainty, row.text) for row in trace.findings]
    return [tuple(re.sub(r"(line |py:)\d+", "line", text) for text in row) for row in rows]


def record_script(script: str) -> hv.Trace:
    Path(SCRIPT).write_text(script, encoding="utf-8")
    main(["run", "--record", "pass.json", SCRIPT])
    return hv.load("pass.json")


@cache
def record_at_module_level(name: str) -> hv.Trace:
    return record_script(make_script(PROGRAMS[name], WAYS[0]))


@pytest.fixture(autouse=True)
def folder() -> Iterator[None]:
    """An empty working directory."""
    before = Path.cwd()
    with TemporaryDirectory() as path:
        os.chdir(path)
        yield
        os.chdir(before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_finding_at_module_level_names_the_cause(name: str) -> None:
    program, trace = PROGRAMS[name], record_at_module_level(name)
    [finding] = trace.findings.hooks
    assert (finding.kind, finding.severity) == (program.kind, "warning")
    assert {(hook.name, hook.on) for hook in finding.hooks} == {("my_hook", program.on)}


@pytest.mark.parametrize("way", WAYS[1:-1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_findings_are_the_same_where_the_objects_are_gone(name: str, way: str) -> None:
    assert describe(record_script(make_script(PROGRAMS[name], way))) == describe(record_at_module_level(name))


def test_findings_are_the_same_in_a_fixture_of_pytest() -> None:
    """In a process of its own, as pytest does not run in another pytest."""
    name = "parameter is frozen"
    expected = describe(record_at_module_level(name))
    Path(SCRIPT).write_text(make_script(PROGRAMS[name], "fixture"), encoding="utf-8")
    command = [executable, "-m", "hookviz", "run", "--record", "pass.json", "-m", "pytest", "-q", SCRIPT]
    run([*command, "-p", "no:cacheprovider"], check=True, capture_output=True)
    assert describe(hv.load("pass.json")) == expected
