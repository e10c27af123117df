"""Tensors are named after the variables of the caller, and each node keeps its number."""

import torch
from scenes import leaf, steps_of
from torch import nn

import hookviz as hv

everywhere = leaf(1.0)
hidden_by_a_local = leaf(1.0)


def test_tensors_are_named_after_the_variables_around_the_recording() -> None:
    w, pair, table = [leaf(2.0), "no tensor", leaf(3.0)], (leaf(4.0),), {"bias": leaf(5.0), 1: leaf(6.0)}
    hidden_by_a_local = _private = In = Out = leaf(7.0)  # noqa: N806
    other, _unnamed = leaf(8.0), leaf(9.0)
    with hv.record() as trace:
        torch.stack(
            [everywhere, *w[::2], *pair, *table.values(), hidden_by_a_local, other * 1, _unnamed]  # type: ignore[list-item]
        ).sum().backward()
    assert _private is In is Out
    names = [step.on for step in steps_of(trace, "accumulate")]
    assert sorted(name for name in names if not name.startswith("leaf #")) == [
        *("everywhere", "hidden_by_a_local", "other", "pair[0]", "table['bias']", "table[1]", "w[0]", "w[2]"),
    ]
    assert len(names) == 9


def test_explicit_names_take_precedence_over_the_callers_variables() -> None:
    x = leaf(2.0)
    loss = x * 3
    with hv.record(names={"weight": x}) as trace:
        loss.backward(retain_graph=True)
    assert {step.on for step in trace.steps} == {"loss", "MulBackward0 (loss)", "weight"}
    with hv.record(names={"x": loss}) as trace:
        loss.backward()
    assert trace.steps[0].on == "x"
    assert trace.steps[-1].on != "x"


# -- tensors without a variable


def listen(module: nn.Module, args: object, output: torch.Tensor) -> None:
    output.register_hook(lambda grad: grad * 1)


def owners(trace: hv.Trace) -> list[str]:
    return [row.on for row in trace.hooks if row.hook.kind == "tensor_hook"]


def test_a_tensor_that_a_module_returned_is_named_after_the_first_call_that_did() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Identity())
    for module in net.modules():
        module.register_forward_hook(listen)
    with hv.record(net) as trace:
        for _ in range(2):
            net(torch.ones(1, 2)).sum().backward()
    assert owners(trace) == ["the output of net.0"] * 3 + ["the output of net.0 (call 2)"] * 3
    sentence = next(firing.sentence for firing in trace.firings if firing.kind == "tensor_hook")
    assert sentence.startswith("λ grad * 1 on the output of net.0 ") and sentence.endswith(
        "listen on net.0 registered it."
    )
