"""The final project: a network with three hidden faults. If you take the course, do not read on before you passed.

``make_patient`` builds the network of a student and hides three faults of the catalogue in it. All networks look alike:
a fault is a function in a place where each network has one. ``hand_in`` grades what a student found.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from hookviz.course.answer_log import log_attempt, read_score, write_report
from hookviz.course.fault_draw import COUNT, PLACES, STAGES, Fault, NumberSource, draw_faults, region
from hookviz.course.project_grading import (
    COST_OF_A_TRY,
    PASS_SHARE,
    Grade,
    grade_findings,
    list_findings,
    read_finding,
)
from hookviz.course.project_reasons import explain_grade, project_texts, show_faults, sort_by_place
from hookviz.course.sick_net import read_digits
from hookviz.course.verdict import Verdict

Tensor = torch.Tensor
WIDTH, PIXELS, CLASSES, BATCH = 24, 64, 10, 100
HINT_COSTS = (0.1, 0.2, 0.3)
"""What the first, second and third hint about a fault cost, in points of three."""

_hints: dict[str, dict[int, int]] = {}
"""Number of a patient → number of a fault → how many hints were read about it."""


KINDS: Mapping[str, str] = {
    key.removeprefix("kind."): text for key, text in project_texts().items() if key.startswith("kind.")
}
"""The kinds of faults, each with a description."""


# -- the network


def leave_as_it_is(x: Tensor) -> Tensor:
    """Return what is given."""
    return x


def call(layer: nn.Module, x: Tensor) -> Any:
    """Call a layer."""
    return layer(x)


def make_hook(action: Callable[..., Any]) -> Callable[..., Any]:
    """Make a hook that does ``action``: so all hooks of a patient look alike."""

    def hook(*given: Any) -> Any:
        return action(*given)

    return hook


def make_way(action: Callable[..., Any]) -> Callable[..., Any]:
    """Make a way through a part of the network that does ``action``: so all of these look alike, too."""

    def way(*given: Any) -> Any:
        return action(*given)

    return way


class Bend(nn.Module):
    """Bends what a layer returns."""

    def __init__(self) -> None:
        super().__init__()
        self.way: Callable[[Tensor], Tensor] = make_way(torch.relu)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        return self.way(x)


class Norm(nn.BatchNorm1d):
    """A batch norm."""

    may_train = True

    def train(self, mode: bool = True) -> "Norm":
        """Set the mode, as for every module."""
        super().train(mode and self.may_train)
        return self


class Stage(nn.Module):
    """A layer, a norm, and what bends their result."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.mix = nn.Linear(inputs, WIDTH)
        self.norm = Norm(WIDTH)
        self.bend = Bend()
        self.enter: Callable[[Tensor], Tensor] = make_way(leave_as_it_is)
        self.run: Callable[[nn.Module, Tensor], Any] = make_way(call)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``WIDTH`` numbers for each image."""
        return self.bend(self.norm(self.run(self.mix, self.enter(x))))


class Network(nn.Module):
    """Reads a digit in an image: eight stages and a head."""

    def __init__(self) -> None:
        super().__init__()
        for name in STAGES:
            self.add_module(name, Stage(PIXELS if name == STAGES[0] else WIDTH))
        self.head = nn.Linear(WIDTH, CLASSES)
        self.leave: Callable[[Tensor], Tensor] = make_way(leave_as_it_is)

    def stage(self, name: str) -> Stage:
        """Return a stage by its name."""
        found = self.get_submodule(name)
        assert isinstance(found, Stage)
        return found

    def forward(self, images: Tensor) -> Tensor:
        """Return ten scores for each image."""
        for name in STAGES:
            images = self.stage(name)(images)
        return self.leave(self.head(images))


@dataclass
class Patient:
    """A network with three hidden faults, its optimizer, and images to try it with.

    The network has watchers of its own, hooks that write into ``log`` what each stage returns: the name of a stage →
    the mean of its output in each pass.
    """

    seed: str
    net: Network
    optimizer: torch.optim.Optimizer
    images: Tensor
    labels: Tensor
    log: dict[str, list[float]] = field(default_factory=dict)

    def forward_and_backward(self) -> float:
        """Run the network on the images and the loss back through it, and return the loss."""
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.net(self.images), self.labels)
        loss.backward()
        return loss.item()

    def step(self) -> float:
        """Make one step of training, and return the loss before it."""
        loss = self.forward_and_backward()
        self.optimizer.step()
        return loss

    def __repr__(self) -> str:
        return project_texts()["patient"].format(seed=self.seed, stages=len(STAGES))


def make_patient(seed: int | str) -> Patient:
    """Build the patient of a student: a network with three hidden faults.

    Args:
        seed: the number of the patient, such as your student number. The same number makes the same patient, and the
            random numbers of the program stay as they are.

    Raises:
        TypeError: ``seed`` is neither a whole number nor a text.
        ModuleNotFoundError: scikit-learn is not installed.

    >>> patient = make_patient(1)
    >>> patient
    Patient 1: 8 stages and a head. Three things are wrong with it.
    >>> patient.net(patient.images).shape
    torch.Size([100, 10])
    """
    return build_patient(read_seed(seed), draw_faults(read_seed(seed)))


def build_patient(seed: str, faults: Iterable[Fault]) -> Patient:
    """Build a patient with these faults."""
    faults = tuple(faults)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(NumberSource(f"{seed} weights").number() % 2**31)
        net = Network()
    images, labels = _images()
    actions = Actions()
    left_out: set[int] = set()
    log: dict[str, list[float]] = {name: [] for name in STAGES}
    for fault in faults:
        HIDE[fault.kind](net, fault, actions)
        if fault.kind == "not_in_optimizer":
            left_out |= {id(parameter) for parameter in net.stage(fault.place).parameters()}
    for name in STAGES:
        _watch(net, name, log[name], actions)
    trained = [parameter for parameter in net.parameters() if id(parameter) not in left_out]
    optimizer = torch.optim.SGD(trained, lr=0.05, momentum=0.9)
    return Patient(seed, net, optimizer, images, labels, log)


@cache
def _images() -> tuple[Tensor, Tensor]:
    """Images of (100, 64) numbers from 0 to 1, and labels."""
    images, labels = read_digits()
    return images[:BATCH].flatten(1) / 16, labels[:BATCH]


def read_seed(seed: int | str) -> str:
    """Return the number of a patient as text."""
    if isinstance(seed, bool) or not isinstance(seed, int | str):
        raise TypeError(project_texts()["seed"].format(kind=type(seed).__name__))
    return str(seed).strip()


# -- the faults


class Actions(dict[tuple[str, str], Callable[..., Any]]):
    """What the watchers of a stage do besides watching: (stage, watcher) → action."""

    def find(self, stage: str, watcher: str) -> Callable[..., Any]:
        """Return the action of a watcher; one that does nothing, if there is no fault."""
        return self.get((stage, watcher), _do_nothing)


def _do_nothing(*_: Any) -> None:
    return None


def _watch(net: Network, name: str, log: list[float], actions: Actions) -> None:
    """Register the watchers of a stage: the same number of hooks at the same places in each stage."""
    stage = net.stage(name)

    def write(module: nn.Module, args: Any, output: Tensor) -> Any:
        """Write what the stage returns into the log."""
        log.append(output.detach().mean().item())
        return actions.find(name, "output")(module, args, output)

    watched = copy.deepcopy(stage) if (name, "copy") in actions else stage
    watched.register_forward_hook(make_hook(write))
    stage.mix.register_forward_hook(make_hook(actions.find(name, "mix")))
    if stage.mix.weight.requires_grad:
        stage.mix.weight.register_hook(make_hook(actions.find(name, "weight")))
    if name != STAGES[0]:
        stage.mix.register_full_backward_hook(make_hook(actions.find(name, "backward")))


def _call_by_forward(net: Network, fault: Fault, actions: Actions) -> None:
    net.stage(fault.place).run = make_way(lambda layer, x: layer.forward(x))


def _cut(net: Network, fault: Fault, actions: Actions) -> None:
    def compute_without_graph(x: Tensor) -> Tensor:
        """Compute the same numbers without a graph."""
        with torch.no_grad():
            return x * 1

    ways: list[Callable[[Tensor], Tensor]] = [Tensor.detach, lambda x: x.data, compute_without_graph]
    way = ways[fault.variant % len(ways)]
    # The layer behind the cut still sends a gradient: otherwise PyTorch would warn of its watcher, and show the place.
    net.stage(fault.place).enter = make_way(lambda x: way(x).requires_grad_(torch.is_grad_enabled()))


def _kill_units(net: Network, fault: Fault, actions: Actions) -> None:
    with torch.no_grad():
        net.stage(fault.place).norm.bias[: WIDTH * 5 // 6] = -8.0


def _add_softmax(net: Network, fault: Fault, actions: Actions) -> None:
    net.leave = make_way(lambda scores: scores.softmax(1))


def _edit_in_place(net: Network, fault: Fault, actions: Actions) -> None:
    def double(grad: Tensor) -> None:
        """Double the gradient in place."""
        grad.mul_(2)

    def centre(grad: Tensor) -> None:
        """Shift the gradient in place."""
        grad.sub_(grad.mean() + grad.std())

    actions[fault.place, "weight"] = (double, centre)[fault.variant % 2]


def _freeze(net: Network, fault: Fault, actions: Actions) -> None:
    net.stage(fault.place).mix.requires_grad_(False)


def _enlarge(net: Network, fault: Fault, actions: Actions) -> None:
    with torch.no_grad():
        net.stage(fault.place).mix.weight.mul_(100)


def _leak(net: Network, fault: Fault, actions: Actions) -> None:
    kept: list[Tensor] = []
    actions[fault.place, "output"] = lambda module, args, output: kept.append(output)


def _hold_in_eval(net: Network, fault: Fault, actions: Actions) -> None:
    norm = net.stage(fault.place).norm
    norm.may_train = False
    norm.eval()


def _leave_out(net: Network, fault: Fault, actions: Actions) -> None:
    """``build_patient`` makes the optimizer."""


def _let_one_sign_through(net: Network, fault: Fault, actions: Actions) -> None:
    ways: list[Callable[[Tensor], Tensor]] = [lambda grad: grad.clamp(max=0), lambda grad: grad.clamp(min=0)]
    actions[fault.place, "weight"] = ways[fault.variant % 2]


def _return_from_hook(net: Network, fault: Fault, actions: Actions) -> None:
    ways: list[Callable[[Any, Any, Tensor], Tensor]] = [
        lambda module, args, output: output.clamp(-0.3, 0.3),
        lambda module, args, output: output - output.mean(1, keepdim=True),
    ]
    actions[fault.place, "mix"] = ways[fault.variant % 2]


def _scale_gradient(net: Network, fault: Fault, actions: Actions) -> None:
    actions[fault.place, "backward"] = lambda module, grad_input, grad_output: (grad_input[0] * 1e-4,)


def _share(net: Network, fault: Fault, actions: Actions) -> None:
    net.stage(fault.places[1]).mix = net.stage(fault.places[0]).mix


def _chain_sigmoids(net: Network, fault: Fault, actions: Actions) -> None:
    net.stage(fault.place).bend.way = make_way(lambda x: x.sigmoid().sigmoid().sigmoid().sigmoid())


def _watch_a_copy(net: Network, fault: Fault, actions: Actions) -> None:
    actions[fault.place, "copy"] = _do_nothing


def _shrink(net: Network, fault: Fault, actions: Actions) -> None:
    net.stage(fault.place).enter = make_way(lambda x: x * 16 / 255)


HIDE: Mapping[str, Callable[[Network, Fault, Actions], None]] = {
    "called_by_forward": _call_by_forward,
    "cut": _cut,
    "dead_units": _kill_units,
    "double_softmax": _add_softmax,
    "edits_in_place": _edit_in_place,
    "frozen": _freeze,
    "huge_weights": _enlarge,
    "leak": _leak,
    "norm_in_eval": _hold_in_eval,
    "not_in_optimizer": _leave_out,
    "one_sided": _let_one_sign_through,
    "returning_hook": _return_from_hook,
    "scaled_gradient": _scale_gradient,
    "shared_weights": _share,
    "vanishing": _chain_sigmoids,
    "wrong_copy": _watch_a_copy,
    "wrong_scale": _shrink,
}
"""Kind of a fault → the function that hides it in a network."""


# -- hints and grades


def hint(patient: Patient, number: int) -> str:
    """Give the next hint about a fault, of three; each costs points.

    Args:
        patient: the patient.
        number: 1, 2 or 3: which of the three faults, from the first stage to the head.

    Raises:
        ValueError: there is no such fault.

    >>> hint(make_patient("doctest"), 1)
    'Fault 1, hint 1 (cost 0.1 points so far): Look at the forward pass.'
    """
    faults, texts = sort_by_place(draw_faults(patient.seed)), project_texts()
    if number not in range(1, len(faults) + 1):
        raise ValueError(texts["hint.number"].format(number=number, count=len(faults)))
    read = _hints.setdefault(patient.seed, {})
    read[number] = min(read.get(number, 0) + 1, len(HINT_COSTS))
    text = write_hint(faults[number - 1], read[number])
    cost = f"{sum(HINT_COSTS[: read[number]]):.1f}"
    return texts["hint.text"].format(number=number, level=read[number], cost=cost, text=text)


def write_hint(fault: Fault, level: int) -> str:
    """Write a hint about a fault: what to look at, how to look at it, and in which places."""
    if level == len(HINT_COSTS):
        return project_texts()["hint.region"].format(places=", ".join(region(fault)))
    return project_texts()[f"hint.{fault.kind}.{level}"]


def hand_in(patient: Patient, findings: Any, answers: str | Path = "answers.json") -> Verdict:
    """Grade at most three findings, and write the try and its score into your file of answers, as ``hookviz.report``.

    A finding is worth 1 point if kind and place are right, 0.3 if only the kind is, and 0.1 if only the place is. A
    wrong one costs 0.3 points. Each hint costs points, and each earlier try in the file costs 0.4, so only the first
    two tries can pass. You need 2.4 of 3 points. The last try counts, and after a try that passes nothing changes any
    more.

    Args:
        patient: the patient.
        findings: a list of up to three pairs of a kind (one of ``KINDS``) and a place (such as ``"stage3"``).
        answers: the file of answers. It is made if there is none.

    >>> hand_in(make_patient(1), [("leak", "the third one")]).right
    False
    """
    texts, exercise = project_texts(), f"project.{patient.seed}"
    listed = list_findings(findings)
    if not listed:
        return Verdict(exercise, False, texts["verdict.none"])
    if len(listed) > COUNT:
        return Verdict(exercise, False, texts["verdict.many"].format(count=len(listed), most=COUNT))
    for finding in listed:
        if read_finding(finding, KINDS) is None:
            parts = {"finding": repr(finding), "kinds": ", ".join(KINDS), "places": ", ".join(PLACES)}
            return Verdict(exercise, False, texts["verdict.unread"].format(**parts))
    score, tries = read_score(answers, exercise)
    faults = draw_faults(patient.seed)
    if score >= PASS_SHARE:
        points = f"{score * COUNT:.1f}"
        return Verdict(
            exercise, True, texts["verdict.before"].format(points=points) + show_faults(faults), credit=score
        )
    cost = hint_cost(patient.seed) + COST_OF_A_TRY * tries
    grade = grade_findings(faults, listed, KINDS, cost)
    reason = explain_grade(grade) + (show_faults(faults) if grade.passed else "")
    verdict = Verdict(exercise, grade.passed, reason, credit=grade.score)
    log_attempt(verdict, listed, last_counts=True)
    write_report(answers)
    return verdict


def hint_cost(seed: str) -> float:
    """The points that the hints about a patient have cost in this session."""
    return sum(sum(HINT_COSTS[:level]) for level in _hints.get(seed, {}).values())


def grade(seed: int | str, findings: Any, tries: int = 0) -> Grade:
    """Grade findings about a patient without hints: for lecturers, who have a file of findings.

    Args:
        seed: the number of the patient.
        findings: as for ``hand_in``.
        tries: how many tries were made before.

    >>> grade(1, [("leak", "stage2")]).passed
    False
    """
    return grade_findings(draw_faults(read_seed(seed)), list_findings(findings), KINDS, COST_OF_A_TRY * tries)
