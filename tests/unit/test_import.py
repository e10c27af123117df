"""Importing hookviz loads little beside torch, is quiet, and brings the public names and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

import hookviz as hv

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def run(code: str) -> str:
    """What ``code`` prints in a Python of its own that takes every warning for an error."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_importing_loads_one_package_that_torch_does_not() -> None:
    code = "import sys, torch; before = set(sys.modules); import hookviz; print(*(set(sys.modules) - before))"
    added = {name.partition(".")[0] for name in run(code).split()}
    assert added - sys.stdlib_module_names == {"hookviz", "graphviz"}


def test_importing_leaves_the_widget_and_graphviz_for_later() -> None:
    loaded = run("import sys, hookviz; print(*sys.modules)").split()
    assert not {"anywidget", "ipywidgets", "pygraphviz", "IPython", "hookviz.analysis.formulas.reasons"} & set(loaded)


SHOW = """
import sys, torch, hookviz
with hookviz.record() as trace:
    (torch.ones((), requires_grad=True) * 2).backward()
assert "hv-output" in trace._repr_mimebundle_()["text/html"]
print(*sys.modules)
"""


def test_showing_a_trace_needs_no_widget() -> None:
    assert not {"anywidget", "ipywidgets", "IPython"} & set(run(SHOW).split())


def test_importing_replaces_nothing_of_torch() -> None:
    code = "import torch; b = torch.autograd._engine_run_backward, torch.Tensor.register_hook; import hookviz; "
    assert run(code + "print(b == (torch.autograd._engine_run_backward, torch.Tensor.register_hook))") == "True\n"


def test_the_public_names_are_those_of_all() -> None:
    assert all(hasattr(hv, name) for name in hv.__all__)
    assert sorted(hv.__all__) == hv.__all__
    assert {"draw", "hooks", "load", "record", "render"} <= set(hv.__all__)
