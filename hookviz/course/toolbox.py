"""The student's own tools: written into ``my_hooks.py`` when they are right, and used again in later lessons."""

import linecache
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from hookviz.course import course_tools
from hookviz.course.exercises import JUDGES, judge_answer
from hookviz.course.tool_sources import DEFINITION, NAME, ToolSource, merge_definition
from hookviz.course.verdict import Verdict
from hookviz.support.atomic_files import write_atomically
from hookviz.support.definitions import find_definition
from hookviz.support.messages import _

TOOLS = {
    "find_silent": "01.8",
    "note": "02.9",
    "find_tensors": "03.9",
    "watch": "04.8",
    "HookGroup": "05.8",
    "extract": "06.7",
    "find_nan": "07.7",
    "stand_still": "09.6",
    "patch_run": "13.5",
    "forgotten_eval": "14.3",
}
"""Name of a tool → the exercise that builds it."""

folder: Path | None = None
"""Where the file is; None for the working directory, in Jupyter that of the notebook."""


def tool_file() -> Path:
    """The file with the student's own tools."""
    return (folder or Path.cwd()) / f"{NAME}.py"


def keep_tool(tool: Any) -> Verdict | None:
    """As ``hookviz.course.keep``: write a function or class into the file of tools, if it is right."""
    name = getattr(tool, "__name__", None)
    exercise = TOOLS.get(name) if isinstance(name, str) else None
    if exercise is not None and JUDGES[exercise](tool).name != "right":
        return judge_answer(exercise, tool)
    source = read_tool(tool)
    path = tool_file()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    merged = merge_definition(text, source)
    compile(merged, str(path), "exec")
    write_atomically(merged, path)
    print(_("{file} has {tool} now.").format(file=path.name, tool=source.name))
    return None


def read_tool(tool: Any) -> ToolSource:
    """Find the text of a function or class that a cell or a file defines.

    Raises:
        TypeError: it is neither, or it is a lambda.
        ValueError: its text is not known, or it stands inside of another function.
    """
    function = _pick_function(tool)
    if function is None or tool.__name__ == "<lambda>":
        raise TypeError(_("keep takes a function or a class that you have written with def or class."))
    definition, around = find_definition(function)
    outermost = [*around, definition][1] if around else None
    if not isinstance(outermost, DEFINITION) or outermost.name != tool.__name__:
        raise ValueError(
            _("The text of {tool} was not found. Define it in a cell of its own, not inside of a function.").format(
                tool=tool.__name__
            )
        )
    text = "".join(linecache.getlines(function.__code__.co_filename))
    return ToolSource(outermost.name, text, outermost, function.__globals__, read_tool)


def _pick_function(tool: Any) -> Any:
    """The function itself or, of a class, its first method; None for anything else."""
    if isinstance(tool, type):
        return next((method for method in vars(tool).values() if isinstance(method, FunctionType)), None)
    return tool if isinstance(tool, FunctionType) else None


def find_kept(name: str) -> Any:
    """As ``hookviz.course.kept``: the student's own tool, or else the one of the course."""
    path = tool_file()
    own = getattr(_load(path), name, None) if path.exists() else None
    if own is not None:
        print(_("{tool}: yours, from {file}.").format(tool=name, file=path.name))
        return own
    if name not in TOOLS:
        raise ValueError(
            _("{file} has no {tool}. The tools of the course are {tools}.").format(
                file=path.name, tool=name, tools=", ".join(TOOLS)
            )
        )
    print(
        _("{tool}: the course's own. Yours comes with exercise {exercise} and keep({tool}).").format(
            tool=name, exercise=TOOLS[name]
        )
    )
    return getattr(course_tools, name)


def _load(path: Path) -> ModuleType:
    """Import the file anew, since a student may have changed it."""
    spec = spec_from_file_location(NAME, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[NAME] = module
    return module
