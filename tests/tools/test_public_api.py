"""The API reference has everything that is public, and nothing else."""

import inspect
import re
from pathlib import Path

import pytest

import hookviz
import hookviz.course
import hookviz.testing
from hookviz.command_line.entry_point import build_parser
from hookviz.pytest_plugin import NAME, OPTION
from tools.api_pages import GROUPS, page_name, write_api_pages, write_commands
from tools.public_api import INTERNAL, PUBLIC_OF_TABLES, find_members, find_public_names

NAMES = find_public_names()
RETURNED = {
    *(
        "Table",
        "Comparison",
        "Difference",
        "Census",
        "Change",
        "Player",
        "Quiz",
        "QuizQuestion",
        "RecordBlock",
        "Steps",
    ),
    *("UnfiredHook", "MissingGradient", "Reason", "HookCount", "StaticFinding", "AnswerFile", "Review", "Rendered"),
}
"""Types that no module exports and that a user meets: a program finds them, and this list checks the program."""


def test_all_exported_names_and_the_types_that_they_return_are_found() -> None:
    modules = (hookviz, hookviz.course, hookviz.testing)
    exported = {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
    assert exported <= NAMES.keys()
    assert {public.name for public in NAMES.values()} >= RETURNED


def test_a_type_names_what_returns_it() -> None:
    sources = {public.name: set(public.sources) for public in NAMES.values()}
    assert {"hookviz.Trace.unfired"} == sources["UnfiredHook"]
    assert {"hookviz.Trace.firings", "hookviz.doctor"} <= sources["Table"]
    assert "hookviz.recorder.record_block.RecordBlock.__enter__" in sources["Trace"]


def test_members_of_a_trace_are_public_ones_only() -> None:
    members = set(find_members(hookviz.Trace))
    assert members >= {"steps", "firings", "findings", "unfired", "why", "to_html", "save", "notes", "rank"}
    assert members.isdisjoint({"rows", "values", "hook_rows", "edges", "lookup", "verify_formula", "content", "at"})
    assert not any(member.startswith("_") for public in NAMES.values() for member in public.members)


def test_members_that_are_called_internal_exist() -> None:
    classes = {base.__name__: base for public in NAMES.values() if public.is_type for base in public.what.__mro__}
    fields = {name: {*vars(kind), *vars(kind).get("__annotations__", {})} for name, kind in classes.items()}
    fields["WhatIf"].add("before")  # its constructor makes it
    unknown = {name: hidden - fields[name] for name, hidden in INTERNAL.items()}
    assert {name: hidden for name, hidden in unknown.items() if hidden} == {}
    assert fields["TraceTables"] >= PUBLIC_OF_TABLES


def test_every_public_name_is_in_one_group_of_the_index() -> None:
    public = sorted(name.name if name.is_type else name.address.removeprefix("hookviz.") for name in NAMES.values())
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(name for name in listed if not name.startswith("Trace.")) == public
    members = [name.removeprefix("Trace.") for name in listed if name.startswith("Trace.")]
    assert set(members) <= set(find_members(hookviz.Trace)) and len(members) == len(set(members))


@pytest.mark.parametrize("address", [address for address, public in NAMES.items() if not public.is_type])
def test_public_function_has_an_example_that_can_be_typed_as_it_stands(address: str) -> None:
    docstring = inspect.getdoc(NAMES[address].what) or ""
    assert re.search(r"\n>>> (?:import|from) ", docstring), "an example imports what it uses"


def test_every_public_name_gets_a_page_of_its_own(tmp_path: Path) -> None:
    write_api_pages(tmp_path)
    pages = [f"{page_name(public)}.rst" for public in NAMES.values()]
    assert len({page.casefold() for page in pages}) == len(pages), "some disks do not tell a from A"
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.rst")}
    assert made == {*pages, "index.rst", "command_line.rst"}


def test_page_of_the_command_line_has_every_command_and_option() -> None:
    page = write_commands(build_parser())
    for command in ("run", "page", "animate", "text", "findings", "unfired", "check"):
        assert f"\n{command}\n---" in page
    assert ".. option:: --statistics {all,norm}" in page and ".. option:: -o OUTPUT, --output OUTPUT" in page
    assert "``--check``" in page, "else two hyphens become a dash"


def test_page_of_the_pytest_plugin_names_its_options() -> None:
    page = (Path(__file__).parents[2] / "site" / "api" / "pytest_plugin.md").read_text(encoding="utf-8")
    assert f"```{{option}} {OPTION}\n" in page and f"```{{confval}} {NAME}\n" in page
