"""The texts of the final project: the reason of a verdict, and after a pass what each fault was."""

from collections.abc import Iterable, Mapping

from hookviz.course.fault_draw import COUNT, PLACES, Fault
from hookviz.course.project_case import Case
from hookviz.course.project_grading import PASS_POINTS, Grade
from hookviz.course.texts import read_texts
from hookviz.support.messages import _
from hookviz.support.messages.languages import current_language


def project_texts(language: str | None = None) -> Mapping[str, str]:
    """The texts of the project in one language; None means the current one."""
    return read_texts(f"project.{language or current_language()}.json")


def sort_by_place(faults: Iterable[Fault]) -> list[Fault]:
    """Sort faults from the first stage to the head."""
    return sorted(faults, key=lambda fault: PLACES.index(fault.place))


def show_faults(faults: Iterable[Fault]) -> str:
    """Say for each fault what it was and which measurement shows it."""
    texts = project_texts()
    lines = [
        texts["verdict.fault"].format(
            place=_(" and ").join(fault.places),
            kind=fault.kind,
            description=texts[f"kind.{fault.kind}"],
            shown=texts[f"shown.{fault.kind}"],
        )
        for fault in sort_by_place(faults)
    ]
    return "".join(f"\n- {line}" for line in lines)


def explain_grade(grade: Grade) -> str:
    """Say how many points there are, and what was right."""
    texts = project_texts()
    costs = texts["verdict.costs"].format(cost=f"{grade.cost:.1f}") if grade.cost else ""
    if grade.score == 1:
        return texts["verdict.right"].format(costs=costs)
    key = "verdict.passed" if grade.passed else "verdict.part"
    counts = texts["verdict.counts"].format(**grade.counts)
    return texts[key].format(
        points=f"{grade.points:.1f}", most=grade.most, pass_mark=f"{PASS_POINTS:g}", costs=counts + costs
    )


def explain_next_try(case: Case) -> str:
    """Say what the next try can reach."""
    return project_texts()["verdict.next"].format(points=f"{COUNT - case.cost:.1f}")


def explain_closed(seed: str, faults: Iterable[Fault]) -> str:
    """Say that a patient cannot be passed any more, what its faults were, and which patient comes next."""
    before, after = project_texts()["verdict.closed"].format(pass_mark=f"{PASS_POINTS:g}", seed=seed).split("\n")
    return before + show_faults(faults) + f"\n{after}"
