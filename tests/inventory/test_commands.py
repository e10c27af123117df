"""For each command of ``hookviz`` and each of its options a small program that uses it."""

from pathlib import Path

import pytest
import torch

import hookviz as hv
from hookviz.__main__ import main

SCRIPT = """
import sys
import torch

weight = torch.tensor(3.0, requires_grad=True)
for _ in range(3):
    hidden = weight * 2
    (hidden.detach() * weight).backward()
print(sys.argv[1:])
"""


class Commands:
    """Runs commands in a folder with a script and a saved trace, and keeps what they print."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        """Run a command; return what it printed."""
        self._capsys.readouterr()
        assert main(list(arguments)) == status
        printed = self._capsys.readouterr()
        return printed.out + printed.err

    def read(self, name: str) -> str:
        """Return the text of a file that a command wrote."""
        return (self.folder / name).read_text(encoding="utf-8")


def c_hook(grad: torch.Tensor) -> torch.Tensor:
    return grad + 2.5


@pytest.fixture
def hookviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    x = torch.tensor(3.0, requires_grad=True)
    x.register_hook(c_hook)
    with hv.record() as trace:
        (x * x).backward()
    trace.save("pass.json")
    return Commands(tmp_path, capsys)


# -- run


def test_run(hookviz: Commands) -> None:
    assert "hookviz recorded" in hookviz("run", "train.py")


def test_run_program(hookviz: Commands) -> None:
    assert "['--lr', '0.1']" in hookviz("run", "train.py", "--lr", "0.1")


def test_run_module(hookviz: Commands) -> None:
    assert "['x']" in hookviz("run", "-m", "train", "x")


def test_run_record(hookviz: Commands) -> None:
    hookviz("run", "--record", "new.json", "train.py")
    assert hv.load("new.json").pass_numbers == [1, 2, 3]


def test_run_page(hookviz: Commands) -> None:
    hookviz("run", "--page", "new.html", "train.py")
    assert "<html" in hookviz.read("new.html")


def test_run_every(hookviz: Commands) -> None:
    hookviz("run", "--every", "2", "--record", "new.json", "train.py")
    assert hv.load("new.json").pass_numbers == [1, 3]


def test_run_keep(hookviz: Commands) -> None:
    hookviz("run", "--keep", "1", "--record", "new.json", "train.py")
    assert hv.load("new.json").pass_numbers == [3]


def test_run_statistics(hookviz: Commands) -> None:
    hookviz("run", "--statistics", "norm", "--record", "new.json", "train.py")
    assert hv.load("new.json").statistics == "norm"


def test_run_cuts(hookviz: Commands) -> None:
    hookviz("run", "--record", "plain.json", "train.py")
    hookviz("run", "--cuts", "--record", "new.json", "train.py")
    assert hv.load("plain.json").notes != hv.load("new.json").notes


def test_run_compiled(hookviz: Commands) -> None:
    compiled = "net = torch.compile(torch.nn.Linear(1, 1), backend='eager')\nnet(torch.ones(1)).backward()\n"
    (hookviz.folder / "train.py").write_text(SCRIPT + compiled)
    for option, kinds in {(): {"compiled"}, ("--compiled", "eager"): {"forward"}}.items():
        hookviz("run", *option, "--record", "new.json", "train.py")
        assert kinds <= {step.kind for step in hv.load("new.json").steps}, option


def test_run_check(hookviz: Commands) -> None:
    (hookviz.folder / "train.py").write_text(SCRIPT + "(weight * 0).log().backward()\n")
    hookviz("run", "train.py", status=0)
    hookviz("run", "--check", "train.py", status=1)


def test_run_until(hookviz: Commands) -> None:
    (hookviz.folder / "train.py").write_text(SCRIPT + "for n in (0, 1):\n    (weight * n).log().backward()\n")
    hookviz("run", "--until", "nan", "--record", "new.json", "train.py")
    assert hv.load("new.json").pass_numbers == [1, 2, 3, 4]


def test_run_on_trouble(hookviz: Commands) -> None:
    hookviz("run", "--on-trouble", "crash.html", "train.py")
    assert not (hookviz.folder / "crash.html").exists()
    (hookviz.folder / "train.py").write_text(SCRIPT + "raise ValueError\n")
    hookviz("run", "--on-trouble", "crash.html", "train.py", status=1)
    assert "<html" in hookviz.read("crash.html")


# -- page


def test_page(hookviz: Commands) -> None:
    hookviz("page", "pass.json")
    assert "c_hook" in hookviz.read("pass.html")


def test_page_output(hookviz: Commands) -> None:
    hookviz("page", "pass.json", "-o", "lesson.html")
    assert "<html" in hookviz.read("lesson.html")


def test_page_title(hookviz: Commands) -> None:
    hookviz("page", "pass.json", "--title", "The square of 3")
    assert "The square of 3" in hookviz.read("pass.html")


def test_page_no_source(hookviz: Commands) -> None:
    hookviz("page", "pass.json")
    with_source = hookviz.read("pass.html")
    hookviz("page", "pass.json", "--no-source")
    assert "The source of the hooks and the names of their files are left out" in hookviz.read("pass.html")
    assert len(hookviz.read("pass.html")) < len(with_source)


def test_page_no_values(hookviz: Commands) -> None:
    hookviz("page", "pass.json")
    assert "6 → 8.5" in hookviz.read("pass.html")
    hookviz("page", "pass.json", "--no-values")
    assert "6 → 8.5" not in hookviz.read("pass.html")


# -- animate


def animate(hookviz: Commands, *options: str) -> bytes:
    """Write an animation with the options, and return its bytes."""
    hookviz("animate", "pass.json", "-o", "pass.png", *options)
    return (hookviz.folder / "pass.png").read_bytes()


def test_animate(hookviz: Commands) -> None:
    hookviz("animate", "pass.json")
    assert len(list(hookviz.folder.glob("pass.*"))) == 2


def test_animate_output(hookviz: Commands) -> None:
    assert animate(hookviz).startswith(b"\x89PNG")


@pytest.mark.parametrize("options", [["--steps", "1-2"], ["--width", "400"], ["--seconds", "0.5"], ["--dark"]])
def test_animate_option(options: list[str], hookviz: Commands) -> None:
    assert animate(hookviz) != animate(hookviz, *options)


# -- text


def test_text(hookviz: Commands) -> None:
    assert "tensor hook  c_hook on x" in hookviz("text", "pass.json")


def test_text_steps(hookviz: Commands) -> None:
    shown = hookviz("text", "pass.json", "--steps", "1-2")
    assert "seed" in shown and "tensor hook" not in shown


def test_text_all(hookviz: Commands) -> None:
    (hookviz.folder / "train.py").write_text(SCRIPT.replace("range(3)", "range(100)"))
    hookviz("run", "--record", "long.json", "train.py")
    assert "are left out" in hookviz("text", "long.json")
    assert "are left out" not in hookviz("text", "long.json", "--all")


def test_text_json(hookviz: Commands) -> None:
    assert '"kind": "tensor_hook"' in hookviz("text", "pass.json", "--json")


def test_text_width(hookviz: Commands) -> None:
    assert max(map(len, hookviz("text", "pass.json", "--width", "72").splitlines())) <= 72


# -- findings, check


def save_a_silent_hook() -> None:
    layer = torch.nn.Linear(1, 1)
    layer.register_forward_hook(c_hook)
    with hv.record(layer) as trace:
        layer.forward(torch.ones(1)).backward()
    trace.save("silent.json")


def test_findings(hookviz: Commands) -> None:
    save_a_silent_hook()
    assert "warning" in hookviz("findings", "silent.json", status=1)
    assert "Nothing was found." in hookviz("findings", "pass.json", status=0)


TABLES = {
    "findings": (["silent.json"], 1),
    "hooks": (["silent.json"], 0),
    "diff": (["pass.json", "other.json"], 1),
    "doctor": (["hooks_of_mine:c_hook"], 1),
}
"""Command that prints a table → its arguments, and its exit status."""


@pytest.mark.parametrize("command", TABLES)
def test_output_of_a_table(command: str, hookviz: Commands) -> None:
    save_a_silent_hook()
    save_another_pass()
    (hookviz.folder / "hooks_of_mine.py").write_text("def c_hook(grad):\n    grad *= 2\n")
    arguments, status = TABLES[command]
    narrow = hookviz(command, *arguments, "--width", "60", status=status)
    wide = hookviz(command, *arguments, "--width", "400", status=status)
    assert "c_hook" in narrow and len(narrow.splitlines()) > len(wide.splitlines())
    assert hookviz(command, *arguments, "--json", status=status).startswith("{")
    assert "| --- |" in hookviz(command, *arguments, "--markdown", status=status)


def save_another_pass() -> None:
    """Save the pass of ``pass.json`` without its hook."""
    x = torch.tensor(3.0, requires_grad=True)
    with hv.record() as trace:
        (x * x).backward()
    trace.save("other.json")


def test_hooks(hookviz: Commands) -> None:
    save_a_silent_hook()
    assert "Call the module itself" in " ".join(hookviz("hooks", "silent.json").split())
    assert "in each pass" in hookviz("hooks", "pass.json")


def test_for_agents(hookviz: Commands) -> None:
    assert "certainty" in hookviz("for-agents")


def test_check(hookviz: Commands) -> None:
    assert "PyTorch" in hookviz("check")
    assert '"uses"' in hookviz("check", "--json")


def test_no_command_accepts_a_file_that_is_no_trace(hookviz: Commands) -> None:
    for command in ("page", "text", "findings", "hooks", "animate"):
        assert "other.txt" in hookviz(command, "other.txt", status=2)


def test_wrong_arguments(hookviz: Commands) -> None:
    with pytest.raises(SystemExit) as exit_info:
        hookviz("text", "pass.json", "--width", "wide")
    assert exit_info.value.code == 2
