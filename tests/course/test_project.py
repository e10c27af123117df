"""The final project: every fault can be found with hooks, and nobody passes without finding them."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz as hv
from hookviz.course import project, report
from hookviz.course.course_tools import stand_still
from hookviz.course.fault_draw import (
    COUNT,
    NAMED_BY_HOOKVIZ,
    PLACES_OF_KIND,
    READ_OFF,
    STAGES,
    Fault,
    can_be_found,
    draw_faults,
    is_loud,
)
from hookviz.course.project import KINDS, hand_in, hint, make_patient, make_twin, project_texts
from hookviz.course.project_case import read_case
from hookviz.course.project_grading import Finding, Grade, grade_findings
from tests.course.detectives import DETECTIVES

TRIES = 1_000
RARE = 5
"""How many of so many may pass by luck."""
Findings = list[Finding]


pytestmark = pytest.mark.usefixtures("new_session")


def solve(seed: int | str) -> Findings:
    """The right findings."""
    return [Finding(fault.kind, fault.place) for fault in draw_faults(str(seed))]


def fill(findings: Findings) -> Findings:
    """These findings, and wrong ones: three in all. The first layer has none of these kinds."""
    wrong = [Finding(kind, "stage1") for kind in ("cut", "shared_weights", "frozen")]
    return [*findings, *wrong][:COUNT]


def grade(seed: int | str, findings: Iterable[Finding]) -> Grade:
    return grade_findings(draw_faults(str(seed)), findings)


# -- the patients


def test_there_are_many_combinations_and_single_lines_read_off_at_most_one_fault_of_a_patient() -> None:
    assert set(KINDS) == set(PLACES_OF_KIND) == set(DETECTIVES)
    patients = [draw_faults(str(seed)) for seed in range(2_000)]
    assert len({tuple(sorted(fault.kind for fault in faults)) for faults in patients}) > 160
    assert all(len(faults) == COUNT == 3 and can_be_found(faults) for faults in patients)
    assert all(any(map(is_loud, faults)) for faults in patients), "it looks ill"
    for faults in patients:
        kinds = {fault.kind for fault in faults}
        assert len(kinds & NAMED_BY_HOOKVIZ) <= 1 and len(kinds & READ_OFF) <= 1
    counts = Counter(fault.kind for faults in patients for fault in faults)
    assert set(counts) == set(KINDS) and max(counts.values()) < 3.5 * min(counts.values())
    assert {fault.place for faults in patients for fault in faults} == set(STAGES)


def test_recordings_name_only_the_kinds_that_are_noted() -> None:
    for kind in KINDS:
        place = ("stage3", "stage5") if kind == "shared_weights" else ("stage4",)
        patient = project.build_patient("findings", [Fault(kind, place)])
        with hv.record(patient.net) as trace:
            patient.forward_and_backward()
        assert bool(trace.findings) == (kind in NAMED_BY_HOOKVIZ), kind


def test_a_number_always_makes_the_same_patient() -> None:
    assert solve(1) == [("wrong_copy", "stage2"), ("dead_units", "stage5"), ("vanishing", "stage8")]
    before = torch.get_rng_state()
    first, second = make_patient(17), make_patient(" 17 ")
    assert torch.equal(torch.get_rng_state(), before)
    assert all(map(torch.equal, first.net.state_dict().values(), second.net.state_dict().values()))
    assert first.step() == second.step()
    assert not torch.equal(make_patient(71).net.head.weight, make_patient(17).net.head.weight)


@pytest.mark.parametrize(("number", "error"), [(1.5, TypeError), ("  ", ValueError)])
def test_other_than_a_number_makes_no_patient(number: Any, error: type[Exception]) -> None:
    for make in (make_patient, make_twin):
        with pytest.raises(error, match=r"a whole number or a text|Put your number between the quotation marks"):
            make(number)


def test_patients_look_alike() -> None:
    patients = [make_patient(seed) for seed in range(20)]
    assert len({repr(patient.net) for patient in patients}) == 1
    assert {str(hook).split(" · ")[1] for patient in patients for hook in hv.hooks(patient.net)} == {"hook hook"}
    ways = [stage.enter for patient in patients for stage in patient.net.children() if hasattr(stage, "enter")]
    assert len({way.__qualname__ for way in ways}) == 1


def test_the_twin_has_the_weights_of_the_patient_and_no_fault_and_learns_better() -> None:
    patient, twin = make_patient(17), make_twin(17)
    assert torch.equal(twin.net.head.weight, patient.net.head.weight)
    assert stand_still(twin.net, lambda net: twin.step()) == []
    for _ in range(40):
        patient.step(), twin.step()
    assert twin.accuracy() > 0.85 and patient.accuracy() < twin.accuracy() - 0.13
    assert patient.net.training
    assert repr(twin).endswith("Nothing is wrong with it.")
    assert all(detective(make_twin(17)) == set() for detective in DETECTIVES.values())
    assert "nothing is wrong with it" in hand_in(twin, solve(17)).reason
    with pytest.raises(ValueError, match="nothing is wrong with it"):
        hint(twin, 1)


# -- every fault can be found


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_found_in_patients_with_hooks_alone(kind: str) -> None:
    for seed in [seed for seed in range(200) if kind in dict(solve(seed))][:2]:
        (places,) = [set(fault.places) for fault in draw_faults(str(seed)) if fault.kind == kind]
        assert DETECTIVES[kind](make_patient(seed)) == places, seed


def test_the_detectives_together_find_the_three_faults_and_nothing_else() -> None:
    found = {kind: detective(make_patient(2)) for kind, detective in DETECTIVES.items()}
    findings = [(kind, sorted(places)[0]) for kind, places in found.items() if places]
    assert len(findings) == COUNT and hand_in(make_patient(2), findings).right


# -- grading


def test_two_right_findings_pass_and_each_is_a_point() -> None:
    for count in range(COUNT + 1):
        graded = grade(7, fill(solve(7)[:count]))
        assert (len(graded.right), graded.passed) == (count, count >= 2)
        assert graded.score == pytest.approx(count / 3, abs=1e-5)


def test_each_of_the_places_of_a_shared_layer_is_right_once() -> None:
    fault = Fault("shared_weights", ("stage2", "stage5"))
    both = [Finding("shared_weights", place) for place in fault.places]
    assert [len(grade_findings([fault], findings).right) for findings in (both[:1], both[1:], both)] == [1, 1, 1]


def test_the_best_of_three_tries_counts_and_each_verdict_is_about_its_own_findings(
    new_kernel: Callable[[], None],
) -> None:
    patient, (one, two, three) = make_patient(4), solve(4)
    counted = "Counted, your best try: 2 of 3. You pass."
    one_right = "Right: 1 of 3. Counted, your best try: 1 of 3. You pass with two. Tries left: 2."
    assert hand_in(patient, fill([one])).reason == one_right
    new_kernel()
    again = hand_in(patient, dict(fill([one]))).reason
    assert "You handed in these findings before" in again and "Tries left: 2" in again
    assert hand_in(patient, fill([one, two])).reason == f"Right: 2 of 3. {counted} Tries left: 1."
    last = hand_in(patient, fill([three]))
    assert last.right and last.reason.startswith(f"Right: 1 of 3. {counted}\n- ")
    assert f"- right: {three.kind} in {three.place}" in last.reason and last.reason.count("- not right: ") == 2
    assert one.kind not in last.reason and two.kind not in last.reason
    late = hand_in(patient, solve(4))
    assert late.reason == f"Your 3 tries are used up: these findings are not counted. {counted}"
    record = report("answers.json").exercises["project.4"]
    assert (record["tries"], record["right"], record["score"]) == (3, True, pytest.approx(2 / 3, abs=1e-5))


WRONG: list[Findings] = [fill([Finding("norm_in_eval", f"stage{number}")]) for number in (2, 3, 4)]
"""Findings of which none is right for patient 5."""


def test_after_three_tries_the_next_letter_is_graded_and_never_before(new_kernel: Callable[[], None]) -> None:
    verdict = hand_in(make_patient("5b"), solve("5b"))
    assert not verdict.right and "5b is graded only when the 3 tries of 5 are used up" in verdict.reason
    with pytest.raises(ValueError, match="5b is graded only when"):
        hint(make_patient("5b"), 1)
    assert not Path("answers.json").exists()
    reasons = [hand_in(make_patient(5), findings).reason for findings in WRONG]
    assert "- not right: norm_in_eval in stage4" in reasons[-1] and 'Take the patient "5b"' in reasons[-1]
    assert not any(kind in reason for reason in reasons for kind, _ in solve(5))
    new_kernel()
    assert not hand_in(make_patient("5c"), solve("5c")).right and hand_in(make_patient("5b"), solve("5b")).score == 1
    assert not hand_in(make_patient("5c"), solve("5c")).right
    assert report("answers.json").exercises["project.5"]["score"] == 0


def test_a_hint_counts_as_a_try_once_and_the_last_try_is_no_hint(new_kernel: Callable[[], None]) -> None:
    patient = make_patient(3)
    first = hint(patient, 1)
    faults = sorted(draw_faults("3"), key=lambda fault: STAGES.index(fault.place))
    assert first.endswith(project_texts()[f"hint.{faults[0].kind}"]) and "tries left: 2" in first
    new_kernel()
    assert hint(patient, 1) == first and not hand_in(patient, fill(solve(3)[:1])).right
    assert hint(patient, 2) == "No hint: you need your last try for findings."
    assert read_case("3").hints == [1] and hand_in(patient, solve(3)).score == 1


def test_practice_tells_the_faults_and_counts_nothing() -> None:
    patient = make_patient("practice-5")
    for _ in range(4):
        verdict = hand_in(patient, fill(solve("practice-5")[:1]))
        for kind, place in solve("practice-5"):
            assert f"{place}, {kind}: {KINDS[kind]}. {project_texts()[f'shown.{kind}']}" in verdict.reason
        assert not verdict.right and len(hint(patient, 1)) > 30 and "nothing is counted" in verdict.reason
    assert hand_in(patient, fill(solve("practice-5")[:2])).right and not Path("answers.json").exists()


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ([("leak", "stage9")], "It was not counted"),
        ("leak", "It was not counted"),
        (None, "Hand in three findings"),
        (solve(4)[:2] * 2, "Hand in three findings"),
    ],
)
def test_other_than_three_different_findings_are_told_and_not_counted(findings: Any, said: str) -> None:
    verdict = hand_in(make_patient(4), findings)
    assert (verdict.right, verdict.score) == (False, 0) and not Path("answers.json").exists()
    assert said in verdict.reason


# -- adversaries


def test_luck_hardly_ever_passes() -> None:
    """Random findings, the same findings for every patient, and those of another patient."""
    rng = random.Random(0)
    drawn = [
        [Finding(kind, rng.choice(PLACES_OF_KIND[kind])) for kind in rng.sample(sorted(KINDS), COUNT)]
        for _ in range(TRIES)
    ]
    assert sum(grade(seed, findings).passed for seed, findings in enumerate(drawn)) <= RARE
    assert sum(grade(seed, solve("constant")).passed for seed in range(TRIES)) <= RARE
    assert sum(grade(seed, solve(seed + 1)).passed for seed in range(TRIES)) <= RARE


def test_every_kind_has_a_description_what_shows_it_and_a_hint_that_names_neither_a_kind_nor_a_place() -> None:
    keys = {f"{group}.{kind}" for group in ("kind", "shown", "hint") for kind in KINDS}
    assert keys <= set(project_texts())
    for kind in KINDS:
        assert not re.search(rf"{kind}|stage\d", project_texts()[f"hint.{kind}"])
