"""Importing hookviz loads no other package, warns of nothing, and loads each public name on first use."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scenes import leaf

import hookviz as hv

ROOT = Path(__file__).resolve().parents[2]


def run_python(code: str) -> Any:
    """Run ``code`` in a Python subprocess with warnings as errors, and return the JSON that it prints."""
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return json.loads(result.stdout)


def loaded_modules(code: str) -> set[str]:
    """Return the names of the modules that ``code`` imports."""
    code = f"import sys; before = set(sys.modules); {code}; loaded = list(set(sys.modules) - before)"
    return set(run_python(f"{code}; import json; print(json.dumps(loaded))"))


def third_party_packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)


@pytest.mark.slow
def test_importing_hookviz_loads_no_other_package_and_two_small_modules() -> None:
    modules = loaded_modules("import hookviz")
    assert third_party_packages(modules) == {"hookviz"}
    assert {name for name in modules if name.startswith("hookviz")} == {
        "hookviz",
        "hookviz.support",
        "hookviz.support.version",
    }


@pytest.mark.slow
def test_a_trace_is_loaded_drawn_and_analysed_without_importing_torch(tmp_path: Path) -> None:
    path = str(tmp_path / "t.json")
    x = leaf(3.0)
    with hv.record() as trace:
        (x * x).backward()
    trace.save(path)
    code = f"import hookviz; t = hookviz.load({path!r}); t.figure(); t.text(); t.findings; "
    code += "from hookviz.course import quiz; quiz(t)"
    assert not {"torch", "numpy", "anywidget", "ipywidgets", "IPython"} & third_party_packages(loaded_modules(code))


USE_HOOKVIZ = """
import json, sys, torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

calls = []

class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        calls.append(str(function))
        return function(*args, **kwargs or {})

class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        calls.append(str(function))
        return function(*args, **kwargs or {})

functions = torch.autograd._engine_run_backward, torch.Tensor.register_hook
before = set(sys.modules)
with Functions(), Operations():
    import hookviz
    hookviz.record
    to_record = list(set(sys.modules) - before)
    from hookviz import *
    import hookviz.autograd.formulas.verifier
patched = (torch.autograd._engine_run_backward, torch.Tensor.register_hook) != functions
with record() as trace:
    (torch.ones((), requires_grad=True) * 2).backward()
shown = trace._repr_mimebundle_()["text/html"]
print(json.dumps([to_record, calls, patched, "hv-output" in shown, list(sys.modules)]))
"""


@pytest.mark.slow
def test_loading_the_public_names_runs_no_operation_and_patches_nothing_and_showing_imports_no_widgets() -> None:
    to_record, calls, patched, is_shown, at_the_end = run_python(USE_HOOKVIZ)
    # Torch 2.6 loads its compiler, with sympy, only when that is first used.
    assert third_party_packages(set(to_record)) - {"torch", "sympy", "mpmath"} == {"hookviz"}
    assert not [name for name in to_record if name.startswith(("hookviz.autograd.formulas", "hookviz.course"))]
    assert calls == []
    assert not patched
    assert is_shown
    assert not {"anywidget", "ipywidgets", "IPython"} & set(at_the_end)


def test_lazy_names_come_from_the_modules_that_type_checkers_see() -> None:
    """``hookviz/__init__.py`` lists each name twice: as an import for type checkers, and in a table."""
    tree = ast.parse(Path(hv.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    loaded = {name: getattr(hv, name) for name in hv.__all__}
    seen_by_type_checkers = {
        alias.name: getattr(sys.modules[str(node.module)], alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert loaded == seen_by_type_checkers
