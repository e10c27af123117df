"""Findings about hooks, exceptions and what a pass reaches: the fault of each program, and the healthy twin."""

import copy
import inspect
import linecache
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatch
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD
from torch.utils.checkpoint import checkpoint

import hookviz as hv


def watch(*_: object) -> None:
    """A hook that changes nothing."""


def find(net: nn.Module, *inputs: torch.Tensor, **named: torch.Tensor) -> list[hv.Finding]:
    """Record a call and a pass of a module, and return the findings."""
    with hv.record(net) as trace:
        net(*inputs, **named).sum().backward()
    return list(trace.findings)


# -- gradients that do not reach what they should


def test_parameters_of_an_optimizer_that_no_gradient_reaches_are_a_finding() -> None:
    used, unused = nn.Linear(1, 1), nn.Linear(1, 1)
    sgd = SGD([*used.parameters(), *unused.parameters()], lr=0.1)
    with hv.record(used, unused) as trace:
        for _ in range(2):
            sgd.zero_grad()
            used(torch.ones(1)).backward()
            sgd.step()
    assert [finding.kind for finding in trace.findings] == ["unreached"]


@pytest.mark.parametrize(("every", "keep", "used_in"), [(1, 1, 0), (2, None, 1)])
def test_a_pass_that_is_missing_may_have_reached_a_parameter(every: int, keep: int | None, used_in: int) -> None:
    used, other = nn.Linear(1, 1), nn.Linear(1, 1)
    sgd = SGD([*used.parameters(), *other.parameters()], lr=0.1)
    with hv.record(used, other, every=every, keep=keep) as trace:
        for number in range(3):
            sgd.zero_grad()
            (used(torch.ones(1)) + (other(torch.ones(1)) if number == used_in else 0)).backward()
            sgd.step()
    unreached = [finding for finding in trace.findings if finding.kind == "unreached"]
    assert all("in the passes that were recorded" in finding.sentence for finding in unreached)
    assert len(unreached) == (keep is not None)  # of the passes in between it is seen that one moved the parameter
    assert not any(finding.is_bad for finding in trace.findings)


def test_gradients_that_are_cleared_before_the_step_are_a_finding() -> None:
    layer = nn.Linear(1, 1)
    sgd = SGD(layer.parameters(), lr=0.1)
    with hv.record(layer) as trace:
        for _ in range(2):
            layer(torch.ones(1)).backward()
            sgd.zero_grad()
            sgd.step()
    [finding] = trace.findings
    assert (finding.kind, finding.severity, finding.about) == ("cleared", "warning", "training")


class Switch(nn.Module):
    """Cuts the graph between its layers in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        if not self.training:
            h = h.detach()
        return self.head(h)  # type: ignore[no-any-return]


def train_switch(steps_in_training_mode: int, *, freezes: bool = False, leaves: bool = False) -> list[hv.Finding]:
    """Train the body for some of four steps; then it is cut off, frozen, or frozen and taken out of the optimizer."""
    net = Switch()
    sgd = SGD([{"params": part.parameters()} for part in (net.head, net.body)], lr=0.1)
    with hv.record(net) as trace:
        for step in range(4):
            ends = step == steps_in_training_mode
            net.train(freezes or leaves or step < steps_in_training_mode)
            if ends and (freezes or leaves):
                net.body.requires_grad_(False)
            if ends and leaves:
                sgd.param_groups.pop()
            sgd.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            sgd.step()
    return list(trace.findings)


def test_parameters_that_no_gradient_reaches_any_more_are_named_with_the_line() -> None:
    [finding] = train_switch(2)
    assert (finding.kind, finding.severity) == ("stopped", "remark")
    assert finding.parameters == ("net.body.weight", "net.body.bias")
    assert "before its last 2 of 4 steps" in finding.sentence and "h.detach()" in finding.cause
    assert finding.line == inspect.getsourcelines(Switch.forward)[1] + 3
    [finding] = train_switch(2, freezes=True)
    assert (finding.kind, finding.severity) == ("stopped", "remark")
    assert "if it ran: net.body.requires_grad_(False) (" in finding.cause and finding.line_role == "freezes"
    assert train_switch(2, leaves=True) == train_switch(3) == []


# -- gradients that are edited in place


def test_edit_in_place_that_changes_another_gradient_is_a_finding() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    c, d = a * 3, torch.tensor(4.0, requires_grad=True)

    def edit(grad: torch.Tensor) -> None:
        grad *= 100

    d.register_hook(edit)
    with hv.record() as trace:
        (c + d).backward()
    [finding] = trace.findings.hooks
    assert (finding.kind, finding.severity, finding.step) == ("edited_in_place", "warning", 3)
    assert finding.line == edit.__code__.co_firstlineno + 1 and finding.line_role == "edits"
    assert finding.sentence == "edit on d edits the gradient in place, and this changes the gradient of c, too."
    assert (
        "a gradient on its way to c changed from 1 to 100. AddBackward0 sends the same tensor to both." in finding.cause
    )


def damp(grad: torch.Tensor) -> torch.Tensor:
    return grad.mul_(0.5)


def test_edits_in_place_in_several_passes_are_one_finding_that_names_the_modules() -> None:
    first, second = nn.Linear(1, 2), nn.Linear(1, 2)
    with hv.record(first, second) as trace:
        for _ in range(3):
            left, right = first(torch.ones(1, 1)), second(torch.ones(1, 1))
            right.register_hook(damp)
            (left + right).square().sum().backward()
    [finding] = [finding for finding in trace.findings if finding.kind == "edited_in_place"]
    assert finding.passes == (0, 1, 2)
    assert " of second edits the gradient in place" in finding.sentence and " of first" in finding.sentence
    assert "It was registered at " in finding.cause


class _Branch(nn.Module):
    """Adds what a layer returns, whose gradient a hook edits, to the input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        branch = self.layer(x)
        branch.register_hook(damp)
        return x + branch


def test_many_outputs_whose_gradients_a_hook_edits_are_named_by_what_holds_their_modules() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(*(_Branch() for _ in range(8))))
    with hv.record(net) as trace:
        net(torch.ones(1, 2)).square().sum().backward()
    [finding] = [finding for finding in trace.findings if finding.kind == "edited_in_place"]
    assert finding.sentence.endswith("The same holds for damp on 7 outputs of modules in net.1.")


def test_edit_in_place_of_a_branch_changes_the_part_that_waits_beside_it() -> None:
    a = torch.tensor([2.0, 1.0], requires_grad=True)
    with hv.record() as trace:
        x = a * 2
        y = x * 3
        y.register_hook(lambda grad: grad.mul_(0.5))
        ((x + y) ** 2).sum().backward()
    assert a.grad is not None and a.grad.tolist() == [128.0, 64.0]  # the hook alone makes 160 and 80 of it
    [finding] = trace.findings
    assert finding.kind == "edited_in_place" and "changes the gradient of x, too" in finding.sentence
    step = next(step for step in trace.steps if step.kind == "aliased")
    assert "the first part of its gradient changed from [32, 16] to [16, 8]" in step.sentence
    assert "[32, 16] → [16, 8]: λ grad.mul_(0.5) on y edited it in place (step 8)" in str(trace.why(step.index + 1))
    assert [reason.verdict for reason in trace.why(step.index + 1)][-1] == "explained"


def test_edit_in_place_of_a_branch_that_comes_after_the_sum_changes_nothing_else() -> None:
    a = torch.tensor([2.0, 1.0], requires_grad=True)
    with hv.record() as trace:
        x = a * 2
        x.register_hook(lambda grad: grad.mul_(0.5))
        y = x * 3
        ((x + y) ** 2).sum().backward()
    assert list(trace.findings) == []


# -- hooks that pile up


def test_hooks_that_pile_up_are_a_finding() -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1))

    def keep(*_: object) -> None:
        """Keep nothing."""

    with hv.record(model) as trace:
        for _ in range(6):
            model[2].register_forward_hook(keep)
            model(torch.ones(1)).sum().backward()
    [finding] = trace.findings.hooks
    assert (finding.kind, finding.severity, finding.line_role) == ("repeated", "warning", "registered")
    assert finding.sentence == "keep on model.2 fired 21 times in 6 passes."
    assert "It was registered 6 times on model.2" in finding.cause


def test_hooks_that_pile_up_on_a_module_that_is_called_more_often_are_told_without_its_number() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    with hv.record(first, second) as trace:
        for _ in range(2):
            for layer in (first, second):
                layer.register_forward_hook(lambda *_: None)
            second(second(first(torch.ones(2)))).sum().backward()
    [finding] = trace.findings
    assert finding.sentence.startswith("λ *_: None on first fired 3 times in 2 passes.")
    assert finding.sentence.endswith("was registered several times on second, too.")


def test_hooks_that_are_removed_or_of_several_objects_or_there_from_the_start_do_not_pile_up() -> None:
    layer, handles = nn.Linear(2, 2), []
    layer.register_forward_hook(watch)
    layer.register_forward_hook(watch)
    with hv.record(layer) as trace:
        for factor in (0.5, 0.25):
            handles.append(layer.weight.register_hook(lambda grad, factor=factor: grad * factor))
            layer.register_forward_hook(Watcher())
            with layer.register_forward_hook(watch):
                layer(torch.ones(2)).sum().backward()
        for handle in handles:
            handle.remove()
    assert list(trace.findings) == []


class Watcher:
    def __call__(self, *_: object) -> None:
        """See nothing."""


class Scale:
    def __call__(self, grad: torch.Tensor) -> torch.Tensor:
        return grad * 0.1


def test_object_that_is_registered_twice_and_changes_the_gradient_is_a_finding_and_its_twin_is_none() -> None:
    def register(*scales: Scale) -> list[hv.Finding]:
        layer = nn.Linear(2, 2)
        with hv.record(layer) as trace:
            for scale in scales:
                layer.weight.register_hook(scale)
            layer(torch.ones(2)).sum().backward()
        return list(trace.findings)

    scale = Scale()
    [finding] = register(scale, scale)
    assert (finding.kind, finding.severity) == ("repeated", "warning")
    assert "It was registered 2 times on layer.weight" in finding.cause
    assert register(Scale(), Scale()) == []


# -- exceptions


def test_exception_in_a_hook_is_the_first_finding() -> None:
    layer = nn.Linear(1, 1)

    def fail(grad: torch.Tensor) -> None:
        raise KeyError("missing")

    layer.weight.register_hook(fail)
    layer.bias.register_hook(lambda grad: None)
    with pytest.raises(KeyError), hv.record(layer) as trace:
        layer(torch.ones(1)).backward()
    finding = trace.findings[0]
    assert (finding.kind, finding.severity, finding.about) == ("exception", "error", "hook")
    assert finding.line == fail.__code__.co_firstlineno + 1 and "KeyError: 'missing'" in finding.sentence
    assert not any(other.kind == "raised" for other in trace.findings)


class Classes(nn.Module):
    """Returns numbers of classes, which have no graph."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x).argmax(1).float()


def run_classes() -> torch.Tensor:
    return Classes()(torch.ones(1, 2)).sum()  # type: ignore[no-any-return]


def run_frozen() -> torch.Tensor:
    return nn.Linear(2, 2).requires_grad_(False)(torch.ones(1, 2)).sum()  # type: ignore[no-any-return]


def run_without_grad() -> torch.Tensor:
    with torch.no_grad():
        return nn.Linear(2, 2)(torch.ones(1, 2)).sum()  # type: ignore[no-any-return]


def run_and_make_a_number() -> torch.Tensor:
    output = nn.Linear(2, 2)(torch.ones(1, 2))
    return torch.tensor(output.sum().item())


def run_beside_a_teacher_without_a_graph() -> torch.Tensor:
    student, teacher = nn.Linear(2, 2), nn.Linear(2, 2)
    ours = student(torch.ones(1, 2))
    with torch.no_grad():
        theirs = teacher(torch.ones(1, 2))
    return (theirs - ours.detach()).sum()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("run", "cause"),
    [
        (run_beside_a_teacher_without_a_graph, "After student returned, the graph is cut, or *ours.detach()*"),
        (run_classes, "In the forward of Classes, after Classes.head returned, *self.head(x).argmax(1)*"),
        (run_frozen, "What Linear returned does not require grad: neither its inputs nor its parameters do."),
        (run_without_grad, "Linear ran in torch.no_grad()*"),
        (run_and_make_a_number, "After Linear returned, the graph is cut, *torch.tensor(output.sum().item())*"),
    ],
)
def test_pass_without_a_graph_is_explained_by_what_ran_before(run: Callable[[], torch.Tensor], cause: str) -> None:
    with hv.record() as trace, suppress(RuntimeError):
        run().backward()
    assert trace.findings[0].kind == "exception"
    assert fnmatch(trace.findings[0].cause, cause), trace.findings[0].cause


def test_full_backward_hook_before_an_edit_in_place_explains_the_exception() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
    net[0].register_full_backward_hook(watch)
    net[1].register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="modified inplace"), hv.record(net) as trace:
        net(torch.ones(1, 2)).sum().backward()
    first = trace.findings[0]
    assert first.cause.startswith("watch is a full backward hook: torch wraps what net.0 returns")
    assert (first.kind, first.line) == ("exception", watch.__code__.co_firstlineno)
    assert not [other for other in trace.findings[1:] if other.kind == "no_pass"]


def test_pass_in_a_hook_of_a_pass_is_explained_by_the_mode_in_which_hooks_run() -> None:
    probe = nn.Linear(1, 1)
    layer = nn.Linear(1, 1)
    layer.weight.register_hook(lambda grad: probe(torch.ones(1)).sum().backward())
    with suppress(RuntimeError), hv.record(layer) as trace:
        layer(torch.ones(1)).sum().backward()
    assert trace.findings[0].cause.startswith("In a hook of a backward pass PyTorch records no graph")


def test_exception_of_the_program_may_follow_from_a_silent_hook() -> None:
    layer = nn.Linear(2, 2).requires_grad_(False)
    seen: dict[str, torch.Tensor] = {}
    with suppress(KeyError), hv.record(layer) as trace:
        layer.register_full_backward_hook(lambda module, _, grad_output: seen.update(gradient=grad_output[0]))
        (layer(torch.ones(2)) * torch.ones(2, requires_grad=True)).sum().backward()
        seen["gradient"]
    first, second = trace.findings
    assert (first.kind, second.kind) == ("exception", "frozen")
    assert first.advice == "It may follow from what is found below: look there first."


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_hook_that_stumbles_over_none_is_told_why_it_got_none() -> None:
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda _module, grad_input, _output: print(grad_input[0].norm()))
    with suppress(AttributeError), hv.record(layer) as trace:
        layer(torch.ones(1, 2)).sum().backward()
    assert trace.findings[0].cause.startswith("No input of layer requires grad: PyTorch calls λ")


# -- hooks that fire elsewhere, or not


class Multiply(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return (a * b) * c


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
def test_legacy_hook_that_misses_an_input_is_a_finding() -> None:
    net = Multiply()
    net.register_backward_hook(watch)
    [finding] = find(net, *(torch.tensor(float(n), requires_grad=True) for n in (2, 3, 4)))
    assert (finding.kind, finding.severity) == ("legacy", "warning")
    healthy = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    healthy[1].register_backward_hook(watch)
    assert find(healthy, torch.ones(3, 2)) == []


def use_the_weight_of(layer: nn.Linear) -> hv.Trace:
    with hv.record() as trace:
        handles = [layer.register_forward_hook(watch), layer.register_full_backward_hook(lambda *_: None)]
        (layer.weight * 2).sum().backward()
        for handle in handles:
            handle.remove()
    return trace


def test_hooks_of_two_functions_with_one_cause_are_one_finding() -> None:
    [finding] = use_the_weight_of(nn.Linear(2, 2)).findings
    assert (finding.kind, len(finding.hooks)) == ("bypassed", 2)
    assert finding.cause.startswith("layer was never called. Your code uses layer.weight")
    assert "For the same reason λ *_: None on layer" in finding.cause


@pytest.mark.parametrize(("hook", "said"), [(watch, "teacher.0 and student.0"), (Watcher(), "which was copied, too")])
def test_hook_that_came_along_with_a_copy_is_a_remark(hook: Any, said: str) -> None:
    teacher = nn.Sequential(nn.Linear(2, 2))
    with hv.record() as trace:
        teacher[0].register_forward_hook(hook)
        student = copy.deepcopy(teacher)
        (teacher(torch.ones(2)) - student(torch.ones(2))).sum().backward()
    [finding] = trace.findings
    assert (finding.kind, finding.severity, finding.line_role) == ("copied", "remark", "registered")
    assert said in finding.text


def test_modules_that_share_their_hooks_for_good_are_no_finding() -> None:
    layer = nn.Linear(2, 2)
    twin = copy.copy(layer)
    with hv.record() as trace:
        layer.register_forward_hook(watch)
        twin(layer(torch.ones(2))).sum().backward()
    assert list(trace.findings) == []


def test_hook_on_a_layer_that_was_replaced_is_a_warning_though_the_function_fires_on_other_layers() -> None:
    def train(register_again: bool) -> list[hv.Finding]:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        with hv.record() as trace:
            for index in range(2):
                model[index].register_forward_hook(watch)
            model[1] = nn.Linear(2, 1)
            if register_again:
                model[1].register_forward_hook(watch)
            model(torch.ones(2)).sum().backward()
        return list(trace.findings.hooks)

    [finding] = train(register_again=False)
    assert (finding.kind, finding.severity) == ("substituted", "warning")
    assert [finding.severity for finding in train(register_again=True)] == ["remark"]


def test_function_on_all_modules_is_a_remark_where_it_cannot_fire() -> None:
    net = nn.ModuleDict({"used": nn.Linear(2, 2), "list": nn.ModuleList([nn.Linear(2, 2)]), "other": nn.Linear(2, 2)})
    with hv.record() as trace:
        for module in net.modules():
            module.register_forward_hook(watch)
        net["used"](torch.ones(2)).sum().backward()
    assert {finding.severity for finding in trace.findings} == {"remark"}


def test_hook_of_an_optimizer_that_was_made_anew_with_it_is_a_remark() -> None:
    layer = nn.Linear(2, 2)
    with hv.record(layer) as trace:
        for rate in (0.1, 0.2):
            optimizer = SGD(layer.parameters(), lr=rate)
            optimizer.register_step_post_hook(watch)
        layer(torch.ones(2)).sum().backward()
        optimizer.step()
    [finding] = trace.findings
    assert (finding.kind, finding.severity) == ("no_step", "remark")
    assert "took no step. These did: optimizer (SGD)" in finding.cause


def test_detach_for_one_loss_is_not_blamed_for_another() -> None:
    generator, judge = nn.Linear(2, 2), nn.Linear(2, 1)
    with hv.record(generator, judge) as trace:
        fake = generator(torch.ones(2))
        fake.register_hook(watch)
        judge(fake.detach()).sum().backward()
        judge(generator(torch.ones(2))).sum().backward()
    [finding] = trace.findings
    assert finding.kind == "not_in_graph" and "detach" not in finding.cause


# -- hooks and the inputs of modules


class Masked(nn.Module):
    """Multiplies its input by a mask, if it gets one."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return x if mask is None else x * mask


def find_about_inputs(hook: Any, *inputs: torch.Tensor, **named: torch.Tensor) -> list[hv.Finding]:
    net = Masked()
    net.register_forward_pre_hook(hook, with_kwargs=len(inputs) == len(named) == 1)
    return find(net, *inputs, **named)


def apply_mask(_module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    one, other = inputs
    return one * other


def forget_mask(_module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    one, _other = inputs
    return one * 2


def apply_named(_module: nn.Module, inputs: Any, named: Any) -> Any:
    return (inputs[0] * named["mask"],), {}


def forget_named(_module: nn.Module, inputs: Any, _named: Any) -> Any:
    return (inputs[0] * 2,), {}


def test_hook_that_returns_fewer_inputs_than_it_was_given_is_a_finding_and_its_twin_is_none() -> None:
    x, mask = torch.ones(2, requires_grad=True), torch.ones(2)
    [finding] = find_about_inputs(lambda _module, inputs: 2 * inputs[0], x, mask)
    assert (finding.kind, finding.severity) == ("lost_inputs", "warning")
    assert finding.sentence.endswith("mask did not reach the forward.")
    assert find_about_inputs(lambda _module, inputs: (2 * inputs[0], *inputs[1:]), x, mask) == []
    for forget in (find_about_inputs(forget_mask, x, mask), find_about_inputs(forget_named, x, mask=mask)):
        assert [(finding.kind, finding.severity) for finding in forget] == [("lost_inputs", "warning")]
    # They may have put the mask into what they returned: that is no alarm.
    for apply in (find_about_inputs(apply_mask, x, mask), find_about_inputs(apply_named, x, mask=mask)):
        assert [(finding.kind, finding.severity) for finding in apply] == [("lost_inputs", "remark")]


def test_hook_that_gets_nothing_because_inputs_have_keywords_is_a_remark() -> None:
    x = torch.ones(2, requires_grad=True)
    [finding] = find_about_inputs(lambda _module, inputs: tuple(2 * one for one in inputs), x=x)
    assert (finding.kind, finding.severity) == ("no_inputs", "remark") and "with_kwargs=True" in finding.advice
    assert find_about_inputs(watch, x) == []


# -- hooks under a checkpoint


def train_under_a_checkpoint(hook: Callable[[torch.Tensor], Any], *, keep: bool = True) -> list[hv.Finding]:
    layer, x = nn.Linear(2, 2), torch.ones(2, requires_grad=True)
    with hv.record(layer) as trace:
        handle = layer.register_forward_hook(lambda _module, _inputs, output: hook(output))
        loss = checkpoint(lambda one: layer(one).tanh(), x, use_reentrant=False).sum()
        if not keep:
            handle.remove()
        loss.backward()
    return [finding for finding in trace.findings if finding.kind == "recomputed"]


def do_once(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor | None]:
    """Return a hook that changes what it is given in its first call."""
    changes = iter([change])
    return lambda output: next(changes, lambda _: None)(output)  # type: ignore[no-any-return]


def test_hook_that_is_not_there_in_the_recomputation_is_a_finding_and_its_twin_is_none() -> None:
    [finding] = train_under_a_checkpoint(lambda output: output * 2, keep=False)
    assert finding.severity == "warning" and finding.line_role == "removed"
    assert "handle.remove()" in linecache.getline(__file__, finding.line or 0)
    assert train_under_a_checkpoint(lambda output: output * 2) == []
    [finding] = train_under_a_checkpoint(do_once(lambda output: output * 2))
    assert "and not when the checkpoint computed it again" in finding.sentence
    assert train_under_a_checkpoint(do_once(torch.clone)) == []


# -- what a hook returns


def measures(grads: Any) -> None:
    def norm(grad: torch.Tensor) -> float:
        return float(grad.norm())

    assert all(norm(grad) for grad in grads)


def returns_none(grads: Any) -> None:
    assert len(grads) == 2
    return None  # noqa: RET501


@pytest.mark.parametrize("hook", [measures, returns_none])
def test_return_of_none_or_of_an_inner_function_is_no_result_of_a_hook(hook: Callable[[Any], None]) -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with hv.record() as trace:
        torch.autograd.graph.register_multi_grad_hook((x, y), hook)
        (x * y).sum().backward()
    assert len(trace.firings) == 1 and not trace.findings
