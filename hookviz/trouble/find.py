"""All findings of a trace: the first of each kind."""

from collections.abc import Iterator
from dataclasses import dataclass

from hookviz.table import Table
from hookviz.trace import TensorRow, Trace
from hookviz.trouble.looks import Found, Pass
from hookviz.trouble.scale import scales
from hookviz.trouble.strange import strange
from hookviz.trouble.zeros import zeros
from hookviz.words import say


@dataclass(frozen=True)
class Trouble:
    """Something that is wrong with the gradients."""

    step: int
    """Where it begins, counted from 0."""
    kind: str
    """``nan``, ``inf``, ``zero``, ``vanishing`` or ``exploding``."""
    sentence: str
    """What is wrong and whose work it is."""


def troubles(trace: Trace) -> Table[Trouble]:
    """The findings of each kind in the first pass that has one: of the first pass first, as later ones may follow."""
    found: dict[str, Found] = {}
    tensors: dict[int, list[TensorRow]] = {}
    for tensor in trace.tensors:
        tensors.setdefault(tensor.pass_id, []).append(tensor)
    for pass_id, steps in _passes(trace).items():
        for one in _found(Pass(trace, steps, tensors.get(pass_id, []))):
            found.setdefault(one.kind, one)
    order = ("nan", "inf", "zero", "exploding", "vanishing")
    known = [Trouble(*found[kind]) for kind in order if kind in found]
    rows_ = sorted(known, key=lambda trouble: trace.rows[trouble.step].pass_id)
    head = [say(f"table.{name}") for name in ("step", "trouble", "what")]
    return Table(rows_, head, lambda row: _cells(trace, row), say("trouble.none"))


def _cells(trace: Trace, row: Trouble) -> tuple[str, str, str]:
    count = say("table.count", step=row.step + 1, steps=len(trace.rows))
    return count, say(f"trouble.what.{row.kind}"), row.sentence


def _passes(trace: Trace) -> dict[int, list[int]]:
    passes: dict[int, list[int]] = {}
    for index, row in enumerate(trace.rows):
        passes.setdefault(row.pass_id, []).append(index)
    return passes


def _found(of: Pass) -> Iterator[Found]:
    begins = strange(of)
    if begins is not None:
        yield begins
    dead = zeros(of)
    if dead is not None:
        yield dead
    yield from scales(of)


def noted(trace: Trace) -> list[str]:
    """The findings as notes of the player; in a line of its own each says to which step it links."""
    found = ((row.step + 1, row.sentence) for row in troubles(trace))
    return [f"{say('trouble.note', step=step, told=told)}\n#step-{step}" for step, told in found]
