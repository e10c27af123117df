"""Hooks that do not fire: the cause of each is the one that was built into its program."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import hookviz as hv
from hookviz import Trace
from hookviz.analysis.findings.hooks.explanations import EXPLANATIONS
from hookviz.recorder.followers import user_code
from tests.proof import unfired_programs
from tests.proof.unfired_programs import FIRING, PROGRAMS, Program, run
from tests.reasons import reasons

pytestmark = pytest.mark.filterwarnings("ignore")  # of what torch says itself about some of the programs


@pytest.fixture(autouse=True)
def read_the_program_that_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the file of all programs for a long one, of which only the functions that run are read."""
    monkeypatch.setattr(user_code, "MAX_LINES", 100)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_cause_is_the_one_in_the_program(program: Program) -> None:
    trace = run(program.code)
    rows = [row for row in reasons(trace) if row.name.endswith("lost")]
    expected = (program.cause, program.on, program.is_proven, program.is_placed)
    if program.cause == "undefined.grad" and torch.__version__ < "2.8":
        # Torch 2.6 calls no post-accumulate hook where no gradient arrived, and its hook never fired.
        expected = ("unknown.tensor", program.on, False, False)
    assert [(row.cause, row.on, row.is_proven, row.is_placed) for row in rows] == [expected], trace.notes
    assert rows[0].sentence and rows[0].advice


def test_each_cause_has_a_program() -> None:
    # Of before_closure, tests/unit/test_optimizers.py has one.
    assert {program.cause for program in PROGRAMS} | {"before_closure"} == set(EXPLANATIONS)


@pytest.mark.parametrize("code", FIRING, ids=lambda code: code.__name__)
def test_hook_that_fires_is_not_listed(code: Callable[..., Trace]) -> None:
    trace = run(code)
    assert list(reasons(trace)) == []
    assert trace._data.unfired_rows == []


def test_weight_norm_is_explained_with_the_name_of_the_parameter() -> None:
    parametrized = unfired_programs.weight_is_computed_by_the_parametrization_of_weight_norm
    hooked = unfired_programs.weight_is_computed_by_the_hook_of_weight_norm
    for program, parameter in ((parametrized, "parametrizations.weight.original1"), (hooked, "weight_v")):
        [row] = reasons(run(program))
        assert "is computed anew for each forward" in row.sentence
        assert row.advice.endswith(f": net.a.{parameter}.")


def test_a_module_that_lost_its_parameter_is_not_called_another_one() -> None:
    def train() -> None:
        net = torch.nn.Sequential(torch.nn.Linear(2, 2))
        net[0].weight.register_post_accumulate_grad_hook(unfired_programs.lost)
        wrapped = torch.nn.Sequential(net)
        wrapped[0][0].weight = torch.nn.Parameter(torch.ones(2, 2))
        wrapped(torch.ones(1, 2)).sum().backward()

    with hv.record() as trace:
        train()
    [row] = reasons(trace)
    assert "wrapped.0.0 is a Linear and was called" in row.sentence and "another" not in row.sentence


def test_page_on_findings_explains_every_kind_of_cause() -> None:
    """The page explains each kind of cause, and no other."""
    page = (Path(__file__).parents[2] / "site" / "findings.md").read_text(encoding="utf-8")
    table = page.partition("\n## All causes\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[2] for line in table.splitlines() if line.startswith("|")][2:]
    named = [kind for cell in cells for kind in re.findall(r"`([^`]+)`", cell)]
    assert sorted(named) == sorted({explanation.kind for explanation in EXPLANATIONS.values()})
