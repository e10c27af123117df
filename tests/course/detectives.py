"""One detective for each kind of fault of the final project: it finds the places with hooks and the public API alone.

Each takes a patient and returns the places at which it found its kind. This proves to the lecturer that every
fault can be found; what it measures is what the second hint suggests.
"""

import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

import hookviz as hv
from hookviz.course.project import Patient

STAGES = [f"stage{number}" for number in range(1, 9)]


def stages(patient: Patient) -> dict[str, nn.Module]:
    return {name: module for name, module in patient.net.named_children() if name in STAGES}


def hook_all(modules: dict[str, nn.Module], look: Callable[..., None], kind: str, **options: Any) -> ExitStack:
    """Register one hook on each module: ``look(name, ...)`` is called with what the hook is given."""
    handles = ExitStack()
    for name, module in modules.items():
        register = getattr(module, f"register_{kind}_hook")
        handles.enter_context(register(lambda *given, name=name: look(name, *given[1:]), **options))
    return handles


def parts(patient: Patient, part: str) -> dict[str, nn.Module]:
    return {name: getattr(stage, part) for name, stage in stages(patient).items()}


def outputs_of(patient: Patient, modules: dict[str, nn.Module]) -> dict[str, torch.Tensor]:
    seen: dict[str, torch.Tensor] = {}
    with hook_all(modules, lambda name, args, output: seen.update({name: output.detach().clone()}), "forward"):
        patient.net(patient.images)
    return seen


def ratios(patient: Patient, part: str) -> dict[str, float]:
    """The size of the gradient that a part of a stage sends back, divided by that of the gradient that it gets."""
    seen: dict[str, float] = {}

    def look(name: str, grad_input: Any, grad_output: Any) -> None:
        if grad_input and grad_input[0] is not None and grad_output[0].norm() > 0:
            seen[name] = (grad_input[0].norm() / grad_output[0].norm()).item()

    modules = parts(patient, part)
    if part == "mix":
        del modules[STAGES[0]]  # its input requires no gradient
    with hook_all(modules, look, "full_backward"):
        patient.forward_and_backward()
    return seen


def stages_with_gradient(patient: Patient) -> set[str]:
    """The stages whose output is given a gradient."""
    reached: set[str] = set()

    def listen(name: str, args: Any, output: torch.Tensor) -> None:
        if output.requires_grad:
            output.register_hook(lambda grad: reached.add(name))

    with hook_all(stages(patient), listen, "forward"):
        patient.forward_and_backward()
    return reached


def calls_of_mix(patient: Patient) -> Counter[str]:
    """How often a hook fires that is registered once on the layer of each stage."""
    calls: Counter[str] = Counter()
    with hook_all(parts(patient, "mix"), lambda name, *given: calls.update([name]), "forward"):
        patient.net(patient.images)
    return calls


# -- the detectives


def find_called_by_forward(patient: Patient) -> set[str]:
    return set(STAGES) - set(calls_of_mix(patient))


def find_shared_weights(patient: Patient) -> set[str]:
    return {name for name, count in calls_of_mix(patient).items() if count > 1}


def find_cut(patient: Patient) -> set[str]:
    missing = [name for name in STAGES if name not in stages_with_gradient(patient)]
    return {STAGES[STAGES.index(missing[-1]) + 1]} if missing else set()


def find_dead_units(patient: Patient) -> set[str]:
    outputs = outputs_of(patient, parts(patient, "bend"))
    return {name for name, output in outputs.items() if (output == 0).all(0).float().mean() > 0.75}


def find_edits_in_place(patient: Patient) -> set[str]:
    return {name for name, effect, _ in effects_on_weights(patient) if effect == "edited"}


def find_one_sided(patient: Patient) -> set[str]:
    patient.forward_and_backward()
    grads = {name: mix.weight.grad for name, mix in parts(patient, "mix").items()}
    return {name for name, grad in grads.items() if grad is not None and grad.any() and is_one_sided(grad)}


def is_one_sided(grad: torch.Tensor) -> bool:
    return not ((grad < 0).any() and (grad > 0).any())


def effects_on_weights(patient: Patient) -> list[tuple[str, str, Any]]:
    """What each hook on a weight did to the gradient, as a recording tells it."""
    net = patient.net
    with hv.record(net) as trace:
        patient.forward_and_backward()
    found = []
    for step in trace.firings:
        place = next((name for name in STAGES if f".{name}.mix.weight" in step.on), None)
        if place is not None:
            found.append((place, str(step.effect), step))
    return found


def find_frozen(patient: Patient) -> set[str]:
    reached = stages_with_gradient(patient)
    return {name for name, mix in parts(patient, "mix").items() if name in reached and mix.weight.grad is None}


def find_huge_weights(patient: Patient) -> set[str]:
    seen: dict[str, float] = {}

    def look(name: str, args: Any, output: torch.Tensor) -> None:
        seen[name] = (output.std() / args[0].norm() * args[0].numel() ** 0.5).item()

    with hook_all(parts(patient, "mix"), look, "forward"):
        patient.net(patient.images)
    return {name for name, ratio in seen.items() if ratio > 10}


def find_leak(patient: Patient) -> set[str]:
    references: dict[str, Any] = {}
    with hook_all(
        stages(patient), lambda name, args, output: references.update({name: weakref.ref(output)}), "forward"
    ):
        patient.step()
    alive = [name for name, reference in references.items() if reference() is not None]
    return {alive[-1]} if alive else set()  # what it keeps may keep those before it


def find_norm_in_eval(patient: Patient) -> set[str]:
    norms = parts(patient, "norm")
    outputs = outputs_of(patient, norms)
    return {name for name, output in outputs.items() if (output.mean(0) - norms[name].bias).abs().max() > 0.01}


def find_not_in_optimizer(patient: Patient) -> set[str]:
    held: set[int] = set()

    def look(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        held.update(id(parameter) for group in optimizer.param_groups for parameter in group["params"])

    with patient.optimizer.register_step_post_hook(look):
        patient.step()
    return {name for name, mix in parts(patient, "mix").items() if id(mix.weight) not in held}


def find_returning_hook(patient: Patient) -> set[str]:
    first, last = {}, {}
    mixes = parts(patient, "mix")
    with (
        hook_all(
            mixes, lambda name, args, output: first.update({name: output.detach().clone()}), "forward", prepend=True
        ),
        hook_all(mixes, lambda name, args, output: last.update({name: output.detach().clone()}), "forward"),
    ):
        patient.net(patient.images)
    return {name for name in first if not torch.equal(first[name], last[name])}


def find_scaled_gradient(patient: Patient) -> set[str]:
    return {name for name, ratio in ratios(patient, "mix").items() if ratio < 0.01}


def find_vanishing(patient: Patient) -> set[str]:
    return {name for name, ratio in ratios(patient, "bend").items() if ratio < 0.02}


def find_wrong_copy(patient: Patient) -> set[str]:
    patient.step()
    return {name for name, numbers in patient.log.items() if not numbers}


def find_wrong_scale(patient: Patient) -> set[str]:
    given: dict[str, float] = {}
    outputs = {"start": patient.images.norm().item()}
    with (
        hook_all(parts(patient, "mix"), lambda name, args: given.update({name: args[0].norm().item()}), "forward_pre"),
        hook_all(stages(patient), lambda name, args, output: outputs.update({name: output.norm().item()}), "forward"),
    ):
        patient.net(patient.images)
    before = dict(zip(STAGES, ["start", *STAGES], strict=False))
    return {name for name, size in given.items() if size < 0.2 * outputs[before[name]]}


DETECTIVES: dict[str, Callable[[Patient], set[str]]] = {
    name.removeprefix("find_"): function for name, function in globals().items() if name.startswith("find_")
}
