"""Importing hookviz loads nothing else, is quiet, and offers the public names, each loaded when it is first used."""

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from scenes import leaf

import hookviz as hv

ROOT = Path(__file__).resolve().parents[2]


def run(code: str) -> str:
    """What ``code`` prints in a Python of its own that takes every warning for an error."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def loaded(code: str) -> set[str]:
    """The modules that ``code`` loads."""
    return set(run(f"import sys; before = set(sys.modules); {code}; print(*(set(sys.modules) - before))").split())


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)


@pytest.mark.slow
def test_importing_loads_no_other_package_and_next_to_nothing_of_its_own() -> None:
    modules = loaded("import hookviz")
    assert packages(modules) == {"hookviz"}
    assert {name for name in modules if name.startswith("hookviz")} == {
        "hookviz",
        "hookviz.support",
        "hookviz.support.version",
    }


@pytest.mark.slow
def test_recording_needs_no_package_that_torch_does_not() -> None:
    modules = loaded("import torch; before = set(sys.modules); import hookviz; hookviz.record")
    assert packages(modules) == {"hookviz"}
    assert not {name for name in modules if name.startswith(("hookviz.autograd.formulas", "hookviz.course"))}


@pytest.mark.slow
def test_a_trace_is_loaded_and_shown_without_importing_torch(tmp_path: Path) -> None:
    path = str(tmp_path / "t.json")
    x = leaf(3.0)
    with hv.record() as trace:
        (x * x).backward()
    trace.save(path)
    code = f"import hookviz; t = hookviz.load({path!r}); t._repr_mimebundle_(); t.troubles; t.why(1); t.quiz()"
    assert not {"torch", "numpy", "anywidget", "ipywidgets", "IPython"} & packages(loaded(code))


SHOW = """
import sys, torch, hookviz
with hookviz.record() as trace:
    (torch.ones((), requires_grad=True) * 2).backward()
assert "hv-output" in trace._repr_mimebundle_()["text/html"]
print(*sys.modules)
"""


@pytest.mark.slow
def test_showing_a_trace_needs_no_widget() -> None:
    assert not {"anywidget", "ipywidgets", "IPython"} & set(run(SHOW).split())


@pytest.mark.slow
def test_importing_replaces_nothing_of_torch() -> None:
    code = "import torch; b = torch.autograd._engine_run_backward, torch.Tensor.register_hook; import hookviz; "
    code += "hookviz.record; print(b == (torch.autograd._engine_run_backward, torch.Tensor.register_hook))"
    assert run(code) == "True\n"


MODES = """
import torch, hookviz
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
calls = []
class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        calls.append(function)
        return function(*args, **kwargs or {})
class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        calls.append(function)
        return function(*args, **kwargs or {})
with Functions(), Operations():
    for name in hookviz.__all__:
        getattr(hookviz, name)
    import hookviz.autograd.formulas.verifier
print(calls)
"""


@pytest.mark.slow
def test_a_name_may_be_used_first_where_somebody_watches_torch() -> None:
    assert run(MODES) == "[]\n"


@pytest.mark.slow
def test_everything_can_be_imported_at_once() -> None:
    assert run("from hookviz import *; print(record.__name__, Trace.__name__)") == "record Trace\n"


def test_the_public_names_are_those_of_all() -> None:
    assert all(hasattr(hv, name) for name in hv.__all__)
    assert sorted(hv.__all__) == hv.__all__
    assert {"draw", "hooks", "load", "record", "render"} <= set(hv.__all__) <= set(dir(hv))
    with pytest.raises(AttributeError, match="module 'hookviz' has no attribute 'tape'"):
        hv.tape  # type: ignore[attr-defined]  # noqa: B018


def test_a_name_is_loaded_from_where_type_checkers_see_it() -> None:
    """Each name stands twice: as an import for them, and in a table."""
    tree = ast.parse((ROOT / "hookviz/__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom) and node.module
        seen |= {alias.name: getattr(sys.modules.get(node.module), alias.name, None) for alias in node.names}
    assert {name: getattr(hv, name) for name in hv.__all__} == seen


def test_no_public_name_is_that_of_a_module() -> None:
    """To import such a module would put it in the place of the function."""
    modules = {path.stem for path in (ROOT / "hookviz").iterdir()}
    assert not modules & set(hv.__all__)


@pytest.mark.parametrize("name", [name for name in hv.__all__ if isinstance(getattr(hv, name), type)])
def test_the_public_classes_can_be_pickled(name: str) -> None:
    assert pickle.loads(pickle.dumps(getattr(hv, name))) is getattr(hv, name)
