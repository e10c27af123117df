"""Hooks are described by name and source, and their files without local paths."""

import functools
import inspect
import operator
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz as hv


def described(function: Any) -> hv.Hook:
    """The hook that ``function`` is on a tensor."""
    x = torch.ones(1, requires_grad=True)
    x.register_hook(function)
    (hook,) = hv.hooks(x)
    return hook


def plain_hook(grad: torch.Tensor) -> torch.Tensor:
    return grad + 2


@torch.no_grad()
def clip(grad: torch.Tensor) -> torch.Tensor:
    return grad.clamp(-1, 1)


class Scale:
    """A callable object."""

    def __call__(self, grad: Any) -> Any:
        return grad

    def method(self, grad: Any) -> Any:
        return grad


def test_a_function_shows_its_name_file_lines_and_return() -> None:
    hook, line = described(plain_hook), inspect.getsourcelines(plain_hook)[1]
    assert (hook.name, hook.file, hook.line) == ("plain_hook", "tests/unit/test_source.py", line)
    assert hook.source == "def plain_hook(grad: torch.Tensor) -> torch.Tensor:\n    return grad + 2"


def test_only_a_single_return_is_marked() -> None:
    def two_returns(grad: Any) -> Any:
        if grad > 0:
            return grad
        return None

    x = torch.ones((), requires_grad=True)
    x.register_hook(two_returns)
    x.register_hook(plain_hook)
    with hv.record() as trace:
        (x * 2).backward()
    first, second = trace.player().hooks
    assert (first["return_line"], second["return_line"]) == (None, inspect.getsourcelines(plain_hook)[1] + 1)
    assert first["source"].startswith("def two_returns(grad: Any) -> Any:\n    if grad > 0:")  # without its indentation


def test_a_decorated_function_shows_the_source_of_the_original() -> None:
    hook = described(clip)
    assert (hook.name, hook.file) == ("clip", "tests/unit/test_source.py")
    assert hook.source is not None and hook.source.startswith("@torch.no_grad()\ndef clip(")


def test_each_of_several_lambdas_on_a_line_has_its_own_text() -> None:
    outer = lambda: lambda grad: grad + 1  # noqa: E731
    lambdas = (lambda grad: grad + 1, lambda grad: grad + 2, outer(), outer)
    assert [described(function).name for function in lambdas] == [
        "lambda grad: grad + 1",
        "lambda grad: grad + 2",
        "lambda grad: grad + 1",
        "lambda: lambda grad: grad + 1",
    ]
    over_several_lines = described(
        lambda grad: (
            grad
            + 2
        )
    )  # fmt: skip
    assert over_several_lines.name.startswith("lambda grad: ( grad + 2")


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (operator.neg, "neg"),
        (functools.partial(plain_hook), "partial(plain_hook)"),
        (Scale(), "Scale"),
        (Scale().method, "Scale.method"),
    ],
)
def test_every_kind_of_callable_has_a_name(function: Any, name: str) -> None:
    assert described(function).name == name


def test_a_function_without_source_has_only_a_name() -> None:
    hook = described(eval(compile("lambda grad: grad", "<stdin>", "eval")))
    assert (hook.label, hook.file, hook.line, hook.source) == ("λ", None, None, None)


def write_hook(folder: Path, text: str, name: str) -> Any:
    """Write ``text`` into a file, run it, and return its function ``hook``."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    namespace: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace["hook"]


def test_a_filename_contains_no_local_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    assert described(write_hook(tmp_path / "deep", "hook = lambda g: g", "mine.py")).file == "deep/mine.py"
    monkeypatch.chdir(tmp_path / "deep")
    assert described(write_hook(tmp_path, "hook = lambda g: g * 1", "outside.py")).file == "outside.py"
    assert described(torch.utils.hooks.unserializable_hook).file == "torch/utils/hooks.py"
    assert not os.path.isabs(described(os.path.join).file or "")


def test_a_notebook_cell_is_named_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Shell:
        class compile:  # noqa: N801
            _filename_map = {str(tmp_path / "2.py"): 4}  # noqa: RUF012

    module = type(sys)("IPython")
    module.get_ipython = Shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    names = [described(write_hook(tmp_path, "hook = lambda g: g", name)).file for name in ("2.py", "3.py")]
    assert names == ["In [4]", "3.py"]
