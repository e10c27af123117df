"""Parameters without a gradient: where the graph is cut, and the line if only one can cut it."""

import inspect
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

import hookviz as hv
from hookviz import Trace
from tests.missing import Missing, missing_gradients
from tests.proof.unfired_programs import Net, Silent, lost, ones


def two_layers() -> tuple[nn.Module, nn.Module]:
    return nn.Linear(2, 2), nn.Linear(2, 2)


def line_in(function: Callable[..., Any] | type, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return next(first + index for index, line in enumerate(lines) if text in line)


def train(net: nn.Module, *followed: nn.Module) -> Trace:
    with hv.record(*(followed or (net,))) as trace:
        net(ones()).sum().backward()
    return trace


def without_other_parameters(net: Net) -> None:
    """Take from a net what its forward does not use: ``net.a`` and ``net.b`` are then the whole model."""
    net.extra, net.body = nn.Identity(), nn.Identity()  # type: ignore[assignment]


def train_without_other_parameters(net: Net) -> Trace:
    without_other_parameters(net)
    return train(net, net.a, net.b)


# -- the places


def cut_between_two_layers() -> Trace:
    class Cut(Net):
        def forward(self, x: Tensor) -> Tensor:
            h = self.a(x)
            h = h.detach()
            return self.b(h)  # type: ignore[no-any-return]

    return train_without_other_parameters(Cut())


def head_is_not_used() -> Trace:
    class Heads(Net):
        def forward(self, x: Tensor) -> Any:
            x = self.a(x)
            self.extra(x)
            return self.b(x)

    net = Heads()
    net.body = nn.Identity()  # type: ignore[assignment]
    return train(net, net.a, net.b, net.extra)


def branch_is_not_taken() -> Trace:
    return train(Net())


def module_has_an_op_without_a_gradient() -> Trace:
    class Hard(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).round().argmax(-1, keepdim=True).float()

    hard, head = Hard(2, 2), nn.Linear(1, 1)
    with hv.record(hard, head) as trace:
        head(hard(ones())).sum().backward()
    return trace


def function_returns_none() -> Trace:
    first, second = two_layers()
    with hv.record(first, second) as trace:
        second(Silent.apply(first(ones()))).sum().backward()
    return trace


def forward_cuts_after_an_inner_call() -> Trace:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Any:
            return 2 * self.layer(x).detach()

    cut, head = Cut(), nn.Linear(2, 2)
    with hv.record(cut, head) as trace:
        head(cut(ones())).sum().backward()
    return trace


def layer_is_frozen_while_it_runs() -> Trace:
    encoder, head = two_layers()
    encoder.requires_grad_(False)
    with hv.record(encoder, head) as trace:
        loss = head(encoder(ones())).sum()
        encoder.requires_grad_(True)
        loss.backward()
    return trace


def layer_is_called_after_the_last_pass() -> Trace:
    first, second = two_layers()
    with hv.record(first, second) as trace:
        first(ones()).sum().backward()
        second(ones())
    return trace


CASES: list[tuple[Callable[[], Trace], str, str, str]] = [
    (cut_between_two_layers, ".weight", "between", "h.detach()"),
    (head_is_not_used, ".weight", "after", ""),
    (branch_is_not_taken, "net.extra.weight", "uncalled", ""),
    (module_has_an_op_without_a_gradient, "hard.weight", "inside", ""),
    (function_returns_none, "first.weight", "none_returned", ""),
    (forward_cuts_after_an_inner_call, "cut.layer.weight", "within", "detach()"),
    (layer_is_frozen_while_it_runs, "encoder.weight", "frozen", ""),
    (layer_is_called_after_the_last_pass, "second.weight", "no_pass", ""),
]
"""A program, the first parameter without a gradient, the place, and a part of the line that cuts ("" for none)."""


@pytest.mark.parametrize(("run", "name", "place", "code"), CASES, ids=[case[0].__name__ for case in CASES])
def test_place_is_where_the_program_cuts_the_graph(run: Callable[[], Trace], name: str, place: str, code: str) -> None:
    [row] = [row for row in missing_gradients(run()) if row.parameters[0].endswith(name)]
    assert row.place == place
    if code:
        assert row.line == line_in(run, code)


def test_one_cut_is_one_finding_for_all_parameters_and_hooks_behind_it() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.linear = nn.LayerNorm(2), nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.linear(self.norm(x))  # type: ignore[no-any-return]

    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.head = nn.Linear(2, 2), nn.Linear(2, 1)
            self.blocks = nn.ModuleList([Block(), Block(), Block()])

        def forward(self, x: Tensor) -> Tensor:
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
    [row] = missing_gradients(trace)
    assert (row.place, row.line) == ("between", line_in(Stack, "x.detach()"))
    assert "between stack.blocks.1 and stack.blocks.2" in row.sentence
    [finding] = trace.findings
    assert (finding.kind, finding.line, finding.line_role) == ("cut", row.line, "cuts")
    assert "For the same reason λ grad: None on stack.stem.weight" in finding.cause
    names = "stack.stem.weight, stack.stem.bias, 4 parameters of stack.blocks.0, 4 parameters of stack.blocks.1"
    assert finding.sentence == f"No gradient reaches {names}."


class Quantizer(nn.Module):
    """Gives the numbers of its input on, and the graph of its codes."""

    def __init__(self) -> None:
        super().__init__()
        self.codes = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        codes = self.codes(torch.ones(2))
        return codes + (x - codes).detach()  # type: ignore[no-any-return]


def test_cut_is_in_the_module_that_got_the_graph_and_gives_another_one_on() -> None:
    encoder, quantizer = nn.Linear(2, 2), Quantizer()
    with hv.record(encoder, quantizer) as trace:
        quantizer(encoder(ones())).sum().backward()
    [row] = missing_gradients(trace)
    assert (row.place, row.line) == ("taken", line_in(Quantizer, "(x - codes).detach()"))
    assert row.sentence.startswith("quantizer got what encoder returned, with its graph.")


class Fuse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, a: Tensor, b: Tensor) -> Any:
        return self.layer(torch.cat([a, b]))


class FuseDetached(Fuse):
    def forward(self, a: Tensor, b: Tensor) -> Any:
        return self.layer(torch.cat([a.detach(), b]))


@pytest.mark.parametrize("kind", [Fuse, FuseDetached])
def test_of_several_inputs_it_is_not_said_which_one_brought_its_graph(kind: type[Fuse]) -> None:
    (a, b), fuse = two_layers(), kind()

    def run() -> None:
        left = a(torch.ones(2))
        left = left if kind is FuseDetached else torch.from_numpy(left.detach().numpy().copy())
        fuse(left, b(torch.ones(2))).sum().backward()

    with hv.record(a, b, fuse) as trace:
        run()
    [row] = missing_gradients(trace)
    assert row.place == "taken" and "with its graph" not in row.sentence
    assert "fuse got the numbers that a returned. Before it got them or in the forward of fuse" in row.sentence
    assert ("a.detach()" if kind is FuseDetached else "left.detach().numpy()") in row.sentence


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(2, 2)


class Gaussian(Policy):
    def forward(self, x: Tensor) -> Tensor:
        return torch.distributions.Normal(self.a(x), 1.0).sample()


class Choice(Policy):
    def forward(self, x: Tensor) -> Tensor:
        return torch.distributions.Categorical(logits=self.a(x)).sample().float()[None]


@pytest.mark.parametrize(("kind", "has_rsample"), [(Gaussian, True), (Choice, False)])
def test_sample_of_a_distribution_is_where_the_graph_is_cut(kind: type[Policy], has_rsample: bool) -> None:
    policy, critic = kind(), nn.LazyLinear(1)
    with hv.record(policy, critic) as trace:
        critic(policy(ones())).sum().backward()
    [row] = missing_gradients(trace)
    assert row.line == line_in(kind, ".sample()") and ("rsample()" in row.advice) == has_rsample


def test_a_number_of_an_output_that_only_the_outer_module_returns_is_named() -> None:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.main, self.side = nn.Linear(2, 1), nn.Linear(2, 1)

        def forward(self, x: Tensor) -> Any:
            return self.main(x), self.side(x)

    def run() -> None:
        main, side = heads(ones())
        weights = torch.tensor([1.0, 0.1])
        extra = side.square().sum().item()
        loss = weights[0] * main.sum() + weights[1] * (2 * extra)
        loss.backward()

    heads = Heads()
    with hv.record(heads) as trace:
        run()
    [row] = missing_gradients(trace)
    assert (row.place, row.line, row.is_proven) == ("after", line_in(run, "item"), False)
    assert row.advice.endswith("compute it with tensors instead.") and "--cuts" not in row.advice


# -- None in the place of a gradient


def test_the_place_of_a_none_is_the_backward_that_returned_it() -> None:
    trace = function_returns_none()
    [row] = missing_gradients(trace)
    assert row.parameters == ("first.weight", "first.bias")
    assert row.line in (line_in(Silent, "def backward"), line_in(Silent, "def backward") - 1)
    assert row.step is not None and trace.steps[row.step].sentence.startswith("SilentBackward takes the gradient")
    [finding] = trace.findings
    assert (finding.kind, finding.severity, finding.line_role) == ("cut", "warning", "backward")


def test_a_parameter_that_gets_a_gradient_on_another_path_is_not_listed() -> None:
    first, second = two_layers()
    with hv.record(first, second) as trace:
        h = first(ones())
        second(Silent.apply(h) + h).sum().backward()
    assert list(missing_gradients(trace)) == []


# -- what is not missing


def test_parameters_that_are_frozen_or_that_an_earlier_pass_reached_are_not_listed() -> None:
    net = Net()
    net.b.requires_grad_(False)
    with hv.record(net, keep=1) as trace:
        for net.deep in (True, False, False):
            net(ones()).sum().backward()
    assert list(missing_gradients(trace)) == []


def test_gradients_that_no_pass_was_asked_for_are_not_missing() -> None:
    torch.manual_seed(0)  # with other weights a ReLU may stop all gradients, which is a finding
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)), ones(grad=True)
    features: list[Tensor] = []
    net[1].register_forward_hook(lambda _module, _inputs, output: features.append(output))
    with hv.record(net) as of_output:
        torch.autograd.grad(net(x).sum(), x)
    with hv.record(net) as of_feature:
        net(x)
        torch.autograd.grad(features[1].sum(), x)
    for trace in (of_output, of_feature):
        assert list(missing_gradients(trace)) == []
        assert list(trace.findings) == []


def test_parameters_in_whose_place_a_call_had_other_tensors_are_not_missing() -> None:
    """Expanded weights and per-sample gradients are computed in this way, and written to the parameters afterwards."""
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    with hv.record(net) as trace:
        others = {name: one.detach() for name, one in net.named_parameters() if name.startswith("0")}
        torch.func.functional_call(net, others, (ones(),)).sum().backward()
    assert list(missing_gradients(trace)) == []


# -- hooks that cut


def halve(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
    return output / 2


def detach(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
    return output.detach()


class Detaching(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).detach()


@pytest.mark.parametrize(
    ("layer", "hooks", "place"),
    [
        (nn.Linear, [halve, detach], "inside"),
        (nn.Linear, [detach], "hook"),
        (nn.Linear, [halve], ""),
        (Detaching, [halve], "inside"),
    ],
)
def test_a_hook_is_named_only_if_it_may_have_cut_and_no_other_one(
    layer: type[nn.Linear], hooks: list[Any], place: str
) -> None:
    encoder, head = layer(2, 2), nn.Linear(2, 1)
    for hook in hooks:
        encoder.register_forward_hook(hook)
    with hv.record(encoder, head) as trace:
        head(encoder(ones())).sum().backward()
    rows = missing_gradients(trace)
    assert [row.place for row in rows] == ([place] if place else [])
    may_be = "a hook that replaced its output: halve, detach."
    assert all((may_be in row.sentence) == (len(hooks) > 1) for row in rows)
    assert all("halve" not in row.sentence for row in rows if len(hooks) == 1)


@torch.no_grad()
def standardise(_module: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
    return ((args[0] - args[0].mean()) / args[0].std(),)


class DetachingInput(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.detach())


@pytest.mark.parametrize("has_hook", [True, False])
def test_a_pre_hook_that_replaced_the_inputs_may_have_cut_the_graph(has_hook: bool) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2) if has_hook else DetachingInput(2, 2))
    if has_hook:
        net[1].register_forward_pre_hook(standardise)
    with hv.record(net) as trace:
        net(torch.rand(3, 2)).square().sum().backward()
    [row] = missing_gradients(trace)
    assert ("Or standardise on net.1 cuts it, which replaced the inputs" in row.sentence) == has_hook
    assert (row.line == line_in(standardise, "no_grad")) == has_hook


# -- what is not blamed


def test_code_that_can_cut_is_not_said_to_be_all_of_it() -> None:
    class Spiking(Net):
        def forward(self, x: Tensor) -> Tensor:
            potential = self.a(x)
            self.level = potential.detach().mean()
            return self.b((potential > 0).float())  # type: ignore[no-any-return]

    [row] = missing_gradients(train_without_other_parameters(Spiking()))
    assert "potential.detach()" in row.sentence and "only" not in row.sentence and not row.is_proven


def test_parameters_of_models_that_are_gone_are_all_named() -> None:
    """What is made next may have the ``id`` of what is gone."""

    def evaluate() -> None:
        with torch.no_grad():
            nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))(ones())

    net = nn.Linear(2, 2)
    with hv.record() as trace:
        for _ in range(5):
            evaluate()
            net(ones()).sum().backward()
    rows = trace._data.missing_rows
    assert len(rows) == len({(row.module, row.name) for row in rows}) == 5 * 4


def test_reading_the_loss_is_no_cut() -> None:
    def run() -> None:
        output = unused(ones())
        loss = used(ones()).sum()
        print(loss.item(), output.shape)
        loss.backward()

    unused, used = two_layers()
    with hv.record(unused, used) as trace:
        run()
    [row] = missing_gradients(trace)
    assert row.place == "after" and row.line is None and "item" not in row.sentence


def test_evaluations_before_and_after_the_pass_neither_explain_nor_hide_a_cut() -> None:
    net, encoder = Net(), nn.Linear(2, 2)
    without_other_parameters(net)
    with hv.record(net, encoder) as trace:
        with torch.no_grad():
            net(encoder(ones()))
        net(encoder(ones()).detach()).sum().backward()
        with torch.no_grad():
            net(encoder(ones()))
    [row] = missing_gradients(trace)
    assert row.place == "between" and "no_grad" not in row.sentence


def through_numbers(part: nn.Module, user: nn.Module) -> Tensor:
    return user(torch.tensor(part(ones()).detach().tolist()))  # type: ignore[no-any-return]


def through_an_array(part: nn.Module, user: nn.Module) -> Tensor:
    return user(torch.from_numpy(part(ones()).detach().numpy()))  # type: ignore[no-any-return]


def through_half_an_array(part: nn.Module, user: nn.Module) -> Tensor:
    return user(torch.from_numpy(part(ones()).detach().numpy() / 2))  # type: ignore[no-any-return]


def through_floats(part: nn.Module, user: nn.Module) -> Tensor:
    return user(part(ones()).detach().float())  # type: ignore[no-any-return]


@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize(("run", "advice"), [
    (through_numbers, "Write part(ones()) instead of torch.tensor("),
    (through_an_array, "Write part(ones()) instead of torch.from_numpy("),
    (through_half_an_array, "compute it with tensors instead"),
    (through_floats, "Remove the cut"),
])  # fmt: skip
def test_to_remove_a_detach_is_no_advice_where_its_result_becomes_numbers(
    run: Callable[[nn.Module, nn.Module], Tensor], advice: str, cuts: bool
) -> None:
    part, user = two_layers()
    with hv.record(part, user, cuts=cuts) as trace:
        run(part, user).sum().backward()
    [row] = missing_gradients(trace)

    assert row.line == line_in(run, "detach") and advice in row.advice
    assert ("makes numbers of that, which have no graph either" in row.sentence) == (
        cuts and advice.startswith("Write")
    )


class Choosing(Net):
    """Cuts in one of several branches, of which another one runs."""

    def __init__(self, way: int) -> None:
        super().__init__()
        self.way = way

    def forward(self, x: Tensor) -> Tensor:
        features = self.a(x)
        if self.way == 0:
            return self.b(features.clone().detach())  # type: ignore[no-any-return]
        if self.way == 1:
            features = self.extra(features)
            features = torch.from_numpy(features.detach().numpy() / 2)
        if self.way == 2:
            features = torch.from_numpy(features.detach().numpy() + 1)
        return self.b(features)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("way", "cuts", "named"), [
    (0, False, ["clone().detach()"]), (0, True, ["clone().detach()"]), (1, True, ["numpy() / 2"]),
    (2, False, ["numpy() / 2", "numpy() + 1"]), (2, True, ["numpy() + 1"]), (3, False, []), (3, True, []),
])  # fmt: skip
def test_code_that_is_known_not_to_have_run_is_not_named(way: int, cuts: bool, named: list[str]) -> None:
    net = Choosing(way)
    with hv.record(net, cuts=cuts) as trace:
        net(ones()).sum().backward()
    said = " ".join(row.sentence for row in missing_gradients(trace) if "net.a.weight" in row.parameters)
    assert [text for text in ("clone().detach()", "numpy() / 2", "numpy() + 1") if text in said] == named


class Pool:
    """Gives numbers back without their graph."""

    def query(self, x: Tensor) -> Tensor:
        return x.detach().clone()


def test_detach_for_another_call_is_not_blamed_and_an_unknown_call_makes_a_line_likely() -> None:
    generator, judge, pool = nn.Linear(2, 2), nn.Linear(2, 1), Pool()
    with hv.record(generator, judge) as trace:
        fake = pool.query(generator(ones()))
        judge(fake.detach()).sum().backward()
        judge(fake).sum().backward()
    [row] = missing_gradients(trace)
    assert (row.place, row.line) == ("between", line_in(Pool, ".detach()")) and row.is_proven
    assert "fake.detach()" not in row.sentence
    with hv.record(generator, judge) as trace:
        fake = operator.methodcaller("clone")(generator(ones()).detach())
        judge(fake).sum().backward()
    [row] = missing_gradients(trace)
    assert row.line is not None and not row.is_proven and "if that line is it" in row.advice


def train_gan(*, with_optimizers: bool) -> list[Missing]:
    """Train a discriminator, then a generator, each with its own optimizer."""
    gen, disc = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizers = [SGD(net.parameters(), lr=0.1) for net in (gen, disc)]

    def step(loss: Tensor, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        loss.backward()
        if with_optimizers:
            optimizer.step()

    with hv.record(gen, disc) as trace:
        for _ in range(2):
            fake = gen(ones())
            step(disc(ones()).sum() - disc(fake.detach()).sum(), optimizers[1])
            with torch.no_grad():
                score = disc(gen(ones()))
            step(score.requires_grad_().sum(), optimizers[0])
    return [row for row in missing_gradients(trace) if row.parameters[0].startswith("gen")]


def test_the_pass_before_the_step_of_an_optimizer_shows_where_its_parameters_are_cut_off() -> None:
    [row] = train_gan(with_optimizers=True)
    assert (row.place, row.line, row.is_proven) == ("no_grad", line_in(train_gan, "no_grad"), True)
    assert "detach" not in row.sentence


def test_of_two_places_before_different_passes_both_are_named() -> None:
    [row] = train_gan(with_optimizers=False)
    assert (row.place, row.line, row.is_proven) == ("either", line_in(train_gan, "no_grad"), False)
    assert "fake.detach()" in row.sentence
