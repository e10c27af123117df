"""``doctor`` finds known mistakes in a model's hooks and settings, and says nothing of an ordinary model."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv

calls: list[Any] = []


def look(*_: Any) -> None:
    """A hook that changes nothing."""


def findings(net: Any) -> list[tuple[str, str, str]]:
    """(severity, kind, owner) of each finding; models are named after the variable of this function."""
    return [(finding.severity, finding.kind, finding.on) for finding in hv.doctor(net)]


class Encoder(nn.Module):
    """A small language model as BERT is: embeddings, an encoder, and a head with the weight of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8, padding_idx=0)
        self.positions = nn.Embedding(10, 8)
        self.register_buffer("mask", torch.full((4, 4), -torch.inf))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(8, 20)
        self.head.weight = self.words.weight


ORDINARY: dict[str, Callable[[], nn.Module]] = {
    "convolutions": lambda: nn.Sequential(nn.Conv2d(3, 4, 7), nn.BatchNorm2d(4), nn.Flatten(), nn.LazyLinear(10)),
    "encoder": Encoder,
}


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_model_has_no_findings(name: str) -> None:
    model = ORDINARY[name]()
    assert list(hv.doctor(model.eval())) == []
    table = hv.doctor(model.train())
    assert list(table) == []
    assert "Nothing was found. Checked: the hooks (" in repr(table)
    assert "record a pass" in repr(table) and "record a pass" in table._repr_html_()


def test_ordinary_hooks_have_no_findings() -> None:
    model, kept = Encoder(), {}

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        kept[module] = output.detach().clone()

    for name, module in model.named_modules():
        if type(module).forward is not nn.Module.forward and not name.endswith("out_proj"):
            module.register_forward_hook(keep)
            module.register_full_backward_hook(look)
    for parameter in model.parameters():
        parameter.register_hook(lambda grad: grad.clamp(-1, 1))
    assert findings(model) == []


def test_hooks_on_frozen_parameters_and_modules_are_found() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[0].weight.register_hook(look)
    net[0].register_full_backward_hook(look)
    net[0].requires_grad_(False)
    assert findings(net) == [
        ("warning", "frozen_parameter", "net.0.weight"),
        ("remark", "frozen_module", "net.0"),
    ]


def test_hooks_on_modules_that_are_never_called_are_errors() -> None:
    net = nn.ModuleDict({"list": nn.ModuleList([nn.Linear(2, 2)]), "attention": nn.MultiheadAttention(4, 2)})
    net["list"].register_forward_hook(look)
    net["attention"].out_proj.register_forward_pre_hook(look)
    net["attention"].out_proj.weight.register_hook(look)
    assert findings(net) == [
        ("error", "no_forward", "net.list"),
        ("error", "bypassed", "net.attention.out_proj"),
    ]


def test_a_legacy_backward_hook_is_a_warning() -> None:
    layer = nn.Linear(2, 2)
    layer.register_backward_hook(look)
    assert findings(layer) == [("warning", "legacy", "net")]


def test_a_function_registered_twice_is_found_also_if_its_cell_ran_twice() -> None:
    layer = nn.Linear(2, 2)
    for _ in range(3):
        layer.register_forward_hook(lambda module, args, output: None)
    layer.weight.register_hook(look)
    layer.weight.register_hook(look)
    table = hv.doctor(layer)
    assert [(row.kind, row.on) for row in table] == [("repeated", "layer"), ("repeated", "layer.weight")]
    assert "3 times" in table[0].sentence and "2 times" in table[1].sentence


def test_functions_of_a_factory_are_neither_repeated_nor_bound_late() -> None:
    def make(name: str) -> Callable[..., None]:
        return lambda module, args, output: calls.append(name)

    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    for name, module in net.named_children():
        module.register_forward_hook(make(name))
        module.register_forward_hook(make(name + "again"))
        module.register_forward_hook(functools.partial(look, name))
        module.register_forward_hook(lambda module, args, output, name=name: calls.append(name))  # type: ignore[misc]
    assert findings(net) == []


@pytest.mark.parametrize(("place", "inplace"), [(0, True), (1, True), (2, True), (0, False)])
def test_a_full_backward_hook_beside_an_edit_in_place_is_found_where_pytorch_raises(place: int, inplace: bool) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=inplace), nn.Linear(2, 1))
    net[place].register_full_backward_hook(look)
    raises = False
    try:
        net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    except RuntimeError as error:
        raises = "modified inplace" in str(error)
    assert findings(net) == ([("warning", "wrapped", f"net.{place}")] if raises else [])
    assert raises is (inplace and place < 2)


def test_hooks_that_share_a_loop_variable_are_found_with_its_value() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    for name, module in net.named_children():
        module.register_forward_hook(lambda module, args, output: calls.append(name))  # noqa: B023
    (row,) = hv.doctor(net)
    assert (row.severity, row.kind, row.on) == ("warning", "late_binding", "net.0")
    assert "2 hooks λ calls.append(name) read the loop variable name" in row.sentence and "now '1'" in row.sentence


def edits_gradient(grad: Any) -> None:
    grad *= 2


def edits_after_cloning(grad: Any) -> Any:
    grad = grad.clone()
    grad *= 2
    return grad


def edits_output(module: Any, args: Any, output: Any) -> None:
    output.mul_(2)


def edits_input(module: Any, args: Any) -> None:
    args[0].add_(1)


def edits_grad_output(module: Any, grad_input: Any, grad_output: Any) -> None:
    grad_output[0].zero_()
    grad_input[0].zero_()


def assigns_to_tuple(module: Any, grad_input: Any, grad_output: Any) -> None:
    grad_input[0] = None


def takes_five(a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
    """Takes too many."""


def detaches(module: Any, args: Any, output: Any) -> Any:
    return output.detach()


def keeps_output(module: Any, args: Any, output: Any) -> None:
    calls.append(output)


def keeps_gradient(module: Any, grad_input: Any, grad_output: Any) -> None:
    module.last = grad_output[0]


def keeps_locally(module: Any, args: Any, output: Any) -> None:
    seen = {}
    seen["output"] = output


FUNCTIONS: list[tuple[Any, list[str]]] = [
    (edits_gradient, ["warning edits.gradient"]),
    (edits_after_cloning, []),
    (edits_output, ["warning edits.output"]),
    (edits_input, ["warning edits.input"]),
    (edits_grad_output, ["warning edits.grad_output"]),
    (assigns_to_tuple, ["warning tuple_item"]),
    (takes_five, ["error parameters"]),
    (look, []),
    (detaches, ["warning cuts_graph"]),
    (keeps_output, ["remark keeps_graph"]),
    (keeps_gradient, []),
    (keeps_locally, []),
    (lambda m, i, o: (calls.append(1), calls.append(2)), ["warning replaces_output"]),
    (lambda grad: (calls.append(1), None), ["warning returns_tuple"]),
    (lambda grad: grad.clamp_(-1, 1), ["warning edits.gradient"]),
]


@pytest.mark.parametrize(("function", "expected"), FUNCTIONS)
def test_a_hook_function_is_judged_by_its_source(function: Any, expected: list[str]) -> None:
    table = hv.doctor(function)
    assert [f"{row.severity} {row.kind}" for row in table] == expected
    assert "record a pass" in repr(table)
    assert all("{" not in row.sentence for row in table)


def test_the_table_names_the_kind_that_a_function_is_taken_for() -> None:
    assert "treated as a tensor hook because of its parameters" in repr(hv.doctor(edits_gradient))


def test_functions_on_a_model_are_judged_by_the_kind_of_their_registration() -> None:
    layer = nn.Linear(2, 2)
    layer.weight.register_post_accumulate_grad_hook(edits_gradient)
    layer.register_forward_hook(edits_output)
    layer.register_forward_pre_hook(lambda module, args, kwargs: args[0].add_(1), with_kwargs=True)
    assert [row.kind for row in hv.doctor(layer)] == ["edits.input", "edits.output"]


def test_a_hook_that_torch_cannot_call_as_it_is_registered_is_an_error() -> None:
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, args: None)  # type: ignore[arg-type,misc]
    (row,) = hv.doctor(layer)
    assert (row.severity, row.kind) == ("error", "parameters")
    assert row.sentence.startswith("PyTorch calls a forward hook with (module, args, output)")
    with pytest.raises(TypeError, match="positional argument"):
        layer(torch.ones(2))


def test_a_class_of_models_is_refused() -> None:
    with pytest.raises(TypeError, match=r"doctor\(\) takes a model"):
        hv.doctor(nn.Linear)
