"""Detectors of students are tried on patients that nobody has seen; only those that find their kind pass."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz as hv
from hookviz.course import report
from hookviz.course.detector_code import find_forbidden_name
from hookviz.course.fault_draw import (
    DETECTOR_KINDS,
    HIDDEN_FROM_HOOKS,
    LOOK_ALIKES,
    PLACES_OF_KIND,
    STAGES,
    can_be_found,
    draw_faults,
    draw_trial,
    find_in_trial,
)
from hookviz.course.project import Patient, hand_in, hand_in_detectors, hint, make_patient, make_twin
from hookviz.course.project_detectors import PASS_COUNT, try_detector
from hookviz.course.project_reasons import list_faults
from tests.course.detectives import DETECTIVES, find_dead_units, find_frozen, find_vanishing

pytestmark = pytest.mark.usefixtures("new_session")
KINDS = sorted(PLACES_OF_KIND)
Detector = Callable[[Patient], Any]


def hooked(detector: Detector) -> Detector:
    """The same detector, with a hook that does nothing."""

    def look(patient: Patient) -> Any:
        patient.net.register_forward_hook(lambda *given: None).remove()
        return detector(patient)

    return look


def count(kind: str, detector: Detector) -> tuple[int, int, int, int]:
    trial = try_detector(kind, detector, "test")
    return trial.right, trial.wrong["silent"], trial.wrong["false"], trial.wrong["failed"]


def test_half_of_the_patients_of_a_trial_have_the_kind_and_each_other_kind_comes_three_times() -> None:
    for kind in KINDS:
        patients = draw_trial(kind, "a")
        assert all(len(faults) == 3 and can_be_found(faults) for faults in patients)
        counts = Counter(fault.kind for faults in patients for fault in faults)
        assert (len(patients), counts[kind]) == (20, 10)
        assert all(counts[other] >= 3 for other in KINDS if other != kind)
        kinds_of_patients = [{fault.kind for fault in faults} for faults in patients]
        without = [kinds for kinds in kinds_of_patients if kind not in kinds]
        alike = LOOK_ALIKES.get(kind, KINDS)
        assert sum(not kinds.isdisjoint(alike) for kinds in without) >= 2, "a look-alike"
    assert draw_trial("leak", "a") != draw_trial("leak", "b")


# -- detectors that pass


@pytest.mark.parametrize("kind", sorted({*DETECTOR_KINDS} - {"dead_units", "vanishing"}))  # these are handed in below
def test_a_detective_of_each_kind_passes(kind: str) -> None:
    assert count(kind, DETECTIVES[kind]) == (20, 0, 0, 0)


def test_two_that_pass_are_enough_and_the_best_try_goes_into_the_file_of_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: list[str] = []
    right = {"dead_units": find_dead_units, "vanishing": find_vanishing}
    verdict = hand_in_detectors({**right, "wrong_scale": hooked(lambda patient: seen.append(patient.seed))})
    assert verdict.right and verdict.score == 1
    assert "Detectors that pass in this try: 2. That is enough." in verdict.reason
    assert "dead_units: right on 20 of 20; silent on 0 that have it; a false place on 0." in verdict.reason
    assert "wrong_scale: right on 10 of 20; silent on 10 that have it; a false place on 0." in verdict.reason
    assert "Detector 3 of 3, wrong_scale: it looks at 20 patients.\n" in capsys.readouterr().out
    assert not hand_in_detectors({"wrong_scale": lambda patient: seen.append(patient.seed)}).right
    assert len(set(seen)) == 40, "each trial has other patients"
    record = report("answers.json").exercises["project.detectors"]
    assert (record["score"], record["tries"], record["right"]) == (1, 2, True)
    assert "def find_dead_units" in record["first_answer"]


def test_one_detector_is_half_a_point_and_places_may_be_names_of_parts() -> None:
    detector = {"dead_units": lambda patient: [f"{place}.bend" for place in find_dead_units(patient)]}
    assert hand_in_detectors(detector).score == 0.5
    assert count("dead_units", lambda patient: next(iter(find_dead_units(patient)), None))[0] == 20


# -- detectors that do not pass


def test_whoever_says_nothing_or_everything_or_looks_the_faults_up_does_not_pass() -> None:
    def look_up(patient: Patient) -> list[str]:
        return [fault.place for fault in draw_faults(patient.seed) if fault.kind == "dead_units"]

    assert count("dead_units", hooked(lambda patient: set())) == (10, 10, 0, 0)
    right, _, false, _ = count("dead_units", hooked(lambda patient: STAGES))
    assert (right, false) == (0, 20)
    assert count("dead_units", hooked(look_up))[0] < PASS_COUNT


def test_a_detector_without_a_hook_does_not_pass_though_it_makes_a_twin() -> None:
    def find_huge_weights(patient: Patient) -> list[str]:
        make_twin(patient.seed)
        return [name for name, stage in patient.net.named_children() if name != "head" and stage.mix.weight.std() > 1]

    trial = try_detector("huge_weights", find_huge_weights, "test")
    assert (trial.right, trial.wrong["failed"], trial.error) == (0, 20, "It registered no hook.")


def test_a_detector_that_takes_another_kind_for_its_own_does_not_pass() -> None:
    def find_either(patient: Patient) -> set[str]:
        return find_vanishing(patient) | find_frozen(patient)

    assert try_detector("vanishing", find_either, "a").right < PASS_COUNT


def test_no_detector_asks_hand_in_or_a_hint_about_its_patient() -> None:
    patient = make_patient("vanishing-3fa9c1d2-7")
    verdict = hand_in(patient, [("leak", "stage2")])
    assert not verdict.right and "is not graded" in verdict.reason and not Path("answers.json").exists()
    with pytest.raises(ValueError, match="belongs to a trial"):
        hint(patient, 1)


# -- what a detector may use


def count_objects() -> int:
    import gc

    return len(gc.get_objects())


step = hv.Step  # an attribute of the same name, such as patient.step, is something else


@pytest.mark.parametrize(
    ("detector", "name"),
    [
        (lambda patient: hv.hooks(patient.net), "hv"),
        (lambda patient: count_objects(), "gc"),
        (lambda patient: [draw_trial(kind, "a") for kind in KINDS], "draw_trial"),
        (lambda patient: patient.net.stage1.enter.__closure__, "__closure__"),
        (lambda patient: make_twin(patient.seed).step(), None),
        (print, None),
    ],
)
def test_what_a_detector_may_not_use_is_found_in_its_code_and_in_the_functions_it_calls(
    detector: Detector, name: str | None
) -> None:
    assert find_forbidden_name(detector) == name


def test_hooks_and_public_attributes_are_enough_for_each_kind_that_counts() -> None:
    assert all(find_forbidden_name(DETECTIVES[kind]) is None for kind in DETECTOR_KINDS)
    assert all(find_forbidden_name(DETECTIVES[kind]) for kind in HIDDEN_FROM_HOOKS)


# -- what the verdict says


def test_an_error_is_told_once_with_the_detectors_own_line_and_counts_as_wrong() -> None:
    calls: list[int] = []

    def fail(patient: Patient) -> set[str]:
        calls.append(1)
        with patient.net.head.register_forward_hook(lambda module, args, output: output.view(7)):
            if len(calls) % 2:
                patient.net(patient.images)
        return set()

    reason = hand_in_detectors({"vanishing": fail}).reason
    assert "On 10 it failed. The first time: RuntimeError: " in reason
    assert ": `with patient.net.head.register_forward_hook(lambda module, args, output: output.view(7)):`." in reason
    failed = re.search(r'First error: make_patient\("(.+?)"\), which has (.+?)\.', reason)
    assert failed and failed[2] == list_faults(find_in_trial(failed[1]))
    no_place = try_detector("leak", hooked(lambda patient: ["stage1", 3]), "test")
    assert (no_place.right, no_place.wrong["failed"]) == (0, 20) and no_place.error


def test_the_first_patient_of_each_way_to_be_wrong_is_named_with_its_faults_and_can_be_made_again() -> None:
    patients: dict[str, Patient] = {}
    ill: dict[str, bool] = {}

    def note(patient: Patient) -> set[str]:
        found = find_dead_units(patient)
        patients[patient.seed], ill[patient.seed] = patient, bool(found)
        return {"stage1"} if not found else set()

    reason = hand_in_detectors({"dead_units": note}).reason
    missed = next(seed for seed, has_it in ill.items() if has_it)
    false = next(seed for seed, has_it in ill.items() if not has_it)
    assert f'First missed: make_patient("{missed}"), which has {list_faults(find_in_trial(missed))}.' in reason
    has = f"Named: stage1. It has {list_faults(find_in_trial(false))}."
    assert f'First false place: make_patient("{false}"). {has}' in reason
    again = make_patient(missed)
    assert all(map(torch.equal, patients[missed].net.parameters(), again.net.parameters()))
    assert find_dead_units(again) and not find_dead_units(make_patient(false))


def test_long_detectors_are_kept_whole() -> None:
    lines = "".join(f"    total = {number}\n" for number in range(200))
    file = Path("long_detectors.py").resolve()
    file.write_text(f"def first(patient):\n{lines}def second(patient):\n{lines}    pass\n")
    space: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    hand_in_detectors({"wrong_scale": space["first"], "vanishing": space["second"]})
    kept = report("answers.json").exercises["project.detectors"]["last_answer"]
    assert kept.count("total = 199") == 2 and kept.rstrip().endswith("pass")


@pytest.mark.parametrize(
    ("detectors", "said"),
    [
        ({}, "The dict is empty"),
        ([find_vanishing], "Hand in a dict"),
        ({"leaks": find_vanishing}, "There is no kind 'leaks'"),
        ({"leak": find_vanishing}, "A detector of leak does not count. Choose"),
        ({"vanishing": {"stage2"}}, "The detector of vanishing is not a function"),
        ({"vanishing": DETECTIVES["leak"]}, "The detector of vanishing uses weakref. It was not counted."),
    ],
)
def test_what_cannot_be_tried_is_told_and_not_counted(detectors: Any, said: str) -> None:
    verdict = hand_in_detectors(detectors)
    assert not verdict.right and said in verdict.reason and not Path("answers.json").exists()
