"""Hooks that torch refuses and tensors that cannot be measured: torch's own error is raised, none of hookviz."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import Doubled, Net, leaf, silent, steps_of
from torch import nn

import hookviz as hv
from tests.requirements import needs_saved_tensors

# -- models that are never called


def test_a_note_reports_a_model_that_was_never_called_as_a_function() -> None:
    net, other = Net(), Doubled()
    with hv.record(net, other) as trace:
        other(leaf(3.0)).backward()
    assert trace.notes == [
        "net was not called inside record(). Call it as a function, such as net(x): calling only its forward() or "
        "what torch.jit or torch.fx made of it is not observed."
    ]
    other.register_forward_hook(silent("never"))
    with hv.record(other) as trace:
        other.forward(leaf(3.0))
    assert trace.steps[:] == [] and len(trace.notes) == 2
    assert "Nothing was recorded" in repr(trace) and "other was not called" in repr(trace)


# -- hooks that torch refuses


def run_with_hook(place: str, hook: Callable[..., Any]) -> str:
    """Run a net and an optimizer with a hook at ``place``, and return torch's error."""
    net, y = Doubled(), leaf(3.0)
    opt = torch.optim.SGD(net.parameters())
    register: dict[str, Callable[..., Any]] = {
        "post_accumulate_hook": y.register_post_accumulate_grad_hook,
        "forward_hook": net.register_forward_hook,
        "full_backward_hook": net.register_full_backward_hook,
        "step_pre_hook": opt.register_step_pre_hook,
    }
    register[place](hook)

    def run() -> None:
        net(y).backward()
        opt.step()

    with pytest.raises((TypeError, RuntimeError, AttributeError)) as raised:
        run()
    assert not [entry for entry in raised.traceback if "hookviz/" in str(entry.path)]
    return f"{raised.type.__name__}: {raised.value}"


def takes_nothing() -> None:
    """A hook without parameters."""


def returns_a_vector(*given: Any) -> Any:
    """A hook whose result torch takes nowhere."""
    return (torch.ones(3),)


@needs_saved_tensors
@pytest.mark.parametrize(
    ("place", "hook"),
    [
        ("forward_hook", takes_nothing),
        ("step_pre_hook", takes_nothing),
        ("post_accumulate_hook", returns_a_vector),
        ("full_backward_hook", returns_a_vector),
    ],
)
def test_a_hook_that_torch_refuses_is_named_with_the_error_of_torch(place: str, hook: Callable[..., Any]) -> None:
    expected = run_with_hook(place, hook)
    with hv.record() as trace:
        assert run_with_hook(place, hook) == expected
    last = trace.steps[-1]
    assert last.kind == "exception" and last.hook is not None
    assert (last.hook.kind, last.hook.name) == (place, hook.__name__)
    assert hook.__name__ in last.sentence
    assert len(steps_of(trace, "exception")) == 1 and trace.notes == []


# -- tensors that cannot be measured


class Tagged(torch.Tensor):
    """A tensor subclass."""


TENSORS: dict[str, tuple[Callable[[], torch.Tensor], str | None]] = {
    "meta": (lambda: torch.ones(2, device="meta", requires_grad=True), "meta"),
    "sparse": (lambda: torch.eye(2).to_sparse().requires_grad_(), "sparse_coo"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), "quantized"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], requires_grad=True), "nested"),
    "subclass": (lambda: torch.ones(2).as_subclass(Tagged).requires_grad_(), "Tagged"),
    "expanded": (lambda: torch.ones(1, requires_grad=True).expand(100), None),
}


@pytest.mark.parametrize(("make", "kind"), TENSORS.values(), ids=TENSORS)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:Sparse", "ignore:.*quantiz")
def test_an_unusual_tensor_passes_through_a_module_and_back(make: Any, kind: str | None) -> None:
    net = nn.Identity()
    net.register_forward_hook(silent("looks"))
    given = make()
    with hv.record(net) as trace:
        returned = net(given)
        if given.requires_grad and given.layout is not torch.sparse_coo:
            returned.backward(torch.ones_like(returned))
    assert returned is given
    assert trace.notes == []
    texts = {step.after.text() for step in trace.steps if step.after is not None}
    if kind is not None:
        assert f"not shown ({kind} tensor)" in texts
    else:
        assert not any("not shown" in text for text in texts)
    assert trace.player().steps == len(trace.steps)


def test_tensors_of_torch_func_are_not_shown() -> None:
    net, x = Doubled(), torch.tensor([1.0, 2.0])
    net.register_forward_hook(silent("looks"))
    with hv.record(net) as trace:
        assert torch.vmap(net)(x).tolist() == [2, 4]
    assert [s.kind for s in trace.steps][:3] == ["call", "forward", "forward_hook"] and trace.notes == []
    assert trace.steps[0].after.text() == "not shown (functorch tensor)"
