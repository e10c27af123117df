"""The options of ``record``, which check themselves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from hookviz.api.trace import Trace
from hookviz.autograd.variable_names import validate_names
from hookviz.support.atomic_files import to_path
from hookviz.support.messages import _
from hookviz.support.printable import check_flag, describe_type
from hookviz.trace.value_rows import StatisticsMode

Until = Literal["nan"] | Callable[[Trace], object]
"""When to stop: ``"nan"``, or a function that takes the trace and returns whether to stop."""

TROUBLE_SUFFIXES = (".html", ".json")
"""The suffixes of the file that ``on_trouble`` names: a page, and the saved trace."""


@dataclass(frozen=True)
class RecordOptions:
    """What the user asks of a recording; ``record`` describes each option.

    >>> RecordOptions(every=0).check()
    Traceback (most recent call last):
    ValueError: every is a number of passes, a whole number of at least 1, not 0.
    """

    models: tuple[torch.nn.Module, ...] = ()
    names: Mapping[str, torch.Tensor] | None = None
    every: int = 1
    keep: int | None = None
    until: Until | None = None
    on_trouble: str | Path | None = None
    statistics: StatisticsMode | None = None
    cuts: bool = False
    histograms: bool = False
    compiled: Literal["eager"] | None = None

    def check(self) -> None:
        """Check all options.

        Raises:
            TypeError, ValueError, FileNotFoundError: as ``record`` does.
        """
        for model in self.models:
            if not isinstance(model, torch.nn.Module):
                raise TypeError(
                    _("record() takes the modules to follow, or nothing to follow all; this is {kind}.").format(
                        kind=describe_type(model)
                    )
                )
        validate_names(self.names)
        _check_count("every", self.every)
        if self.keep is not None:
            _check_count("keep", self.keep)
        if not callable(self.until):
            _check_choice("until", self.until, ("nan",), _("a function of the trace"))
        _check_choice("statistics", self.statistics, ("all", "norm"))
        _check_choice("compiled", self.compiled, ("eager",))
        check_flag("cuts", self.cuts)
        check_flag("histograms", self.histograms)
        self.find_trouble_file()

    def find_trouble_file(self) -> Path | None:
        """Return the absolute path of the file of ``on_trouble``: the program may change its working folder.

        Raises:
            TypeError: it is not a path.
            ValueError: its suffix is unknown.
            FileNotFoundError: its folder does not exist.
        """
        if self.on_trouble is None:
            return None
        file = to_path(self.on_trouble).absolute()
        if file.suffix.lower() not in TROUBLE_SUFFIXES:
            raise ValueError(
                _(
                    "on_trouble is the file to write: its name must end in .html (a page) or .json (the saved "
                    "trace), and {path} does not."
                ).format(path=str(self.on_trouble))
            )
        if not file.parent.is_dir():
            raise FileNotFoundError(
                _("on_trouble cannot write {path}: there is no folder {folder}. Create it first.").format(
                    path=str(self.on_trouble), folder=str(file.parent)
                )
            )
        return file


def _check_count(option: str, count: Any) -> None:
    """Check a number of passes."""
    is_number = isinstance(count, int) and not isinstance(count, bool)
    if not is_number or count < 1:
        text = _("{option} is a number of passes, a whole number of at least 1, not {given}.")
        raise (ValueError if is_number else TypeError)(text.format(option=option, given=repr(count)))


def _check_choice(option: str, given: Any, words: tuple[str, ...], other: str = "") -> None:
    """Check that an option is None or one of ``words``; ``other`` says what it may be besides."""
    if given is not None and not (isinstance(given, str) and given in words):
        choices = ", ".join([*(f'"{word}"' for word in words), *([other] if other else []), "None"])
        text = _("{option} takes one of these: {choices}; not {given}.")
        raise (ValueError if isinstance(given, str) else TypeError)(
            text.format(option=option, choices=choices, given=repr(given))
        )
