"""Try the detectors of a student on patients that nobody has seen."""

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import Any

import torch

from hookviz.course.answer_log import describe_answer
from hookviz.course.detector_code import find_forbidden_name
from hookviz.course.fault_draw import (
    DETECTOR_KINDS,
    PLACES_OF_KIND,
    STAGES,
    Fault,
    draw_trial,
    name_patient,
)
from hookviz.course.project_grading import read_place
from hookviz.course.project_patient import Patient, build_patient, count_registrations
from hookviz.course.project_reasons import list_faults, project_texts
from hookviz.course.verdict import Verdict

EXERCISE = "project.detectors"
PASS_COUNT, NEEDED = 18, 2
"""On how many of 20 patients a detector must be right, and how many detectors must pass."""
LONGEST = 20_000
"""Characters of a detector that go into the file of answers."""
Detector = Callable[[Patient], Any]


@dataclass
class Trial:
    """What a detector did on its patients."""

    kind: str
    patients: int = 0
    right: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    """Way of being wrong → patients: ``silent`` on one that has the kind, a ``false`` place, ``failed``."""
    error: str = ""
    """What it raised, or returned in place of places, the first time it failed."""
    examples: list[str] = field(default_factory=list)
    """For each way of being wrong: the first such patient, what was named and what it has."""

    @property
    def passed(self) -> bool:
        """Whether it was right often enough."""
        return self.right >= PASS_COUNT

    def count(self, patient: str, found: set[str], faults: Sequence[Fault]) -> None:
        """Count one patient on which it named these places."""
        places = {place for fault in faults if fault.kind == self.kind for place in fault.places}
        self.right += found <= places and bool(found) == bool(places)
        if not found and places:
            self._count_wrong("silent", patient, faults)
        if not found <= places:
            self._count_wrong("false", patient, faults, found=", ".join(sorted(found)))

    def count_error(self, patient: str, error: str, faults: Sequence[Fault]) -> None:
        """Count one patient on which it failed."""
        self.error = self.error or error
        self._count_wrong("failed", patient, faults)

    def _count_wrong(self, way: str, patient: str, faults: Sequence[Fault], **values: str) -> None:
        self.wrong[way] += 1
        if self.wrong[way] == 1:
            text = project_texts()[f"trial.first_{way}"]
            self.examples.append(text.format(patient=patient, faults=list_faults(faults), **values))

    def explain(self) -> str:
        """Say how often it was right, and for each way in which it was wrong the first such patient."""
        texts = project_texts()
        silent, false, failed = (self.wrong[way] for way in ("silent", "false", "failed"))
        said = texts["trial.counts"].format(
            kind=self.kind, right=self.right, patients=self.patients, silent=silent, false=false
        )
        if failed:
            said += texts["trial.failed"].format(failed=failed, error=self.error)
        return said + "".join(self.examples)


def grade_detectors(detectors: Any) -> tuple[Verdict, str | None]:
    """Try detectors; return the verdict, and their text for the file of answers, or None if nothing was tried."""
    problem = _find_problem(detectors)
    if problem is not None:
        return Verdict(EXERCISE, False, problem), None
    trials = []
    for number, (kind, detector) in enumerate(detectors.items(), start=1):
        print(project_texts()["trial.begins"].format(number=number, count=len(detectors), kind=kind), flush=True)
        trials.append(try_detector(kind, detector, secrets.token_hex(4)))
    passed = sum(trial.passed for trial in trials)
    text = project_texts()["trial.enough" if passed >= NEEDED else "trial.too_few"].format(
        passed=passed, needed=NEEDED, mark=PASS_COUNT
    )
    reason = text + "".join(f"\n- {trial.explain()}" for trial in trials)
    verdict = Verdict(EXERCISE, passed >= NEEDED, reason, credit=min(1.0, passed / NEEDED))
    return verdict, "\n\n".join(
        f"{kind}:\n{describe_answer(detector, LONGEST)}" for kind, detector in detectors.items()
    )


def _find_problem(detectors: Any) -> str | None:
    """Say why detectors cannot be tried; None if they can."""
    texts = project_texts()
    if not detectors:
        return texts["trial.none"]
    if not isinstance(detectors, Mapping):
        return texts["trial.no_dict"]
    for kind, detector in detectors.items():
        if kind not in PLACES_OF_KIND:
            return texts["trial.kind"].format(kind=repr(kind), kinds=", ".join(DETECTOR_KINDS))
        if kind not in DETECTOR_KINDS:
            return texts["trial.not_counted"].format(kind=kind, kinds=", ".join(DETECTOR_KINDS))
        if not callable(detector):
            return texts["trial.no_function"].format(kind=kind, given=describe_answer(detector))
        name = find_forbidden_name(detector)
        if name is not None:
            return texts["trial.forbidden"].format(kind=kind, name=name, rule=texts["trial.rule"])
    return None


def try_detector(kind: str, detector: Detector, seed: str) -> Trial:
    """Run a detector on 20 patients that are drawn for its kind, each of them made anew."""
    trial = Trial(kind)
    for number, faults in enumerate(draw_trial(kind, seed), start=1):
        trial.patients += 1
        name = name_patient(kind, seed, number)
        found, error = _run(detector, build_patient(name, faults))
        if found is None:
            trial.count_error(name, error, faults)
        else:
            trial.count(name, found, faults)
    return trial


def _run(detector: Detector, patient: Patient) -> tuple[set[str] | None, str]:
    """Return the places that a detector names; or None, and what went wrong."""
    before = count_registrations()
    try:
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            answer = detector(patient)
        given = [] if answer is None else [answer] if isinstance(answer, str) else list(answer)
    except Exception as error:
        return None, _describe_error(error)
    if count_registrations() == before:
        return None, project_texts()["trial.no_hook"]
    places = [read_place(place) for place in given if place != ""]
    found = {place for place in places if place is not None}
    if None in places:
        return None, project_texts()["trial.no_places"].format(given=describe_answer(answer), places=", ".join(STAGES))
    return found, ""


def _describe_error(error: Exception) -> str:
    """Say what a detector raised, and in which of its lines."""
    said = f"{type(error).__name__}: {error}"
    _own, *frames = extract_tb(error.__traceback__)
    if not frames:
        return said
    line = [frame for frame in frames if frame.filename == frames[0].filename][-1]
    return project_texts()["trial.line"].format(error=said, number=line.lineno, line=line.line)
