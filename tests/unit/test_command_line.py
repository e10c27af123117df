"""The commands ``text``, ``findings``, ``diff`` and ``run``: what they print, write and return."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from scenes import recorded

import hookviz as hv
from hookviz.__main__ import main
from tests.requirements import needs_saved_tensors

GRAPH = """
import sys
import torch
from numbers_of_mine import two

def c_hook(grad):
    return grad + 2

a, b, d = (torch.tensor(x, requires_grad=True) for x in (two, 3.0, 4.0))
c = a * b
c.register_hook(c_hook)
e = c * d
e.backward()
print("arguments", sys.argv[1:], "as", __name__, "gradient", a.grad.item())
"""
ERROR = "(a * 0).log().backward()\n"
REMARK = "handle = a.register_hook(lambda grad: grad * 0)\n(a * b * d).backward()\n"


class Shell:
    """Runs commands in a folder with a folder ``project`` in it, and keeps what the last one printed."""

    out = err = ""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def __call__(self, *arguments: str) -> int:
        """Run a command; return its status."""
        self._capsys.readouterr()
        try:
            return main([*arguments])
        except SystemExit as end:
            return int(end.code or 0)
        finally:
            self.out, self.err = self._capsys.readouterr()

    def write(self, more: str = "", script: str = GRAPH) -> str:
        """Write ``train.py``, into a folder that is not the working folder, and return its path."""
        path = self.folder / "project" / "train.py"
        path.write_text(script + more)
        sys.modules.pop("numbers_of_mine", None)
        return str(path)

    def save(self, trace: hv.Trace, name: str = "pass.json") -> str:
        trace.save(self.folder / name)
        return name


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "numbers_of_mine.py").write_text("two = 2.0\n")
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


def record_square(number: float = 3.0, factor: float | None = None, passes: int = 1) -> hv.Trace:
    """Record the square of a number, with a hook that multiplies the gradient if there is a factor."""
    x = torch.tensor(number, requires_grad=True)
    if factor is not None:
        x.register_hook(lambda grad: grad * factor)
    with hv.record() as trace:
        for _ in range(passes):
            (x * x).backward()
    return trace


def test_a_console_that_lacks_arrows_gets_question_marks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    console = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    path = shell.save(recorded())
    monkeypatch.setattr(sys, "stdout", console)
    assert main(["text", path]) == 0
    assert b"8 ? 10" in console.buffer.getvalue()  # type: ignore[attr-defined]


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_terminal_gets_colours(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shell.save(trace := recorded())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    assert main(["text", path]) == 0
    colours = terminal.getvalue()
    assert "\x1b[33m" in colours  # hooks are yellow
    assert re.sub(r"\x1b\[[\d;]*m", "", colours) == trace.text(width=100) + "\n"


# -- findings, diff, and what is no trace


@pytest.mark.parametrize(("number", "factor", "status"), [(3.0, 1.0, 0), (3.0, 0.0, 0), (3.0, float("nan"), 1)])
def test_findings_returns_whether_there_is_a_warning_or_an_error(
    number: float, factor: float, status: int, shell: Shell
) -> None:
    path = shell.save(trace := record_square(number, factor))
    assert shell("findings", path) == status
    assert shell.out == repr(trace.findings) + "\n"
    assert (len(trace.findings) > 0) == (factor != 1)


def test_diff_returns_whether_a_gradient_differs(shell: Shell) -> None:
    one, two = shell.save(recorded(), "one.json"), shell.save(recorded(), "two.json")
    assert shell("diff", one, two) == 0
    assert "No gradient differs" in shell.out
    plain, zero = record_square(), record_square(factor=0.0)
    assert shell("diff", shell.save(plain, "plain.json"), shell.save(zero, "zero.json")) == 1
    assert " ".join(repr(plain.diff(zero)).split()) in " ".join(shell.out.split())
    assert shell("diff", one, "plain.json") == 2
    assert "These traces are not of the same" in shell.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        # files
        ("page a.py", "Record it first: hookviz run --record pass.json a.py, then: hookviz page pass.json"),
        ("findings crash.html", "crash.html is a page: open it in a browser. The commands read the trace"),
        # arguments
        ("fidnings pass.json", "did you mean findings?"),
        ("run --recrod pass.json train.py", "did you mean --record?"),
        ("run --record train.py", "Write: --record pass.json train.py"),
        ("text pass.json --steps b-a", "b-a is not a range of steps"),
        ("diff", "To write one: hookviz run --record pass.json train.py, then: hookviz diff good.json bad.json"),
        # before a script runs
        ("run nowhere.py", "There is no script nowhere.py."),
        ("run -m nowhere_at.all", "There is no module nowhere_at.all in /"),
        ("run --record no/pass.json project/train.py", "no/pass.json cannot be written: there is no folder no."),
        ("run --keep 0 project/train.py", "keep"),
    ],
)
def test_a_mistake_is_told_with_what_to_write_before_anything_runs(arguments: str, message: str, shell: Shell) -> None:
    shell.write()
    assert shell(*arguments.split()) == 2
    assert message in shell.err and shell.out == ""


# -- run


def test_run_records_a_script_passes_its_arguments_on_and_leaves_the_process_as_it_was(shell: Shell) -> None:
    before = (sys.argv[:], sys.path[:], sys.modules["__main__"], torch.Tensor.backward)
    arguments = ["--record", "pass.json", "--page", "pass.html", shell.write(), "--check", "-m", "--", "x"]
    assert shell("run", *arguments) == 0
    trace = hv.load("pass.json")
    assert shell.out == "arguments ['--check', '-m', '--', 'x'] as __main__ gradient 18.0\n"
    assert shell.err.splitlines() == [
        "hookviz recorded 11 steps, 1 of them a hook, 1 backward pass.",
        "pass.json is written.",
        "pass.html is written.",
        str(trace.findings),
    ]
    assert [step.sentence for step in trace.firings] == ["c_hook on c replaced the gradient: 4 → 6."]
    assert "hv-state" in Path("pass.html").read_text(encoding="utf-8")
    assert (sys.argv, sys.path, sys.modules["__main__"], torch.Tensor.backward) == before


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        ("raise ValueError('it broke')\n", 1, "ValueError: it broke"),
        ("sys.exit(7)\n", 7, ""),
        ("sys.exit('it broke')\n", 1, "it broke"),
        ("raise KeyboardInterrupt\n", 130, "KeyboardInterrupt"),
    ],
)
def test_run_saves_and_returns_the_status_of_a_script_that_ends_early(
    more: str, status: int, message: str, shell: Shell
) -> None:
    assert shell("run", "--record", "pass.json", shell.write(more)) == status
    assert message in shell.err and "hookviz/" not in shell.err and "runpy" not in shell.err
    trace = hv.load("pass.json")
    named = [finding.sentence for finding in trace.findings if finding.kind == "exception"]
    assert len(trace.steps) == 11 + len(named)
    assert named == ([f"{message} ended the recording."] if "Error" in message else [])


@needs_saved_tensors
def test_run_reports_findings_but_fails_only_with_check(shell: Shell) -> None:
    assert shell("run", shell.write(ERROR)) == 0
    assert "Inf begins in the forward, at LogBackward0" in shell.err
    assert shell("run", "--check", shell.write(ERROR + "sys.exit(3)\n")) == 3
    assert shell("run", "--check", shell.write(REMARK)) == 0
    assert "remark" in shell.err


UNUSED = """
import torch

def watch(module, inputs, output):
    print("never")

net = torch.nn.Sequential(torch.nn.Linear(2, 2))
net[0].register_forward_hook(watch)
torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum().backward()
"""


def test_check_of_a_hook_on_a_model_that_nothing_calls_fails(shell: Shell) -> None:
    assert shell("run", "--check", shell.write(script=UNUSED)) == 1
    assert "watch on net.0 did not fire" in " ".join(shell.err.split())


RECORDS_ITSELF = """
import torch, hookviz
with hookviz.record() as trace:
    torch.ones(1, requires_grad=True).square().backward()
print(len(trace.pass_numbers))
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (RECORDS_ITSELF, "The program records itself with hookviz"),
        ("print(1)\n", "hookviz recorded nothing"),
    ],
)
def test_run_of_a_script_that_gives_it_nothing_says_so_and_fails_a_check(script: str, said: str, shell: Shell) -> None:
    path = shell.write(script=script)
    assert shell("run", path) == 0
    assert shell.out == "1\n" and said in shell.err
    assert shell("run", "--check", path) == 2
    assert shell("run", "--page", "pass.html", path) == 2
    assert not Path("pass.html").exists()


# -- processes


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with this hookviz."""
    path = os.pathsep.join([str(Path(hv.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_forked_child_of_a_script_reports_and_saves_nothing(shell: Shell) -> None:
    more = "import os\nif os.fork() == 0:\n    sys.exit(5)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    done = run_python("-W", "ignore", "-m", "hookviz", "run", "--record", "pass.json", shell.write(more))
    assert done.stdout.splitlines()[-1] == "5" and done.returncode == 0
    assert done.stderr.count("hookviz recorded") == done.stderr.count("pass.json is written.") == 1


SPAWNS = """
import multiprocessing, os, pickle, sys

class Mine:
    pass

def work(x):
    return x + 1

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [1, 2]))
        pool.close()
        pool.join()  # what the worker printed is written when it ends, and is lost if it is killed
    print(type(pickle.loads(pickle.dumps(Mine()))), sys.path[0], os.path.abspath(sys.argv[0]), __file__)
    print(sys.modules["__main__"].__file__, __spec__ and __spec__.name)
    raise RuntimeError("at the end")
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [["train.py", "x"], ["-m", "train", "x"]])
def test_script_prints_and_returns_the_same_as_without_hookviz(program: list[str], shell: Shell) -> None:
    os.chdir(Path(shell.write(script=SPAWNS)).parent)
    plain, with_hookviz = run_python(*program), run_python("-m", "hookviz", "run", *program)
    assert with_hookviz.stdout == plain.stdout and "[2, 3]" in plain.stdout
    assert with_hookviz.returncode == plain.returncode == 1
    traceback = with_hookviz.stderr.partition("hookviz recorded")[0]
    shown_by_python = re.sub(r'(  File "<frozen runpy>".*\n)+', "", plain.stderr)  # its frames, with -m
    assert traceback == shown_by_python and traceback.endswith("RuntimeError: at the end\n")


@pytest.mark.slow
def test_reader_that_stops_early_causes_no_traceback(shell: Shell) -> None:
    path = shell.save(record_square(passes=60))
    command = f'"{sys.executable}" -m hookviz text --all "{path}" | head -n 1'
    environment = {**os.environ, "PYTHONPATH": str(Path(hv.__file__).parents[1])}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment)
    assert done.stdout.startswith("Trace: 240 steps") and done.stderr == ""
