"""The patients of the final project. If you take the course, do not read on before you passed.

All networks look alike: a fault is a function in a place where each network has one.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.hooks import RemovableHandle

from hookviz.course.fault_draw import STAGES, Fault, NumberSource, draw_faults, find_in_trial
from hookviz.course.project_reasons import project_texts
from hookviz.course.sick_net import read_digits

Tensor = torch.Tensor
WIDTH, PIXELS, CLASSES, BATCH = 24, 64, 10, 600


_own_hooks: list[int] = []
"""How many hooks each patient and twin was built with."""


def count_registrations() -> int:
    """Count the hooks that this program has registered so far, without those that patients are built with."""
    return RemovableHandle.next_id - sum(_own_hooks)


def leave_as_it_is(x: Tensor) -> Tensor:
    """Return what is given."""
    return x


def call(layer: nn.Module, x: Tensor) -> Any:
    """Call a layer."""
    return layer(x)


def make_hook(action: Callable[..., Any]) -> Callable[..., Any]:
    """Make a hook that does ``action``: all hooks of a patient look alike, also in the lists of hookviz."""
    actions = [action]  # hookviz names a function that a hook holds, but not what stands in a list

    def hook(*given: Any) -> Any:
        return actions[0](*given)

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
        self.mix = nn.Linear(inputs, WIDTH, bias=False)
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

    def stage(self, name: str) -> Stage:
        """Return a stage by its name."""
        found = self.get_submodule(name)
        assert isinstance(found, Stage)
        return found

    def forward(self, images: Tensor) -> Tensor:
        """Return ten scores for each image."""
        for name in STAGES:
            images = self.stage(name)(images)
        scores: Tensor = self.head(images)
        return scores


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
    is_twin: bool = False
    """Whether it has the first weights of a patient, and none of its faults."""

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

    def accuracy(self) -> float:
        """Return the share of 1,197 other images whose digit the network reads right, in evaluation mode."""
        images, labels = _images()
        self.net.eval()
        with torch.no_grad():
            guesses = self.net(images[BATCH:]).argmax(1)
        self.net.train()
        return (guesses == labels[BATCH:]).float().mean().item()

    def __repr__(self) -> str:
        return project_texts()["twin" if self.is_twin else "patient"].format(seed=self.seed, stages=len(STAGES))


def make_patient(seed: int | str) -> Patient:
    """Build the patient of a student: a network with three hidden faults.

    Args:
        seed: the number of the patient, such as your student number. The same number makes the same patient, and the
            random numbers of the program stay as they are. A number such as ``"practice-5"`` makes a patient for
            practice. The name of a patient on which a detector was wrong makes that patient again.

    Raises:
        TypeError: ``seed`` is neither a whole number nor a text.
        ValueError: it is an empty text.
        ModuleNotFoundError: scikit-learn is not installed.

    >>> patient = make_patient(1)
    >>> patient
    Patient 1: 8 stages and a head. Three things are wrong with it.
    >>> patient.net(patient.images).shape
    torch.Size([600, 10])
    """
    name = read_seed(seed)
    return build_patient(name, find_in_trial(name) or draw_faults(name))


def make_twin(seed: int | str) -> Patient:
    """Build the twin of a patient: a network with the same first weights, and no fault.

    Args:
        seed: the number of the patient.

    Raises:
        TypeError: ``seed`` is neither a whole number nor a text.
        ValueError: it is an empty text.
        ModuleNotFoundError: scikit-learn is not installed.

    >>> twin = make_twin(1)
    >>> twin
    The twin of patient 1: 8 stages and a head. Nothing is wrong with it.
    >>> twin.net.head.weight.equal(make_patient(1).net.head.weight)
    True
    """
    return build_patient(read_seed(seed), (), is_twin=True)


def build_patient(seed: str, faults: Iterable[Fault], *, is_twin: bool = False) -> Patient:
    """Build a patient with these faults."""
    faults = tuple(faults)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(NumberSource(f"{seed} weights").number() % 2**31)
        net = Network()
    images, labels = _images()
    actions: Actions = {}
    left_out: set[int] = set()
    log: dict[str, list[float]] = {name: [] for name in STAGES}
    for fault in faults:
        HIDE[fault.kind](net, fault, actions)
        if fault.kind == "not_in_optimizer":
            left_out |= {id(parameter) for parameter in net.stage(fault.place).parameters()}
    before = RemovableHandle.next_id
    for name in STAGES:
        _watch(net, name, log[name], actions)
    _own_hooks.append(RemovableHandle.next_id - before)
    trained = [parameter for parameter in net.parameters() if id(parameter) not in left_out]
    optimizer = torch.optim.SGD(trained, lr=0.05, momentum=0.9)
    return Patient(seed, net, optimizer, images[:BATCH], labels[:BATCH], log, is_twin)


@cache
def _images() -> tuple[Tensor, Tensor]:
    """Images of (1797, 64) numbers from 0 to 1, and labels; a patient has the first 600 of them."""
    images, labels = read_digits()
    return images.flatten(1) / 16, labels


def read_seed(seed: int | str) -> str:
    """Return the number of a patient as text."""
    if isinstance(seed, bool) or not isinstance(seed, int | str):
        raise TypeError(project_texts()["seed"].format(kind=type(seed).__name__))
    name = str(seed).strip()
    if not name:
        raise ValueError(project_texts()["seed.empty"])
    return name


# -- the faults


Actions = dict[tuple[str, str], Callable[..., Any]]
"""What the watchers of a stage do besides watching: (stage, watcher) → action."""


def _do_nothing(*_: Any) -> None:
    return None


def _watch(net: Network, name: str, log: list[float], actions: Actions) -> None:
    """Register the watchers of a stage: the same number of hooks at the same places in each stage."""
    stage = net.stage(name)

    def find(watcher: str) -> Callable[..., Any]:
        return actions.get((name, watcher), _do_nothing)

    def write(module: nn.Module, args: Any, output: Tensor) -> Any:
        """Write what the stage returns into the log."""
        log.append(output.detach().mean().item())
        return find("output")(module, args, output)

    watched = copy.deepcopy(stage) if (name, "copy") in actions else stage
    watched.register_forward_hook(make_hook(write))
    stage.mix.register_forward_hook(make_hook(find("mix")))
    if stage.mix.weight.requires_grad:
        stage.mix.weight.register_hook(make_hook(find("weight")))
    if name != STAGES[0]:
        stage.mix.register_full_backward_hook(make_hook(find("backward")))


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
        net.stage(fault.place).norm.bias[: WIDTH * 11 // 12] = -8.0


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
