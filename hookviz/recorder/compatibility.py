"""What the installed torch no longer has, or no longer does, of what hookviz relies on."""

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
from hookviz.support.messages import say
from hookviz.support.version import VERSION


class Difference(NamedTuple):
    """One point in which the installed torch is not as hookviz expects."""

    use: Use
    text: str


@dataclass
class Report:
    """How the installed torch compares with what hookviz relies on."""

    checked: Counter[Use] = field(default_factory=Counter)
    """For each use, how many internals and behaviours were checked."""
    differences: list[Difference] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The report, for a person to read."""
        yield _versions()
        yield ""
        differing = Counter(one.use for one in self.differences)
        rows = [(say(f"torch.use.{use}"), _state(self.checked[use], differing[use])) for use in get_args(Use)]
        width = max(len(label) for label, _ in rows)
        yield from (f"  {label.ljust(width)}  {state}" for label, state in rows)
        yield ""
        total = self.checked.total()
        if not self.differences:
            yield say("torch.good", total=total)
            return
        yield from (one.text for one in self.differences)
        yield ""
        yield say("torch.bad", count=len(self.differences), total=total)


def _versions() -> str:
    first, last = TESTED
    return say(
        "torch.versions",
        torch=torch.__version__,
        python=platform.python_version(),
        hookviz=VERSION,
        first=first,
        last=last,
    )


def _state(total: int, differing: int) -> str:
    return say("torch.differs", count=differing, total=total) if differing else say("torch.as_expected", total=total)


def compare() -> Report:
    """Compare the installed torch with what hookviz relies on: a few seconds, most of them to load the compiler."""
    report = Report()
    for internal in INTERNALS:
        if internal.use != "ranks" or torch.distributed.is_available():
            report.checked[internal.use] += 1
            report.differences += _of_internal(internal)
    for behaviour in BEHAVIOURS:
        report.checked[behaviour.use] += 1
        report.differences += _of_behaviour(behaviour)
    return report


def _of_internal(internal: Internal) -> Iterator[Difference]:
    """The difference in one internal, if there is one."""
    owner, _, name = internal.path.rpartition(".")
    is_attribute, loss = internal.kind == "attribute", say(f"torch.loss.{internal.use}")
    try:
        thing = resolve(owner if is_attribute else internal.path)
    except LookupError:
        yield Difference(internal.use, say("torch.missing", path=internal.path, since=internal.since, loss=loss))
        return
    except Exception as error:  # a module of torch that cannot be imported here
        yield Difference(internal.use, say("torch.unloadable", path=internal.path, error=repr(error), loss=loss))
        return
    if is_attribute and not _mentions(thing, name):
        yield Difference(internal.use, say("torch.missing", path=internal.path, since=internal.since, loss=loss))
    elif not matches_kind(internal.kind, thing):
        kinds = {"kind": internal.kind, "found": type(thing).__name__}
        yield Difference(internal.use, say("torch.changed", path=internal.path, **kinds, loss=loss))


def _of_behaviour(behaviour: Behaviour) -> Iterator[Difference]:
    """The difference in one behaviour, if there is one."""
    relies, loss = say(f"torch.relies.{behaviour.name}"), say(f"torch.loss.{behaviour.use}")
    try:
        if not behaviour.holds():
            yield Difference(behaviour.use, say("torch.untrue", relies=relies, loss=loss))
    except Exception as error:
        raised = f"{type(error).__name__}: {error}"
        yield Difference(behaviour.use, say("torch.raised", relies=relies, error=raised, loss=loss))


def _mentions(owner: Any, name: str) -> bool:
    """Whether ``owner``, a class or a function, has an attribute or a variable of this name, or its code names it.

    >>> _mentions(Internal, "since"), _mentions(resolve, "path"), _mentions(resolve, "nothing")
    (True, True, False)
    >>> _mentions(int, "since")
    False
    """
    bases = owner.__mro__ if isinstance(owner, type) else ()
    if hasattr(owner, name) or any(name in vars(base).get("__annotations__", ()) for base in bases):
        return True
    parts = [part for base in bases for part in vars(base).values()] or [owner]
    functions = (inspect.unwrap(part) for part in parts if isinstance(part, FunctionType))
    return any(name in _names(function.__code__) for function in functions)


def _names(code: CodeType) -> set[str]:
    """Every name in the code of a function and of the functions inside it."""
    found = {code.co_name, *code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    return found.union(*(_names(one) for one in code.co_consts if isinstance(one, CodeType)))
