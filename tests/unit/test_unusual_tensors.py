"""Hooks that torch refuses and tensors that cannot be measured: torch's own error is raised, none of hookviz."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import Doubled, Net, accumulator, leaf, plain, silent, steps_of
from torch import nn
from torch.autograd.graph import register_multi_grad_hook

import hookviz as hv
from tests.requirements import needs_saved_tensors

# -- models that are never called


def test_a_note_reports_a_model_that_was_never_called() -> None:
    net, other = Net(), Doubled()
    with hv.record(net, other) as trace:
        other(leaf(3.0)).backward()
    assert trace.notes == [
        "net was not called inside record(). Call it as a function, such as net(x): calling only its forward() runs no "
        "hooks and is not observed."
    ]


def test_a_note_reports_a_model_whose_forward_was_called_directly() -> None:
    net = Doubled()
    net.register_forward_hook(silent("never"))
    with hv.record(net) as trace:
        net.forward(leaf(3.0))
    assert trace.steps[:] == [] and len(trace.notes) == 2
    assert "Nothing was recorded" in repr(trace) and "net was not called" in repr(trace)


def test_a_model_with_a_called_submodule_gets_no_note() -> None:
    net = Net()
    with hv.record(net) as trace:
        net.l1(leaf(3.0))
    assert trace.notes == []


# -- hooks that torch refuses


PLACES = (
    *("tensor_hook", "tensor_hook of a leaf", "post_accumulate_hook"),
    *("node_pre_hook", "node_post_hook", "node_pre_hook of a leaf", "multi_grad_hook", "multi_grad_hook any"),
    *("forward_pre_hook", "forward_pre_hook kwargs", "forward_hook"),
    *("full_backward_pre_hook", "full_backward_hook", "backward_hook", "step_pre_hook", "step_post_hook"),
)


class HookedProgram:
    """A net, a graph and an optimizer, with a hook at ``place``."""

    def __init__(self, place: str, hook: Callable[..., Any]) -> None:
        self.net, self.x = Doubled(), leaf(3.0)
        self.opt = torch.optim.SGD(self.net.parameters())
        self.y = self.x * 2
        self.node = accumulator(self.x)
        register: dict[str, Callable[..., Any]] = {
            "tensor_hook": self.y.register_hook,
            "tensor_hook of a leaf": self.x.register_hook,
            "post_accumulate_hook": self.x.register_post_accumulate_grad_hook,
            "node_pre_hook": self.y.grad_fn.register_prehook,
            "node_post_hook": self.y.grad_fn.register_hook,
            "node_pre_hook of a leaf": self.node.register_prehook,
            "multi_grad_hook": lambda hook: register_multi_grad_hook([self.x, self.y], hook),
            "multi_grad_hook any": lambda hook: register_multi_grad_hook([self.x, self.y], hook, mode="any"),
            "forward_pre_hook": self.net.register_forward_pre_hook,
            "forward_pre_hook kwargs": lambda hook: self.net.register_forward_pre_hook(hook, with_kwargs=True),
            "forward_hook": self.net.register_forward_hook,
            "full_backward_pre_hook": self.net.register_full_backward_pre_hook,
            "full_backward_hook": self.net.register_full_backward_hook,
            "backward_hook": self.net.register_backward_hook,
            "step_pre_hook": self.opt.register_step_pre_hook,
            "step_post_hook": self.opt.register_step_post_hook,
        }
        assert tuple(register) == PLACES
        register[place](hook)

    def run(self) -> str:
        """Run the program and return torch's error."""
        with pytest.raises((TypeError, RuntimeError, AttributeError)) as raised:
            self.run_all()
        assert not [entry for entry in raised.traceback if "hookviz/" in str(entry.path)]
        return f"{raised.type.__name__}: {raised.value}"

    def run_all(self) -> None:
        self.net(self.y).backward()
        self.opt.step()


def record_refused_hook(place: str, make: Callable[[], Any]) -> hv.Trace:
    """The trace of a run with a hook that torch refuses; asserts that torch's error is as without recording."""
    expected = HookedProgram(place, make()).run()
    scene = HookedProgram(place, make())
    with hv.record() as trace:
        assert scene.run() == expected
    return trace


def assert_hook_is_named(trace: hv.Trace, place: str, name: str) -> None:
    last = trace.steps[-1]
    assert last.kind == "exception" and last.hook is not None
    assert (last.hook.kind, last.hook.name) == (place.partition(" ")[0], name)
    assert name in last.sentence
    assert len(steps_of(trace, "exception")) == 1 and trace.notes == []


def takes_nothing() -> None:
    """A hook without parameters."""


@needs_saved_tensors
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
def test_a_hook_with_the_wrong_number_of_arguments_is_named(place: str) -> None:
    assert_hook_is_named(record_refused_hook(place, lambda: takes_nothing), place, "takes_nothing")


def returning(value: Any) -> Callable[..., Any]:
    def returns(*given: Any) -> Any:
        return value

    return returns


INVALID_RETURN_VALUES = {
    "a text": ("tensor_hook", "no tensor"),
    "another shape": ("tensor_hook", torch.ones(3)),
    "another type": ("tensor_hook of a leaf", torch.tensor(1.0, dtype=torch.float64)),
    "a tensor where nothing is taken": ("post_accumulate_hook", torch.tensor(1.0)),
    "a number where nothing is taken": ("post_accumulate_hook", 3),
    "too many for a node": ("node_pre_hook", (torch.tensor(1.0), torch.tensor(1.0))),
    "a number for a node": ("node_pre_hook of a leaf", 3),
    "too few after a node": ("node_post_hook", ()),
    "no pair of args and kwargs": ("forward_pre_hook kwargs", 3),
    "too many grad_outputs": ("full_backward_pre_hook", (torch.tensor(1.0), torch.tensor(1.0))),
    "too many grad_inputs": ("full_backward_hook", (torch.tensor(1.0), torch.tensor(1.0))),
    "a grad_input of another shape": ("full_backward_hook", (torch.ones(3),)),
    "no tensors before a step": ("step_pre_hook", 3),
}


@needs_saved_tensors
@pytest.mark.parametrize(("place", "value"), INVALID_RETURN_VALUES.values(), ids=INVALID_RETURN_VALUES)
def test_a_hook_with_an_invalid_return_value_is_named(place: str, value: Any) -> None:
    assert_hook_is_named(record_refused_hook(place, lambda: returning(value)), place, "returns")


def test_an_invalid_output_of_a_forward_hook_fails_in_the_next_module() -> None:
    """Torch accepts any return value of a forward hook; the trace shows that the hook replaced the output."""
    net = nn.Sequential(Doubled(), Doubled())
    net[0].register_forward_hook(returning("no tensor"))
    with hv.record(net) as trace, pytest.raises(TypeError):
        net(leaf(3.0))
    assert [step.effect for step in trace.firings] == ["replaced"]
    assert trace.steps[-1].kind == "exception" and trace.steps[-1].on == "net.1"


# -- tensors that cannot be measured


class Tagged(torch.Tensor):
    """A tensor subclass."""


def nested_tensor() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], requires_grad=True)


TENSORS: dict[str, tuple[Callable[[], torch.Tensor], str | None]] = {
    "meta": (lambda: torch.ones(2, device="meta", requires_grad=True), "meta"),
    "sparse": (lambda: torch.eye(2).to_sparse().requires_grad_(), "sparse_coo"),
    "sparse rows": (lambda: torch.eye(2).to_sparse_csr().requires_grad_(), "sparse_csr"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), "quantized"),
    "nested": (nested_tensor, "nested"),
    "subclass": (lambda: torch.ones(2).as_subclass(Tagged).requires_grad_(), "Tagged"),
    "complex": (lambda: torch.ones(2, dtype=torch.complex64, requires_grad=True), None),
    "half": (lambda: torch.ones(2, dtype=torch.float16, requires_grad=True), None),
    "whole numbers": (lambda: torch.ones(2, dtype=torch.int8), None),
    "truths": (lambda: torch.ones(2, dtype=torch.bool), None),
    "empty": (lambda: torch.ones(0, requires_grad=True), None),
    "large and complex": (lambda: torch.ones(200, dtype=torch.complex128, requires_grad=True), None),
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


def test_a_model_on_the_meta_device_is_recorded_without_numbers() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).to("meta")
    with hv.record(net) as trace:
        net(torch.ones(1, 2, device="meta")).sum().backward()
    values = {step.after.text() for step in trace.steps if step.kind in ("call", "forward", "accumulate")}
    assert values == {"not shown (meta tensor)"} and trace.notes == []


def test_a_sparse_gradient_is_not_shown() -> None:
    net = nn.Embedding(3, 2, sparse=True)
    net.weight.register_hook(silent("looks"))
    with hv.record(net) as trace:
        net(torch.tensor([0, 2])).sum().backward()
    assert plain(trace.firings[0].after) is None and trace.firings[0].after.text() == "not shown (sparse_coo tensor)"
    assert net.weight.grad.is_sparse and trace.notes == []


def test_the_gradient_of_a_complex_pass_is_recorded() -> None:
    x = torch.tensor(1 + 2j, requires_grad=True)
    with hv.record() as trace:
        (x * x.conj()).real.backward()
    assert plain(steps_of(trace, "accumulate", "x")[0].after) == 2 + 4j


@pytest.mark.parametrize("transform", [torch.func.grad, torch.vmap, torch.func.jacrev])
def test_tensors_of_torch_func_are_not_shown(transform: Any) -> None:
    net = Doubled()
    net.register_forward_hook(silent("looks"))
    x = torch.tensor([1.0, 2.0]) if transform is torch.vmap else torch.tensor(3.0)
    expected = transform(net)(x)
    with hv.record(net) as trace:
        assert torch.equal(transform(net)(x), expected)
    assert [s.kind for s in trace.steps][:3] == ["call", "forward", "forward_hook"] and trace.notes == []
    assert trace.steps[0].after.text() == "not shown (functorch tensor)"


# -- modules without super().__init__()


class Unfinished(nn.Module):
    """Forgets ``super().__init__()``, so that it has none of the dicts of a module."""

    def __init__(self) -> None:
        pass


def test_an_uninitialised_module_among_the_variables_does_not_prevent_recording() -> None:
    unfinished, x = Unfinished(), leaf(3.0)
    with hv.record() as trace:
        (x * 2).backward()
    assert trace.notes == [] and steps_of(trace, "accumulate", "x")
    assert isinstance(unfinished, nn.Module)


def test_an_uninitialised_module_can_be_recorded_and_has_no_submodules() -> None:
    unfinished, x = Unfinished(), leaf(3.0)
    with hv.record(unfinished) as trace:
        (x * 2).backward()
    (note,) = trace.notes
    assert note.startswith("unfinished was not called") and steps_of(trace, "accumulate", "x")
