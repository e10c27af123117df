"""The tensor layer: each tensor with its facts above its node, and every hook at the place where torch keeps it."""

import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

import pytest
import torch
from scenes import hook_everything, leaf, recorded, scene

import hookviz as hv

SVG = "{http://www.w3.org/2000/svg}"
FACTS = ("data", "grad", "grad_fn", "is_leaf", "requires_grad", "_backward_hooks")


class Part(NamedTuple):
    """A drawn tensor or node, with its hooks."""

    title: str
    facts: dict[str, str]
    hooks: list[str]


def texts(figure: hv.Figure) -> list[str]:
    found = ET.fromstring(figure.pipe("svg")).iter(f"{SVG}text")
    return [(text.text or "").replace("\N{NO-BREAK SPACE}", "") for text in found]


def parts(figure: hv.Figure) -> list[Part]:
    """The parts of the picture, top to bottom within each box: tensors with their facts, nodes with their pre-hooks."""
    drawn_parts: list[Part] = []
    words = texts(figure)
    for text, next_word in zip(words, [*words[1:], ""], strict=True):
        if text.startswith(("tensor ", "node ")):
            drawn_parts.append(Part(text, {}, []))
        elif text.startswith("pre-hooks: "):
            drawn_parts[-1].facts["pre-hooks"] = text.removeprefix("pre-hooks: ")
        elif text in FACTS:
            drawn_parts[-1].facts[text] = next_word
        elif re.match(r"[①-⑳]|retain", text):
            drawn_parts[-1].hooks.append(text)
    return drawn_parts


def tensor(figure: hv.Figure, name: str) -> Part:
    return next(part for part in parts(figure) if part.title == f"tensor {name}")


def node_under(figure: hv.Figure, name: str) -> Part:
    titles = [part.title for part in parts(figure)]
    return parts(figure)[titles.index(f"tensor {name}") + 1]


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    return recorded()


@pytest.fixture(scope="module")
def figure_with_hooks() -> hv.Figure:
    tensors = scene()
    hook_everything(tensors)
    return hv.draw(tensors.e, names=tensors._asdict(), tensors=True)


def test_each_tensor_has_its_six_facts(figure_with_hooks: hv.Figure) -> None:
    c, d = (tensor(figure_with_hooks, name).facts for name in "cd")
    assert [c[fact] for fact in FACTS] == ["6", "None", "MulBackward0", "False", "True", "2 hooks"]
    assert [d[fact] for fact in FACTS] == ["4", "None", "None", "True", "True", "1 hook"]
    assert tensor(figure_with_hooks, "a").facts["_backward_hooks"] == "None"


def test_the_hook_dict_of_an_intermediate_tensor_is_listed_in_its_nodes_pre_hooks(figure_with_hooks: hv.Figure) -> None:
    listed = {name: node_under(figure_with_hooks, name).facts["pre-hooks"] for name in "abcde"}
    assert listed == {"a": "none", "b": "none", "c": "c._backward_hooks", "d": "none", "e": "e._backward_hooks"}


def test_hooks_of_leaves_are_drawn_in_the_tensor_and_of_intermediates_in_the_node(figure_with_hooks: hv.Figure) -> None:
    assert tensor(figure_with_hooks, "d").hooks == ["① λ grad + 100"]
    assert node_under(figure_with_hooks, "d").hooks == []
    assert tensor(figure_with_hooks, "c").hooks == []
    assert node_under(figure_with_hooks, "c").hooks == ["① c_hook", "② print", "retain_grad"]


def test_the_grad_of_a_tensor_is_shown_as_of_the_step(trace: hv.Trace) -> None:
    grads = [tensor(trace.figure(step, tensors=True), "d").facts["grad"] for step in (0, 5, 6, 15)]
    assert grads == ["None", "None", "112", "112"]
    assert [tensor(trace.figure(step, tensors=True), "e").facts["grad"] for step in (1, 2)] == ["None", "2"]
    x = leaf(2.0)
    x.grad = torch.tensor(100.0)
    with hv.record(names={"x": x}) as second:
        (x * 3).backward()
    assert [tensor(second.figure(step, tensors=True), "x").facts["grad"] for step in (0, -1)] == ["100", "103"]
