"""Run the programs of the atlas in the torch that is installed, and print what they showed as JSON.

This file needs torch and the standard library alone, so that any environment with torch can run it:
``python observer.py programs`` writes one JSON object to its standard output.
"""

import contextlib
import gc
import importlib
import inspect
import itertools
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

Event = dict[str, str]
"""A line that a program printed, a warning, or the exception that ended it."""

SETTINGS = "settings"
"""The folder of programs that register no hook in a new way, but in a place where torch does more than run a pass."""
GROUPS = ("tensors", "graph", "modules", "global_modules", "saving", "optimizers", SETTINGS)
"""The folders of the programs, in the order of the page."""
_NUMBER_OF_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
_BUILD_PLACE = re.compile(r" \(Triggered internally at .*?\)")
_COLOUR = re.compile(r"\x1b\[\d*m")
_USER_CODE = re.compile(r"\n+from user code:.*", re.DOTALL)
"""Dynamo appends the lines and the files that led to an error."""


class Cell(NamedTuple):
    """One situation: a few lines of a program, and the sentence above them."""

    question: str
    """``when``, ``arguments``, ``changes``, ``silent`` or ``also``."""
    name: str
    text: str
    """The sentence that stands above the code."""
    code: str
    line: int
    """The line of the file at which the code begins, counted from 1."""
    alone: bool
    """Whether it gets a process of its own, which some version of torch may end."""

    @property
    def key(self) -> str:
        """The name of the situation in its program."""
        return f"{self.question}.{self.name}"


class Program(NamedTuple):
    """The file of one way to register hooks."""

    group: str
    name: str
    api: str
    """The dotted name of what registers the hook."""
    summary: str
    preamble: str
    """What every situation begins with: imports and small helpers."""
    cells: list[Cell]
    path: Path

    @property
    def key(self) -> str:
        """The name of the program in the atlas."""
        return f"{self.group}/{self.name}"


def read_programs(folder: Path) -> list[Program]:
    """Read all programs, in the order of the page."""
    return [read_program(path) for group in GROUPS for path in sorted((folder / group).glob("*.py"))]


def read_program(path: Path) -> Program:
    """Read a program: its docstring, what all its cells begin with, and the cells, each marked by ``# %%``."""
    source = path.read_text(encoding="utf-8")
    _, docstring, rest = source.split('"""', 2)
    api, _, summary = docstring.strip().partition("\n")
    parts = re.split(r"(?m)^# %% ", rest)
    line = source[: len(source) - len(rest)].count("\n") + 1
    cells = []
    for before, part in itertools.pairwise(parts):
        line += before.count("\n")
        cells.append(_read_cell(part, line))
    return Program(path.parent.name, path.stem, api, " ".join(summary.split()), parts[0].strip(), cells, path)


def _read_cell(part: str, line: int) -> Cell:
    title, _, body = part.partition("\n")
    question, name, *marks = title.split()
    lines = body.split("\n")
    count = next(number for number, text in enumerate(lines) if not text.startswith("# "))
    sentence = " ".join(text.removeprefix("# ") for text in lines[:count])
    code = "\n".join(lines[count:])
    skipped = len(code) - len(code.lstrip("\n"))
    return Cell(question, name, sentence, code.strip(), line + 1 + count + skipped, "alone" in marks)


class _Log:
    """What a program printed and what torch had to say meanwhile, in this order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        self.events.extend({"printed": normalize(line)} for line in lines)
        return len(text)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def warn(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        self.events.append({"warning": category.__name__, "text": normalize(str(message))})

    def fail(self, error: Exception) -> None:
        self.events.append({"error": type(error).__name__, "text": normalize(str(error))})


def normalize(text: str) -> str:
    """Leave out what differs between two runs or two builds: addresses, colours, places in files."""
    for noise in (_USER_CODE, _BUILD_PLACE, _COLOUR):
        text = noise.sub("", text)
    return _NUMBER_OF_ADDRESS.sub("0x…", text).strip()


def run_cell(program: Program, cell: Cell) -> list[Event]:
    """Run one situation in a namespace of its own, and return what happened."""
    log = _Log()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(log), _warnings_in(log), _initial_state():
        exec(compile(program.preamble, str(program.path), "exec"), namespace)
        try:
            # Empty lines put the code where it stands in the file, so that a traceback names the right line.
            exec(compile("\n" * (cell.line - 1) + cell.code, str(program.path), "exec"), namespace)
        except Exception as error:
            log.fail(error)
    return log.events


def run_alone(program: Program, cell: Cell) -> list[Event]:
    """Run one situation in a process of its own; if torch ends the process, the event says so."""
    command = [sys.executable, __file__, str(program.path), cell.key]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8")
    if ended.returncode:
        cause = signal.Signals(-ended.returncode).name if ended.returncode < 0 else str(ended.returncode)
        return [{"crash": cause, "text": "the process ended here"}]
    events: list[Event] = json.loads(ended.stdout)
    return events


@contextlib.contextmanager
def _warnings_in(log: _Log) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = log.warn
        yield


@contextlib.contextmanager
def _initial_state() -> Iterator[None]:
    """Let a program begin as in a fresh process: no global hooks, the same random numbers."""
    import torch

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


def observe_program(program: Program) -> dict[str, Any]:
    """Run all situations of a program, unless torch lacks what it is about."""
    try:
        api = find_api(program.api)
    except AttributeError:
        return {"exists": False, "signature": None, "cells": {}}
    cells = {cell.key: (run_alone if cell.alone else run_cell)(program, cell) for cell in program.cells}
    signature = None if program.group == SETTINGS else write_signature(api)
    return {"exists": True, "signature": signature, "cells": cells}


def _prepare() -> None:
    import torch

    # A warning that C++ gives once per process would be seen by one program only.
    torch.set_warn_always(True)
    torch.set_num_threads(1)
    # What torch itself consists of need not be searched for garbage after each program.
    gc.freeze()


def observe(folder: Path) -> dict[str, Any]:
    """Run all programs in this process, and return what they showed, with the version of torch."""
    import torch

    _prepare()
    programs = {program.key: observe_program(program) for program in read_programs(folder)}
    python = ".".join(platform.python_version_tuple()[:2])
    return {"torch": torch.__version__.split("+")[0], "python": python, "programs": programs}


def _observe_cell(path: Path, key: str) -> list[Event]:
    _prepare()
    program = read_program(path)
    return next(run_cell(program, cell) for cell in program.cells if cell.key == key)


if __name__ == "__main__":
    seen = _observe_cell(Path(sys.argv[1]), sys.argv[2]) if sys.argv[2:] else observe(Path(sys.argv[1]))
    json.dump(seen, sys.stdout, ensure_ascii=False, indent=1)
