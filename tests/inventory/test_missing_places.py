"""Places where the graph is cut, which the programs of the proofs do not have."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from tests.missing import missing_gradients


def two_layers() -> tuple[nn.Module, nn.Module]:
    return nn.Linear(2, 2), nn.Linear(2, 2)


def encoder_runs_in_inference_mode() -> hv.Trace:
    encoder, head = two_layers()
    with hv.record(encoder, head) as trace:
        with torch.inference_mode():
            features = encoder(torch.ones(2))
        head(features.clone()).sum().backward()
    return trace


def reentrant_checkpoint_gets_an_input_without_a_gradient() -> hv.Trace:
    encoder, head = two_layers()
    with hv.record(encoder, head) as trace:
        head(checkpoint(encoder, torch.ones(2), use_reentrant=True)).sum().backward()
    return trace


def forward_cuts_after_an_inner_call() -> hv.Trace:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> Any:
            return 2 * self.layer(x).detach()

    _, head = two_layers()
    cut = Cut()
    with hv.record(cut, head) as trace:
        head(cut(torch.ones(2))).sum().backward()
    return trace


def op_between_two_layers_cuts() -> hv.Trace:
    encoder, head = two_layers()
    with hv.record(encoder, head, cuts=True) as trace:
        head(encoder(torch.ones(2)).detach()).sum().backward()
    return trace


def layer_is_frozen_while_it_runs() -> hv.Trace:
    encoder, head = two_layers()
    encoder.requires_grad_(False)
    with hv.record(encoder, head) as trace:
        loss = head(encoder(torch.ones(2))).sum()
        encoder.requires_grad_(True)
        loss.backward()
    return trace


def layer_is_called_after_the_last_pass() -> hv.Trace:
    first, second = two_layers()
    with hv.record(first, second) as trace:
        first(torch.ones(2)).sum().backward()
        second(torch.ones(2))
    return trace


def forward_hook_returns_a_detached_tensor() -> hv.Trace:
    encoder, head = two_layers()
    encoder.register_forward_hook(lambda module, args, output: output.detach())
    with hv.record(encoder, head) as trace:
        head(encoder(torch.ones(2))).sum().backward()
    return trace


PROGRAMS: dict[str, Callable[[], hv.Trace]] = {
    "hook": forward_hook_returns_a_detached_tensor,
    "frozen": layer_is_frozen_while_it_runs,
    "no_pass": layer_is_called_after_the_last_pass,
    "inference": encoder_runs_in_inference_mode,
    "checkpoint": reentrant_checkpoint_gets_an_input_without_a_gradient,
    "within": forward_cuts_after_an_inner_call,
    "op": op_between_two_layers_cuts,
}


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("place", PROGRAMS)
def test_place_is_where_the_program_cuts_the_graph(place: str) -> None:
    rows = missing_gradients(PROGRAMS[place]())
    assert [row.place for row in rows] == [place]
    assert rows[0].parameters[0].endswith("weight")


class Quantizer(nn.Module):
    """Gives the numbers of its input on, and the graph of its codes."""

    def __init__(self) -> None:
        super().__init__()
        self.codes = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        codes = self.codes(torch.ones(2))
        return codes + (x - codes).detach()  # type: ignore[no-any-return]


def test_cut_is_in_the_module_that_got_the_graph_and_gives_another_one_on() -> None:
    encoder, quantizer = nn.Linear(2, 2), Quantizer()
    with hv.record(encoder, quantizer) as trace:
        quantizer(encoder(torch.ones(2))).sum().backward()
    [row] = missing_gradients(trace)
    assert row.place == "taken" and "(x - codes).detach()" in row.sentence
    assert row.sentence.startswith("quantizer got what encoder returned, with its graph.")
    assert row.line == inspect.getsourcelines(Quantizer.forward)[1] + 2


class Log:
    """Keeps what a layer returns, without its graph."""

    def keep(self, _module: nn.Module, _inputs: object, output: torch.Tensor) -> None:
        self.kept = output.detach()


def test_hook_that_keeps_an_output_without_its_graph_is_where_the_graph_is_cut() -> None:
    encoder, head, log = nn.Linear(2, 2), nn.Linear(2, 1), Log()
    encoder.register_forward_hook(log.keep)
    with hv.record(encoder, head) as trace:
        encoder(torch.ones(2))
        loss = head(log.kept).sum()
        loss.backward()
        print(loss.item())
    [row] = missing_gradients(trace)
    assert (row.place, row.line) == ("between", inspect.getsourcelines(Log.keep)[1] + 1)
    assert "Code there that can cut the graph: output.detach()" in row.sentence


def test_hook_that_returns_an_output_without_a_graph_is_named_for_the_layers_before_it() -> None:
    first, second, third = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
    second.register_forward_hook(lambda _module, _inputs, output: output.detach())
    with hv.record(first, second, third) as trace:
        third(second(first(torch.ones(2)))).sum().backward()
    assert {row.place for row in missing_gradients(trace)} == {"hook"}


def test_reading_the_loss_is_no_cut() -> None:
    def train() -> float:
        output = unused(torch.ones(2))
        loss = used(torch.ones(2)).sum()
        print(loss.item(), output.shape)
        loss.backward()
        return loss.item()  # type: ignore[no-any-return]

    unused, used = two_layers()
    with hv.record(unused, used) as trace:
        train()
    [row] = missing_gradients(trace)
    assert row.place == "after" and row.line is None and "item" not in row.sentence


def test_evaluation_after_the_last_pass_hides_no_cut() -> None:
    encoder, head = two_layers()
    with hv.record(encoder, head) as trace:
        head(encoder(torch.ones(2)).detach()).sum().backward()
        with torch.no_grad():
            head(encoder(torch.ones(2)))
    assert {row.place for row in missing_gradients(trace)} == {"between"}


class WithUnusedHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.out = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.body(x)
        self.head(hidden)
        result: torch.Tensor = self.out(hidden)
        return result


def test_an_evaluation_before_explains_nothing_of_an_output_that_the_forward_drops() -> None:
    net = WithUnusedHead()
    with hv.record(net) as trace:
        with torch.no_grad():
            net(torch.ones(1, 2))
        net(torch.ones(1, 2)).sum().backward()
    [row] = missing_gradients(trace)
    assert row.place == "within" and "no_grad" not in row.sentence


def test_call_without_a_graph_is_named_beside_one_whose_output_is_not_used() -> None:
    actor, critic = two_layers()
    with hv.record(actor, critic) as trace:
        with torch.no_grad():
            chosen = actor(torch.ones(2))
        actor(torch.ones(2))
        (critic(torch.ones(2)) * chosen).sum().backward()
    [row] = missing_gradients(trace)
    assert row.place == "after" and "actor ran in torch.no_grad(): PyTorch recorded no graph." in row.sentence


class Pool:
    """Gives numbers back without their graph."""

    def query(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach().clone()


def test_detach_for_another_call_is_not_blamed_and_an_unknown_call_makes_a_line_likely() -> None:
    generator, judge, pool = nn.Linear(2, 2), nn.Linear(2, 1), Pool()
    with hv.record(generator, judge) as trace:
        fake = pool.query(generator(torch.ones(2)))
        judge(fake.detach()).sum().backward()
        judge(fake).sum().backward()
    [row] = missing_gradients(trace)
    assert (row.place, row.advice[:26]) == ("between", "To see the line that cuts,") and "detach" not in row.sentence
    with hv.record(generator, judge) as trace:
        fake = pool.query(generator(torch.ones(2)).detach())
        judge(fake).sum().backward()
    [row] = missing_gradients(trace)
    assert row.line is not None and not row.is_proven


def test_sample_of_a_distribution_is_where_the_graph_is_cut() -> None:
    class Policy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.distributions.Normal(self.mean(x), 1.0).sample()

    policy, critic = Policy(), nn.Linear(2, 1)
    with hv.record(policy, critic) as trace:
        with torch.no_grad():
            policy(torch.ones(2))
        critic(policy(torch.ones(2))).sum().backward()
    [row] = missing_gradients(trace)
    assert row.line == inspect.getsourcelines(Policy.forward)[1] + 1 and "rsample()" in row.advice


@torch.no_grad()
def standardise(_module: nn.Module, args: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
    return ((args[0] - args[0].mean()) / args[0].std(),)


@pytest.mark.parametrize("has_hook", [True, False])
def test_a_pre_hook_that_replaced_the_inputs_may_have_cut_the_graph(has_hook: bool) -> None:
    class Cut(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x.detach())

    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2) if has_hook else Cut(2, 2))
    if has_hook:
        net[1].register_forward_pre_hook(standardise)
    with hv.record(net) as trace:
        net(torch.rand(3, 2)).square().sum().backward()
    [row] = missing_gradients(trace)
    assert ("standardise on net.1 replaced it (step " in row.sentence) == has_hook
    assert ("In the forward of net.1 the graph is cut" in row.sentence) != has_hook
    if has_hook:
        assert row.line == standardise.__wrapped__.__code__.co_firstlineno  # type: ignore[attr-defined]


def test_a_pre_hook_in_front_of_a_call_without_a_graph_may_have_cut_it() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid())
    net[1].register_forward_pre_hook(standardise)
    weight = torch.ones(2, requires_grad=True)
    with hv.record(net) as trace:
        (net(torch.rand(3, 2)) * weight).sum().backward()
    [row] = missing_gradients(trace)
    assert row.place == "inside" and "cut in standardise on net.1, which replaced the inputs of" in row.sentence


def test_sample_of_a_distribution_of_choices_has_no_rsample() -> None:
    class Chooser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scores = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.distributions.Categorical(logits=self.scores(x)).sample().float()

    chooser, critic = Chooser(), nn.Linear(1, 1)
    with hv.record(chooser, critic) as trace:
        critic(chooser(torch.ones(1, 2))[None]).sum().backward()
    [row] = missing_gradients(trace)
    assert ".sample(" in row.sentence and "rsample()" not in row.advice


def test_a_graph_that_was_switched_off_for_good_leads_to_the_line_that_did_it() -> None:
    net, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    with hv.record(net, critic) as trace:
        torch.set_grad_enabled(False)
        made = net(torch.ones(2))
        torch.set_grad_enabled(True)
        critic(made).sum().backward()
    [row] = missing_gradients(trace)
    assert row.place == "no_grad" and "net ran in torch.no_grad()" not in row.sentence
    assert "set_grad_enabled(False) at " in row.sentence and not row.is_proven and row.line is not None
    with hv.record(net, critic) as trace:
        with torch.no_grad():
            made = net(torch.ones(2))
        critic(made).sum().backward()
    [row] = missing_gradients(trace)
    assert "net ran in torch.no_grad()" in row.sentence and row.is_proven


class Gan:
    """Trains a discriminator, then a generator, each with its own optimizer."""

    def __init__(self, *, with_optimizers: bool = True) -> None:
        self.gen, self.disc = nn.Linear(2, 2), nn.Linear(2, 1)
        self.optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (self.gen, self.disc)]
        self.with_optimizers = with_optimizers

    def train(self) -> hv.Trace:
        gen, disc = self.gen, self.disc
        with hv.record(gen, disc) as trace:
            for _ in range(2):
                fake = gen(torch.ones(3, 2))
                loss = disc(torch.ones(3, 2)).sum() - disc(fake.detach()).sum()
                self.step(loss, self.optimizers[1])
                with torch.no_grad():
                    score = disc(gen(torch.ones(3, 2)))
                self.step(score.requires_grad_().sum(), self.optimizers[0])
        return trace

    def step(self, loss: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        loss.backward()
        if self.with_optimizers:
            optimizer.step()


def line_in(function: Callable[..., Any], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return next(first + index for index, line in enumerate(lines) if text in line)


def test_the_pass_before_the_step_of_an_optimizer_shows_where_its_parameters_are_cut_off() -> None:
    [row] = missing_gradients(Gan().train())
    assert (row.place, row.line, row.is_proven) == ("no_grad", line_in(Gan.train, "no_grad"), True)
    assert "detach" not in row.sentence


def test_of_two_places_before_different_passes_both_are_named() -> None:
    [row] = [one for one in missing_gradients(Gan(with_optimizers=False).train()) if "gen" in one.parameters[0]]
    assert (row.place, row.line, row.is_proven) == ("either", line_in(Gan.train, "no_grad"), False)
    assert "fake.detach()" in row.sentence


class Lora(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(2, 2).requires_grad_(False)
        self.a, self.bias = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.zeros(2))
        self.merged = False

    def merge(self) -> None:
        with torch.no_grad():
            self.base.weight += self.a @ self.a
        self.merged = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.base(x) + self.bias
        if not self.merged:
            y = y + x @ self.a
        return y


@pytest.mark.parametrize("cuts", [False, True])
def test_merged_weights_are_no_cut_and_the_branch_that_led_past_is_named(cuts: bool) -> None:
    lora = Lora()
    with hv.record(lora, cuts=cuts) as trace:
        lora.merge()
        lora(torch.ones(2)).sum().backward()
    [row] = missing_gradients(trace)
    assert (row.place, row.line) == ("unused", line_in(Lora.forward, "not self.merged"))


@pytest.mark.parametrize("cuts", [False, True])
def test_a_number_of_an_output_that_only_the_outer_module_returns_is_named(cuts: bool) -> None:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.main, self.side = nn.Linear(2, 1), nn.Linear(2, 1)

        def forward(self, x: torch.Tensor) -> Any:
            return self.main(x), self.side(x)

    def train() -> None:
        main, side = heads(torch.ones(2))
        weights = torch.tensor([1.0, 0.1])
        extra = side.square().sum().item()
        loss = weights[0] * main.sum() + weights[1] * (2 * extra)
        loss.backward()

    heads = Heads()
    with hv.record(heads, cuts=cuts) as trace:
        train()
    [row] = missing_gradients(trace)
    assert (row.place, row.line, row.is_proven) == ("after", line_in(train, "item"), False)
    assert row.advice.endswith("compute it with tensors instead.") and "--cuts" not in row.advice


@pytest.mark.parametrize("cuts", [False, True])
def test_a_later_module_that_goes_through_numpy_is_named(cuts: bool) -> None:
    class Pool(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(abs(x.detach().numpy()))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.pool, self.head = nn.Linear(2, 2), Pool(), nn.Linear(2, 1)

        def forward(self, x: torch.Tensor) -> Any:
            return self.head(self.pool(torch.relu(self.first(x))))

    net = Net()
    with hv.record(net, cuts=cuts) as trace:
        net(torch.ones(2)).sum().backward()
    assert "x.detach().numpy()" in " ".join(row.sentence for row in missing_gradients(trace))


@pytest.mark.filterwarnings("ignore:Converting a tensor")
def test_a_tensor_made_from_tensors_is_an_op_that_cuts() -> None:
    layer = nn.Linear(2, 1)
    with hv.record(layer, cuts=True) as trace:
        parts = [layer(torch.ones(2)).sum(), layer(torch.ones(2)).mean()]
        torch.tensor(parts, requires_grad=True).sum().backward()
    [row] = missing_gradients(trace)
    assert row.place == "op" and "torch.tensor(parts, requires_grad=True)" in row.sentence


@pytest.mark.parametrize("is_cut", [False, True])
def test_zeros_that_a_call_got_are_no_sign_of_another_one_that_returned_zeros(is_cut: bool) -> None:
    part, user = two_layers()
    nn.init.zeros_(part.weight)
    nn.init.zeros_(part.bias)
    with hv.record(part, user) as trace:
        made = part(torch.ones(2))
        user(made.detach() if is_cut else torch.zeros(2)).sum().backward()
    [row] = missing_gradients(trace)
    assert row.place == ("between" if is_cut else "after")


class Fuse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> Any:
        return self.layer(torch.cat([a, b]))


class FuseDetached(Fuse):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> Any:
        return self.layer(torch.cat([a.detach(), b]))


@pytest.mark.parametrize("kind", [Fuse, FuseDetached])
def test_of_several_inputs_it_is_not_said_which_one_brought_its_graph(kind: type[Fuse]) -> None:
    (a, b), fuse = two_layers(), kind()

    def train() -> None:
        left = a(torch.ones(2))
        left = left if kind is FuseDetached else torch.from_numpy(left.detach().numpy().copy())
        fuse(left, b(torch.ones(2))).sum().backward()

    with hv.record(a, b, fuse) as trace:
        train()
    [row] = missing_gradients(trace)
    assert row.place == "taken" and "with its graph" not in row.sentence
    assert "fuse got the numbers that a returned. Before it got them or in the forward of fuse" in row.sentence
    assert ("a.detach()" if kind is FuseDetached else "left.detach().numpy()") in row.sentence
