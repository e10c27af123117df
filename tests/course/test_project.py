"""The final project: every fault can be found with hooks, and nobody passes without finding them."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz as hv
from hookviz.course import answer_log, project, report
from hookviz.course.course_tools import stand_still
from hookviz.course.fault_draw import (
    COUNT,
    NAMED_BY_HOOKVIZ,
    PLACES,
    PLACES_OF_KIND,
    READ_OFF,
    Fault,
    can_be_found,
    draw_faults,
    is_loud,
)
from hookviz.course.project import (
    HIDE,
    KINDS,
    hand_in,
    hint,
    make_patient,
    make_twin,
    project_texts,
)
from hookviz.course.project_case import read_case
from hookviz.course.project_grading import Finding, Grade, grade_findings
from tests.course.detectives import DETECTIVES

TRIES, SEEDS_OF_A_KIND = 1_000, 5
RARE, RARE_WITH_COUNTS = 5, 15
"""How many of so many may pass by luck, and with three tries that fit the counts. No detector is right by luck."""
Findings = list[Finding]


def new_kernel() -> None:
    """Forget what a kernel forgets when it is restarted."""
    state: tuple[Any, ...] = (answer_log._attempts, answer_log._merged)
    for part in state:
        part.clear()


@pytest.fixture(autouse=True)
def new_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin without hints, tries and verdicts, as a new kernel does in an empty folder."""
    monkeypatch.chdir(tmp_path)
    new_kernel()
    yield
    new_kernel()


def solve(seed: int | str) -> Findings:
    """The right findings."""
    return write(draw_faults(str(seed)))


def write(faults: Iterable[Fault]) -> Findings:
    """Faults as findings."""
    return [Finding(fault.kind, fault.place) for fault in faults]


def fill(findings: Findings) -> Findings:
    """These findings, and wrong ones: three in all. The first layer has none of these kinds."""
    return [*findings, Finding("cut", "stage1"), Finding("shared_weights", "stage1"), Finding("frozen", "stage1")][
        :COUNT
    ]


def grade(seed: int | str, findings: Iterable[Finding]) -> Grade:
    return grade_findings(draw_faults(str(seed)), findings)


def seeds_with(kind: str) -> list[int]:
    """The first numbers of patients that have a fault."""
    found: list[int] = []
    seed = 0
    while len(found) < SEEDS_OF_A_KIND:
        if kind in dict(solve(seed)):
            found.append(seed)
        seed += 1
    return found


# -- the patients


def test_there_are_many_kinds_and_combinations() -> None:
    assert set(KINDS) == set(HIDE) == set(PLACES_OF_KIND) == set(DETECTIVES) and len(KINDS) >= 10
    patients = [draw_faults(str(seed)) for seed in range(2_000)]
    assert len({tuple(sorted(fault.kind for fault in faults)) for faults in patients}) > 160
    assert len({tuple(solve(seed)) for seed in range(2_000)}) > 1_950
    assert all(len(faults) == COUNT == 3 and can_be_found(faults) for faults in patients)
    counts = Counter(fault.kind for faults in patients for fault in faults)
    assert set(counts) == set(KINDS) and max(counts.values()) < 3.5 * min(counts.values())
    places = Counter(fault.place for faults in patients for fault in faults)
    assert set(places) == set(PLACES)


def test_recordings_name_and_single_lines_read_off_at_most_one_fault_of_a_patient() -> None:
    for kind in KINDS:
        place = ("stage3", "stage5") if kind == "shared_weights" else ("stage4",)
        patient = project.build_patient("findings", [Fault(kind, place)])
        with hv.record(patient.net) as trace:
            patient.forward_and_backward()
        assert bool(trace.findings) == (kind in NAMED_BY_HOOKVIZ), kind
    patients = [{fault.kind for fault in draw_faults(str(seed))} for seed in range(2_000)]
    assert all(len(kinds & NAMED_BY_HOOKVIZ) <= 1 and len(kinds & READ_OFF) <= 1 for kinds in patients)


def test_a_seed_always_makes_the_same_patient() -> None:
    assert solve(1) == [("wrong_copy", "stage2"), ("dead_units", "stage5"), ("vanishing", "stage8")]
    before = torch.get_rng_state()
    first, second = make_patient(17), make_patient(" 17 ")
    assert torch.equal(torch.get_rng_state(), before)
    assert all(map(torch.equal, first.net.state_dict().values(), second.net.state_dict().values()))
    assert first.step() == second.step()
    other = make_patient(71)
    assert not torch.equal(other.net.head.weight, make_patient(17).net.head.weight)


@pytest.mark.parametrize("seed", [1.5, None, True, [1]])
def test_a_seed_is_a_whole_number_or_a_text(seed: Any) -> None:
    with pytest.raises(TypeError, match="a whole number or a text, not "):
        make_patient(seed)


def test_patients_look_alike() -> None:
    patients = [make_patient(seed) for seed in range(40)]
    assert len({repr(patient.net) for patient in patients}) == 1
    assert {str(hook).split(" · ")[1] for patient in patients for hook in hv.hooks(patient.net)} == {"hook hook"}
    ways = [stage.enter for patient in patients for stage in patient.net.children() if hasattr(stage, "enter")]
    assert len({way.__qualname__ for way in ways}) == 1
    usual = Counter(len(hv.hooks(patient.net)) for patient in patients).most_common(1)[0][0]
    odd = {"frozen", "shared_weights", "wrong_copy"}
    for seed, patient in enumerate(patients):
        assert len(hv.hooks(patient.net)) == usual or odd & set(dict(solve(seed))), seed


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_patient_runs_in_training_and_evaluation_without_warnings(kind: str) -> None:
    patient = make_patient(seeds_with(kind)[0])
    assert torch.tensor([patient.step() for _ in range(5)]).isfinite().all()
    patient.net.eval()
    with torch.no_grad():
        assert patient.net(patient.images).isfinite().all()
    patient.net.train()
    assert repr(patient).startswith(f"Patient {patient.seed}: 8 stages")


def test_the_twin_has_the_weights_of_the_patient_and_no_fault() -> None:
    twin, patient = make_twin(17), make_patient(17)
    assert repr(twin).endswith("Nothing is wrong with it.")
    assert torch.equal(twin.net.head.weight, patient.net.head.weight)
    assert all(detective(make_twin(17)) == set() for detective in DETECTIVES.values())
    for seed in range(5):
        twin = make_twin(seed)
        assert stand_still(twin.net, lambda net, twin=twin: twin.step()) == []


def test_patients_look_ill_from_the_start_and_their_twins_well() -> None:
    assert all(any(map(is_loud, draw_faults(str(seed)))) for seed in range(500))
    for seed in (0, 17, 24):
        patient, twin = make_patient(seed), make_twin(seed)
        for _ in range(40):
            patient.step(), twin.step()
        assert twin.accuracy() > 0.85 and patient.accuracy() < twin.accuracy() - 0.13


def test_accuracy_leaves_the_training_as_it_was() -> None:
    watched, other = make_patient(17), make_patient(17)
    for _ in range(3):
        assert watched.step() == other.step() and 0 <= watched.accuracy() <= 1
    assert watched.net.training
    assert all(map(torch.equal, watched.net.state_dict().values(), other.net.state_dict().values()))


# -- every fault can be found


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_found_in_five_patients_with_hooks_alone(kind: str) -> None:
    for seed in seeds_with(kind):
        (places,) = [set(fault.places) for fault in draw_faults(str(seed)) if fault.kind == kind]
        assert DETECTIVES[kind](make_patient(seed)) == places, seed


@pytest.mark.parametrize("seed", range(4))
def test_the_detectives_together_find_the_three_faults_and_nothing_else(seed: int) -> None:
    found = {kind: detective(make_patient(seed)) for kind, detective in DETECTIVES.items()}
    findings = [(kind, sorted(places)[0]) for kind, places in found.items() if places]
    assert len(findings) == COUNT and hand_in(make_patient(seed), findings).right


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


def test_the_best_of_three_tries_counts_and_the_cell_says_how_many_are_right() -> None:
    patient, (one, two, three) = make_patient(4), solve(4)
    counted = "Counted, your best try: 2 of 3. You pass."
    one_right = "Right: 1 of 3. Counted, your best try: 1 of 3. You pass with two. Tries left: 2."
    assert hand_in(patient, fill([one])).reason == one_right
    assert hand_in(patient, fill([one, two])).reason == f"Right: 2 of 3. {counted} Tries left: 1."
    last = hand_in(patient, fill([three]))
    assert last.right and last.reason.startswith(f"Right: 1 of 3. {counted}\n- ")
    late = hand_in(patient, solve(4))
    assert late.reason == f"Your 3 tries are used up: these findings are not counted. {counted}"
    assert late.score == pytest.approx(2 / 3, abs=1e-5)
    record = report("answers.json").exercises["project.4"]
    assert (record["tries"], record["right"], record["score"]) == (3, True, pytest.approx(2 / 3, abs=1e-5))


def test_a_verdict_lists_the_findings_of_its_own_try_and_no_older_ones() -> None:
    patient, (one, two, three) = make_patient(4), solve(4)
    for findings in ([one], [one, two], [three]):
        reason = hand_in(patient, fill(findings)).reason
    assert f"- right: {three.kind} in {three.place}" in reason and reason.count("- not right: ") == 2
    assert one.kind not in reason and two.kind not in reason
    again = hand_in(patient, fill([one])).reason
    assert f"- right: {one.kind} in {one.place}" in again and three.kind not in again
    assert report("answers.json").exercises["project.4"]["tries"] == 3


WRONG: list[Findings] = [fill([Finding("norm_in_eval", f"stage{number}")]) for number in (2, 3, 4)]
"""Findings of which none is right for patient 5."""


def test_after_three_tries_the_next_letter_is_graded_and_never_before() -> None:
    assert all(not grade(5, findings).right for findings in WRONG)
    verdict = hand_in(make_patient("5b"), solve("5b"))
    assert not verdict.right and "5b is graded only when the 3 tries of 5 are used up" in verdict.reason
    with pytest.raises(ValueError, match="5b is graded only when"):
        hint(make_patient("5b"), 1)
    assert not Path("answers.json").exists()
    reasons = [hand_in(make_patient(5), findings).reason for findings in WRONG]
    assert "- not right: norm_in_eval in stage4" in reasons[-1] and 'Take the patient "5b"' in reasons[-1]
    assert not any(kind in reason for reason in reasons for kind, _ in solve(5))
    assert not hand_in(make_patient(5), solve(5)).right
    new_kernel()
    assert not hand_in(make_patient("5c"), solve("5c")).right and hand_in(make_patient("5b"), solve("5b")).score == 1
    assert not hand_in(make_patient("5c"), solve("5c")).right
    for findings in (solve(6)[:2], solve(6)[:1], []):
        hand_in(make_patient(6), fill(findings))
    assert not hand_in(make_patient("6b"), solve("6b")).right
    assert report("answers.json").exercises["project.5"]["score"] == 0


def test_a_hint_counts_as_a_try_once_and_the_last_try_is_no_hint() -> None:
    patient = make_patient(3)
    first = hint(patient, 1)
    faults = sorted(draw_faults("3"), key=lambda fault: PLACES.index(fault.place))
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
    assert report("answers.json").exercises == {}


def test_the_same_findings_again_are_no_new_try() -> None:
    patient = make_patient(5)
    hand_in(patient, fill(solve(5)[:1]))
    new_kernel()
    again = hand_in(patient, dict(fill(solve(5)[:1]))).reason
    assert "Right: 1 of 3. You handed in these findings before" in again and "Tries left: 2" in again
    assert report("answers.json").exercises["project.5"]["tries"] == 1


@pytest.mark.parametrize("number", ["", "  "])
def test_an_empty_number_makes_no_patient(number: str) -> None:
    for make in (make_patient, make_twin):
        with pytest.raises(ValueError, match="Put your number between the quotation marks"):
            make(number)


def test_a_twin_is_not_graded() -> None:
    assert "nothing is wrong with it" in hand_in(make_twin(4), solve(4)).reason
    with pytest.raises(ValueError, match="nothing is wrong with it"):
        hint(make_twin(4), 1)


@pytest.mark.parametrize("number", [0, 4, "1", None])
def test_there_are_three_faults_with_a_hint_each(number: Any) -> None:
    with pytest.raises(ValueError, match="There is no fault"):
        hint(make_patient(3), number)
    assert not Path("answers.json").exists()


@pytest.mark.parametrize(
    "findings",
    [[("leak", "stage9")], [("a leak", "stage1")], "leak", [3]],
)
def test_what_is_no_finding_is_told_and_not_counted(findings: Any) -> None:
    verdict = hand_in(make_patient(4), findings)
    assert (verdict.right, verdict.score) == (False, 0) and not Path("answers.json").exists()
    assert "It was not counted" in verdict.reason


@pytest.mark.parametrize(
    "findings", [None, [], solve(4)[:2], tuple(solve(4)[0]), solve(4)[:2] * 2, fill([]) + solve(4)]
)
def test_other_than_three_different_findings_are_no_try(findings: Any) -> None:
    verdict = hand_in(make_patient(4), findings)
    assert verdict.reason.startswith("Hand in three findings") and not Path("answers.json").exists()


# -- adversaries


def random_findings(rng: random.Random) -> Findings:
    return [Finding(kind, rng.choice(PLACES_OF_KIND[kind])) for kind in rng.sample(sorted(KINDS), COUNT)]


def test_luck_hardly_ever_passes() -> None:
    """Random findings, the same findings for every patient, and those of another patient."""
    rng = random.Random(0)
    assert sum(grade(seed, random_findings(rng)).passed for seed in range(TRIES)) <= RARE
    assert sum(grade(seed, solve("constant")).passed for seed in range(TRIES)) <= RARE
    assert sum(grade(seed, solve(seed + 1)).passed for seed in range(TRIES)) <= RARE


def test_whoever_only_reads_the_counts_of_hand_in_hardly_ever_passes() -> None:
    """An adversary who knows how patients are drawn, and whose next try fits all that was counted so far."""
    pool = [draw_faults(f"pool {number}") for number in range(8_000)]
    plans: dict[tuple[int, ...], list[tuple[Fault, ...]]] = {(): pool}

    def split(counts: tuple[int, ...]) -> list[tuple[Fault, ...]]:
        """The patients that fit these counts of the first tries."""
        fitting = plans[counts[:-1]]
        parts = defaultdict(list)
        for faults in fitting[1:]:
            parts[len(grade_findings(faults, write(fitting[0])).right)].append(faults)
        plans.update({(*counts[:-1], count): part for count, part in parts.items()})
        return plans.setdefault(counts, pool)

    passed = 0
    for seed in range(TRIES):
        counts: tuple[int, ...] = ()
        for _ in range(3):
            graded = grade(seed, write((plans.get(counts) or split(counts))[0]))
            counts += (len(graded.right),)
            passed += graded.passed
            if graded.passed:
                break
    assert passed <= RARE_WITH_COUNTS


def test_a_hint_names_neither_a_kind_nor_a_place() -> None:
    for kind in KINDS:
        assert not re.search(rf"{kind}|stage\d", project_texts()[f"hint.{kind}"])


def test_every_kind_has_a_description_a_hint_and_what_shows_it() -> None:
    keys = {f"{group}.{kind}" for group in ("kind", "shown", "hint") for kind in KINDS}
    others = {"hint.text", "hint.practice", "hint.number", "hint.last"}
    assert {key for key in project_texts() if key.startswith(("kind.", "shown.", "hint."))} == keys | others
