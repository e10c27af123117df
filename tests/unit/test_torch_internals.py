"""Private names of torch are used through one module, and ``hookviz check`` reports missing ones."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz as hv
from hookviz.__main__ import main
from hookviz.autograd import torch_internals
from hookviz.autograd.torch_internals import INTERNALS
from hookviz.recorder import torch_behaviour
from hookviz.recorder.compatibility import check_torch

PACKAGE = Path(hv.__file__).parent
PYTHON_PRIVATE_NAMES = {
    "_DummyThread",
    "_asdict",
    "_current_frames",
    "_exit",
    "_field_defaults",
    "_fields",
    "_getframe",
    "_option_string_actions",
    "_replace",
}
EXEMPT = {
    "autograd/torch_internals.py",
    "recorder/torch_behaviour.py",
    "trace/named_tables.py",
    "trace/hook_facts.py",
}
"""The adapter; what checks torch's behaviour; and what only names private attributes for people."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def list_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, bool]]:
    """Yield the names of functions, classes, variables and attributes, and whether each is given or else read."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, True
            case ast.Name(id=name, ctx=context) | ast.Attribute(attr=name, ctx=context):
                yield name, isinstance(context, ast.Store)


def imported_names(node: ast.AST) -> list[str]:
    """The parts of the dotted names that a statement imports from torch."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
        return [*(node.module or "").split("."), *(alias.name for alias in node.names)]
    if isinstance(node, ast.Import):
        return [part for alias in node.names if alias.name.startswith("torch") for part in alias.name.split(".")]
    return []


@pytest.mark.slow
def test_private_names_of_torch_are_declared_and_imported_by_the_adapter_alone() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if str(path.relative_to(PACKAGE)) not in EXEMPT]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    names = {*list_names(nodes)}
    own = {name for name, is_given in names if is_given} | {path.stem for path in PACKAGE.rglob("*.py")}
    read = {name for name, is_given in names if not is_given and is_private(name)}
    assert read - own - PYTHON_PRIVATE_NAMES <= {entry.name for entry in INTERNALS}
    assert [part for node in nodes for part in imported_names(node) if is_private(part)] == []


@pytest.mark.slow
def test_the_installed_torch_is_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    before = torch_internals.run_engine.__code__, len(torch_internals.global_forward_hooks)
    assert main(["check"]) == 0
    assert (torch_internals.run_engine.__code__, len(torch_internals.global_forward_hooks)) == before
    lines = capsys.readouterr().out.splitlines()
    assert torch.__version__ in lines[0] and not [line for line in lines if "different" in line]
    gaps = [entry for entry in INTERNALS if entry.gap and torch.__version__ < entry.since]
    assert lines[-1].startswith(f"{len(gaps)} of " if gaps else "All ")
    assert all(entry.gap.format(since=entry.since) in lines for entry in gaps)


@pytest.fixture
def only_pass_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check only the entries for passes and tensor hooks: the others take seconds."""
    internals = [entry for entry in INTERNALS if entry.use in ("passes", "tensor_hooks")]
    behaviours = [entry for entry in torch_behaviour.BEHAVIOURS if entry.use in ("passes", "tensor_hooks")]
    monkeypatch.setattr("hookviz.recorder.compatibility.INTERNALS", internals)
    monkeypatch.setattr("hookviz.recorder.compatibility.BEHAVIOURS", behaviours)


def register_in_reversed_dict(self: torch.Tensor, hook: Any, register: Any = torch.Tensor.register_hook) -> Any:
    """A ``register_hook`` that replaces the hook dict by a new, reversed one each time."""
    handle = register(self, hook)
    self._backward_hooks = dict(reversed(self._backward_hooks.items()))  # type: ignore[union-attr]
    return handle


@pytest.mark.usefixtures("only_pass_checks")
def test_a_changed_behaviour_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "register_hook", register_in_reversed_dict)
    texts = [mismatch.text for mismatch in check_torch().mismatches]
    assert any(
        "The engine reads a tensor's hook dict in each pass, in the order of the dict (" in text for text in texts
    )


SCRIPT_WITH_REMOVALS = """
import sys, torch, torch._subclasses
del torch._C._current_autograd_node, torch.nn.modules.module.Module._wrapped_call_impl
del torch.optim.Optimizer.profile_hook_step, torch._subclasses.FakeTensor
from hookviz.__main__ import main
sys.exit(main(["check"]))
"""


@pytest.mark.slow
def test_the_check_runs_if_internals_are_missing_at_import() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", SCRIPT_WITH_REMOVALS], cwd=PACKAGE.parent, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 1 and completed.stderr == ""
    assert "(missing). Recordings may lack this, or show it wrongly: backward" in completed.stdout
    missing = re.findall(r"^(torch\S+) \(missing\)", completed.stdout, re.MULTILINE)
    assert [path.rpartition(".")[2] for path in missing] == [
        "_current_autograd_node",
        "_wrapped_call_impl",
        "profile_hook_step",
        "FakeTensor",
    ]


def test_the_check_reports_that_torch_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["check"]) == 2
    assert capsys.readouterr().err.startswith("hookviz: PyTorch is not installed")


def test_entry_points_refuse_a_torch_that_lacks_an_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_internals, "_MISSING", ["torch._C._gone"])
    for observe in (lambda: hv.record().__enter__(), hv.hooks, lambda: hv.draw(torch.ones(()))):
        with pytest.raises(RuntimeError, match=r"lacks what hookviz needs .* torch\._C\._gone.*hookviz check"):
            observe()
