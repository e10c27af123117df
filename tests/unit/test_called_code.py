"""Functions of other files that the recorded code names are kept with it: a finding follows them to the cut."""

import linecache
import sys
from pathlib import Path
from typing import Any

import pytest

import hookviz as hv
from hookviz.recorder.followers.called_code import list_definitions
from tests.missing import missing_gradients

HELPERS = """\
import numpy as np
import torch

from deeper_helpers import to_array

def normalise(x):
    return torch.from_numpy(to_array(x))

def unused(x):
    return x.detach()
"""
LOUD = """
class Loud(type):
    def __getattribute__(cls, name):
        ran.append(name)
        return type.__getattribute__(cls, name)

class Quiet(metaclass=Loud):
    def f(self):
        return 1
"""
DEEPER = """\
import numpy as np

def to_array(x):
    return np.asarray(x.data)
"""
PROGRAM = """\
import torch
from torch import nn
import hookviz as hv
IMPORT

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 1)

    def forward(self, x):
        return self.b(CALL(self.a(x)))

def run():
    net = Net()
    with hv.record(net) as trace:
        net(torch.ones(1, 2)).sum().backward()
    return trace
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with modules that a program in it can import."""
    for name, text in (("some_helpers", HELPERS), ("deeper_helpers", DEEPER)):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_program(folder: Path, imported: str, call: str) -> hv.Trace:
    text = PROGRAM.replace("IMPORT", imported).replace("CALL", call)
    path = folder / "program.py"
    path.write_text(text)
    variables: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, str(path), "exec"), variables)
    trace: hv.Trace = variables["run"]()
    return trace


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("from some_helpers import normalise", "normalise"),
        ("from some_helpers import normalise as norm", "norm"),
        ("import some_helpers", "some_helpers.normalise"),
    ],
)
def test_a_cut_in_a_function_of_an_imported_file_is_named(folder: Path, imported: str, call: str) -> None:
    [row] = missing_gradients(run_program(folder, imported, call))

    assert row.place == "between"
    assert "torch.from_numpy(to_array(x)) (some_helpers.py, line 7)" in row.sentence
    assert "x.data (deeper_helpers.py, line 4)" in row.sentence
    assert "looked into" not in row.sentence


def test_only_what_is_named_is_kept_and_each_text_once(folder: Path) -> None:
    sources = run_program(folder, "from some_helpers import *", "normalise")._data.sources

    kept = [(source.file, source.line, source.whole) for source in sources]
    assert kept == [("program.py", 1, True), ("some_helpers.py", 6, False), ("deeper_helpers.py", 3, False)]


def test_a_function_that_grew_in_its_file_is_kept_as_it_is_now(folder: Path) -> None:
    run_program(folder, "from some_helpers import normalise", "normalise")
    longer = HELPERS.replace("    return torch", "    x = x + 1\n    return torch")
    (folder / "some_helpers.py").write_text(longer)
    del sys.modules["some_helpers"]
    linecache.checkcache()
    sources = run_program(folder, "from some_helpers import normalise", "normalise")._data.sources

    [text] = [source.text for source in sources if source.file == "some_helpers.py"]
    assert text.splitlines()[-1] == "    return torch.from_numpy(to_array(x))"


def test_no_code_of_the_users_runs_to_find_a_definition() -> None:
    ran: list[str] = []
    variables: dict[str, Any] = {"ran": ran}
    exec(compile(LOUD, "loud.py", "exec"), variables)
    ran.clear()
    [found] = list_definitions("Quiet().f(x)", variables)

    assert (found.class_name, found.code.co_name) == ("Quiet", "f")
    assert not ran


def test_a_cut_in_a_function_of_another_notebook_cell_is_named(tmp_path: Path) -> None:
    cells = ["def double(x):\n    return x.detach() * 2\n", PROGRAM.replace("IMPORT", "").replace("CALL", "double")]
    variables: dict[str, Any] = {"__name__": "__main__"}
    for number, text in enumerate(cells):
        path = tmp_path / f"cell_{number}.py"
        path.write_text(text)
        exec(compile(text, str(path), "exec"), variables)
    [row] = missing_gradients(variables["run"]())

    assert (row.file, row.line) == ("cell_0.py", 2)
