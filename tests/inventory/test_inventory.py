"""The inventory lists what the code has and nothing else, and names a program that exists for each row."""

import argparse
import ast
import inspect
import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import hookviz as hv
import hookviz.testing
from hookviz.analysis.findings import finding
from hookviz.analysis.findings.hooks.explanations import EXPLANATIONS
from hookviz.analysis.findings.parameters.places import CUTS
from hookviz.command_line.entry_point import build_parser
from hookviz.static_checks import static_finding
from hookviz.trace.rows import GRAD_MODES
from tests.inventory.table import read_promises

ROOT = Path(__file__).parents[2]
PROMISES = read_promises()


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


# -- what the code has, by the kind of promise


def list_first_column(page: str, head: str) -> set[str]:
    """Return the first column of the table of a page of the site with this head, without marks of code."""
    table = read(f"site/{page}.md").partition(f"\n{head}\n")[2].partition("\n\n")[0]
    cells = [line.removeprefix("| ").partition(" | ")[0] for line in table.splitlines()[1:]]
    return {cell.replace("`", "") for cell in cells}


def list_environments() -> set[str]:
    cells = list_first_column("sharing", "| environment | what was run | what was not tried |")
    return {re.sub(r" \d[\d.]+", "", cell) for cell in cells}


def list_exported(path: str) -> list[str]:
    """Return ``__all__`` of a file, without the import: a trainer's takes seconds."""
    assigned = (node for node in ast.parse(read(path)).body if isinstance(node, ast.Assign))
    [names] = [node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__"]
    exported: list[str] = ast.literal_eval(names)
    return exported


def list_public_names() -> set[str]:
    callbacks = {
        f"integrations.{trainer}.{name}"
        for trainer in ("lightning", "transformers")
        for name in list_exported(f"hookviz/integrations/{trainer}.py")
    }
    return {*hv.__all__, *(f"testing.{name}" for name in hookviz.testing.__all__)} | callbacks


def list_record_options() -> set[str]:
    return set(inspect.signature(hv.record).parameters)


def list_commands() -> set[str]:
    [subparsers] = [action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return set(subparsers.choices)


def list_registrations() -> set[str]:
    programs = (ROOT / "atlas" / "programs").glob("*/*.py")
    return {f"{path.parent.name}/{path.stem}" for path in programs if path.parent.name != "settings"}


def list_extras() -> set[str]:
    return set(tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"])


IN_CODE: dict[str, Callable[[], set[str]]] = {
    "readme_row": lambda: list_first_column("guide", "| you write | you get |"),
    "exit_status": lambda: list_first_column("command_line", "| command | exit status |"),
    "environment": list_environments,
    "manual_section": lambda: set(re.findall(r"(?m)^## (.+)$", read("site/player.md"))),
    "public_name": list_public_names,
    "record_option": list_record_options,
    "command": list_commands,
    "registration": list_registrations,
    "cause": lambda: {explanation.kind for explanation in EXPLANATIONS.values()},
    "missing_gradient": lambda: {*CUTS, *GRAD_MODES, "uncalled", "unused", "unnamed", "frozen", "no_pass"} - {"grad"},
    "finding": lambda: {kind for kinds in finding.KINDS.values() for kind in kinds},
    "doctor_rule": lambda: set(static_finding.KIND_NAMES),
    "extra": list_extras,
}
"""Kind → what of this kind there is. The tests of rows named ``*`` compare their programs with a list themselves."""


@pytest.mark.parametrize("kind", IN_CODE)
def test_inventory_has_a_row_for_everything_of_a_kind(kind: str) -> None:
    assert {promise.name for promise in PROMISES if promise.kind == kind} == IN_CODE[kind]()


# -- the tests that the rows name


@cache
def list_functions(path: str) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(read(path))) if isinstance(node, ast.FunctionDef)}


def exists(test: str) -> bool:
    """Whether a test is there: a function of a Python file, or a text in another file."""
    path, _, name = test.partition("::")
    if not (ROOT / path).is_file():
        return False
    return name.partition("[")[0] in list_functions(path) if path.endswith(".py") else name in read(path)


def test_each_promise_has_a_test() -> None:
    assert [promise.name for promise in PROMISES if not exists(promise.test)] == []
