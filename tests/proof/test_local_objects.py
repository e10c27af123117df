"""What hookviz says of a hook does not depend on whether its owner still exists when the recording ends.

At module level the objects of a program exist then; in a function or a fixture of pytest they are gone.
"""

import re
from pathlib import Path
from subprocess import run
from sys import executable
from textwrap import indent

import pytest

import hookviz as hv
from hookviz.command_line.entry_point import main

HEAD = """
import gc
import pytest
import torch
from torch import nn

torch.manual_seed(0)


def my_hook(*_):
    pass

"""
NET = "model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))"
PROGRAMS = {
    "bypassed": (
        f"{NET}\nmodel[0].register_forward_hook(my_hook)",
        "loss = model[2](model[1](model[0].forward(torch.randn(5, 4)))).mean()",
        "model.0",
    ),
    "cut": (
        NET,
        "h = model[0](torch.randn(5, 4))\nh.register_hook(my_hook)\nloss = model[2](model[1](h.detach())).mean()",
        "h",
    ),
    "frozen": (
        f"{NET}\nmodel[0].weight.register_hook(my_hook)\nmodel[0].weight.requires_grad_(False)",
        "loss = model(torch.randn(5, 4)).mean()",
        "model.0.weight",
    ),
}
"""Kind of the one finding about the hook → what makes ``model``, what makes ``loss``, and what the hook is on."""


def describe(trace: hv.Trace) -> list[tuple[str, ...]]:
    """Return what the findings say, without the numbers of lines."""
    rows = [(row.severity, row.kind, row.certainty, row.text) for row in trace.findings]
    return [tuple(re.sub(r"(line |py:)\d+", "line", text) for text in row) for row in rows]


def record_script(text: str) -> hv.Trace:
    Path("test_script.py").write_text(f"{HEAD}\n{text}\n", encoding="utf-8")
    main(["run", "--record", "pass.json", "test_script.py"])
    return hv.load("pass.json")


@pytest.mark.parametrize("kind", PROGRAMS)
def test_findings_are_the_same_where_the_objects_are_gone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model, loss, on = PROGRAMS[kind]
    body = f"{model}\n{loss}\nloss.backward()"
    trace = record_script(body)
    [finding] = trace.findings.hooks
    assert (finding.kind, finding.severity) == (kind, "warning")
    assert {(hook.name, hook.on) for hook in finding.hooks} == {("my_hook", on)}
    in_function = record_script(f"def train():\n{indent(body, '    ')}\n\n\ntrain()\ngc.collect()")
    assert describe(in_function) == describe(trace)


def test_findings_are_the_same_in_a_fixture_of_pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, as pytest does not run in another pytest."""
    monkeypatch.chdir(tmp_path)
    model, loss, _ = PROGRAMS["frozen"]
    expected = describe(record_script(f"{model}\n{loss}\nloss.backward()"))
    fixture = f"@pytest.fixture\ndef model():\n{indent(model, '    ')}\n    return model"
    test = f"def test_training(model):\n{indent(loss, '    ')}\n    loss.backward()"
    Path("test_script.py").write_text(f"{HEAD}\n{fixture}\n\n\n{test}\n", encoding="utf-8")
    command = [executable, "-m", "hookviz", "run", "--record", "pass.json", "-m", "pytest", "-q", "test_script.py"]
    run([*command, "-p", "no:cacheprovider"], check=True, capture_output=True)
    assert describe(hv.load("pass.json")) == expected
