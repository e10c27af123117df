"""Draw the faults of a patient of the final project: three kinds at three places, the same for the same number."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

Item = TypeVar("Item")

STAGES = tuple(f"stage{number}" for number in range(1, 9))
COUNT = 3
"""The faults of a patient."""

_AFTER_FIRST = STAGES[1:]
PLACES_OF_KIND: dict[str, tuple[str, ...]] = {
    "called_by_forward": STAGES,
    "cut": _AFTER_FIRST,  # nothing stands before the first stage that could lose its gradient
    "dead_units": STAGES,
    "edits_in_place": STAGES,
    "frozen": _AFTER_FIRST,
    "huge_weights": STAGES,
    "leak": STAGES,
    "norm_in_eval": STAGES,
    "not_in_optimizer": STAGES,
    "one_sided": STAGES,
    "returning_hook": STAGES,
    "scaled_gradient": _AFTER_FIRST,
    "shared_weights": _AFTER_FIRST,  # the first layer has another shape
    "vanishing": STAGES,
    "wrong_copy": STAGES,
    "wrong_scale": STAGES,
}
"""Kind of a fault → the places where it can be found."""
SEEN_IN_BACKWARD = {"edits_in_place", "frozen", "not_in_optimizer", "one_sided", "scaled_gradient", "vanishing"}
"""Kinds that do not show where no gradient arrives: none of these is drawn before a cut."""
LOUD = {"cut", "dead_units", "scaled_gradient", "vanishing", "wrong_scale"}
"""Kinds that cost accuracy at once. A patient has at least one of them in a loud place, so it looks ill."""
QUIET = {("cut", "stage2"), ("scaled_gradient", "stage2")}
"""Where a loud kind costs little: only the first stage stays as it was."""
READ_OFF = {
    "cut",
    "frozen",
    "huge_weights",
    "norm_in_eval",
    "not_in_optimizer",
    "one_sided",
    "shared_weights",
    "wrong_copy",
}
"""Kinds that one line reads off without a hook: a detector of these does not count, a patient has at most one."""
HIDDEN_FROM_HOOKS = {"edits_in_place", "leak"}
"""Kinds that a recording or a weak reference shows, and hooks alone do not: a detector of these does not count.

The student's hook on a weight always runs after the patient's.
"""
DETECTOR_KINDS = tuple(kind for kind in PLACES_OF_KIND if kind not in READ_OFF | HIDDEN_FROM_HOOKS)
"""Kinds for which a detector counts."""
HAVE_IT, HAVE_IT_NOT = 10, 10
"""How many patients on which a detector is tried have its kind, and how many do not."""
NAMED_BY_HOOKVIZ = {"called_by_forward", "cut", "scaled_gradient"}
"""Kinds whose place stands in the findings of a recording: a patient has at most one of them."""
LOOK_ALIKES = {
    "called_by_forward": ("shared_weights", "wrong_copy"),
    "dead_units": ("norm_in_eval", "vanishing"),
    "returning_hook": ("called_by_forward", "wrong_scale"),
    "scaled_gradient": ("cut", "vanishing"),
    "vanishing": ("dead_units", "scaled_gradient"),
    "wrong_scale": ("huge_weights", "vanishing"),
}
"""Kind for which a detector counts → the kinds that a careless detector takes for it."""
LEAST_LOOK_ALIKES = 2
"""How many of the ten patients without the kind have a look-alike, at least."""


@dataclass(frozen=True)
class Fault:
    """A fault of a patient."""

    kind: str
    places: tuple[str, ...]
    """Where it is; each of several places is right."""
    variant: int = 0
    """Which of the forms of its kind it has."""

    @property
    def place(self) -> str:
        """The first of its places."""
        return self.places[0]


class NumberSource:
    """Random numbers that depend on a text alone: the same with every release of Python."""

    def __init__(self, seed: str) -> None:
        self._numbers = self._generate(seed)

    def _generate(self, seed: str) -> Iterator[int]:
        count = 0
        while True:
            yield int.from_bytes(sha256(f"hookviz project {seed} {count}".encode()).digest()[:8], "big")
            count += 1

    def number(self) -> int:
        """Draw a number from 0 to 2**64 - 1."""
        return next(self._numbers)

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """Draw ``count`` different items."""
        left, drawn = list(items), []
        for _ in range(count):
            drawn.append(left.pop(self.number() % len(left)))
        return drawn


def draw_faults(seed: str) -> tuple[Fault, ...]:
    """Draw the faults of a patient: different kinds, one of them loud, at different places where each can be found.

    At most one of them stands in the findings of a recording, and one line reads off at most one.
    """
    draw, chance = NumberSource(seed), NumberSource(f"{seed} share")
    kinds = draw.sample(sorted(PLACES_OF_KIND), COUNT)
    while not _are_allowed(kinds) or chance.number() % 6 >= _share(kinds):
        kinds = draw.sample(sorted(PLACES_OF_KIND), COUNT)
    faults = _draw_places(draw, kinds)
    while not any(map(is_loud, faults)):
        faults = _draw_places(draw, kinds)
    return faults


def _are_allowed(kinds: Sequence[str]) -> bool:
    given_away = (NAMED_BY_HOOKVIZ.intersection(kinds), READ_OFF.intersection(kinds))
    return not LOUD.isdisjoint(kinds) and all(len(group) <= 1 for group in given_away)


def _share(kinds: Sequence[str]) -> int:
    """Of six draws of these kinds, how many are taken: so no kind comes four times as often as another."""
    if READ_OFF.isdisjoint(kinds):
        return 1
    if not NAMED_BY_HOOKVIZ.isdisjoint(kinds):
        return 6
    return 4 if len(LOUD.intersection(kinds)) == 1 else 2


def is_loud(fault: Fault) -> bool:
    """Whether a fault alone costs accuracy at once."""
    return fault.kind in LOUD and (fault.kind, fault.place) not in QUIET


def draw_trial(kind: str, seed: str) -> list[tuple[Fault, ...]]:
    """Draw the faults of 20 patients for a detector: ten have its kind and two others, ten have three others.

    Each other kind comes three times at least, so a detector that takes one of them for its own is wrong three times.
    Two of the ten without the kind have a look-alike at least.
    """
    draw = NumberSource(f"trial {seed}")
    used: Counter[str] = Counter()
    patients = []
    for number in range(HAVE_IT + HAVE_IT_NOT):
        own = [kind] if number < HAVE_IT else []
        if HAVE_IT <= number < HAVE_IT + LEAST_LOOK_ALIKES:
            own = draw.sample(LOOK_ALIKES.get(kind, ()), 1 if kind in LOOK_ALIKES else 0)
        others = draw.sample(sorted(set(PLACES_OF_KIND) - {kind, *own}), len(PLACES_OF_KIND) - len({kind, *own}))
        kinds = own + sorted(others, key=lambda other: used[other])[: COUNT - len(own)]
        used.update(kinds)
        patients.append(_draw_places(draw, kinds))
    return draw.sample(patients, len(patients))


PRACTICE = "practice-"
"""How the number of a patient begins that is only for practice."""


def is_practice(seed: str) -> bool:
    """Whether a patient is only for practice.

    >>> is_practice("practice-5"), is_practice("5")
    (True, False)
    """
    return seed.startswith(PRACTICE)


def previous_number(seed: str) -> str | None:
    """Return the number whose three tries must be used up before this one; None for a first number.

    >>> previous_number("47b"), previous_number("47c"), previous_number("47"), previous_number("practice-5b")
    ('47', '47b', None, None)
    """
    found = re.fullmatch(r"(.*\d)([b-z])", seed)
    if found is None or is_practice(seed):
        return None
    return found[1] + ("" if found[2] == "b" else chr(ord(found[2]) - 1))


def next_number(seed: str) -> str:
    """Return the number that follows when three tries are used up.

    >>> next_number("47"), next_number("47b")
    ('47b', '47c')
    """
    return f"{seed[:-1]}{chr(ord(seed[-1]) + 1)}" if previous_number(seed) else f"{seed}b"


def name_patient(kind: str, seed: str, number: int) -> str:
    """Name a patient of a trial, so that it can be made again.

    >>> name_patient("vanishing", "3fa9c1d2", 17)
    'vanishing-3fa9c1d2-17'
    """
    return f"{kind}-{seed}-{number}"


def find_in_trial(name: str) -> tuple[Fault, ...] | None:
    """Return the faults of a patient of a trial by its name; None if it is no such name.

    >>> len(find_in_trial("vanishing-3fa9c1d2-17"))
    3
    >>> find_in_trial("vanishing-17"), find_in_trial("vanishing-3fa9c1d2-21")
    (None, None)
    """
    found = re.fullmatch(rf"({'|'.join(DETECTOR_KINDS)})-([0-9a-f]{{8}})-(\d+)", name)
    if found is None or not 1 <= int(found[3]) <= HAVE_IT + HAVE_IT_NOT:
        return None
    return draw_trial(found[1], found[2])[int(found[3]) - 1]


def _draw_places(draw: NumberSource, kinds: Iterable[str]) -> tuple[Fault, ...]:
    """Draw faults of these kinds until each can be found."""
    while True:
        faults = tuple(_draw_fault(draw, kind) for kind in kinds)
        if can_be_found(faults):
            return faults


def _draw_fault(draw: NumberSource, kind: str) -> Fault:
    places = draw.sample(PLACES_OF_KIND[kind], 2 if kind == "shared_weights" else 1)
    return Fault(kind, tuple(sorted(places)), draw.number())


def can_be_found(faults: Sequence[Fault]) -> bool:
    """Whether no fault hides another one: they are at different places, and none needs a gradient that a cut takes."""
    places = [place for fault in faults for place in fault.places]
    cuts = [fault.place for fault in faults if fault.kind == "cut"]
    needing = [fault.place for fault in faults if fault.kind in SEEN_IN_BACKWARD]
    return len(set(places)) == len(places) and all(place >= cut for place in needing for cut in cuts)
