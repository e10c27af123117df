"""Module calls are drawn as boxes around their nodes, with each hook at the side where it acts."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest
import torch
from scenes import Net
from shown import content_of, shown_steps_of
from torch import nn

import hookviz as hv
from tests.picture_faults import PicturePlan

SVG = "{http://www.w3.org/2000/svg}"


def looks(*_: Any) -> None:
    """A hook that changes nothing."""


def with_all_hooks(module: nn.Module) -> nn.Module:
    """Put one hook of each of the four kinds on ``module``."""
    module.register_forward_pre_hook(looks)
    module.register_forward_hook(looks)
    module.register_full_backward_pre_hook(looks)
    module.register_full_backward_hook(looks)
    return module


def record_backward(net: nn.Module, x: float = 3.0) -> hv.Trace:
    with hv.record(net) as trace:
        net(torch.tensor(x, requires_grad=True)).backward()
    return trace


def parsed(figure: Any) -> ET.Element:
    return ET.fromstring(figure.pipe("svg"))


def with_id(root: ET.Element, spot: str) -> ET.Element:
    return next(element for element in root.iter() if element.get("id") == spot)


def text_of(element: ET.Element) -> str:
    return " ".join(text.text or "" for text in element.iter(f"{SVG}text"))


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    net = Net()
    with_all_hooks(net.l1)
    return record_backward(net)


def test_a_call_is_a_box_around_its_nodes_and_inner_calls_with_name_class_and_output(trace: hv.Trace) -> None:
    plan, made = PicturePlan(trace.figure(internal=True).svg()), {}
    for node, call in trace._data.owners.items():
        made.setdefault(trace._data.call(call), []).append(trace._data.ops[node])
        assert plan.frames[f"m{call}"].contains(plan.boxes[f"n{node}"])
    assert sorted(made["net.l2"]) == ["AccumulateGrad", "MulBackward0"] and made["net"] == ["ReluBackward0"]
    outer, first, second = (plan.frames[f"m{call}"] for call in range(3))
    assert outer.contains(first) and outer.contains(second) and not first.overlaps(second)
    plates = [text_of(with_id(parsed(trace.figure()), f"m{call}-h")) for call in range(3)]
    assert [text.split("forward")[0].split() for text in plates] == [
        ["net", "Net", "output", "12"],
        ["net.l1", "Doubled", "output", "6"],
        ["net.l2", "Doubled", "output", "12"],
    ]


def test_each_hook_is_drawn_at_the_side_where_it_acts(trace: hv.Trace) -> None:
    figure = trace.figure()
    root, plan = parsed(figure), PicturePlan(figure.svg())
    at_output, at_input = (text_of(with_id(root, f"m1-{side}")) for side in "qf")
    assert "forward ① looks 6 = 6" in at_output and "backward pre ① looks 2 = 2" in at_output
    assert "forward pre ① looks 3 = 3" in at_input and "backward ① looks 4 = 4" in at_input
    head, output, inputs = (plan.areas[f"m1-{side}"] for side in "hqf")
    (box,) = [
        plan.boxes[name] for name in plan.boxes if name.startswith("n") and plan.frames["m1"].contains(plan.boxes[name])
    ]
    assert head.bottom < output.top < output.bottom < box.top < box.bottom < inputs.top


def test_a_hook_that_raised_is_labelled_raised() -> None:
    def refuses(*_: Any) -> None:
        raise LookupError("no")

    net = Net()
    net.l2.register_forward_hook(refuses)
    with pytest.raises(LookupError), hv.record(net) as trace:
        net(torch.tensor(3.0))
    assert "forward ① refuses raised" in text_of(parsed(trace.figure()))


def test_an_arrow_shows_how_a_backward_hook_changed_the_gradient() -> None:
    net = Net()
    net.l2.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
    trace = record_backward(net)
    texts = shown_steps_of(trace)[trace.firings[0].index]["texts"]
    (arrow,) = [spot for spot in texts if spot.startswith("e")]
    assert arrow.startswith(f"e{trace.firings[0].node}-0-") and texts[arrow] == "1 → 10"


def test_a_forward_pass_without_gradients_is_drawn() -> None:
    net = Net()
    with torch.no_grad(), hv.record(net) as trace:
        net(torch.tensor(3.0))
    figure = trace.figure()
    root, plan = parsed(figure), PicturePlan(figure.svg())
    assert len(content_of(trace)["svgs"]) == 1 and {frame["picture"] for frame in shown_steps_of(trace)} == {0}
    assert all(plan.frames["m0"].contains(plan.frames[f"m{call}"]) for call in (1, 2))
    assert plan.frames["m1"].right < plan.frames["m2"].left, "the later call stands at the right"
    assert "output 12" in text_of(root) and not [i for i in map(id_of, root.iter()) if i.startswith("n")]


def id_of(element: ET.Element) -> str:
    return element.get("id", "")


def test_a_forward_pass_after_the_last_backward_pass_has_its_own_picture() -> None:
    net = Net()
    with hv.record(net) as trace:
        net(torch.tensor(3.0)).backward()
        with torch.no_grad():
            net(torch.tensor(4.0))
    assert [len(content_of(trace)["svgs"]), shown_steps_of(trace)[-1]["picture"]] == [2, 1]
    assert "output 16" in text_of(parsed(trace.figure()))
