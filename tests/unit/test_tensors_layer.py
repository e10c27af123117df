"""The layer of tensors: each with its facts on top of its node, and every hook where it is kept."""

import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

import pytest
import torch
from scenes import accumulator, hook_everything, leaf, recorded, scene, silent

import hookviz as hv

SVG = "{http://www.w3.org/2000/svg}"
FACTS = ("data", "grad", "grad_fn", "is_leaf", "requires_grad", "_backward_hooks")


class Part(NamedTuple):
    """A tensor or a node as it is drawn, with the hooks that stand in it."""

    title: str
    facts: dict[str, str]
    hooks: list[str]


def texts(figure: hv.Figure) -> list[str]:
    found = ET.fromstring(figure.pipe("svg")).iter(f"{SVG}text")
    return [(text.text or "").replace("\N{NO-BREAK SPACE}", "") for text in found]


def parts(figure: hv.Figure) -> list[Part]:
    """The picture from top to bottom of each box: tensors with their facts, nodes with their list of pre-hooks."""
    found: list[Part] = []
    words = texts(figure)
    for text, following in zip(words, [*words[1:], ""], strict=True):
        if text.startswith(("tensor ", "node ")):
            found.append(Part(text, {}, []))
        elif text.startswith("pre-hooks: "):
            found[-1].facts["pre-hooks"] = text.removeprefix("pre-hooks: ")
        elif text in FACTS:
            found[-1].facts[text] = following
        elif re.match(r"[①-⑳]|retain", text):
            found[-1].hooks.append(text)
    return found


def tensor(figure: hv.Figure, name: str) -> Part:
    return next(part for part in parts(figure) if part.title == f"tensor {name}")


def node_under(figure: hv.Figure, name: str) -> Part:
    titles = [part.title for part in parts(figure)]
    return parts(figure)[titles.index(f"tensor {name}") + 1]


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    return recorded()


@pytest.fixture(scope="module")
def hooked() -> hv.Figure:
    tensors = scene()
    hook_everything(tensors)
    return hv.draw(tensors.e, names=tensors._asdict(), tensors=True)


def test_each_tensor_has_its_six_facts(hooked: hv.Figure) -> None:
    assert tensor(hooked, "c").facts == dict(
        zip(FACTS, ["6", "None", "MulBackward0", "False", "True", "2 hooks"], strict=True)
    )
    assert tensor(hooked, "d").facts == dict(zip(FACTS, ["4", "None", "None", "True", "True", "1 hook"], strict=True))
    assert tensor(hooked, "a").facts["_backward_hooks"] == "None"


def test_the_dict_of_an_intermediate_is_among_its_nodes_pre_hooks_and_that_of_a_leaf_is_not(hooked: hv.Figure) -> None:
    listed = {name: node_under(hooked, name).facts["pre-hooks"] for name in "abcde"}
    assert listed == {"a": "none", "b": "none", "c": "c._backward_hooks", "d": "none", "e": "e._backward_hooks"}


def test_the_hooks_of_a_leaf_stand_in_its_tensor_and_those_of_an_intermediate_in_its_node(hooked: hv.Figure) -> None:
    assert tensor(hooked, "d").hooks == ["① λ grad + 100"]
    assert node_under(hooked, "d").hooks == []
    assert tensor(hooked, "c").hooks == []
    assert node_under(hooked, "c").hooks == ["① c_hook", "② print", "retain_grad"]


def test_each_kind_of_hook_on_a_leaf_stands_where_it_is_kept() -> None:
    a = leaf(2.0)
    c = a * 3
    node = accumulator(a)
    a.register_hook(silent("tensor"))
    a.register_post_accumulate_grad_hook(silent("after"))
    node.register_prehook(silent("pre"))
    node.register_hook(silent("post"))
    figure = hv.draw(c, tensors=True)
    assert tensor(figure, "a").hooks == ["① tensor", "① after .grad after"]
    assert node_under(figure, "a").hooks == ["① pre pre", "① post post"]
    assert node_under(figure, "a").facts["pre-hooks"] == "pre"


def test_two_tensors_of_one_node_stand_above_it_each_with_its_own_hooks() -> None:
    pair = leaf(1.0, 2.0)
    first, second = (pair * 3).unbind()
    first.register_hook(silent("on_first"))
    figure = hv.draw(first + second, names={"first": first, "second": second}, tensors=True)
    assert tensor(figure, "first").facts["_backward_hooks"] == "1 hook"
    assert tensor(figure, "second").facts["_backward_hooks"] == "None"
    assert node_under(figure, "second") == Part(
        "node UnbindBackward0", {"pre-hooks": "first._backward_hooks"}, ["① on_first"]
    )


def test_without_the_layer_there_is_none_of_it() -> None:
    tensors = scene()
    assert parts(hv.draw(tensors.e, names=tensors._asdict())) == []


def test_a_node_without_a_named_tensor_stands_alone() -> None:
    x = leaf(2.0)
    y = (x * 3).sin()
    assert [part.title for part in parts(hv.draw(y, tensors=True))] == [
        "tensor y", "node SinBackward0", "node MulBackward0", "tensor x", "node AccumulateGrad",
    ]  # fmt: skip


def test_the_grad_of_a_tensor_is_the_one_at_that_step(trace: hv.Trace) -> None:
    grads = [tensor(trace.figure(step, tensors=True), "d").facts["grad"] for step in (0, 5, 6, 15)]
    assert grads == ["None", "None", "112", "112"]
    assert [tensor(trace.figure(step, tensors=True), "e").facts["grad"] for step in (1, 2)] == ["None", "2"]


def test_a_grad_that_was_there_before_is_shown_until_it_grows() -> None:
    x = leaf(2.0)
    x.grad = torch.tensor(100.0)
    with hv.record(names={"x": x}) as trace:
        (x * 3).backward()
    grads = [tensor(trace.figure(step, tensors=True), "x").facts["grad"] for step in (0, -1)]
    assert grads == ["100", "103"]
