"""The options of ``record``, which check themselves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from hookviz.api.trace import Trace
from hookviz.autograd.variable_names import validate_names
from hookviz.support.atomic_files import to_path
from hookviz.support.messages import N_, _
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
    ValueError: every=n records one of every n passes: n is a whole number of at least 1, not 0.
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
        _check_count(
            self.every,
            N_("every=n records one of every n passes: n is a whole number of at least 1, not {count}."),
        )
        if self.keep is not None:
            _check_count(
                self.keep,
                N_("keep is how many passes to keep, a whole number of at least 1 or None for all, not {count}."),
            )
        if self.until is not None and self.until != "nan" and not callable(self.until):
            raise _wrong_kind(self.until)(
                _(
                    'until says when to stop recording: "nan", a function that takes the trace and returns true '
                    "or false, or None, not {until}."
                ).format(until=repr(self.until))
            )
        if self.statistics not in ("all", "norm", None):
            raise _wrong_kind(self.statistics)(
                _(
                    'statistics chooses what to read of tensors with many numbers: "all", "norm", or None for '
                    "the rule; not {which}."
                ).format(which=repr(self.statistics))
            )
        check_flag("cuts", self.cuts)
        check_flag("histograms", self.histograms)
        self._check_compiled()
        self.find_trouble_file()

    def _check_compiled(self) -> None:
        if self.compiled not in ("eager", None):
            raise _wrong_kind(self.compiled)(
                _(
                    'compiled says how code from torch.compile runs while you record: "eager", or None for compiled '
                    "as in your program; not {which}."
                ).format(which=repr(self.compiled))
            )

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


def _check_count(count: Any, fault: str) -> None:
    """Check a number of passes; ``fault`` is the error for another ``count``."""
    is_number = isinstance(count, int) and not isinstance(count, bool)
    if not is_number or count < 1:
        raise (ValueError if is_number else TypeError)(_(fault).format(count=repr(count)))


def _wrong_kind(choice: object) -> type[Exception]:
    """Return the type of the exception for a choice that there is not: it may be a text, but not this one."""
    return ValueError if isinstance(choice, str) else TypeError
