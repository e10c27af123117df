"""Run the programs of the atlas with the torch that is installed, and write what they showed as JSON.

This file needs torch and the standard library alone, so that any environment with torch can run it:
``python atlas/observer.py build/atlas/2.6.json``.
"""

import contextlib
import gc
import importlib
import inspect
import json
import platform
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

PROGRAMS = Path(__file__).parent / "programs"
SETTINGS = "settings"
"""The folder of programs that register no hook in a new way, but in a place where torch does more than run a pass."""
GROUPS = ("tensors", "graph", "modules", "global_modules", "saving", "optimizers", SETTINGS)
"""The folders of the programs, in the order of the page."""
CELL = re.compile(r"^# %% (?P<question>\w+) (?P<name>\w+)(?P<alone> alone)?\n(?P<text>(?:# .*\n)+)\n*", re.MULTILINE)
"""The lines above the code of a situation."""
NOISE = re.compile(r"\n+from user code:.*| \(Triggered internally at .*?\)|\x1b\[\d*m", re.DOTALL)
"""What differs between two runs or builds: dynamo's list of lines and files, places in C++ files, colours."""
ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
Event = dict[str, str]
"""A line that a program printed, a warning, or the exception that ended it."""


class Cell(NamedTuple):
    """One situation: a few lines of a program, and the sentence above them."""

    question: str
    """``when``, ``arguments``, ``changes``, ``silent`` or ``also``."""
    key: str
    """The question and a name, such as ``when.order``."""
    text: str
    """The sentence."""
    code: str
    line: int
    """How many lines of the file stand above the code."""
    alone: bool
    """Whether it gets a process of its own, which some version of torch may end."""


class Program(NamedTuple):
    """The file of one way to register hooks."""

    key: str
    """Its folder and its name, such as ``tensors/register_hook``."""
    api: str
    """The dotted name of what registers the hook."""
    summary: str
    preamble: str
    """What every situation begins with: imports and small helpers."""
    cells: list[Cell]
    path: Path

    @property
    def registers(self) -> bool:
        """Whether it is about a way to register hooks, not about hooks in a special place."""
        return not self.key.startswith(SETTINGS)


def read_programs() -> list[Program]:
    """Read all programs, in the order of the page."""
    return [read_program(path) for group in GROUPS for path in sorted((PROGRAMS / group).glob("*.py"))]


def read_program(path: Path) -> Program:
    """Read a program: its docstring, what all its situations begin with, and the situations."""
    source = path.read_text(encoding="utf-8")
    _, docstring, rest = source.split('"""', 2)
    api, _, summary = docstring.strip().partition("\n")
    marks = [*CELL.finditer(source)]
    ends = [*(mark.start() for mark in marks[1:]), len(source)]
    preamble = rest[: rest.index("# %% ")].strip()
    cells = [_read_cell(source, mark, end) for mark, end in zip(marks, ends, strict=True)]
    return Program(f"{path.parent.name}/{path.stem}", api, " ".join(summary.split()), preamble, cells, path)


def _read_cell(source: str, mark: re.Match[str], end: int) -> Cell:
    text = " ".join(line.removeprefix("# ") for line in mark["text"].splitlines())
    code, line = source[mark.end() : end].strip(), source.count("\n", 0, mark.end())
    return Cell(mark["question"], f"{mark['question']}.{mark['name']}", text, code, line, mark["alone"] is not None)


class Log:
    """What a program printed, and the warnings and the exception that came, in this order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._line = ""

    def write(self, text: str) -> int:
        """Note the lines that are complete."""
        *lines, self._line = (self._line + text).split("\n")
        self.events.extend({"printed": normalize(line)} for line in lines)
        return len(text)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def warn(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        """Note a warning; Python calls this."""
        self.events.append({"warning": category.__name__, "text": normalize(str(message))})


def normalize(text: str) -> str:
    """Leave out what differs between two runs or two builds."""
    return ADDRESS.sub("0x…", NOISE.sub("", text)).strip()


def run_cell(program: Program, cell: Cell) -> list[Event]:
    """Run one situation in a namespace of its own, and return what happened."""
    log = Log()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(log), warnings.catch_warnings(), _initial_state():
        warnings.simplefilter("always")
        warnings.showwarning = log.warn
        exec(compile(program.preamble, str(program.path), "exec"), namespace)
        try:
            # Empty lines put the code where it stands in the file: torch.compile reads it there.
            exec(compile("\n" * cell.line + cell.code, str(program.path), "exec"), namespace)
        except Exception as error:
            log.events.append({"error": type(error).__name__, "text": normalize(str(error))})
    return log.events


def run_alone(program: Program, cell: Cell) -> list[Event]:
    """Run one situation in a process of its own; if torch ends the process, the event says so."""
    command = [sys.executable, __file__, "--cell", str(program.path), cell.key]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8")
    if ended.returncode:
        cause = signal.Signals(-ended.returncode).name if ended.returncode < 0 else str(ended.returncode)
        return [{"crash": cause, "text": "the process ended here"}]
    events: list[Event] = json.loads(ended.stdout)
    return events


@contextlib.contextmanager
def _initial_state() -> Iterator[None]:
    """Let a program begin as in a fresh process: no global hooks, the same random numbers."""
    torch.manual_seed(0)
    try:
        yield
    finally:
        for module in map(importlib.import_module, ("torch.nn.modules.module", "torch.optim.optimizer")):
            for name, value in vars(module).items():
                if name.startswith("_global_") and isinstance(value, dict):
                    value.clear()
        torch.nn.modules.module._global_is_full_backward_hook = None
        if "torch._dynamo" in sys.modules:
            sys.modules["torch._dynamo"].reset()
        gc.collect()


def find_api(name: str) -> Any:
    """Find what a dotted name stands for; AttributeError if this torch does not have it."""
    parts = name.split(".")
    found = None
    for position, part in enumerate(parts, 1):
        try:
            # torch.optim.optimizer is a module, but not an attribute of torch.optim.
            found = importlib.import_module(".".join(parts[:position]))
        except ImportError:
            found = getattr(found, part)
    return found


def write_signature(api: Any) -> str | None:
    """Write the names and the defaults of the parameters, or None where Python cannot tell them."""
    try:
        signature = inspect.signature(api)
    except (TypeError, ValueError):
        return None
    empty = inspect.Parameter.empty
    bare = [parameter.replace(annotation=empty) for parameter in signature.parameters.values()]
    return normalize(str(signature.replace(parameters=bare, return_annotation=empty)))


def observe_program(program: Program) -> dict[str, Any] | None:
    """Run all situations of a program; None if torch lacks what it is about."""
    try:
        api = find_api(program.api)
    except AttributeError:
        return None
    cells = {cell.key: (run_alone if cell.alone else run_cell)(program, cell) for cell in program.cells}
    return {"signature": write_signature(api) if program.registers else None, "cells": cells}


def prepare() -> None:
    """Set torch and Python up for the programs."""
    # A warning that C++ gives once per process would be seen by one program only.
    torch.set_warn_always(True)
    torch.set_num_threads(1)
    # What torch itself consists of need not be searched for garbage after each program.
    gc.freeze()


def observe() -> dict[str, Any]:
    """Run all programs in this process, and return what they showed, with the versions of torch and Python."""
    programs = {program.key: observe_program(program) for program in read_programs()}
    python = ".".join(platform.python_version_tuple()[:2])
    return {"torch": torch.__version__.split("+")[0], "python": python, "programs": programs}


def main(arguments: list[str]) -> None:
    """Write what all programs showed into the file that the argument names, or print that of one situation."""
    prepare()
    if arguments[0] == "--cell":
        program = read_program(Path(arguments[1]))
        cell = next(cell for cell in program.cells if cell.key == arguments[2])
        print(json.dumps(run_cell(program, cell)))
    else:
        Path(arguments[0]).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments[0]).write_text(json.dumps(observe(), ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
