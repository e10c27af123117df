"""The final project: every fault can be found with hooks, and nobody passes without finding them."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
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
    Fault,
    can_be_found,
    draw_faults,
    is_loud,
    region,
)
from hookviz.course.project import (
    HIDE,
    KINDS,
    Patient,
    grade,
    hand_in,
    hint,
    make_patient,
    make_twin,
    project_texts,
    write_hint,
)
from hookviz.course.project_case import read_case
from hookviz.course.project_grading import grade_findings
from tests.course.detectives import DETECTIVES

TRIES, SEEDS_OF_A_KIND = 1_000, 20
RARE = 5
"""Of so many tries, at most five may pass by luck. The detectors, which must pass as well, are never right by luck."""
Findings = list[tuple[str, str]]


def new_kernel() -> None:
    """Forget what a kernel forgets when it is restarted."""
    state: tuple[Any, ...] = (project._closed, answer_log._attempts, answer_log._merged)
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
    return [(fault.kind, fault.place) for fault in draw_faults(str(seed))]


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
    assert len({tuple(sorted(fault.kind for fault in faults)) for faults in patients}) > 350
    assert len({tuple(solve(seed)) for seed in range(2_000)}) > 1_950
    assert all(len(faults) == COUNT == 3 and can_be_found(faults) for faults in patients)
    counts = Counter(fault.kind for faults in patients for fault in faults)
    assert set(counts) == set(KINDS) and max(counts.values()) < 2.5 * min(counts.values())
    places = Counter(fault.place for faults in patients for fault in faults)
    assert set(places) == set(PLACES)


def test_the_findings_of_a_recording_name_at_most_one_fault_of_a_patient() -> None:
    for kind in KINDS:
        place = {"double_softmax": ("head",), "shared_weights": ("stage3", "stage5")}.get(kind, ("stage4",))
        patient = project.build_patient("findings", [Fault(kind, place)])
        with hv.record(patient.net) as trace:
            patient.forward_and_backward()
        assert bool(trace.findings) == (kind in NAMED_BY_HOOKVIZ), kind
    patients = [{fault.kind for fault in draw_faults(str(seed))} for seed in range(2_000)]
    assert all(len(kinds & NAMED_BY_HOOKVIZ) <= 1 for kinds in patients)


def test_a_seed_always_makes_the_same_patient() -> None:
    assert solve(1) == [("huge_weights", "stage2"), ("not_in_optimizer", "stage5"), ("scaled_gradient", "stage4")]
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
    names = {hook.name for patient in patients[:5] for hook in hv.hooks(patient.net)}
    assert len(names) == 1
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
    for seed in range(20):
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
def test_every_kind_is_found_in_twenty_patients_with_hooks_alone(kind: str) -> None:
    for seed in seeds_with(kind):
        (places,) = [set(fault.places) for fault in draw_faults(str(seed)) if fault.kind == kind]
        assert DETECTIVES[kind](make_patient(seed)) == places, seed


@pytest.mark.parametrize("seed", range(12))
def test_the_detectives_together_find_the_three_faults_and_nothing_else(seed: int) -> None:
    found = {kind: detective(make_patient(seed)) for kind, detective in DETECTIVES.items()}
    findings = [(kind, sorted(places)[0]) for kind, places in found.items() if places]
    assert len(findings) == COUNT and hand_in(make_patient(seed), findings).right


def test_no_detective_accuses_a_healthy_network() -> None:
    for kind, detective in DETECTIVES.items():
        assert detective(project.build_patient("healthy", ())) == set(), kind


def test_a_healthy_network_learns() -> None:
    patient = project.build_patient("healthy", ())
    assert [patient.step() for _ in range(60)][-1] < 0.1


# -- grading


def test_partial_credit() -> None:
    (one, two, three) = solve(7)
    elsewhere = [(kind, "head") for kind, _ in (one, two, three)]
    assert grade(7, [one, two, three]).score == 1
    assert grade(7, [one, two]).points == 2 and grade(7, [one, two]).passed
    assert grade(7, [one, two, ("cut", "head")]).points == 1.7 and not grade(7, [one, two, ("cut", "head")]).passed
    assert grade(7, [one, two, elsewhere[2]]).points == 2.3 and grade(7, [one, two, elsewhere[2]]).passed
    assert grade(7, [one, (one[0], "head"), (one[0], "stage1")]).points <= 0.5
    assert grade(7, elsewhere).points == pytest.approx(0.9)
    assert grade(7, [("frozen", one[1])]).points == 0.1
    assert grade(7, [one, two, three, ("cut", "stage2")]).points == 2.7
    assert grade(7, [one, one, list(one)]).points == 1
    assert grade(7, []).points == 0 == grade(7, None).points == grade(7, "leak").points


def test_two_right_findings_pass_at_once_and_later_all_three_are_needed() -> None:
    assert hand_in(make_patient(7), solve(7)[:2]).right
    assert not hand_in(make_patient(8), solve(8)[:1]).right
    verdict = hand_in(make_patient(8), solve(8)[:2])
    assert not verdict.right and "Your next try can reach 2.2 points." in verdict.reason
    assert hand_in(make_patient(8), solve(8)).right


def test_each_of_the_places_of_a_shared_layer_is_right() -> None:
    fault = Fault("shared_weights", ("stage2", "stage5"))
    for place in fault.places:
        assert grade_findings([fault], [("shared_weights", place)], KINDS).exact == 1
    both = grade_findings([fault], [("shared_weights", place) for place in fault.places], KINDS)
    assert (both.exact, both.wrong) == (1, 1)


def random_findings(rng: random.Random) -> Findings:
    kinds = rng.sample(sorted(KINDS), rng.choice((2, 3, 3, 3, 4)))
    return [(kind, rng.choice(PLACES_OF_KIND[kind])) for kind in kinds]


def test_random_findings_hardly_ever_pass() -> None:
    rng = random.Random(0)
    grades = [grade(seed, random_findings(rng)) for seed in range(TRIES)]
    assert sum(grade.passed for grade in grades) <= RARE
    assert sum(grade.score for grade in grades) / TRIES < 0.1


def test_the_same_findings_for_every_patient_hardly_ever_pass() -> None:
    rng = random.Random(1)
    for findings in [random_findings(rng) for _ in range(5)] + [solve("constant")]:
        assert sum(grade(seed, findings).passed for seed in range(TRIES)) <= RARE


def test_the_findings_of_another_patient_hardly_ever_pass() -> None:
    assert sum(grade(seed, solve(seed + 1)).passed for seed in range(TRIES)) <= RARE


def test_listing_everything_does_not_pass() -> None:
    everything = [(kind, place) for kind in KINDS for place in PLACES]
    possible = [(kind, place) for kind, places in PLACES_OF_KIND.items() for place in places]
    for seed in range(TRIES):
        one_place = [(kind, places[seed % len(places)]) for kind, places in PLACES_OF_KIND.items()]
        mine = solve(seed)[:1]
        for findings in (everything, possible, one_place, mine + one_place):
            assert grade(seed, findings).points <= 0.5


def test_copied_hints_are_no_answer() -> None:
    for seed in range(TRIES // 10):
        hints = [write_hint(fault, level) for fault in draw_faults(str(seed)) for level in (1, 2, 3)]
        with_places = [(text, place) for text, (_, place) in zip(hints[::3], solve(seed), strict=True)]
        for findings in (hints, with_places, [(text, text) for text in hints], [" ".join(hints)]):
            assert grade(seed, findings).points == 0


def test_a_hint_names_neither_the_kind_nor_the_place() -> None:
    for seed in range(200):
        for fault in draw_faults(str(seed)):
            for level in (1, 2):
                text = write_hint(fault, level)
                assert fault.kind not in text and not re.search(r"stage\d|head", text)
            assert set(fault.places) & set(region(fault)) and len(region(fault)) == 3


def test_a_hint_costs_once_even_after_a_restart_and_is_noted() -> None:
    patient = make_patient(3)
    first = hint(patient, 1, 1)
    assert first.startswith("Fault 1, hint 1 (it costs 0.1 points, once): ")
    new_kernel()
    assert hint(patient, 1, 1) == first and hint(patient, 1, 2) != first
    assert read_case("answers.json", "project.3").hints == [(1, 1), (1, 2)]
    verdict = hand_in(patient, solve(3))
    assert verdict.right and verdict.score == 0.9 and "Hints and earlier tries cost 0.3" in verdict.reason


def test_a_hint_after_which_nobody_could_pass_is_not_given() -> None:
    patient = make_patient(3)
    texts = [hint(patient, number, level) for number in (1, 2, 3) for level in (3, 2, 1)]
    assert sum("was not given" in text for text in texts) == 4
    assert read_case("answers.json", "project.3").cost == 1
    verdict = hand_in(patient, solve(3))
    assert verdict.right and verdict.score == pytest.approx(2 / 3, abs=1e-5)


@pytest.mark.parametrize(("number", "level"), [(0, 1), (4, 1), ("1", 1), (None, 1), (1, 0), (1, 4), (1, "1")])
def test_there_are_three_faults_with_three_hints(number: Any, level: Any) -> None:
    with pytest.raises(ValueError, match="There is no fault"):
        hint(make_patient(3), number, level)
    assert not Path("answers.json").exists()


def test_hints_are_numbered_from_the_first_stage_on() -> None:
    for seed in range(20):
        patient = make_patient(seed)
        faults = sorted(draw_faults(str(seed)), key=lambda fault: PLACES.index(fault.place))
        for number, fault in enumerate(faults, start=1):
            assert write_hint(fault, 1) in hint(patient, number, 1)


WRONG: list[Findings] = [[("cut", "stage2")], [("cut", "stage3")], [("cut", "stage4")]]
"""Findings that have nothing in common with patient 4."""


@pytest.mark.parametrize(("wrong_tries", "points"), [(0, 3), (1, 2.6), (2, 2.2)])
def test_each_earlier_try_costs_points(wrong_tries: int, points: float) -> None:
    patient = make_patient(4)
    for findings in WRONG[:wrong_tries]:
        assert not hand_in(patient, findings).right
    verdict = hand_in(patient, solve(4))
    assert verdict.right and verdict.score == pytest.approx(points / 3, abs=1e-5)


def test_after_three_failed_tries_the_faults_are_told_and_another_patient_is_next() -> None:
    patient = make_patient(4)
    reasons = [hand_in(patient, findings).reason for findings in WRONG]
    told = [f"{place}, {kind}: {KINDS[kind]}. {project_texts()[f'shown.{kind}']}" for kind, place in solve(4)]
    assert not any(text in reason for text in told for reason in reasons[:2])
    assert all(text in reasons[2] for text in told) and 'such as "4b"' in reasons[2]
    for answers in ("answers.json", "practice.json"):
        verdict = hand_in(patient, solve(4), answers=answers)
        assert not verdict.right and verdict.score == 0 and "No try can reach 2 points any more" in verdict.reason
    assert report("answers.json").exercises["project.4"]["tries"] == 3
    assert solve("4b") != solve(4) and hand_in(make_patient("4b"), solve("4b")).score == 1


def test_with_hints_fewer_tries_are_left() -> None:
    patient = make_patient(4)
    for level in (1, 2, 3):
        hint(patient, 1, level)
    assert "Your next try can reach 2.0 points." in hand_in(patient, WRONG[0]).reason
    assert "These are the faults of this patient" in hand_in(patient, WRONG[1]).reason


def test_the_same_findings_again_are_no_new_try() -> None:
    patient = make_patient(5)
    first = hand_in(patient, solve(5)[:1])
    new_kernel()
    again = hand_in(patient, dict(solve(5)[:1]))
    assert again.score == first.score and "this is no new try" in again.reason
    assert "Your next try can reach 2.6 points." in again.reason
    hand_in(patient, solve(5)[1:2])
    assert hand_in(patient, solve(5)[:1]).score == first.score
    record = report("answers.json").exercises["project.5"]
    assert record["tries"] == 2 and record["last_answer"] == str(solve(5)[1:2])


def test_more_than_three_findings_are_not_graded() -> None:
    patient = make_patient(4)
    verdict = hand_in(patient, [*solve(4), ("cut", "stage2")])
    assert (verdict.right, verdict.score, Path("answers.json").exists()) == (False, 0, False)
    assert "At most 3 findings" in verdict.reason and "handed in 4" in verdict.reason


def test_after_a_pass_each_fault_is_explained_and_nothing_changes_any_more() -> None:
    patient = make_patient(4)
    assert "shown" not in hand_in(patient, solve(4)[:1]).reason
    verdict = hand_in(patient, solve(4))
    for kind, place in solve(4):
        assert f"{place}, {kind}: {KINDS[kind]}. {project_texts()[f'shown.{kind}']}" in verdict.reason
    assert verdict.reason.count("\n- ") == 3
    again = hand_in(patient, solve(5))
    assert again.right and again.score == verdict.score and "Further tries change nothing" in again.reason
    record = report("answers.json").exercises["project.4"]
    assert (record["tries"], record["score"]) == (2, pytest.approx(2.6 / 3, abs=1e-5))


def test_a_try_that_does_not_pass_explains_no_fault() -> None:
    reason = hand_in(make_patient(4), solve(4)[:1]).reason
    assert not any(text in reason for key, text in project_texts().items() if key.startswith(("shown.", "kind.")))


def test_every_pair_in_turn_does_not_pass_and_leaves_no_points() -> None:
    patient = make_patient(2)
    pairs = [(kind, place) for kind in KINDS for place in PLACES if (kind, place) not in solve(2)]
    for start in range(0, len(pairs), 3):
        assert not hand_in(patient, pairs[start : start + 3]).right
    assert not hand_in(patient, solve(2)).right
    record = report("answers.json").exercises["project.2"]
    assert (record["tries"], record["right"]) == (3, False) and record["score"] < 0.1


def test_tries_and_passes_of_earlier_kernels_count() -> None:
    for number in range(2):
        hand_in(make_patient(5), solve(5)[number : number + 1])
    new_kernel()
    verdict = hand_in(make_patient(5), solve(5))
    assert verdict.right and verdict.score == pytest.approx((3 - 2 * 0.4) / 3, abs=1e-5)
    hand_in(make_patient(6), solve(6))
    new_kernel()
    verdict = hand_in(make_patient(6), solve(7))
    assert verdict.right and "You have passed with 3.0 of 3 points" in verdict.reason
    assert "2 of 2 exercises are right" in repr(report("answers.json"))


def counts_of(reason: str) -> tuple[int, ...]:
    """The counts that ``hand_in`` tells: all that one learns without a measurement."""
    return tuple(int(number) for number in re.findall(r"(?:right|Wrong): (\d+)", reason))


def test_whoever_only_reads_the_counts_of_hand_in_hardly_ever_passes() -> None:
    """An adversary who knows how patients are drawn, and whose next try fits all that was counted so far."""
    pool = [draw_faults(f"pool {number}") for number in range(8_000)]

    def write(faults: tuple[Fault, ...]) -> Findings:
        return [(fault.kind, fault.place) for fault in faults]

    def split(
        candidates: list[tuple[Fault, ...]], findings: Findings
    ) -> dict[tuple[int, ...], list[tuple[Fault, ...]]]:
        parts: dict[tuple[int, ...], list[tuple[Fault, ...]]] = defaultdict(list)
        for faults in candidates:
            parts[tuple(grade_findings(faults, findings, KINDS).counts.values())].append(faults)
        return parts

    first = write(pool[0])
    after_first = split(pool[1:], first)
    second = {counts: write(fitting[0]) for counts, fitting in after_first.items()}
    after_second = {counts: split(fitting[1:], second[counts]) for counts, fitting in after_first.items()}
    passed = 0
    for seed in range(TRIES):
        patient = Patient(str(seed), *[None] * 4)  # type: ignore[arg-type]  # nobody looks at it
        verdict = hand_in(patient, first)
        one = counts_of(verdict.reason)
        verdict = hand_in(patient, second.get(one, first))
        fitting = after_second.get(one, {}).get(counts_of(verdict.reason), pool)
        passed += hand_in(patient, write(fitting[0])).right
        new_kernel()
        Path("answers.json").unlink()
    assert passed <= RARE


@pytest.mark.parametrize(
    "findings", [["leak"], [("leak", "stage9")], [("a leak", "stage1")], "leak", [3], [("leak",)], 5, ("leak", "here")]
)
def test_what_is_no_finding_is_told_and_not_counted(findings: Any) -> None:
    verdict = hand_in(make_patient(4), findings)
    assert (verdict.right, verdict.score) == (False, 0) and "This is not a finding" in verdict.reason
    assert "leak" in verdict.reason and "stage8" in verdict.reason
    assert not Path("answers.json").exists()


def test_findings_may_be_a_dict_or_a_single_pair() -> None:
    assert hand_in(make_patient(4), dict(solve(4))).right
    assert hand_in(make_patient(5), solve(5)[0]).score == pytest.approx(1 / 3, abs=1e-3)
    assert hand_in(make_patient(6), (finding for finding in solve(6))).right


@pytest.mark.parametrize("findings", [None, [], ()])
def test_nothing_handed_in_is_no_try(findings: Any) -> None:
    verdict = hand_in(make_patient(4), findings)
    assert "The list is empty" in verdict.reason and not Path("answers.json").exists()


def test_the_last_try_is_in_the_report_less_what_the_tries_before_it_cost() -> None:
    patient: Patient = make_patient(5)
    hand_in(patient, solve(5)[:1])
    hand_in(patient, [*solve(5)[:2], ("cut", "head")])
    record = report("answers.json").exercises["project.5"]
    assert (record["score"], record["tries"]) == (pytest.approx((2 - 0.3 - 0.4) / 3, abs=1e-5), 2)
    hand_in(patient, solve(5))
    record = report("answers.json").exercises["project.5"]
    assert (record["score"], record["tries"]) == (pytest.approx(2.2 / 3, abs=1e-5), 3)
    assert solve(5)[0][0] in record["first_answer"]


def test_every_kind_has_a_description_two_hints_and_what_shows_it() -> None:
    texts = project_texts()
    assert {f"shown.{kind}" for kind in KINDS} <= set(texts)
    hints = {f"hint.{kind}.{level}" for kind in KINDS for level in (1, 2)}
    assert hints <= set(texts) and all(texts[key].endswith((".", "?")) for key in hints)
    others = {key for key in texts if key.count(".") == 2} - hints
    assert others == set()
