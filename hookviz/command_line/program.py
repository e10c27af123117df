"""Run a Python program in this process as ``python program.py arguments`` does."""

import importlib.util
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any

from hookviz.support.messages import _
from hookviz.support.program_variables import call_among

INTERRUPTED = 130
"""The exit status that a shell gives to a program that Ctrl-C ended."""


@contextmanager
def program_environment(arguments: Sequence[str], is_module: bool) -> Iterator[None]:
    """Set ``sys.argv`` and the first entry of ``sys.path`` as Python does for a program, and restore them.

    Raises:
        FileNotFoundError: there is no such file.
        ModuleNotFoundError: there is no such module.
    """
    argv, path = sys.argv, sys.path[:]
    sys.argv = list(arguments)
    if not sys.flags.safe_path:
        folder = os.getcwd() if is_module else os.path.dirname(os.path.realpath(arguments[0]))
        sys.path[:1] = [folder]
    try:
        _check_program(arguments[0], is_module)
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _check_program(name: str, is_module: bool) -> None:
    """Check that the program exists, before a recording begins."""
    if not is_module and not os.path.exists(name):
        raise FileNotFoundError(_("There is no script {name}.").format(name=name))
    if is_module and not _module_exists(name):
        raise ModuleNotFoundError(
            _("There is no module {name} in {folder} or among the installed packages.").format(
                name=name, folder=os.getcwd()
            ),
            name=name,
        )


def _module_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(f"{error.name}."):
            return False  # a package around the module does not exist
        raise


def run_program(arguments: Sequence[str], is_module: bool, end: Callable[..., None]) -> int:
    """Run a program as ``__main__`` in ``program_environment``, and return its exit status.

    An exception is handled as at the end of every program: ``sys.excepthook`` prints it, but without the frames of
    hookviz. ``end`` is called at the end of the program, while its variables still exist: with the exception, if one
    ended it.
    """
    try:
        if is_module:
            variables = runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        else:
            variables = runpy.run_path(os.path.abspath(arguments[0]), run_name="__main__")
    except SystemExit as request:
        call_among(_get_variables(request), end)
        return _get_exit_status(request)
    except BaseException as error:
        call_among(_get_variables(error), partial(end, error))
        _report_exception(error)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    call_among(variables, end)
    return 0


def _get_variables(error: BaseException) -> dict[str, Any]:
    """Return the global variables of the program that an exception has left; it still holds them."""
    traceback = _skip_frames(error.__traceback__)
    return {} if traceback is None else traceback.tb_frame.f_globals


def _get_exit_status(request: SystemExit) -> int:
    """Return the status of ``sys.exit(code)``; a code that is not a number is printed, as Python does."""
    if request.code is None:
        return 0
    if isinstance(request.code, int):
        return request.code
    print(request.code, file=sys.stderr)
    return 1


def _report_exception(error: BaseException) -> None:
    sys.stdout.flush()
    traceback = _skip_frames(error.__traceback__)
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)


def _skip_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that begins in the program."""
    while traceback is not None and traceback.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
        traceback = traceback.tb_next
    return traceback
