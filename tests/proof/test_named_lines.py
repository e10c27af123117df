"""Scripts of several files: findings name the lines where helpers did it, and a healthy twin has no such finding."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

import hookviz as hv
from hookviz.command_line.entry_point import main


class Script(NamedTuple):
    """A program whose lines that end with ``# named`` a finding names."""

    files: dict[str, str]
    kind: str
    severity: str
    healthy: tuple[str, str]
    """What of its text has to be replaced by what so that it has no such finding."""
    role: str = ""
    """The role of the line of the finding."""


HEAD = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
"""

STEP = """
def step(model, optimizer, x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""

NET = "nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))"

_EVALUATION = """
from contextlib import contextmanager

@contextmanager
def frozen(module):
    flags = [p.requires_grad for p in module.parameters(recurse=False)]
    for p in module.parameters():
        p.requires_grad_(False)  # named
    yield module
    for p, flag in zip(module.parameters(recurse=False), flags):
        p.requires_grad_(flag)

def unused(module):
    module.requires_grad_(False)

def evaluate(model, x):
    with frozen(model) as network:
        return network(x).mean().item()
"""

_CONDITION = """
def prepare(module, is_dry):
    if is_dry:
        return
    for p in module.parameters():
        p.requires_grad = p.dim() > 2  # named
"""

_TRAINING = f"""{HEAD}
from helpers import evaluate
{STEP}
class Average:
    def __init__(self, model):
        self.model = copy.deepcopy(model)
        self.model.requires_grad_(False)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.Flatten(), nn.Linear(8, 2))
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.body(x) * self.scale

class Trainer:
    def __init__(self):
        self.model = Net()
        self.average = Average(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)

    def fit(self):
        for epoch in range(4):
            step(self.model, self.optimizer, torch.randn(6, 1, 4))
            evaluate(self.model, torch.randn(6, 1, 4))

Trainer().fit()
"""

_PREPARED = f"""{HEAD}
from helpers import prepare
{STEP}
def main():
    model, teacher = {NET}, {NET}
    teacher.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(5):
        if number == 2:
            prepare(model, False)
        step(model, optimizer, torch.randn(3, 4, requires_grad=True) + teacher(torch.randn(3, 4)).sum())

main()
"""

_OPTIMIZER = f"""{HEAD}
{STEP}
def make_optimizer(model):
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)  # named

def set_classes(model):
    model.head = nn.Linear(8, 3)  # named

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 2)
        self.body.requires_grad_(False)

    def forward(self, x):
        return self.head(self.body(x).relu())

def main():
    model = Net()
    optimizer = make_optimizer(model)  # named
    set_classes(model)  # named
    for _ in range(3):
        step(model, optimizer, torch.randn(3, 4))

main()
"""

_MODEL = f"""{HEAD}
{STEP}
def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)  # named

def main():
    model = {NET}
    optimizer = make_optimizer(model)  # named
    model = {NET}  # named
    for _ in range(3):
        step(model, optimizer, torch.randn(3, 4))

main()
"""

_COPY = f"""{HEAD}
{STEP}
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Linear(4, 6), nn.GRU(6, 2, batch_first=True)

    def forward(self, x):
        return self.rnn(self.embed(x))[0]

class Average:
    def __init__(self, model):
        self.model = copy.deepcopy(model)

    def __call__(self, x):
        with torch.no_grad():
            return self.model(x)

class Engine:
    def __init__(self, network):
        self.model = copy.deepcopy(network)  # named
        self.average = Average(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def run(self):
        x = torch.randn(2, 3, 4)
        step(self.model, self.optimizer, x)
        self.average(x)

def main():
    model = Tagger()
    engine = Engine(model)
    target = model
    target.embed.weight.register_hook(lambda grad: grad * 0.1)
    for _ in range(3):
        engine.run()

main()
"""

_PASSED = f"""{HEAD}
from helpers import run_segment
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0) for _ in range(2))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for number, block in enumerate(self.blocks):
            x = run_segment(block.forward, x)  # named
        return self.head(x)

def main():
    model = Net()
    model.blocks[1].register_forward_hook(lambda *_: None)
    model(torch.randn(2, 3, 4)).mean().backward()

main()
"""

SCRIPTS = {
    "a helper freezes and restores only a part": Script(
        {"script.py": _TRAINING, "helpers.py": _EVALUATION},
        "stopped", "warning", ("(recurse=False)", "()"), "freezes",
    ),
    "a helper computes the flag": Script(
        {"script.py": _PREPARED, "helpers.py": _CONDITION},
        "stopped", "warning", ("p.dim() > 2", "True"), "freezes",
    ),
    "a helper makes the optimizer": Script(
        {"script.py": _OPTIMIZER}, "replaced", "error", ("    set_classes(model)  # named\n", ""), "makes",
    ),
    "the model is made again": Script(
        {"script.py": _MODEL}, "replaced", "error", (f"    model = {NET}  # named\n", ""), "makes",
    ),
    "the model is copied": Script(
        {"script.py": _COPY}, "not_called", "warning", ("target = model", "target = engine.model"), "registered",
    ),
    "a helper gets the forward": Script(
        {"script.py": _PASSED, "helpers.py": "def run_segment(function, x):\n    return function(x)\n"},
        "bypassed", "warning", ("block.forward", "block"), "cause",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder() -> Iterator[None]:
    """An empty working directory, whose modules are forgotten."""
    before = Path.cwd()
    with TemporaryDirectory() as path:
        os.chdir(path)
        yield
        os.chdir(before)
    sys.modules.pop("helpers", None)


def record(files: dict[str, str]) -> hv.Trace:
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    main(["run", "--record", "pass.json", "script.py"])
    return hv.load("pass.json")


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_finding_names_the_marked_lines_and_no_others(name: str) -> None:
    script = SCRIPTS[name]
    marked = {
        (file, number)
        for file, text in script.files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.endswith("# named")
    }
    [finding] = [finding for finding in record(script.files).findings if finding.is_bad]
    assert (finding.kind, finding.severity, finding.line_role) == (script.kind, script.severity, script.role)
    named = {(file, int(line)) for file, line in re.findall(r"(\w+\.py), line (\d+)", finding.text)}
    assert named == marked, finding.text


@pytest.mark.parametrize("name", SCRIPTS)
def test_its_healthy_twin_has_no_finding_of_that_kind(name: str) -> None:
    script = SCRIPTS[name]
    files = {file: text.replace(*script.healthy) for file, text in script.files.items()}
    assert files != script.files
    assert [finding for finding in record(files).findings if finding.is_bad or finding.kind == script.kind] == []
