"""Parameters without a gradient: where the graph is cut, and the line if only one can cut it."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz import Trace
from tests.missing import missing_gradients
from tests.proof.cut_programs import without_other_parameters
from tests.proof.unfired_programs import Net, Silent, lost, ones

Case = tuple[Callable[[], Trace], str, str, str]
"""A program, the first parameter without a gradient, the place, and a part of the line that cuts ("" for none)."""


def cut_between_two_layers() -> Trace:
    class Cut(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.a(x)
            h = h.detach()
            return self.b(h)  # type: ignore[no-any-return]

    net = Cut()
    without_other_parameters(net)
    with hv.record(net.a, net.b) as trace:
        net(ones()).sum().backward()
    return trace


def cut_through_numpy() -> Trace:
    class Cut(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            numbers = self.a(x).tolist()
            return self.b(torch.Tensor(numbers))  # type: ignore[no-any-return]

    net = Cut()
    without_other_parameters(net)
    with hv.record(net.a, net.b) as trace:
        net(ones()).sum().backward()
    return trace


def generator_is_detached_before_the_discriminator() -> Trace:
    generator, discriminator = nn.Linear(2, 2), nn.Linear(2, 1)
    with hv.record(generator, discriminator) as trace:
        fake = generator(ones())
        loss = discriminator(fake.detach()).sum()
        loss.backward()
    return trace


def head_is_not_used() -> Trace:
    class Heads(Net):
        def forward(self, x: torch.Tensor) -> Any:
            x = self.a(x)
            return self.b(x), self.extra(x)

    net = Heads()
    net.body = nn.Identity()  # type: ignore[assignment]
    with hv.record(net.a, net.b, net.extra) as trace:
        net(ones())[0].sum().backward()
    return trace


def part_runs_in_no_grad() -> Trace:
    encoder, head = nn.Linear(2, 2), nn.Linear(2, 1)
    with hv.record(encoder, head) as trace:
        with torch.no_grad():
            features = encoder(ones())
        head(features).sum().backward()
    return trace


def branch_is_not_taken() -> Trace:
    net = Net()
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


def parameter_is_not_used() -> Trace:
    net = Net()
    net.deep, net.scale = True, nn.Parameter(ones())
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


def module_has_an_op_without_a_gradient() -> Trace:
    class Hard(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).round().argmax(-1, keepdim=True).float()

    hard, head = Hard(2, 2), nn.Linear(1, 1)
    with hv.record(hard, head) as trace:
        head(hard(ones())).sum().backward()
    return trace


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(2), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.linear(self.norm(x))  # type: ignore[no-any-return]


def output_of_a_block_is_detached_in_a_loop() -> Trace:
    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.head = nn.Linear(2, 2), nn.Linear(2, 1)
            self.blocks = nn.ModuleList([Block(), Block(), Block()])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.stem(x))
            for number, block in enumerate(self.blocks):
                x = block(x)
                if number == 1:
                    x = x.detach()
            return self.head(x)  # type: ignore[no-any-return]

    stack = Stack()
    stack.stem.register_full_backward_hook(lost)
    stack.blocks[0].norm.register_full_backward_hook(lost)  # type: ignore[union-attr]
    stack.stem.weight.register_hook(lambda grad: None)
    with hv.record(stack) as trace:
        stack(ones()).sum().backward()
    return trace


def test_one_cut_is_one_finding_for_all_parameters_and_hooks_behind_it() -> None:
    trace = output_of_a_block_is_detached_in_a_loop()
    [row] = missing_gradients(trace)
    lines, first = inspect.getsourcelines(output_of_a_block_is_detached_in_a_loop)
    assert row.place == "between" and row.line is not None and "x.detach()" in lines[row.line - first]
    assert "between stack.blocks.1 and stack.blocks.2" in row.sentence
    assert {name.rpartition(".")[0] for name in row.parameters} == {
        "stack.stem", *(f"stack.blocks.{i}.{name}" for i in (0, 1) for name in ("norm", "linear"))
    }  # fmt: skip
    [finding] = trace.findings
    assert (finding.kind, finding.line, finding.line_role) == ("cut", row.line, "cuts")
    assert "3 hooks did not fire: λ grad: None on stack.stem.weight" in finding.cause


def function_returns_none() -> Trace:
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    with hv.record(first, second) as trace:
        second(Silent.apply(first(ones()))).sum().backward()
    return trace


def test_the_place_of_a_none_is_the_backward_that_returned_it() -> None:
    trace = function_returns_none()
    [row] = missing_gradients(trace)
    assert (row.parameters, row.place) == (("first.weight", "first.bias"), "none_returned")
    lines, first = inspect.getsourcelines(Silent)
    assert row.line is not None and "def backward" in "".join(lines[row.line - first : row.line - first + 2])
    assert row.step is not None and trace.steps[row.step].sentence.startswith("SilentBackward takes the gradient")
    [finding] = trace.findings
    assert (finding.kind, finding.severity, finding.line_role) == ("cut", "warning", "backward")


@pytest.mark.parametrize("keep", [None, 1])
def test_an_optimizer_whose_parameters_get_none_is_not_told_to_look_for_a_detach(keep: int | None) -> None:
    net = Net()
    optimizer = torch.optim.SGD([*net.a.parameters(), *net.b.parameters()], 0.1)
    net.a.register_full_backward_pre_hook(lost)
    with hv.record(net.a, net.b, keep=keep) as trace:
        for _ in range(3):
            optimizer.zero_grad()
            net.b(Silent.apply(net.a(ones(grad=True)))).sum().backward()
            optimizer.step()
    [finding] = [finding for finding in trace.findings if finding.severity == "warning"]
    assert finding.kind == "cut" and "returned None for" in finding.cause and "detach" not in finding.text
    assert "For the same reason lost on net.a (line" in finding.cause


@pytest.mark.parametrize("keep", [None, 1])
def test_a_parameter_that_gets_a_gradient_on_another_path_is_not_listed(keep: int | None) -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    with hv.record(first, second, keep=keep) as trace:
        for _ in range(2):
            h = first(ones())
            second(Silent.apply(h) + h).sum().backward()
    assert list(missing_gradients(trace)) == []


def test_gradients_that_no_pass_was_asked_for_are_not_missing() -> None:
    layer, x = nn.Linear(2, 2), ones(grad=True)
    with hv.record(layer) as trace:
        torch.autograd.grad(layer(x).sum(), x)
    assert list(missing_gradients(trace)) == []


def test_a_pass_from_a_feature_to_the_input_lacks_no_gradient_of_the_layers_behind_it() -> None:
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)), ones(grad=True)
    features: list[torch.Tensor] = []
    net[1].register_forward_hook(lambda _module, _inputs, output: features.append(output))
    with hv.record(net) as trace:
        net(x)
        torch.autograd.grad(features[0].sum(), x)
    assert list(missing_gradients(trace)) == []
    assert list(trace.findings) == []


@pytest.mark.parametrize("is_given", [True, False])
def test_parameters_in_whose_place_a_call_had_other_tensors_are_not_missing(is_given: bool) -> None:
    """Expanded weights and per-sample gradients are computed in this way, and written to the parameters afterwards."""
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    with hv.record(*([net] if is_given else [])) as trace:
        others = {name: one.detach() for name, one in net.named_parameters() if name.startswith("0")}
        torch.func.functional_call(net, others, (ones(),)).sum().backward()
    assert list(missing_gradients(trace)) == []


def test_parameters_that_a_pass_names_among_others_may_be_missing() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    x = ones(grad=True)
    with hv.record(first, second) as trace:
        loss = second(first(x).detach() + x).sum()
        torch.autograd.grad(loss, [x, second.weight])
    assert missing_gradients(trace)[0].parameters == ("first.weight", "first.bias")


def test_none_for_an_input_that_a_pass_did_not_ask_for_is_no_cut() -> None:
    class Careful(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return tuple(grad if is_needed else None for is_needed in ctx.needs_input_grad)

    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    for finish in (
        lambda loss: torch.autograd.grad(loss, [second.weight, second.bias]),
        lambda loss: loss.backward(inputs=[second.weight, second.bias]),
    ):
        with hv.record(first, second) as trace:
            finish(Careful.apply(first(ones()), second(ones())).sum())
        assert list(missing_gradients(trace)) == []


CASES: list[Case] = [
    (cut_between_two_layers, ".weight", "between", "h.detach()"),
    (cut_through_numpy, ".weight", "between", ".tolist()"),
    (generator_is_detached_before_the_discriminator, "generator.weight", "between", "fake.detach()"),
    (head_is_not_used, ".weight", "after", ""),
    (part_runs_in_no_grad, "encoder.weight", "no_grad", ""),
    (branch_is_not_taken, "net.extra.weight", "uncalled", ""),
    (parameter_is_not_used, "net.scale", "unnamed", ""),
    (module_has_an_op_without_a_gradient, "hard.weight", "inside", ""),
    (function_returns_none, "first.weight", "none_returned", ""),
]


@pytest.mark.parametrize(("run", "name", "place", "code"), CASES, ids=[case[0].__name__ for case in CASES])
def test_place_is_where_the_program_cuts_the_graph(run: Callable[[], Trace], name: str, place: str, code: str) -> None:
    rows = [row for row in missing_gradients(run()) if row.parameters[0].endswith(name)]
    assert [row.place for row in rows] == [place]
    if code:
        assert rows[0].line is not None
        lines, first = inspect.getsourcelines(run)
        assert code in lines[rows[0].line - first]


def test_parameters_that_got_a_gradient_or_are_frozen_are_not_listed() -> None:
    net = Net()
    net.deep = True
    net.b.requires_grad_(False)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    assert list(missing_gradients(trace)) == []


def test_parameter_that_a_later_pass_reaches_is_not_listed() -> None:
    net = Net()
    with hv.record(net, keep=1) as trace:
        for net.deep in (True, False, False):
            net(ones()).sum().backward()
    assert list(missing_gradients(trace)) == []


def test_finding_names_the_parameters_that_no_optimizer_holds_either() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(second.parameters(), 0.1)
    with hv.record(first, second) as trace:
        for _ in range(2):
            optimizer.zero_grad()
            second(first(ones()).detach()).sum().backward()
            optimizer.step()
    [finding] = [finding for finding in trace.findings if finding.kind == "cut"]
    assert finding.cause.endswith("No optimizer that took a step holds them, either.")


def test_many_parameters_are_counted_by_the_modules_that_hold_them() -> None:
    trace = output_of_a_block_is_detached_in_a_loop()
    [finding] = trace.findings
    names = "stack.stem.weight, stack.stem.bias, 4 parameters of stack.blocks.0, 4 parameters of stack.blocks.1"
    assert finding.sentence == f"No gradient reaches {names}."


def halve(_module: nn.Module, _inputs: object, output: torch.Tensor) -> torch.Tensor:
    return output / 2


def detach(_module: nn.Module, _inputs: object, output: torch.Tensor) -> torch.Tensor:
    return output.detach()


@pytest.mark.parametrize(("hooks", "place"), [([halve, detach], "inside"), ([detach], "hook"), ([halve], "")])
def test_a_hook_is_named_only_if_no_other_one_may_have_cut(hooks: list[Any], place: str) -> None:
    encoder, head = nn.Linear(2, 2), nn.Linear(2, 1)
    for hook in hooks:
        encoder.register_forward_hook(hook)
    with hv.record(encoder, head) as trace:
        head(encoder(ones())).sum().backward()
    assert [row.place for row in missing_gradients(trace)] == ([place] if place else [])
    sentences = [row.sentence for row in missing_gradients(trace) if row.place == "inside"]
    assert all("a hook that replaced its output: halve, detach." in sentence for sentence in sentences)


def test_a_hook_is_not_named_if_what_it_got_had_no_graph() -> None:
    class Cut(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).detach()

    encoder, head = Cut(2, 2), nn.Linear(2, 1)
    encoder.register_forward_hook(halve)
    with hv.record(encoder, head) as trace:
        head(encoder(ones())).sum().backward()
    [row] = missing_gradients(trace)
    assert row.place == "inside" and "halve" not in row.sentence


def test_code_that_can_cut_is_not_said_to_be_all_of_it() -> None:
    class Spiking(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            potential = self.a(x)
            self.level = potential.detach().mean()
            return self.b((potential > 0).float())  # type: ignore[no-any-return]

    net = Spiking()
    without_other_parameters(net)
    with hv.record(net.a, net.b) as trace:
        net(ones()).sum().backward()
    [row] = missing_gradients(trace)
    assert "potential.detach()" in row.sentence and "only" not in row.sentence and not row.is_proven
