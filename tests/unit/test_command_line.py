"""The commands ``text``, ``findings``, ``diff`` and ``run``: what they print, write and return."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from scenes import recorded

import hookviz as hv
from hookviz.__main__ import main
from tests.requirements import needs_saved_tensors

Write = Callable[..., str]

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


@pytest.fixture
def write_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """A function that writes ``train.py``, into a folder that is not the working folder, and returns its path."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "numbers_of_mine.py").write_text("two = 2.0\n")
    monkeypatch.chdir(tmp_path)

    def write(more: str = "", script: str = GRAPH) -> str:
        path = tmp_path / "project" / "train.py"
        path.write_text(script + more)
        sys.modules.pop("numbers_of_mine", None)
        return str(path)

    return write


def save(trace: hv.Trace, path: Path) -> str:
    trace.save(path)
    return str(path)


def record_nan() -> hv.Trace:
    x = torch.tensor(0.0, requires_grad=True)
    with hv.record() as trace:
        (x / x).backward()
    return trace


def record_zero() -> hv.Trace:
    """Record a pass with a remark: a hook makes the gradient 0."""
    x = torch.tensor(3.0, requires_grad=True)
    with x.register_hook(lambda grad: grad * 0), hv.record() as trace:
        (x * x).backward()
    return trace


def record_many_steps() -> hv.Trace:
    x = torch.tensor(3.0, requires_grad=True)
    with hv.record() as trace:
        for _ in range(60):
            (x * 2).backward()
    return trace


# -- text


def test_text_prints_what_print_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(trace := recorded(), tmp_path / "pass.json")
    capsys.readouterr()  # what a hook printed
    assert main(["text", path, "--width", "90"]) == 0
    assert capsys.readouterr().out == trace.text(width=90) + "\n"


def test_text_of_a_long_trace_says_how_to_see_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(record_many_steps(), tmp_path / "pass.json")
    main(["text", path])
    assert "… steps 101 to 140 are left out (40)\n" in (shown := capsys.readouterr().out)
    assert shown.endswith("--all shows all 240 steps, --steps 3-10 some of them.\n")
    main(["text", path, "--all"])
    assert capsys.readouterr().out.count("write .grad") == 60
    assert main(["text", path, "--steps", "239-300"]) == 2
    assert "There is no step 241: the trace has the steps 1 to 240." in capsys.readouterr().err
    main(["text", path, "--steps", "101-104"])
    assert capsys.readouterr().out.count("MulBackward0") == 1 + 2  # the heading of the pass, and two steps


def test_a_console_that_lacks_arrows_gets_question_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(recorded(), tmp_path / "pass.json")
    console = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", console)
    assert main(["text", path]) == 0
    assert b"8 ? 10" in console.buffer.getvalue()  # type: ignore[attr-defined]


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def print_to_terminal(path: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the command ``text`` writes to a terminal of 100 columns."""
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)
    main(["text", path])
    return terminal.getvalue()


def test_terminal_gets_colours_if_rich_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(trace := recorded(), tmp_path / "pass.json")
    colours = print_to_terminal(path, monkeypatch)
    assert "\x1b[33m" in colours  # hooks are yellow
    assert re.sub(r"\x1b\[[\d;]*m", "", colours) == trace.text(width=100) + "\n"
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert print_to_terminal(path, monkeypatch) == trace.text(width=100) + "\n"


# -- findings


@pytest.mark.parametrize(("make", "status"), [(recorded, 0), (record_zero, 0), (record_nan, 1)])
def test_findings_returns_whether_there_is_a_warning_or_an_error(
    make: Callable[[], hv.Trace], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(trace := make(), tmp_path / "pass.json")
    capsys.readouterr()  # what a hook printed
    assert main(["findings", path]) == status
    assert capsys.readouterr().out == repr(trace.findings) + "\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["page", "a.py"], "Record it first: hookviz run --record pass.json a.py, then: hookviz page pass.json"),
        (["findings", "crash.html"], "crash.html is a page: open it in a browser. The commands read the trace"),
        (["hooks", "-"], "hookviz does not read standard input"),
        (["diff", "a.py", "b.py"], "Record both runs: hookviz run --record good.json a.py"),
    ],
)
def test_another_file_in_place_of_a_trace_is_told_what_it_is(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fidnings", "pass.json"], "did you mean findings?"),
        (["run", "--recrod", "pass.json", "train.py"], "did you mean --record?"),
        (["run", "--json", "train.py"], "Use --record pass.json, then: hookviz findings --json pass.json"),
        (["run", "--record", "train.py"], "Write: --record pass.json train.py"),
        (["diff"], "To write one: hookviz run --record pass.json train.py, then: hookviz diff good.json bad.json"),
        (["doctor"], "such as hookviz doctor package.module:net"),
        (["run", "--check"], "name the script to run"),
        (["findings", "pass.json", "--width", "39"], "39 is not a width: give a whole number of at least 40."),
        (["findings", "pass.json", "--width", "wide"], "wide is not a width: give a whole number of at least 40."),
    ],
)
def test_wrong_arguments_are_told_what_to_write(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    assert exit_info.value.code == 2 and message in capsys.readouterr().err


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["-V"])
    assert exit_info.value.code == 0 and capsys.readouterr().out == f"hookviz {hv.__version__}\n"


# -- diff


def test_diff_returns_whether_a_gradient_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = save(recorded(), tmp_path / "one.json"), save(other := recorded(), tmp_path / "two.json")
    assert main(["diff", one, two]) == 0
    assert "No gradient differs" in capsys.readouterr().out
    x = torch.tensor(3.0, requires_grad=True)
    with hv.record() as plain:
        (x * x).backward()
    zero = record_zero()
    assert main(["diff", save(plain, tmp_path / "plain.json"), save(zero, tmp_path / "zero.json")]) == 1
    assert repr(plain.diff(zero)) in capsys.readouterr().out
    assert main(["diff", one, save(plain, tmp_path / "plain.json")]) == 2
    assert "These traces are not of the same" in capsys.readouterr().err and other.diff(hv.load(one)).first is None


# -- run


def test_run_records_a_script_and_passes_its_arguments_on(
    write_script: Write, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["--record", "pass.json", "--page", "pass.html", write_script(), "--check", "-m", "--", "x"]
    assert main(["run", *arguments]) == 0
    captured, trace = capsys.readouterr(), hv.load(tmp_path / "pass.json")
    assert captured.out == "arguments ['--check', '-m', '--', 'x'] as __main__ gradient 18.0\n"
    assert captured.err.splitlines() == [
        "hookviz recorded 11 steps, 1 of them a hook, 1 backward pass.",
        "pass.json is written.",
        "pass.html is written.",
        str(trace.findings),
    ]
    assert [step.sentence for step in trace.firings] == ["c_hook on c replaced the gradient: 4 → 6."]
    assert "hv-state" in (tmp_path / "pass.html").read_text(encoding="utf-8")


def test_run_leaves_the_process_as_it_was(write_script: Write) -> None:
    before = (sys.argv[:], sys.path[:], sys.modules["__main__"], torch.Tensor.backward)
    main(["run", write_script()])
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
    more: str,
    status: int,
    message: str,
    write_script: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "--record", "pass.json", write_script(more)]) == status
    error = capsys.readouterr().err
    assert message in error and "hookviz/" not in error and "runpy" not in error
    trace = hv.load(tmp_path / "pass.json")
    named = [finding.sentence for finding in trace.findings if finding.kind == "exception"]
    assert len(trace.steps) == 11 + len(named)
    assert named == ([f"{message} ended the recording."] if "Error" in message else [])


@needs_saved_tensors
def test_run_reports_findings_but_fails_only_with_check(
    write_script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    script = write_script(ERROR)
    assert main(["run", script]) == 0
    assert "Inf begins in the forward, at LogBackward0" in capsys.readouterr().err
    assert main(["run", "--check", script]) == 1
    assert main(["run", "--check", write_script(ERROR + "sys.exit(3)\n")]) == 3
    assert main(["run", "--check", write_script(REMARK)]) == 0
    assert "remark" in capsys.readouterr().err


UNUSED = """
import sys
import torch

def main():
    torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum().backward()

def watch(module, inputs, output):
    print("never")

net = torch.nn.Sequential(torch.nn.Linear(2, 2))
net[0].register_forward_hook(watch)
"""


@pytest.mark.parametrize("end", ["main()\n", "main()\nsys.exit()\n", "main()\ndel net\n"])
def test_check_of_a_hook_on_a_model_that_nothing_calls_fails(
    end: str, write_script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--check", write_script(end, UNUSED)]) == 1
    assert "watch on net.0 did not fire" in " ".join(capsys.readouterr().err.split())


def test_run_of_a_program_that_records_itself_leaves_it_alone(
    write_script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    script = write_script(
        """
import torch, hookviz as hv
x = torch.ones(2, requires_grad=True)
x.register_hook(lambda grad: grad * 2)
with hv.record() as trace:
    (x * 3).sum().backward()
print(len(trace.firings), "fired")
"""
    )
    assert main(["run", script]) == 0 and main(["run", "--check", script]) == 2
    output, errors = capsys.readouterr()
    assert output.count("1 fired\n") == 2 and errors.count("The program records itself with hookviz") == 2


def test_run_of_a_script_without_a_pass_says_so_and_fails_a_check(
    write_script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    script = write_script(script="print(1)\n")
    assert main(["run", script]) == 0
    assert "hookviz recorded nothing" in capsys.readouterr().err
    assert main(["run", "--check", script]) == 2
    assert main(["run", "--page", "pass.html", script]) == 2
    assert "There is no page to write" in capsys.readouterr().err and not Path("pass.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py"], "There is no script nowhere.py."),
        (["pass.json"], "pass.json is a trace: hookviz findings pass.json"),
        (["-m", "nowhere_at.all"], "There is no module nowhere_at.all in /"),
        (["--record", "no/pass.json", "project/train.py"], "no/pass.json cannot be written: there is no folder no."),
        (["--keep", "0", "project/train.py"], "keep"),
    ],
)
def test_wrong_use_of_run_is_reported_before_the_script_runs(
    arguments: list[str], message: str, write_script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_script()
    assert main(["run", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("hookviz: ") and message in captured.err and captured.out == ""


def test_trace_that_cannot_be_saved_is_reported_and_fails(
    write_script: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder.json").mkdir()
    assert main(["run", "--record", "folder.json", write_script()]) == 2
    assert "hookviz: " in capsys.readouterr().err
    assert main(["run", "--record", "folder.json", write_script("sys.exit(4)")]) == 4


@pytest.mark.slow
def test_forked_child_of_a_script_reports_and_saves_nothing(write_script: Write) -> None:
    more = "import os\nif os.fork() == 0:\n    sys.exit(5)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    script = write_script(more)
    done = run_python(["-W", "ignore", "-m", "hookviz", "run", "--record", "pass.json", script])
    assert done.stdout.splitlines()[-1] == "5" and done.returncode == 0
    assert done.stderr.count("hookviz recorded") == done.stderr.count("pass.json is written.") == 1


def run_python(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with this hookviz."""
    path = os.pathsep.join([str(Path(hv.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


@pytest.mark.slow
@pytest.mark.parametrize("as_module", [False, True])
def test_script_prints_and_returns_the_same_as_without_hookviz(write_script: Write, as_module: bool) -> None:
    script = write_script(
        """
import multiprocessing, os, pickle

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
    )
    os.chdir(Path(script).parent)
    program = ["-m", "train", "x"] if as_module else ["train.py", "x"]
    plain, with_hookviz = run_python(program), run_python(["-m", "hookviz", "run", *program])
    assert with_hookviz.stdout == plain.stdout and "[2, 3]" in plain.stdout
    assert with_hookviz.returncode == plain.returncode == 1
    traceback = with_hookviz.stderr.partition("hookviz recorded")[0]
    shown_by_python = re.sub(r'(  File "<frozen runpy>".*\n)+', "", plain.stderr)  # its frames, with -m
    assert traceback == shown_by_python and traceback.endswith("RuntimeError: at the end\n")


@pytest.mark.slow
def test_reader_that_stops_early_causes_no_traceback(tmp_path: Path) -> None:
    path = save(record_many_steps(), tmp_path / "pass.json")
    command = f'"{sys.executable}" -m hookviz text --all "{path}" | head -n 1'
    environment = {**os.environ, "PYTHONPATH": str(Path(hv.__file__).parents[1])}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment)
    assert done.stdout.startswith("Trace: 240 steps") and done.stderr == ""
