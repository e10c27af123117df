"""Hooks are described by name and source, and their files without local paths."""

import ast
import functools
import inspect
import linecache
import operator
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hookviz.support.source_code import Source, describe_function, shorten_filename


def plain_hook(grad: torch.Tensor) -> torch.Tensor:
    return grad + 2


def two_returns(grad: Any) -> Any:
    if grad:
        return grad
    return None


def wrap_transparently(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


@wrap_transparently
def decorated(grad: Any) -> Any:
    return grad


class Scale:
    """A callable object."""

    def __call__(self, grad: Any) -> Any:
        return grad

    def method(self, grad: Any) -> Any:
        return grad


def first_line(function: Any) -> int:
    return inspect.getsourcelines(function)[1]


def test_a_function_shows_its_name_file_lines_and_return() -> None:
    line = first_line(plain_hook)
    text = "def plain_hook(grad: torch.Tensor) -> torch.Tensor:\n    return grad + 2"
    assert describe_function(plain_hook) == Source("plain_hook", "tests/unit/test_source.py", line, text, line + 1)


@torch.no_grad()
def clip(grad: torch.Tensor) -> torch.Tensor:
    return grad.clamp(-1, 1)


def test_a_hook_under_no_grad_shows_its_own_source() -> None:
    source = describe_function(clip)
    assert (source.name, source.file) == ("clip", "tests/unit/test_source.py")
    assert "grad.clamp(-1, 1)" in source.text


def test_a_nested_function_is_shown_without_its_indentation() -> None:
    def inner(grad: Any) -> Any:
        return grad

    assert describe_function(inner).text == "def inner(grad: Any) -> Any:\n    return grad"


def test_only_a_single_return_is_marked() -> None:
    assert describe_function(two_returns).mark is None


def test_a_lambda_is_named_by_its_text() -> None:
    source = describe_function(lambda grad: grad * 2)
    assert (source.name, source.label) == ("lambda grad: grad * 2", "λ grad * 2")
    assert source.line == source.mark


def test_each_of_several_lambdas_on_a_line_has_its_own_text() -> None:
    lambdas = (lambda grad: grad + 1, lambda grad: grad + 2)
    assert [describe_function(function).name for function in lambdas] == [
        "lambda grad: grad + 1",
        "lambda grad: grad + 2",
    ]


def test_a_nested_lambda_has_its_own_text() -> None:
    outer = lambda: lambda grad: grad + 1  # noqa: E731
    assert describe_function(outer()).name == "lambda grad: grad + 1"
    assert describe_function(outer).name == "lambda: lambda grad: grad + 1"


def test_a_lambda_over_several_lines_has_a_one_line_name() -> None:
    source = describe_function(
        lambda grad: (
            grad
            + 2
        )
    )  # fmt: skip
    assert source.name.startswith("lambda grad: ( grad + 2")


def test_a_decorated_function_shows_the_source_of_the_original() -> None:
    source = describe_function(decorated)
    assert source.name == "decorated"
    assert source.text.startswith("@wrap_transparently\ndef decorated(")


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (print, "print"),
        (operator.neg, "neg"),
        (torch.neg, "neg"),
        (functools.partial(print, 1), "partial(print)"),
        (functools.partial(plain_hook), "partial(plain_hook)"),
        (functools.partial(functools.partial(print, 1), sep=""), "partial(print)"),
        (Scale(), "Scale"),
        (Scale().method, "Scale.method"),
        ([].append, "append"),
        (3, "int"),
        (type, "type"),
    ],
)
def test_every_kind_of_callable_has_a_name(function: Any, name: str) -> None:
    assert describe_function(function).name == name


@pytest.mark.parametrize("function", [print, operator.neg, [].append])
def test_a_built_in_function_has_no_source(function: Any) -> None:
    assert describe_function(function)[1:] == (None, None, None, None)


def test_a_callable_object_shows_its_call_method() -> None:
    assert "def __call__(self, grad: Any)" in describe_function(Scale()).text


def test_a_partial_shows_the_source_of_its_function() -> None:
    assert describe_function(functools.partial(plain_hook)).text == describe_function(plain_hook).text


def test_a_lambda_without_source_is_named_lambda() -> None:
    function = eval(compile("lambda grad: grad", "<stdin>", "eval"))
    assert describe_function(function) == Source("lambda", None, None, None, None)
    assert describe_function(function).label == "λ"


def test_an_object_whose_attributes_raise_is_still_described() -> None:
    class Wicked:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __call__(self, grad: Any) -> None: ...

    assert describe_function(Wicked()).name == "Wicked"


def test_a_callable_that_wraps_itself_is_still_described() -> None:
    class Loop:
        def __call__(self, grad: Any) -> None: ...

    loop = Loop()
    loop.__wrapped__ = loop  # type: ignore[attr-defined]
    assert describe_function(loop).name == "Loop"


def write_hook(folder: Path, text: str, name: str) -> Any:
    """Write ``text`` into a file, run it, and return its function ``hook``."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    namespace: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace["hook"]


def test_a_hook_whose_file_no_longer_parses_has_no_source(tmp_path: Path) -> None:
    hook = write_hook(tmp_path, "def hook(grad):\n    return grad\n", "mine.py")
    (tmp_path / "mine.py").write_text("def hook(grad:\n")
    linecache.checkcache()
    assert describe_function(hook) == Source("hook", "mine.py", 1, None, None)


def test_a_file_with_chinese_identifiers_is_read(tmp_path: Path) -> None:
    hook = write_hook(tmp_path, "def hook(梯度):\n    return 梯度 + 2  # 加二\n", "钩子.py")
    source = describe_function(hook)
    assert (source.file, source.mark) == ("钩子.py", 2)
    assert "加二" in source.text


def test_a_lambda_after_multibyte_characters_has_its_own_text(tmp_path: Path) -> None:
    hook = write_hook(tmp_path, "梯度 = '梯度'; other = lambda g: g + 1; hook = lambda g: g + 2\n", "two.py")
    assert describe_function(hook).name == "lambda g: g + 2"


def test_a_filename_contains_no_local_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    assert shorten_filename(str(tmp_path / "deep" / "mine.py")) == "deep/mine.py"
    assert shorten_filename(os.path.join(os.path.abspath(os.sep), "else", "where", "hook.py")) == "hook.py"
    assert shorten_filename("<string>") is None


def test_the_filename_of_a_library_begins_at_the_library() -> None:
    assert shorten_filename(torch.utils.hooks.__file__) == "torch/utils/hooks.py"
    assert not os.path.isabs(describe_function(os.path.join).file or "")


def test_a_notebook_cell_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shell:
        class compile:  # noqa: N801
            _filename_map = {"/nowhere/ipykernel_1/2.py": 4}  # noqa: RUF012

    module = type(sys)("IPython")
    module.get_ipython = Shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert shorten_filename("/nowhere/ipykernel_1/2.py") == "In [4]"
    assert shorten_filename("/nowhere/ipykernel_1/3.py") == "3.py"


@pytest.mark.parametrize(("failures", "has_text"), [(1, True), (99, False)])
def test_parsing_is_retried_after_a_system_error(
    failures: int, has_text: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, namespace = tmp_path / f"disturbed_{failures}.py", dict[str, Any]()
    path.write_text(f"def hook(grad):\n    return grad * {failures}\n")
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    calls, parse = [], ast.parse

    def failing_parse(text: str) -> ast.Module:
        calls.append(text)
        if len(calls) <= failures:
            raise SystemError("AST constructor recursion depth mismatch (before=6, after=26)")
        return parse(text)

    monkeypatch.setattr(ast, "parse", failing_parse)
    described = describe_function(namespace["hook"])
    monkeypatch.undo()
    assert described.name == "hook"
    assert described.text == (path.read_text().rstrip() if has_text else None)
