"""What findings say of trainings: the line that they name, and nothing about the healthy twin of a program."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch.optim import SGD

import hookviz as hv

NET = "nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))"
IMPORTS = "import copy\n\nimport torch\nfrom torch import nn\nfrom torch.optim import SGD, Adam, AdamW\n\n"
CLIP = "nn.utils.clip_grad_norm_(net.parameters(), 0.01)"
EACH = "for parameter in net.parameters():\n    "


def write(
    head: str = "",
    net: str = NET,
    setup: str = "",
    optimizer: str = "SGD(net.parameters(), lr=0.1)",
    made: str = "",
    steps: int = 3,
    first: str = "",
    clear: str = "optimizer.zero_grad()",
    loss: str = "net(torch.randn(6, 3)).square().mean()",
    before: str = "",
    backward: str = "loss.backward()",
    graded: str = "",
    step: str = "optimizer.step()",
    after: str = "",
) -> str:
    """Write a training whose parts are given, in the order in which they run."""
    made_parts = "torch.manual_seed(0)", f"net = {net}", setup, f"optimizer = {optimizer}", made
    loop_parts = first, clear, f"loss = {loss}", before, backward, graded, step, after
    body = "\n".join(part for part in made_parts if part) + f"\nfor step in range({steps}):\n"
    body += indent("\n".join(part for part in loop_parts if part), "    ")
    return f"{IMPORTS}{head}\ndef main():\n{indent(body, '    ')}\n"


def write_scaled(scale: float = 1024.0, **parts: Any) -> str:
    """Write a training under a GradScaler."""
    given = {
        "setup": f'scaler = torch.amp.GradScaler("cpu", init_scale={scale})',
        "backward": "scaler.scale(loss).backward()",
        "step": "scaler.step(optimizer)\nscaler.update()",
    }
    return write(**{**given, **parts})


def run(path: Path, text: str) -> hv.Trace:
    """Record the ``main`` of a program in a file of its own, whose objects are gone at the end."""
    path.write_text(text, encoding="utf-8")
    namespace: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), namespace)
    main: Callable[[], None] = namespace["main"]
    with hv.record() as trace:
        main()
    return trace


class Fault(NamedTuple):
    """What is found in a program. Its finding names the line of the text with ``# here``."""

    program: str
    kind: str
    sentence: str = "*"
    """What is said, with ``*`` for any text."""
    more: str = "*"
    """The same for cause, advice and what else follows the sentence."""
    severity: str = "warning"
    certainty: str = ""
    line_role: str = ""


# -- parts of programs

MASK = """
def mask(grad):
    return grad * (torch.arange(len(grad)) > 0).unsqueeze(1)
"""
BATCH_NORM = "nn.Sequential(nn.Linear(3, 4), NORM, nn.Linear(4, 1))\nnet[1].requires_grad_(False)"
BESIDE_NORM = "SGD([*net[0].parameters(), *net[2].parameters()], lr=0.1)"
RENEWING = """
class Renewing(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.layer = nn.Parameter(torch.ones(3)), nn.Linear(3, 1)

    def forward(self, x):
        self.scale = nn.Parameter(torch.ones(3))
        return self.layer(x * self.scale)
"""
STEP_IN_A_HOOK = """
def step_in_a_hook(parameters):
    optimizers = {parameter: SGD([parameter], lr=0.1) for parameter in parameters}

    def step_now(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in parameters:
        parameter.register_post_accumulate_grad_hook(step_now)
"""
TIED = """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 3), nn.Linear(3, 3)
        self.outer.weight = self.inner.weight

    def forward(self, x):
        return self.outer(torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=True))
"""
TIED_PARTS = {
    "net": "Tied()",
    "optimizer": "step_in_a_hook([*net.parameters()])",
    "clear": "",
    "loss": "net(torch.randn(6, 3).requires_grad_()).square().mean()",
    "step": "",
}
ENSEMBLE = {
    "setup": "models = [net, copy.deepcopy(net)]\n"
    "weights, buffers = torch.func.stack_module_state(models)\n"
    "base = copy.deepcopy(net)\n"
    "call = torch.func.vmap(lambda *given: torch.func.functional_call(base, given[:2], given[2:]), (0, 0, None))",
    "loss": "call(weights, buffers, torch.randn(6, 3)).square().mean()",
}
LARGE_MASTERS = {
    "net": "nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))",
    "setup": "masters = [parameter.detach().clone().requires_grad_() for parameter in net.parameters()]",
    "optimizer": "Adam(masters, lr=0.1)",
    "clear": "net.zero_grad()",
    "loss": "net(torch.randn(6, 8)).square().mean()",
    "graded": "for master, parameter in zip(masters, net.parameters()):\n    master.grad = parameter.grad.clone()",
}
FADING = {
    "made": "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)  # here",
    "steps": 20,
}
SHIFTED = """
class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.shift = nn.Linear(3, 2), nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.body(x) + self.shift
"""
CONVERTED = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(3, 1).double(), nn.Parameter(torch.ones(3)).double()

    def forward(self, x):
        return self.layer(x.double() * self.scale)
"""
GRID = """
class Grid(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.points = nn.Linear(1, 1), torch.linspace(0, 1, 5).reshape(-1, 1).requires_grad_()

    def forward(self, start):
        u = self.net(self.points).exp()
        (slope,) = torch.autograd.grad(u.sum(), self.points, create_graph=True)
        return (slope + u).square().mean() + (self.net(start) - 1).square().mean()
"""
ASKS = "torch.autograd.grad(u.sum(), self.points, create_graph=True)"
COPIES = {
    "head": "",
    "optimizer": "SGD(net.parameters(), lr=0.1)  # here",
    "made": "fast = copy.deepcopy(net)",
    "steps": 2,
    "loss": "fast(torch.randn(6, 3)).square().mean()",
}
GIVE = "for own, other in zip(net.parameters(), fast.parameters()):\n    own.grad = other.grad"
MASTERS = {
    "setup": "masters = [parameter.detach().clone().requires_grad_() for parameter in net.parameters()]",
    "optimizer": "SGD(masters, lr=0.1)",
    "clear": "optimizer.zero_grad()\nnet.zero_grad()",
}
NEW_HEAD = "net[2] = nn.Linear(4, 2)"
NEW_NET = "net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))"
HEAD_ALONE = {"setup": "net[0].requires_grad_(False)", "optimizer": "SGD(net[2].parameters(), lr=0.1)  # here"}
BY_HAND = {
    "optimizer": "SGD([nn.Parameter(torch.zeros(1))], lr=0.1)",
    "clear": "net.zero_grad()",
    "step": EACH + "parameter.data -= 0.1 * parameter.grad\noptimizer.step()",
}
TWO_PARTS = {
    "setup": "body = SGD(net[0].parameters(), lr=0.1)",
    "optimizer": "SGD(net[2].parameters(), lr=0.1)  # here",
    "clear": "optimizer.zero_grad()\nbody.zero_grad()",
    "step": "optimizer.step()\nbody.step()",
}
SMALL = {"net": "nn.Linear(3, 1)", "optimizer": "None", "clear": "net.zero_grad()", "step": "spare.step()"}
EVOLUTION = """
class Evolution(torch.optim.Optimizer):
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            parameter.data.add_(torch.randn_like(parameter), alpha=0.1)
"""
UNUSED = {
    "setup": "other = nn.Sequential(nn.Embedding(9, 2), nn.Linear(2, 1))\nspare = Adam(other.parameters())",
    "after": "spare.step()\nspare.zero_grad()",
}
DIVIDE = EACH + "torch.Tensor.div_(parameter.grad, 1024.0)"
PART_OF_TWO = """
import torch

def main():
    first_net, judge = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
    first, second = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (first_net, judge))
    for step in range(3):
        first.zero_grad()
        second.zero_grad()
        judge(first_net(torch.ones(2, 3))).sum().backward()
        first.step()
        if step > 10:
            second.step()
"""
SCHEDULER = "scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: float(step < 2))"
DISTILLER = """
import torch
from torch import nn

class Distiller:
    def __init__(self):
        self.student = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        self.teacher = nn.Linear(3, 2).requires_grad_(False)
        self.teacher.eval()
        self.student[1].train(not True)

    def step(self, optimizer):
        optimizer.zero_grad()
        x = torch.randn(4, 3)
        nn.functional.mse_loss(self.student(x), self.teacher(x)).backward()
        optimizer.step()

def main():
    distiller = Distiller()
    optimizer = torch.optim.SGD(distiller.student.parameters(), lr=0.1)
    for _ in range(2):
        distiller.step(optimizer)
"""

FAULTS: dict[str, Fault] = {
    # frozen
    "attribute of a module": Fault(
        write(setup="net[0].requires_grad = False  # here"),
        "not_frozen",
        "net.0.requires_grad = False freezes nothing: net.0.weight and 1 more*",
        "*net[[]0].requires_grad_(False)*",
    ),
    "frozen batch norm": Fault(
        write(net=BATCH_NORM.replace("NORM", "nn.BatchNorm1d(4)"), optimizer=BESIDE_NORM),
        "frozen_norm",
        "The parameters of net.1 are frozen, but it ran in training mode[!u]*",
        severity="remark",
    ),
    "frozen layer in the optimizer": Fault(
        write(setup="net[0].requires_grad_(False)"),
        "frozen",
        "optimizer holds net.0.weight and 1 more, which do not require a gradient.*",
        severity="remark",
    ),
    "evaluation mode": Fault(
        DISTILLER.replace("self.student[1].train(not True)", "self.student.eval()  # here"),
        "eval_norm",
        severity="remark",
    ),
    "one tensor with two names": Fault(
        write(
            net="nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10, bias=False))",
            setup="net[1].weight = net[0].weight",
            loss="net(torch.arange(8)).square().mean()",
        ),
        "shared",
        "*net.0.weight, net.1.weight*",
        severity="remark",
    ),
    "step between the parts of a gradient": Fault(
        write(
            TIED + STEP_IN_A_HOOK.replace("optimizers[parameter].step()", "optimizers[parameter].step()  # here"),
            **TIED_PARTS,
        ),
        "shared",
        "*net.inner.weight, net.outer.weight. A backward pass ran inside another one*",
    ),
    "detach": Fault(
        write(loss="net[2](net[1](net[0](torch.randn(6, 3))).detach()).mean()  # here"),
        "cut",
        "No gradient reaches net.0.weight*",
        "*optimizer holds them.*",
    ),
    # computed and dropped
    "clamp": Fault(
        write(graded=EACH + "parameter.grad.clamp(-0.1, 0.1)  # here"),
        "rebound",
        "parameter.grad.clamp(-0.1, 0.1) makes a new tensor*",
        "*Write clamp_(...), which edits it in place.*",
    ),
    # another model, or other tensors, in the optimizer
    "copy of the model": Fault(
        write(**COPIES), "replaced", more="*Create the optimizer with the parameters of fast*", severity="error"
    ),
    "parameter that forward replaces": Fault(
        write(RENEWING, net="Renewing()", optimizer="SGD(net.parameters(), lr=0.1)  # here"),
        "replaced",
        more="*Make them once, outside of forward*",
    ),
    "new head": Fault(
        write(optimizer="SGD(net.parameters(), lr=0.1)  # here", made=NEW_HEAD, steps=4), "replaced", certainty="likely"
    ),
    "new head in the middle": Fault(
        write(optimizer="SGD(net.parameters(), lr=0.1)  # here", after=f"if step == 2:\n    {NEW_HEAD}", steps=6),
        "replaced",
        "optimizer holds tensors that were replaced*",
        certainty="proven",
    ),
    "new head of another size": Fault(
        write(**HEAD_ALONE, made=NEW_HEAD),
        "replaced",
        "The tensors in optimizer are not the parameters of net: its steps do not change net.2.weight and 1 more,*",
        "optimizer was made at *line 12. *line 13 assigns new ones.*",
        severity="error",
        certainty="proven",
    ),
    "model of another size": Fault(
        write(optimizer="Adam(net.parameters(), lr=0.1)  # here", made=NEW_NET),
        "replaced",
        "The tensors in optimizer are not the parameters of net:*",
        severity="error",
        certainty="proven",
    ),
    "new head of another size with an optimizer of its own": Fault(
        write(**TWO_PARTS, made=NEW_HEAD),
        "replaced",
        "The tensors in optimizer are not the parameters of net: its steps do not change net.2.weight and 1 more,*",
        certainty="likely",
    ),
    "forgotten parameter": Fault(
        write(SHIFTED, "Shifted()", optimizer="SGD(net.body.parameters(), lr=0.01)  # here"),
        "missing",
        "*Their gradients are computed.*",
    ),
    "parameter that is converted when it is made": Fault(
        write(CONVERTED, "Scaled()", backward="loss.backward(retain_graph=True)"),
        "missing",
        "a tensor of shape (3,) requires grad and is in no optimizer*",
        "It was converted, *Convert first: nn.Parameter(tensor.to(...)).",
        severity="remark",
    ),
    "models of an ensemble": Fault(
        write(
            **ENSEMBLE,
            optimizer="SGD([parameter for model in models for parameter in model.parameters()], lr=0.1)",
            step="optimizer.step()  # here",
        ),
        "unreached",
        "optimizer took 3 steps, and none of what it holds had a gradient at any of them.",
    ),
    "forgotten model": Fault(
        write(
            setup="encoder = nn.Linear(3, 3)",
            first="encoder.zero_grad()",
            loss="net(encoder(torch.randn(6, 3)).tanh()).square().mean()",
        ),
        "missing",
        severity="remark",
        more="optimizer, whose parameters get gradients from the same passes, was made without them.*",
    ),
    "forgotten tensor of a model": Fault(
        write(GRID.replace(ASKS, "[self.points]"), "Grid()", loss="net(torch.zeros(1, 1))"), "missing"
    ),
    # moved without a gradient, or not moved
    "gradient set to 0": Fault(
        write(
            optimizer="AdamW(net.parameters(), lr=0.1, weight_decay=0.1)",
            graded="for parameter in net[0].parameters():\n    torch.Tensor.zero_(parameter.grad)",
            step="optimizer.step()  # here",
        ),
        "moved",
        "*moves net.0.weight and 1 more in 3 of its 3 steps, although the gradient was set to 0*",
        "The weight decay of AdamW, 0.1,*",
    ),
    "masked row and decay": Fault(
        write(
            MASK,
            optimizer="AdamW(net.parameters(), lr=0.01, weight_decay=0.1)  # here",
            made="net[0].weight.register_hook(mask)",
            steps=4,
        ),
        "moved",
        "*rows 0 (of 4, counted from 0) of net.0.weight in at least 3 of its 4 steps, although*",
        "The weight decay of AdamW, 0.1, makes weights smaller whatever their gradient is.*",
    ),
    "thinned out": Fault(
        write(
            setup="net[0].weight.register_hook(lambda grad: grad * (grad.abs() >= grad.abs().median()))",
            optimizer="Adam(net.parameters(), lr=0.01)",
            steps=4,
        ),
        "moved",
        severity="remark",
    ),
    "frozen with an older gradient": Fault(
        write(
            optimizer="SGD(net.parameters(), lr=0.01, momentum=0.9)  # here",
            first="net[0].requires_grad_(step < 3)",
            clear="optimizer.zero_grad(set_to_none=False)",
            steps=6,
        ),
        "moved",
        "*although requires_grad is False*",
    ),
    "rounded away": Fault(
        write(
            setup="net.to(torch.bfloat16)\nfor parameter in net.parameters():\n    nn.init.ones_(parameter)",
            optimizer="SGD(net.parameters(), lr=1e-4)",
            loss="net(torch.full((6, 3), 0.1, dtype=torch.bfloat16)).mean()",
            step="optimizer.step()  # here",
        ),
        "unmoved",
        "*None of the 3 steps of optimizer changes*",
        "*bfloat16*",
    ),
    "scheduler that is called too often": Fault(
        write(**FADING, after="scheduler.step()"),
        "unmoved",
        "The last * of 20 steps of optimizer moved nothing: its learning rate fell from 0.1 to *",
        "A scheduler sets it, which is made at *Look whether its scheduler is called once an epoch*",
    ),
    # the moment of clipping
    "clipping before the pass": Fault(
        write(before=f"{CLIP}  # here"),
        "clips_nothing",
        "clip_grad_norm_ clipped no gradient that a step used, in 3 of 3 calls: each time it ran before the pass*",
    ),
    "clipping after the step": Fault(
        write(after="nn.utils.clip_grad_value_(net.parameters(), 0.01)  # here"),
        "clips_nothing",
        "clip_grad_value_ clipped no gradient that a step used, in 3 of 3 calls: each time it ran after the step.*",
    ),
    "clipping of an iterator": Fault(
        write(
            setup="parameters = filter(torch.is_tensor, net.parameters())",
            graded="nn.utils.clip_grad_norm_(parameters, 1.0)  # here",
        ),
        "clips_nothing",
        "clip_grad_norm_ was given no parameters in 2 of 3 calls: it clipped nothing.",
        "*An iterator*",
    ),
    "clipping after the steps of a hook": Fault(
        write(
            STEP_IN_A_HOOK,
            optimizer="step_in_a_hook(list(net.parameters()))",
            clear="",
            graded=f"{CLIP}  # here",
            step="",
        ),
        "clips_nothing",
        "clip_grad_norm_ clipped no gradient that a step used, in 3 of 3 calls.",
        "step_now (*inside the backward pass*",
    ),
    # a GradScaler
    "clipping of scaled gradients": Fault(
        write_scaled(graded="nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # here"),
        "clips_scaled",
        "*With a scale of 1024, a limit of 1 is one of 0.0009766*",
    ),
    "hooks that clip scaled gradients": Fault(
        write_scaled(made=EACH + "parameter.register_hook(lambda grad: grad.clamp(-0.05, 0.05))", steps=2),
        "clips_scaled",
        "*With a scale of 1024, a limit of 0.05 is one of 4.883e-05*",
    ),
    "step with scaled gradients": Fault(
        write_scaled(step="optimizer.step()  # here"),
        "scaled_step",
        "*took 3 of 3 steps with gradients that were still scaled: they were 1024 times*",
    ),
    "scaled loss that is dropped": Fault(
        write_scaled(before="scaler.scale(loss)", backward="loss.backward()  # here"),
        "unscaled_loss",
        "*divides the gradients of optimizer by its scale, 1024, but no loss was multiplied*",
    ),
    "steps that are all skipped": Fault(
        write_scaled(2.0**127, loss="net(torch.randn(6, 3)).square().sum() * 1e3"), "skipped", "All 3 steps of *"
    ),
    "clipped to 0": Fault(
        write(graded="nn.utils.clip_grad_norm_(net.parameters(), 0.0)"), "zeroed", "*were all 0 in 3 of 3 steps*"
    ),
    # steps that are not taken, or too early
    "no step": Fault(
        write(backward="loss.backward()  # here", step=""),
        "never_stepped",
        "optimizer took no step, although 3 passes wrote gradients of net.0.weight and 3*",
    ),
    "a step that begins later": Fault(PART_OF_TWO, "never_stepped", more="", severity="remark"),
    "step before the pass": Fault(
        write(net="nn.Linear(3, 1)", clear="", before="optimizer.step()  # here\noptimizer.zero_grad()", step=""),
        "step_first",
    ),
    "cleared before the step of the next round": Fault(
        write(net="nn.Linear(3, 1)", clear="", before="optimizer.zero_grad()  # here\noptimizer.step()", step=""),
        "cleared",
        more="*in each round, step() runs before backward()*",
    ),
    # gradients that add up
    "zero_grad forgotten": Fault(
        write(clear="", step="optimizer.step()  # here"),
        "not_zeroed",
        "optimizer uses the gradients of earlier steps again*",
        line_role="update",
    ),
    # a learning rate of 0
    "rate of 0": Fault(
        write(optimizer="SGD(net.parameters(), lr=0.0)  # here"),
        "lr_zero",
        more="It was 0 when the optimizer was made.*",
        certainty="proven",
    ),
    "warm-up by an integer": Fault(
        write(first='for group in optimizer.param_groups:\n    group["lr"] = 0.1 * (step // 10)  # here'),
        "lr_zero",
        more="It was 0.1 when the optimizer was made.*",
        certainty="likely",
        line_role="rate",
    ),
    "scheduler": Fault(
        write(made=f"{SCHEDULER}  # here", after="scheduler.step()"),
        "lr_zero",
        more="It was 0.1 when the optimizer was made. A scheduler sets it, which is made at *",
        severity="remark",
        certainty="likely",
        line_role="rate",
    ),
}

HEALTHY = {
    "scheduler that is called once an epoch": write(**FADING, after="if step % 5 == 4:\n    scheduler.step()"),
    "parameter of a converted tensor": write(
        CONVERTED.replace("nn.Parameter(torch.ones(3)).double()", "nn.Parameter(torch.ones(3).double())"), "Scaled()"
    ),
    "weights of an ensemble": write(**ENSEMBLE, optimizer="SGD(weights.values(), lr=0.1)"),
    "checkpoint without a pass of its own": write(
        TIED.replace("reentrant=True", "reentrant=False") + STEP_IN_A_HOOK, **TIED_PARTS
    ),
    # frozen
    "frozen and thawed in another way": write(
        setup="net[0].requires_grad = False", first="net[0].requires_grad_(step > 0)"
    ),
    "frozen batch norm in evaluation mode": write(
        net=BATCH_NORM.replace("NORM", "nn.BatchNorm1d(4).eval()"), optimizer=BESIDE_NORM
    ),
    # computed and dropped
    "clamp in place": write(graded=EACH + "parameter.grad.clamp_(-0.1, 0.1)"),
    "part that follows another one": write(
        optimizer="SGD(net[2].parameters(), lr=0.1)",
        loss="net[2](net[1](net[0](torch.randn(6, 3))).detach()).mean()",
        after="for own in net[0].parameters():\n    own.data.mul_(0.9)",
    ),
    # another model, or other tensors, in the optimizer
    "copy that gives its gradients": write(**COPIES, graded=GIVE),
    "new head of another size before its optimizer": write(
        setup=f"net[0].requires_grad_(False)\n{NEW_HEAD}", optimizer="SGD(net[2].parameters(), lr=0.1)"
    ),
    "optimizer of what is not called": write(**UNUSED),
    "optimizer that needs no gradients": write(
        EVOLUTION, **SMALL, setup="spare = Evolution(nn.Linear(2, 9).parameters(), {})"
    ),
    "optimizer of a frozen part": write(
        setup="net[0].requires_grad_(False)\nspare = SGD(net[0].parameters(), lr=0.1)",
        optimizer="SGD(net[2].parameters(), lr=0.1)",
        after="spare.step()",
    ),
    "optimizer of words that do not occur": write(
        setup='net.add_module("words", nn.ModuleList([nn.Embedding(5, 3)]))\n'
        "spare = torch.optim.SparseAdam(net.words.parameters())",
        optimizer="SGD([*net[0].parameters(), *net[2].parameters()], lr=0.1)",
        loss="net[2](net[0](torch.randn(6, 3))).square().mean()",
        after="spare.step()",
    ),
    "generator whose judge steps less often": write(
        setup="judge = nn.Linear(1, 1)\nsecond = SGD(judge.parameters(), lr=0.1)",
        loss="judge(net(torch.randn(6, 3))).square().mean()",
        after="if step % 3 == 2:\n    second.step()\n    second.zero_grad()",
        steps=6,
    ),
    "update by hand beside an optimizer for its rate": write(**BY_HAND),
    "copies that are written back": write(
        **MASTERS,
        graded="for own, master in zip(net.parameters(), masters):\n    master.grad = own.grad",
        after="for own, master in zip(net.parameters(), masters):\n    own.data.copy_(master)",
    ),
    "new head and new optimizer": write(
        after=f"if step == 2:\n    {NEW_HEAD}\n    optimizer = SGD(net.parameters(), lr=0.1)", steps=6
    ),
    "parameter that is moved by hand": write(
        SHIFTED,
        "Shifted()",
        optimizer="SGD(net.body.parameters(), lr=0.01)",
        after="net.shift.data.add_(net.shift.grad, alpha=-0.1)",
    ),
    "tensor for which a gradient is asked": write(GRID, "Grid()", loss="net(torch.zeros(1, 1))"),
    # moved without a gradient, or not moved
    "gradient set to 0 without decay": write(
        optimizer="AdamW(net.parameters(), lr=0.1, weight_decay=0.0)",
        graded="for parameter in net[0].parameters():\n    torch.Tensor.zero_(parameter.grad)",
    ),
    "masked row without decay": write(
        MASK,
        optimizer="AdamW(net.parameters(), lr=0.01, weight_decay=0)",
        made="net[0].weight.register_hook(mask)",
        steps=4,
    ),
    "dead rows": write(
        net="nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))",
        setup="net[0].bias.data[:2] = -100\nnet[0].weight.register_hook(lambda grad: grad * 0.5)",
        optimizer="AdamW(net.parameters(), lr=0.01)",
        steps=4,
    ),
    "frozen without a gradient": write(
        optimizer="SGD(net.parameters(), lr=0.01, momentum=0.9)", first="net[0].requires_grad_(step < 3)", steps=6
    ),
    "steps of more digits": write(
        setup=EACH + "nn.init.ones_(parameter)",
        optimizer="SGD(net.parameters(), lr=1e-4)",
        loss="net(torch.full((6, 3), 0.1)).mean()",
    ),
    # the moment of clipping
    "clipping in time": write(
        clear="",
        graded=f"{CLIP}",
        step='if step % 2:\n    optimizer.step()\n    nn.utils.clip_grad_norm_(net.parameters(), float("inf"))\n'
        "    optimizer.zero_grad()",
        steps=6,
    ),
    "clipping of what the program put into grad": write(
        made="critic = nn.Linear(1, 1)\ncritic_optimizer = SGD(critic.parameters(), lr=0.1)",
        loss="critic(net(torch.randn(6, 3))).mean()",
        backward="grads = torch.autograd.grad(loss, list(net.parameters()))\n"
        "for parameter, grad in zip(net.parameters(), grads):\n    parameter.grad = grad",
        graded=f"{CLIP}\ncritic_optimizer.zero_grad()\ncritic(torch.randn(6, 1)).square().mean().backward()\n"
        "critic_optimizer.step()",
    ),
    # a GradScaler
    "clipping after unscale_": write_scaled(
        graded="scaler.unscale_(optimizer)\nnn.utils.clip_grad_norm_(net.parameters(), 1.0)"
    ),
    "clipping after a division by hand": write_scaled(
        graded=f"{DIVIDE}\nnn.utils.clip_grad_norm_(net.parameters(), 0.5)", step="optimizer.step()"
    ),
    "hooks whose limit has the scale": write_scaled(
        made="times = 1024.0\n" + EACH + "parameter.register_hook(lambda grad: grad.clamp(-0.05 * times, 0.05 * times))"
    ),
    "hooks that take signs": write_scaled(
        made="net[0].weight.register_hook(torch.Tensor.sign)\nnet[2].weight.register_hook(lambda grad: grad.sign())"
    ),
    "scale of a part of the loss": write_scaled(
        backward="(scaler.scale(loss) + net[2].weight.square().sum() + net[0].weight.square().sum()).backward()"
    ),
    # steps that are not taken, or too early
    "gathered gradients": write(clear="", step=""),
    "update by hand": write(step=EACH + "parameter.data -= 0.1 * parameter.grad"),
    "first step that quiets a scheduler": write(made="optimizer.step()"),
    # gradients that add up
}


@pytest.mark.filterwarnings("ignore:Detected call of .lr_scheduler")
@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_of_a_training_is_found(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    trace = run(tmp_path / "program.py", fault.program)
    [finding] = [finding for finding in trace.findings if finding.is_bad or fault.severity == "remark"]
    more = finding.text.removeprefix(finding.sentence).strip()
    assert (finding.kind, finding.severity) == (fault.kind, fault.severity)
    assert fault.certainty in ("", finding.certainty) and fault.line_role in ("", finding.line_role)
    assert fnmatchcase(finding.sentence, fault.sentence), finding.sentence
    assert fnmatchcase(more, fault.more), more
    marked = [number for number, line in enumerate(fault.program.splitlines(), 1) if line.endswith("# here")]
    assert not marked or marked == [finding.line]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_has_no_finding_but_remarks(name: str, tmp_path: Path) -> None:
    trace = run(tmp_path / "program.py", HEALTHY[name])
    assert [finding for finding in trace.findings if finding.is_bad] == []


@pytest.mark.parametrize("name", ["masked row and decay", "new head of another size"])
def test_findings_are_the_same_in_a_loaded_file(name: str, tmp_path: Path) -> None:
    trace = run(tmp_path / "program.py", FAULTS[name].program)
    trace.save(tmp_path / "trace.json")
    assert list(hv.load(tmp_path / "trace.json").findings) == list(trace.findings)


def test_of_an_optimizer_that_is_older_than_the_recording_the_same_is_found() -> None:
    net, other = nn.Linear(3, 1), nn.Linear(3, 1)
    for optimizer, kind in ((SGD(net.parameters(), lr=0.0), "lr_zero"), (SGD(other.parameters(), lr=0.1), "replaced")):
        with hv.record(net) as trace:
            for _ in range(2):
                net.zero_grad()
                net(torch.randn(6, 3)).square().mean().backward()
                optimizer.step()
        [finding] = trace.findings
        assert (finding.kind, finding.severity) == (kind, "error" if kind == "replaced" else "warning")


@pytest.mark.parametrize("moved", ["parameter", "parameter.data"])
def test_weights_that_the_program_itself_moves_are_in_no_optimizer_on_purpose(moved: str, tmp_path: Path) -> None:
    """Of a weight with more than 64 numbers the recording has no numbers, and sees all the same that it moves."""
    copying = (
        f"with torch.no_grad():\n    [{moved}.copy_(master) for master, parameter in zip(masters, net.parameters())]"
    )
    trace = run(tmp_path / "program.py", write(**LARGE_MASTERS, after=copying))
    assert list(trace.findings) == []
    trace = run(tmp_path / "still.py", write(**LARGE_MASTERS))
    assert [finding.kind for finding in trace.findings] == ["missing"]


def test_an_optimizer_of_an_input_is_not_outdated() -> None:
    generator, latent = nn.Linear(3, 2), torch.randn(1, 3, requires_grad=True)
    optimizer = SGD([latent], lr=0.1)
    with hv.record(generator) as trace:
        for _ in range(3):
            generator.zero_grad()
            generator(latent).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert "replaced" not in [finding.kind for finding in trace.findings]


@pytest.mark.parametrize("is_given", [True, False])
def test_a_gradient_that_a_pass_returned_reached_its_parameter(is_given: bool) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    optimizer = SGD(net.parameters(), lr=0.01)
    with hv.record() as trace:
        for step in range(6):
            optimizer.zero_grad()
            loss = net(torch.randn(6, 3)).square().mean()
            if step < 2:
                loss.backward()
            elif is_given:
                for parameter, grad in zip(net.parameters(), torch.autograd.grad(loss, net.parameters()), strict=True):
                    parameter.grad = grad.sign()
            else:
                loss.backward(inputs=[net[1].weight, net[1].bias])
            optimizer.step()
    stopped = [finding for finding in trace.findings if finding.kind == "stopped"]
    assert [finding.parameters for finding in stopped] == ([] if is_given else [("net.0.weight", "net.0.bias")])
    assert not any("belongs to the graph of" in finding.cause for finding in stopped)


def test_a_step_inside_a_hook_is_said_to_be_there() -> None:
    w = nn.Parameter(torch.ones(2))
    optimizer = SGD([w], lr=0.1)

    def step_now(_: torch.Tensor) -> None:
        optimizer.step()
        optimizer.zero_grad()

    w.register_post_accumulate_grad_hook(step_now)
    with hv.record() as trace:
        (w * 2).sum().backward()
    step = next(step for step in trace.steps if step.kind == "optimizer_step")
    assert step.sentence.startswith("step_now on w lets optimizer (SGD) take its step")
    assert "optimizer in step_now on w" in trace.text(width=200)
    assert list(trace.findings) == []
