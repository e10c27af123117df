"""Detectors of students are tried on patients that nobody has seen; only those that find their kind pass."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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
    PLACES,
    PLACES_OF_KIND,
    READ_OFF,
    Fault,
    can_be_found,
    draw_faults,
    draw_trial,
    find_in_trial,
)
from hookviz.course.project import Patient, hand_in, hand_in_detectors, hint, make_patient, make_twin
from hookviz.course.project_detectors import PASS_COUNT, try_detector
from hookviz.course.project_reasons import list_faults
from tests.course.detectives import DETECTIVES, find_dead_units, find_frozen, find_vanishing
from tests.course.test_project import new_kernel

KINDS = sorted(PLACES_OF_KIND)
Detector = Callable[[Patient], Any]


@pytest.fixture(autouse=True)
def new_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    new_kernel()
    yield
    new_kernel()


def hooked(detector: Detector) -> Detector:
    """The same detector, with a hook that does nothing."""

    def look(patient: Patient) -> Any:
        patient.net.register_forward_hook(lambda *given: None).remove()
        return detector(patient)

    return look


def count(kind: str, detector: Detector) -> tuple[int, int, int, int]:
    trial = try_detector(kind, detector, "test")
    return trial.right, trial.silent, trial.false, trial.failed


# -- the patients of a trial


@pytest.mark.parametrize("kind", KINDS)
def test_half_of_the_patients_have_the_kind_and_each_other_kind_comes_three_times(kind: str) -> None:
    for seed in "abc":
        patients = draw_trial(kind, seed)
        assert all(len(faults) == 3 and can_be_found(faults) for faults in patients)
        counts = Counter(fault.kind for faults in patients for fault in faults)
        assert (len(patients), counts[kind]) == (20, 10)
        assert all(counts[other] >= 3 for other in KINDS if other != kind)
    first = [any(fault.kind == kind for fault in faults) for faults in patients[:10]]
    assert any(first) and not all(first)


def test_two_of_the_patients_without_the_kind_have_a_look_alike_at_least() -> None:
    assert set(LOOK_ALIKES) == set(DETECTOR_KINDS)
    for kind in DETECTOR_KINDS:
        for seed in range(30):
            without = [kinds for kinds in map(kinds_of, draw_trial(kind, f"{seed:08x}")) if kind not in kinds]
            assert len(without) == 10 and sum(not kinds.isdisjoint(LOOK_ALIKES[kind]) for kinds in without) >= 2


def kinds_of(faults: Iterable[Fault]) -> set[str]:
    return {fault.kind for fault in faults}


def test_each_trial_has_other_patients() -> None:
    assert draw_trial("leak", "a") == draw_trial("leak", "a") != draw_trial("leak", "b")
    seen: list[str] = []
    for _ in range(2):
        hand_in_detectors({"wrong_scale": lambda patient: seen.append(patient.seed)})
    assert len(set(seen)) == 40


# -- detectors that pass


@pytest.mark.parametrize("kind", DETECTOR_KINDS)
def test_a_detective_of_each_kind_passes(kind: str) -> None:
    assert count(kind, DETECTIVES[kind]) == (20, 0, 0, 0)


def test_two_that_pass_are_enough_and_go_into_the_file_of_answers() -> None:
    verdict = hand_in_detectors(
        {"dead_units": find_dead_units, "vanishing": find_vanishing, "wrong_scale": hooked(lambda patient: None)}
    )
    assert (
        verdict.right and verdict.score == 1 and "Detectors that pass in this try: 2. That is enough." in verdict.reason
    )
    assert "dead_units: right on 20 of 20; silent on 0 that have it; a false place on 0." in verdict.reason
    assert "wrong_scale: right on 10 of 20; silent on 10 that have it; a false place on 0." in verdict.reason
    record = report("answers.json").exercises["project.detectors"]
    assert (record["score"], record["tries"], record["right"]) == (1, 1, True)
    assert "def find_dead_units" in record["first_answer"]


def test_the_best_try_counts_and_one_detector_is_half_of_it() -> None:
    assert hand_in_detectors({"dead_units": find_dead_units}).score == 0.5
    hand_in_detectors({"dead_units": find_dead_units, "vanishing": find_vanishing})
    assert not hand_in_detectors({"wrong_scale": lambda patient: set()}).right
    record = report("answers.json").exercises["project.detectors"]
    assert (record["score"], record["tries"], record["right"]) == (1, 3, True)


@pytest.mark.parametrize("shape", [list, dict.fromkeys])
def test_places_may_be_a_set_a_list_or_names_of_parts(shape: Callable[[list[str]], Any]) -> None:
    assert count("dead_units", lambda patient: shape([f"{place}.bend" for place in find_dead_units(patient)]))[0] == 20


def test_a_place_may_be_a_name_and_no_place_may_be_none() -> None:
    assert count("dead_units", lambda patient: next(iter(find_dead_units(patient)), None))[0] == 20


READ_OFF_LINES: dict[str, Callable[[Patient, str, Any], Any]] = {
    "cut": lambda patient, name, stage: (
        name != "stage1"
        and stage.norm.bias.grad is not None
        and patient.net.stage(f"stage{int(name[5:]) - 1}").norm.bias.grad is None
    ),
    "frozen": lambda patient, name, stage: not stage.mix.weight.requires_grad,
    "huge_weights": lambda patient, name, stage: stage.mix.weight.std() > 1,
    "norm_in_eval": lambda patient, name, stage: not stage.norm.training,
    "not_in_optimizer": lambda patient, name, stage: (
        id(stage.mix.weight) not in map(id, patient.optimizer.param_groups[0]["params"])
    ),
    "one_sided": lambda patient, name, stage: (
        (grad := stage.mix.weight.grad) is not None and bool(grad.any()) and grad.min() * grad.max() >= 0
    ),
    "shared_weights": lambda patient, name, stage: (
        sum(other.mix is stage.mix for other in patient.net.children() if hasattr(other, "mix")) > 1
    ),
    "wrong_copy": lambda patient, name, stage: not patient.log[name],
}
"""What reads off each kind that does not count, without a hook, after a pass."""


@pytest.mark.parametrize("kind", sorted(READ_OFF))
def test_one_line_reads_off_the_kinds_that_do_not_count(kind: str) -> None:
    def read_off(patient: Patient) -> list[str]:
        patient.forward_and_backward()
        stages = [(name, stage) for name, stage in patient.net.named_children() if name != "head"]
        return [name for name, stage in stages if READ_OFF_LINES[kind](patient, name, stage)]

    assert set(READ_OFF_LINES) == READ_OFF
    assert count(kind, hooked(read_off)) == (20, 0, 0, 0)


def test_a_detector_may_make_a_twin() -> None:
    def find_huge_weights(patient: Patient) -> set[str]:
        twin = make_twin(patient.seed).net.state_dict()
        weights = patient.net.state_dict()
        return {name for name in twin if name.endswith("mix.weight") and weights[name].norm() > 10 * twin[name].norm()}

    assert count("huge_weights", hooked(find_huge_weights)) == (20, 0, 0, 0)


# -- detectors that do not pass


@pytest.mark.parametrize("kind", DETECTOR_KINDS)
def test_whoever_says_nothing_or_everything_or_always_the_same_does_not_pass(kind: str) -> None:
    assert count(kind, hooked(lambda patient: set())) == (10, 10, 0, 0)
    right, _, false, _ = count(kind, hooked(lambda patient: PLACES))
    assert (right, false) == (0, 20)
    assert count(kind, hooked(lambda patient: "stage3"))[0] <= 10


def test_a_detector_without_a_hook_does_not_pass_though_it_makes_a_twin() -> None:
    def find_huge_weights(patient: Patient) -> list[str]:
        make_twin(patient.seed)
        return [name for name, stage in patient.net.named_children() if name != "head" and stage.mix.weight.std() > 1]

    trial = try_detector("huge_weights", find_huge_weights, "test")
    assert (trial.right, trial.failed, trial.error) == (0, 20, "It registered no hook.")


def test_the_list_of_hooks_gives_no_kind_away() -> None:
    def read_list(patient: Patient) -> set[str]:
        shown = {name: [] for name in PLACES}
        for hook in hv.hooks(patient.net):
            shown[re.search(r"stage\d", str(hook))[0]].append(re.sub(r"stage\d", "", str(hook)))
        usual = Counter(map(str, list(shown.values())[1:])).most_common(1)[0][0]
        return {name for name in PLACES[1:] if str(shown[name]) != usual}

    for kind in DETECTOR_KINDS:
        assert count(kind, hooked(read_list))[0] < PASS_COUNT


def test_whoever_knows_only_the_own_patient_does_not_pass() -> None:
    own = make_patient("practice-158765")
    places = {fault.kind: fault.place for fault in draw_faults(own.seed)}

    def knows_own_weights(patient: Patient) -> Any:
        return "stage7" if patient.net.head.weight.equal(own.net.head.weight) else ()

    assert places["dead_units"] == "stage7"
    assert count("dead_units", hooked(knows_own_weights)) == (10, 10, 0, 0)
    assert count("dead_units", hooked(lambda patient: places["dead_units"]))[0] <= 3


def test_two_detectors_of_the_same_function_do_not_pass() -> None:
    verdict = hand_in_detectors({"vanishing": find_vanishing, "dead_units": find_vanishing})
    assert not verdict.right and verdict.score == 0.5


def test_a_detector_that_takes_another_kind_for_its_own_does_not_pass() -> None:
    def find_either(patient: Patient) -> set[str]:
        return find_vanishing(patient) | find_frozen(patient)

    for kind in ("vanishing", "frozen"):
        assert try_detector(kind, find_either, "a").right < PASS_COUNT
    verdict = hand_in_detectors({"wrong_scale": find_either, "vanishing": find_either})
    assert not verdict.right and verdict.score == 0


def test_memory_of_earlier_patients_does_not_help() -> None:
    answers = iter(
        [[fault.place for fault in faults if fault.kind == "vanishing"] for faults in draw_trial("vanishing", "a")]
    )
    assert hand_in_detectors({"vanishing": hooked(lambda patient: next(answers))}).score == 0


def test_the_hidden_patients_answer_neither_make_patient_nor_draw_faults() -> None:
    def look_up(patient: Patient) -> list[str]:
        return [fault.place for fault in draw_faults(patient.seed) if fault.kind == "dead_units"]

    assert count("dead_units", hooked(look_up))[0] < PASS_COUNT


# -- what a detector may use


def test_hooks_and_public_attributes_are_enough_for_each_kind_that_counts() -> None:
    assert all(find_forbidden_name(DETECTIVES[kind]) is None for kind in DETECTOR_KINDS)
    assert {kind: find_forbidden_name(DETECTIVES[kind]) for kind in HIDDEN_FROM_HOOKS} == {
        "edits_in_place": "hv",
        "leak": "weakref",
    }


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
        (lambda patient: patient.net.stage1.mix.weight.grad._version, "_version"),
        (lambda patient: patient.net.stage1.enter.__closure__, "__closure__"),
        (lambda patient: make_twin(patient.seed).step(), None),
        (print, None),
    ],
)
def test_what_a_detector_may_not_use_is_found_in_its_code_and_in_the_functions_it_calls(
    detector: Detector, name: str | None
) -> None:
    assert find_forbidden_name(detector) == name


# -- what the verdict says


def test_an_error_is_told_once_and_counts_as_wrong() -> None:
    calls: list[int] = []

    def fail(patient: Patient) -> set[str]:
        calls.append(1)
        if len(calls) % 2:
            raise KeyError(f"call {len(calls)}")
        return set()

    reason = hand_in_detectors({"vanishing": hooked(fail)}).reason
    assert "On 10 it failed. The first time: KeyError: 'call 1', in line " in reason and "call 3" not in reason
    assert ': `raise KeyError(f"call {len(calls)}")`.' in reason
    failed = re.search(r'First error: make_patient\("(.+?)"\), which has (.+?)\.', reason)
    assert failed and failed[2] == list_faults(find_in_trial(failed[1]))


def test_the_line_that_failed_is_the_detectors_own_and_not_one_of_torch() -> None:
    def fail_in_hook(patient: Patient) -> None:
        with patient.net.stage1.mix.register_forward_hook(lambda module, args, output: output.view(7)):
            patient.net(patient.images)

    error = try_detector("vanishing", fail_in_hook, "test").error
    assert "RuntimeError" in error and error.endswith(
        ": `with patient.net.stage1.mix.register_forward_hook(lambda module, args, output: output.view(7)):`."
    )


@pytest.mark.parametrize("answer", [3, ["stage1", 3], ["stage1 or stage2"]])
def test_what_is_no_place_counts_as_wrong(answer: Any) -> None:
    trial = try_detector("leak", hooked(lambda patient: answer), "test")
    assert (trial.right, trial.failed) == (0, 20) and trial.error


def test_the_first_patient_of_each_way_to_be_wrong_is_named_with_its_faults_and_can_be_made_again() -> None:
    seen: dict[str, bool] = {}

    def note(patient: Patient) -> set[str]:
        found = find_dead_units(patient)
        seen[patient.seed] = bool(found)
        return {"stage1"} if not found else set()

    reason = hand_in_detectors({"dead_units": note}).reason
    missed = next(seed for seed, has_it in seen.items() if has_it)
    false = next(seed for seed, has_it in seen.items() if not has_it)
    assert f'First missed: make_patient("{missed}"), which has {list_faults(find_in_trial(missed))}.' in reason
    has = f"Named: stage1. It has {list_faults(find_in_trial(false))}."
    assert f'First false place: make_patient("{false}"). {has}' in reason
    assert find_dead_units(make_patient(missed)) and not find_dead_units(make_patient(false))
    assert missed not in hand_in_detectors({"dead_units": note}).reason
    assert 'First error: make_patient("leak-' in try_detector("leak", hooked(lambda patient: 3), "0a1b2c3d").explain()


@pytest.mark.parametrize("kind", ["dead_units", "vanishing"])
def test_a_name_makes_the_very_patient_of_the_trial(kind: str) -> None:
    patients: list[Patient] = []
    try_detector(kind, lambda patient: patients.append(patient), "0a1b2c3d")
    for patient, faults in zip(patients, draw_trial(kind, "0a1b2c3d"), strict=True):
        assert find_in_trial(patient.seed) == faults
    patient, again = make_patient(patients[0].seed), make_patient(patients[0].seed)
    assert all(map(torch.equal, patient.net.state_dict().values(), again.net.state_dict().values()))
    assert DETECTIVES[kind](again) == DETECTIVES[kind](patients[0])


def test_no_detector_asks_hand_in_or_a_hint_about_its_patient() -> None:
    patient = make_patient("vanishing-3fa9c1d2-7")
    verdict = hand_in(patient, [("leak", "stage2")])
    assert not verdict.right and "is not graded" in verdict.reason and not Path("answers.json").exists()
    with pytest.raises(ValueError, match="belongs to a trial"):
        hint(patient, 1)


def test_a_line_for_each_detector_shows_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    hand_in_detectors({"wrong_scale": lambda patient: None, "vanishing": lambda patient: None})
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "Detector 1 of 2, wrong_scale: it looks at 20 patients.",
        "Detector 2 of 2, vanishing: it looks at 20 patients.",
    ]


def test_long_detectors_are_kept_whole() -> None:
    lines = "".join(f"    total = {number}\n" for number in range(200))
    Path("long_detectors.py").write_text(
        "def first(patient):\n" + lines + "def second(patient):\n" + lines + "    pass\n"
    )
    space: dict[str, Any] = {}
    exec(compile(Path("long_detectors.py").read_text(), str(Path("long_detectors.py").resolve()), "exec"), space)
    hand_in_detectors({"wrong_scale": space["first"], "vanishing": space["second"]})
    kept = report("answers.json").exercises["project.detectors"]["last_answer"]
    assert kept.count("total = 199") == 2 and kept.rstrip().endswith("pass")


@pytest.mark.parametrize(
    ("detectors", "said"),
    [
        ({}, "The dict is empty"),
        (None, "The dict is empty"),
        ({"vanishing": find_vanishing, "frozen": find_frozen}, "A detector of frozen does not count. Choose"),
        ({"leak": find_vanishing}, "A detector of leak does not count. Choose"),
        ({"edits_in_place": find_vanishing}, "A detector of edits_in_place does not count. Choose"),
        (
            {"vanishing": DETECTIVES["leak"]},
            "The detector of vanishing uses weakref. It was not counted. A detector uses",
        ),
        ([find_vanishing], "Hand in a dict"),
        ({"leaks": find_vanishing}, "There is no kind 'leaks'"),
        ({"vanishing": {"stage2"}}, "The detector of vanishing is not a function"),
    ],
)
def test_what_cannot_be_tried_is_told_and_not_counted(detectors: Any, said: str) -> None:
    verdict = hand_in_detectors(detectors)
    assert not verdict.right and said in verdict.reason and not Path("answers.json").exists()
