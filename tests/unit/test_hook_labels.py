"""Hooks of one name are told apart: by the value that each of them holds, or by their lines."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv

Hook = Callable[..., Any]
STORE: dict[str, Any] = {}


def close_over(key: str) -> Hook:
    def hook(module: Any, args: Any, output: Any) -> None:
        STORE[key] = output

    return hook


def save(key: str, module: Any, args: Any, output: Any) -> None:
    STORE[key] = output


class Saver:
    """Saves under a key, and counts."""

    def __init__(self, key: str) -> None:
        self.key, self.state = key, key

    def __call__(self, module: Any, args: Any, output: Any) -> None:
        self.state = "called"


def labels(*hooks: list[Hook]) -> list[str]:
    """What the hooks of layers are called, with their owners."""
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    for layer, functions in zip(net, hooks, strict=False):
        for function in functions:
            layer.register_forward_hook(function)
    with hv.record(net) as trace:
        net(torch.ones(1, 2)).sum().backward()
    listed = [f"{hook.label} on {hook.on}" for hook in hv.hooks(net)]
    assert sorted(listed) == sorted(f"{row.hook.label} on {row.hook.on}" for row in trace.hooks)
    return [f"{firing.hook.label} on {firing.hook.on}" for firing in trace.firings if firing.hook]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (close_over, "hook"),
        (lambda key: functools.partial(save, key), "save"),
        (Saver, "Saver"),
        (lambda key: torch.no_grad()(close_over(key)), "hook"),
    ],
    ids=["closure", "partial", "object", "library"],
)
def test_what_a_hook_holds_tells_it_from_others_of_its_name(make: Callable[[str], Hook], name: str) -> None:
    found = labels(*([make(f"layer{i}")] for i in range(3)))
    assert found == [f"{name} (layer{i}) on net.{i}" for i in range(3)]


def test_the_name_of_the_owner_is_not_said_twice() -> None:
    found = labels([close_over("0")], [close_over("1"), close_over("2")], [close_over("2")])
    assert found == ["hook on net.0", "hook on net.1", "hook (key=2) on net.1", "hook on net.2"]


def test_what_is_shared_or_would_run_code_of_the_users_is_not_read() -> None:
    class Stubborn(str):
        def __repr__(self) -> str:
            raise AssertionError

    shared = []
    for i in range(2):
        key = f"layer{i}"

        def hook(module: Any, args: Any, output: Any) -> None:
            STORE[key] = output  # noqa: B023

        shared.append([hook])
    assert labels(*shared) == ["hook on net.0", "hook on net.1"]
    stubborn = [[functools.partial(save, Stubborn(name))] for name in "ab"]
    assert labels(*stubborn) == ["save on net.0", "save on net.1"]


def test_two_functions_of_one_name_on_one_owner_are_told_apart_by_their_lines() -> None:
    def make_first() -> Hook:
        def hook(module: Any, args: Any, output: Any) -> None: ...

        return hook

    def make_second() -> Hook:
        def hook(module: Any, args: Any, output: Any) -> None: ...

        return hook

    lines = [inspect.getsourcelines(make)[1] + 1 for make in (make_first, make_second)]
    assert labels([make_first(), make_second()]) == [f"hook (line {line}) on net.0" for line in lines]


def test_what_hooks_hold_is_source(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    for i, layer in enumerate(net):
        layer.register_forward_hook(close_over(f"layer{i}"))
    with hv.record(net) as trace:
        net(torch.ones(1, 2))
    trace.to_html(tmp_path / "all.html")
    trace.to_html(tmp_path / "less.html", source=False)
    assert "layer0" in (tmp_path / "all.html").read_text() and "layer0" not in (tmp_path / "less.html").read_text()


def test_lambdas_on_one_line_that_return_constants_are_told_apart() -> None:
    x = torch.ones(1, requires_grad=True)
    for function in (lambda g: None, lambda grad: None, lambda g: -1.0, lambda g: 2.0, lambda g: print(g)):
        x.register_hook(function)
    assert [hook.label for hook in hv.hooks(x)] == ["λ g: None", "λ grad: None", "λ -1.0", "λ g: 2.0", "λ print(g)"]
