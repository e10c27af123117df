"""The command ``doctor``: it finds what its argument names, and says what to write in place of what it cannot find."""

import sys
from pathlib import Path

import pytest

from hookviz.__main__ import main

MODULE = """
import torch

def edit(grad):
    grad *= 2

class Net(torch.nn.Module):
    def __init__(self, width=1):
        super().__init__()
        self.layer = torch.nn.Linear(width, 1)
        self.layer.weight.register_hook(edit)

class Wide(Net):
    def __init__(self, width):
        super().__init__(width)

def build():
    return Net(3)

def attach(model, name):
    model.get_submodule(name).register_forward_hook(print)

def watch(module, args, output):
    'For model.register_forward_hook(watch).'
    output.register_hook(edit)

print("imported")
net = Net()
number = 3
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the user in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "nets.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("one = 1\none / 0\n")
    for name in ("my_package", "my_package.nets", "broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("name", ["net", "net.layer", "Net()", "build()", "edit"])
def test_a_model_or_a_hook_is_found_by_its_name_and_made_by_its_brackets(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sys.path[:]
    assert main(["doctor", f"my_package.nets:{name}"]) == 1
    output = capsys.readouterr()
    assert "edit in place" in output.out and "imported" in output.err and "imported" not in output.out
    assert sys.path == path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_package.nets", "does not name a model or a hook. Write the module as Python imports it"),
        ("nowhere:net", "There is no module nowhere in /"),
        (
            "my_package.nets:nett",
            "my_package.nets has no nett. It has: edit, Net, Wide, build, attach, watch, net, number.",
        ),
        ("my_package.nets:Net", "is a class. To check what it makes, write my_package.nets:Net()"),
        ("my_package.nets:build", "takes no argument, so it is not a hook. If it makes a model, write"),
        ("my_package.nets:attach", "attach is not a hook: it registers hooks. Name the model, or the hook function."),
        ("my_package.nets:Wide()", "name a function that makes it"),
        ("broken:net", "Importing broken raised ZeroDivisionError: division by zero (broken.py, line 2)."),
    ],
)
def test_what_cannot_be_checked_is_explained_in_one_line(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", name]) == 2
    error = capsys.readouterr().err.replace("imported\n", "")
    assert error.startswith("hookviz: ") and error.count("\n") == 1 and message in error


def test_a_hook_that_registers_a_hook_on_a_tensor_is_a_hook() -> None:
    assert main(["doctor", "my_package.nets:watch"]) == 0
