"""For each command of ``hookviz`` and each of its options a small program that uses it."""

import argparse
import re
from inspect import signature
from pathlib import Path

import pytest
import torch

import hookviz as hv
from hookviz.__main__ import main
from hookviz.api.trace import data_of
from hookviz.command_line.entry_point import build_parser
from hookviz.command_line.script_command import RECORD_OPTIONS

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
        self._capsys.readouterr()
        assert main(list(arguments)) == status
        printed = self._capsys.readouterr()
        return printed.out + printed.err

    def record(self, *options: str) -> hv.Trace:
        self("run", *options, "--record", "new.json", "train.py")
        return hv.load("new.json")

    def read(self, name: str) -> str:
        """Return the text of a file that a command wrote."""
        return (self.folder / name).read_text(encoding="utf-8")


def c_hook(grad: torch.Tensor) -> torch.Tensor:
    return grad + 2.5


def save_a_pass(name: str, *hooks: object) -> None:
    x = torch.tensor(3.0, requires_grad=True)
    for hook in hooks:
        x.register_hook(hook)
    with hv.record() as trace:
        (x * x).backward()
    trace.save(name)


@pytest.fixture
def hookviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    save_a_pass("pass.json", c_hook)
    return Commands(tmp_path, capsys)


# -- run


def test_run_passes_arguments_on_to_a_script_or_a_module(hookviz: Commands) -> None:
    printed = hookviz("run", "train.py", "--lr", "0.1")
    assert "['--lr', '0.1']" in printed and "hookviz recorded" in printed
    assert "['x']" in hookviz("run", "-m", "train", "x")


def test_run_writes_a_trace_and_a_page(hookviz: Commands) -> None:
    assert hookviz.record("--page", "new.html").pass_numbers == [1, 2, 3]
    assert "<html" in hookviz.read("new.html")


def test_run_records_as_the_options_say(hookviz: Commands) -> None:
    assert hookviz.record("--every", "2").pass_numbers == [1, 3]
    assert hookviz.record("--keep", "1").pass_numbers == [3]
    assert hookviz.record("--statistics", "norm").statistics == "norm"
    assert hookviz.record("--cuts").notes != hookviz.record().notes
    assert data_of(hookviz.record("--histograms")).histograms and not data_of(hookviz.record()).histograms


def test_run_has_every_option_of_record_that_is_no_object_of_the_program() -> None:
    assert {*RECORD_OPTIONS} == {*signature(hv.record).parameters} - {"models", "names"}


def test_run_compiled(hookviz: Commands) -> None:
    compiled = "net = torch.compile(torch.nn.Linear(1, 1), backend='eager')\nnet(torch.ones(1)).backward()\n"
    (hookviz.folder / "train.py").write_text(SCRIPT + compiled)
    for options, kind in (((), "compiled"), (("--compiled", "eager"), "forward")):
        assert kind in {step.kind for step in hookviz.record(*options).steps}, options


def test_run_stops_at_nan_and_says_so(hookviz: Commands) -> None:
    (hookviz.folder / "train.py").write_text(SCRIPT + "for n in (0, 1):\n    (weight * n).log().backward()\n")
    hookviz("run", "train.py", status=0)
    hookviz("run", "--check", "train.py", status=1)
    assert hookviz.record("--until", "nan").pass_numbers == [1, 2, 3, 4]


def test_run_on_trouble(hookviz: Commands) -> None:
    hookviz("run", "--on-trouble", "crash.html", "train.py")
    assert not (hookviz.folder / "crash.html").exists()
    (hookviz.folder / "train.py").write_text(SCRIPT + "raise ValueError\n")
    hookviz("run", "--on-trouble", "crash.html", "train.py", status=1)
    assert "<html" in hookviz.read("crash.html")


# -- page, animate, text


def test_page(hookviz: Commands) -> None:
    hookviz("page", "pass.json", "--title", "The square of 3")
    page = hookviz.read("pass.html")
    assert "c_hook" in page and "6 → 8.5" in page and "The square of 3" in page
    hookviz("page", "pass.json", "-o", "lesson.html", "--no-source")
    without_source = hookviz.read("lesson.html")
    assert "The source of the hooks and the names of their files are left out" in without_source
    assert len(without_source) < len(page)
    hookviz("page", "pass.json", "--no-values")
    assert "6 → 8.5" not in hookviz.read("pass.html")


def test_animate(hookviz: Commands) -> None:
    hookviz("animate", "pass.json")
    assert len(list(hookviz.folder.glob("pass.*"))) == 2
    written = set()
    for option in (
        ["--steps", "1"],
        ["--steps", "1", "--width", "400"],
        ["--steps", "1-2"],
        ["--steps", "1", "--dark"],
    ):
        hookviz("animate", "pass.json", "-o", "pass.png", *option)
        written.add((hookviz.folder / "pass.png").read_bytes())
    hookviz("animate", "pass.json", "-o", "pass.png", "--steps", "1-2", "--seconds", "0.5")
    written.add((hookviz.folder / "pass.png").read_bytes())
    assert len(written) == 5 and all(picture.startswith(b"\x89PNG") for picture in written)


def test_text(hookviz: Commands) -> None:
    assert "tensor hook  c_hook on x" in hookviz("text", "pass.json")
    shown = hookviz("text", "pass.json", "--steps", "1-2")
    assert "seed" in shown and "tensor hook" not in shown
    assert '"kind": "tensor_hook"' in hookviz("text", "pass.json", "--json")
    assert max(map(len, hookviz("text", "pass.json", "--width", "72").splitlines())) <= 72


def test_text_all(hookviz: Commands) -> None:
    (hookviz.folder / "train.py").write_text(SCRIPT.replace("range(3)", "range(100)"))
    hookviz("run", "--record", "long.json", "train.py")
    assert "are left out" in hookviz("text", "long.json")
    assert "are left out" not in hookviz("text", "long.json", "--all")


# -- commands that print a table, and others


def save_a_silent_hook() -> None:
    layer = torch.nn.Linear(1, 1)
    layer.register_forward_hook(c_hook)
    with hv.record(layer) as trace:
        layer.forward(torch.ones(1)).backward()
    trace.save("silent.json")


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
    save_a_pass("other.json")
    (hookviz.folder / "hooks_of_mine.py").write_text("def c_hook(grad):\n    grad *= 2\n")
    arguments, status = TABLES[command]
    narrow = hookviz(command, *arguments, "--width", "60", status=status)
    wide = hookviz(command, *arguments, "--width", "400", status=status)
    assert "c_hook" in narrow and len(narrow.splitlines()) > len(wide.splitlines())
    assert hookviz(command, *arguments, "--json", status=status).startswith("{")
    assert "| --- |" in hookviz(command, *arguments, "--markdown", status=status)


def test_findings_and_hooks_say_why_a_hook_did_not_fire(hookviz: Commands) -> None:
    save_a_silent_hook()
    assert "warning" in hookviz("findings", "silent.json", status=1)
    assert "Nothing was found." in hookviz("findings", "pass.json", status=0)
    assert "Call the module itself" in " ".join(hookviz("hooks", "silent.json").split())
    assert "in each pass" in hookviz("hooks", "pass.json")


def test_check_and_for_agents(hookviz: Commands) -> None:
    assert "certainty" in hookviz("for-agents")
    assert "PyTorch" in hookviz("check")
    assert '"uses"' in hookviz("check", "--json")


def test_no_command_accepts_a_file_that_is_no_trace_or_wrong_arguments(hookviz: Commands) -> None:
    for command in ("page", "text", "findings", "hooks", "animate"):
        assert "other.txt" in hookviz(command, "other.txt", status=2)
    with pytest.raises(SystemExit) as exit_info:
        hookviz("text", "pass.json", "--width", "wide")
    assert exit_info.value.code == 2


def test_each_option_of_each_command_is_tried() -> None:
    tried = {"--help"} | set(re.findall(r'"(--?[a-z-]+)"', Path(__file__).read_text(encoding="utf-8")))
    [subparsers] = [action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    actions = [action for parser in subparsers.choices.values() for action in parser._actions]
    assert [one.option_strings for one in actions if one.option_strings and not tried & {*one.option_strings}] == []
