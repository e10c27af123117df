"""Compares the installed torch with what hookviz relies on."""

import inspect
import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, NamedTuple, get_args

import torch

from hookviz.autograd.torch_internals import INTERNALS, TESTED, Internal, Use, matches_kind, resolve
from hookviz.recorder.torch_behaviour import BEHAVIOURS, Behaviour
from hookviz.support.messages import N_, _, pluralize
from hookviz.support.printable import describe_type
from hookviz.support.terminal_text import measure_width, pad
from hookviz.support.version import VERSION

USES: dict[str, str] = {
    "passes": N_("backward passes"),
    "node_hooks": N_("hooks on nodes"),
    "tensor_hooks": N_("hooks on tensors"),
    "calls": N_("module calls and forward hooks"),
    "full_hooks": N_("backward hooks of modules"),
    "multi_grad": N_("multi-grad hooks"),
    "optimizers": N_("optimizer steps"),
    "values": N_("reading tensors unnoticed"),
    "formulas": N_("saved tensors, for the formulas"),
    "saved_hooks": N_("saved-tensor hooks"),
    "compiled": N_("compiled code"),
    "checkpoint": N_("checkpointing"),
    "ranks": N_("DDP and FSDP"),
    "scaler": "GradScaler",
    "listing": N_("listing hooks on saving, loading and registration"),
    "cuts": N_("following ops, for record(cuts=True)"),
}
"""Use of a part of torch → its name."""


class Mismatch(NamedTuple):
    """A point in which the installed torch differs from what hookviz expects."""

    use: Use
    text: str


@dataclass
class Report:
    """The result of comparing the installed torch with what hookviz relies on."""

    checked: Counter[Use] = field(default_factory=Counter)
    """Number of internals and behaviours that were checked, by use."""
    mismatches: list[Mismatch] = field(default_factory=list)
    gaps: list[Mismatch] = field(default_factory=list)
    """What a newer torch has and this one lacks, so that one feature is left out; all else works."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report as text for a person."""
        yield _versions_line()
        yield ""
        rows = [(_(USES[use]), self._format_use(use)) for use in get_args(Use)]
        width = max(measure_width(label) for label, _ignored in rows)
        yield from (f"  {pad(label, width)}  {state}" for label, state in rows)
        yield ""
        total, found = self.checked.total(), [*self.gaps, *self.mismatches]
        yield from (mismatch.text for mismatch in found)
        yield from [""] * bool(found)
        if self.mismatches:
            yield _(
                "Different: {count} of {total} points. Use a release of PyTorch that hookviz was tested "
                "with, or look for a newer hookviz."
            ).format(count=len(self.mismatches), total=total)
        elif self.gaps:
            yield _("{count} of {total} points need a newer PyTorch; all others are as hookviz expects.").format(
                count=len(self.gaps), total=total
            )
        else:
            yield _("All {total} points are as hookviz expects.").format(total=total)

    def _format_use(self, use: Use) -> str:
        """Return how many points of a use were checked, and how many of them differ or are missing."""
        total = pluralize(self.checked[use], _("{count} point"), _("{count} points"))
        differing, missing = (sum(found.use == use for found in list_) for list_ in (self.mismatches, self.gaps))
        if differing:
            return _("{total}, different: {count}").format(count=differing, total=total)
        return (
            _("{total}, {count} of them in a newer PyTorch only").format(count=missing, total=total)
            if missing
            else _("{total}, as expected").format(total=total)
        )


def _versions_line() -> str:
    first, last = TESTED
    return _(
        "PyTorch {torch}, Python {python}, hookviz {hookviz}. hookviz was tested with PyTorch {first} to {last}."
    ).format(torch=torch.__version__, python=platform.python_version(), hookviz=VERSION, first=first, last=last)


def check_torch() -> Report:
    """Compare the installed torch with what hookviz relies on.

    This takes a few seconds, most of them to load the compiler.
    """
    report = Report()
    for internal in INTERNALS:
        if internal.use != "ranks" or torch.distributed.is_available():
            report.checked[internal.use] += 1
            found = report.gaps if _needs_newer_torch(internal) else report.mismatches
            found += _internal_mismatches(internal)
    for behaviour in BEHAVIOURS:
        report.checked[behaviour.use] += 1
        report.mismatches += _behaviour_mismatches(behaviour)
    return report


def _needs_newer_torch(internal: Internal) -> bool:
    """Return whether hookviz is made to do without this internal in a torch as old as the installed one."""
    return bool(internal.gap) and torch.__version__ < internal.since


def _internal_mismatches(internal: Internal) -> Iterator[Mismatch]:
    """Yield the mismatch of one internal, if there is one."""
    fault = _find_fault(internal)
    if fault and _needs_newer_torch(internal):
        yield Mismatch(internal.use, _(internal.gap).format(since=internal.since))
    elif fault:
        yield _make_mismatch(internal.use, internal.path, fault)


def _find_fault(internal: Internal) -> str:
    """Return what is wrong with an internal; empty if nothing is."""
    owner, _ignored, name = internal.path.rpartition(".")
    is_attribute = internal.kind == "attribute"
    try:
        resolved = resolve(owner if is_attribute else internal.path)
    except LookupError:
        return _("missing")
    except Exception as error:  # importing this module of torch fails here
        return repr(error)
    if is_attribute and not _mentions(resolved, name):
        return _("missing")
    return "" if matches_kind(internal.kind, resolved) else describe_type(resolved)


def _behaviour_mismatches(behaviour: Behaviour) -> Iterator[Mismatch]:
    """Yield the mismatch of one behaviour, if there is one."""
    try:
        fault = "" if behaviour.holds() else _("no longer true")
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    if fault:
        yield _make_mismatch(behaviour.use, _(behaviour.relies).rstrip("."), fault)


def _make_mismatch(use: Use, point: str, fault: str) -> Mismatch:
    text = _("{point} ({fault}). Recordings may lack this, or show it wrongly: {use}.")
    return Mismatch(use, text.format(point=point, fault=fault, use=_(USES[use])))


def _mentions(owner: Any, name: str) -> bool:
    """Return whether ``owner``, a class or a function, has an attribute or a variable called ``name``.

    A name that only occurs in the code of ``owner`` counts, too.

    >>> _mentions(Internal, "since"), _mentions(resolve, "path"), _mentions(resolve, "nothing")
    (True, True, False)
    >>> _mentions(int, "since"), _mentions(torch.Tensor, "no_such_name")
    (False, False)
    """
    bases = owner.__mro__ if isinstance(owner, type) else ()
    if hasattr(owner, name) or any(name in vars(base).get("__annotations__", ()) for base in bases):
        return True
    members = [member for base in bases for member in vars(base).values()] or [owner]
    functions = (inspect.unwrap(member) for member in members if isinstance(member, FunctionType))
    codes = (function.__code__ for function in functions if isinstance(function, FunctionType))  # or written in C
    return any(name in _names_in_code(code) for code in codes)


def _names_in_code(code: CodeType) -> set[str]:
    """Return every name in the code of a function and of the functions inside it."""
    names = {code.co_name, *code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    return names.union(*(_names_in_code(constant) for constant in code.co_consts if isinstance(constant, CodeType)))
