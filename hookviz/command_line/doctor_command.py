"""The command ``doctor``: find a model or a hook by its name, and check it without running it."""

import argparse
import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from types import FunctionType
from typing import Any

from hookviz.command_line.command_table import add_command
from hookviz.command_line.console import AddParser, choose_status
from hookviz.command_line.program import program_environment
from hookviz.command_line.table_output import add_output_options, write_table
from hookviz.support.messages import _, join_first, join_sentences
from hookviz.support.source_code import describe_place, shorten_filename

MAX_NAMES = 12
"""How many names an error lists."""
_REGISTRATION = re.compile(r"register_((?:forward|backward|full_backward|post_accumulate_grad)_|)(?:pre_)?hook")
"""A method that registers a hook: on a module or a parameter, which its name says, or on a tensor."""


def add_doctor_command(add_parser: AddParser) -> None:
    """Add the command by ``add_parser``, the method of argparse's subparsers."""
    status = _("The exit status is 0 if nothing worse than a remark was found, else 1; 2 if there is no such thing.")
    command = add_command(add_parser, "doctor", _check_thing, status)
    command.add_argument(
        "thing",
        metavar="package.module:name",
        help=_(
            "a model or a hook function in a module, which is imported; with name() it is called first, which suits "
            "a class or a function that makes a model"
        ),
    )
    add_output_options(command)


def _check_thing(options: argparse.Namespace) -> int:
    """Check what the argument names."""
    from hookviz import doctor  # without torch it raises an ImportError that says so
    from hookviz.command_line.reports import report_doctor

    name = options.thing
    module, _ignored, path = name.partition(":")
    if not module or not path or module.endswith(".py") or "/" in module:
        raise ValueError(
            _(
                "{name} does not name a model or a hook. Write the module as Python imports it and the name in it: "
                "package.module:net, or package.module:Net() to call it first."
            ).format(name=name)
        )
    with program_environment([module], is_module=True), redirect_stdout(sys.stderr):
        thing = _find(name, module, path)
        try:
            found = doctor(thing)
        except TypeError as error:
            raise ValueError(f"{name}: {error}") from None
    write_table(found, options, (), lambda: report_doctor(found))
    return choose_status(finding.severity for finding in found)


def _find(name: str, module: str, path: str) -> Any:
    """Import a module, and return what is at ``path`` in it.

    Raises:
        ValueError: the module or a call raises, there is no such name, or it has to be called first.
    """
    advice = _('What should not run when it is imported belongs under if __name__ == "__main__".')
    thing: Any = _attempt(lambda: importlib.import_module(module), _("Importing {name}").format(name=module), advice)
    for part in path.removesuffix("()").split("."):
        thing = _get_part(thing, part)
    if path.endswith("()"):
        return _attempt(thing, name, _("To check a model that needs arguments, name a function that makes it."))
    if isinstance(thing, type):
        raise ValueError(_("{name} is a class. To check what it makes, write {name}()").format(name=name))
    if inspect.isfunction(thing) and not inspect.signature(thing).parameters:
        raise ValueError(
            _("{name} takes no argument, so it is not a hook. If it makes a model, write {name}()").format(name=name)
        )
    if _registers_hooks(thing):
        text = _("{name} is not a hook: it registers hooks. Name the model, or the hook function.")
        raise ValueError(text.format(name=name))
    return thing


def _registers_hooks(thing: object) -> bool:
    """Whether a function registers hooks on a model, or takes one thing and registers hooks on it.

    A hook of a module may register hooks on its output, but not on modules.
    """
    if not inspect.isfunction(thing):
        return False
    calls = map(_REGISTRATION.fullmatch, thing.__code__.co_names)  # a docstring may name a method, too
    found = {call[1] for call in calls if call}
    return bool(found - {""}) or (bool(found) and len(inspect.signature(thing).parameters) == 1)


def _get_part(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        names = _list_names(owner)
        here = getattr(owner, "__name__", type(owner).__name__)
        text = _("{here} has no {name}. It has: {names}.")
        raise ValueError(text.format(here=here, name=name, names=join_first(names, MAX_NAMES))) from None


def _list_names(owner: Any) -> list[str]:
    """List the public names of a model or a module: models and functions first, and nothing that is imported."""
    from torch.nn import Module

    if isinstance(owner, Module):
        return list(dict(owner.named_children()))
    known = {name: x for name, x in getattr(owner, "__dict__", {}).items() if not name.startswith("_")}
    if not inspect.ismodule(owner):
        return list(known)

    def rank(name: str) -> int:
        """0 for a model or a function of the module, 1 for another value, 2 for what is imported."""
        value = known[name]
        is_defined = isinstance(value, type | FunctionType)
        if inspect.ismodule(value) or (is_defined and value.__module__ != owner.__name__):
            return 2
        is_model = issubclass(value, Module) if isinstance(value, type) else isinstance(value, Module | FunctionType)
        return 0 if is_model else 1

    return sorted((name for name in known if rank(name) < 2), key=rank)


def _attempt(make: Callable[[], Any], what: str, advice: str) -> Any:
    """Call the user's code; what it raises becomes an error that says where."""
    try:
        return make()
    except (Exception, SystemExit) as error:
        raised = traceback.format_exception_only(error)[-1].strip()
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_around(frame.filename)]
        places = [(frame.filename, frame.lineno) for frame in frames]
        if isinstance(error, SyntaxError) and error.filename is not None:
            places.append((error.filename, error.lineno))
            advice = ""
        place = describe_place(shorten_filename(places[-1][0]), places[-1][1]) if places else ""
        text = _("{what} raised {error} ({place}).") if place else _("{what} raised {error}.")
        said = text.format(what=what, error=raised, place=place)
        raise ValueError(join_sentences([said, advice])) from None


def _is_around(file: str) -> bool:
    """Whether a frame is hookviz's own, or of Python's import."""
    return file in (__file__, importlib.__file__) or file.startswith("<frozen ")
