"""Ways to register a hook that the unit tests of torch's hook API leave out: what a trace shows of each."""

import pytest
import torch
from torch import nn
from torch.autograd import Variable

import hookviz as hv


def leaf(number: float) -> torch.Tensor:
    return torch.tensor(number, requires_grad=True)


def test_hook_on_the_node_of_a_gradient_edge_is_a_step() -> None:
    weight = leaf(2.0)
    node = torch.autograd.graph.get_gradient_edge(weight).node
    node.register_prehook(lambda grads: (grads[0] * 10,))
    with hv.record() as trace:
        (weight * 3).backward()
    assert [(step.kind, step.on, step.effect) for step in trace.firings] == [
        ("node_pre_hook", "AccumulateGrad (weight)", "replaced")
    ]


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
def test_legacy_backward_hook_of_all_modules_is_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.modules.module, "_global_is_full_backward_hook", None)
    layer = nn.Linear(2, 1)
    handle = nn.modules.module.register_module_backward_hook(lambda module, grad_input, grad_output: None)
    with handle, hv.record(layer) as trace:
        layer(torch.ones(2)).sum().backward()
    assert [(step.kind, step.hook.on, step.on) for step in trace.firings] == [("backward_hook", "all modules", "layer")]


def test_hooks_of_one_saved_tensor_are_noted() -> None:
    square = leaf(2.0).square()
    square.grad_fn._raw_saved_self.register_hooks(lambda tensor: tensor, lambda tensor: tensor * 100)
    with hv.record() as trace:
        square.backward()
    assert "Saved-tensor hooks are in use" in trace.notes[0]


def test_callback_at_the_end_of_a_pass_runs_and_is_not_shown() -> None:
    a, seen = leaf(2.0), []
    c = a * 3
    c.register_hook(lambda grad: Variable._execution_engine.queue_callback(lambda: seen.append(a.grad.item())))
    with hv.record() as trace:
        c.backward()
    assert seen == [3]
    assert len(trace.firings) == 1 and trace.notes == []


@pytest.mark.skipif(not hasattr(torch.autograd.graph, "node_creation_hook"), reason="it came with PyTorch 2.14")
def test_node_creation_hook_runs_unseen() -> None:
    seen: list[str] = []
    with hv.record() as trace, torch.autograd.graph.node_creation_hook(lambda node: seen.append(node.name())):
        (leaf(2.0) * 3).backward()
    assert "MulBackward0" in seen
    assert len(trace.firings) == 0 and trace.notes == []
