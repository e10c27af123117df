"""The texts of the final project: the reason of a verdict, and of a patient for practice what each fault is."""

from collections.abc import Iterable, Mapping

from hookviz.course.fault_draw import PLACES, Fault, next_number
from hookviz.course.project_grading import TRIES, Grade
from hookviz.course.texts import read_texts
from hookviz.support.messages import _
from hookviz.support.messages.languages import current_language


def project_texts(language: str | None = None) -> Mapping[str, str]:
    """The texts of the project in one language; None means the current one."""
    return read_texts(f"project.{language or current_language()}.json")


def sort_by_place(faults: Iterable[Fault]) -> list[Fault]:
    """Sort faults from the first stage to the head."""
    return sorted(faults, key=lambda fault: PLACES.index(fault.place))


def list_faults(faults: Iterable[Fault]) -> str:
    """List faults by kind and place, in one line.

    >>> list_faults([Fault("leak", ("stage5",)), Fault("shared_weights", ("stage2", "stage3"))])
    'shared_weights in stage2 and stage3, leak in stage5'
    """
    text = project_texts()["trial.fault"]
    return ", ".join(
        text.format(kind=fault.kind, place=_(" and ").join(fault.places)) for fault in sort_by_place(faults)
    )


def show_faults(faults: Iterable[Fault]) -> str:
    """Say for each fault what it is and which measurement shows it."""
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
    return texts["verdict.faults"] + "".join(f"\n- {line}" for line in lines)


def explain_counts(grade: Grade) -> str:
    """Say how many findings are right, but not which."""
    key = "verdict.passed" if grade.passed else "verdict.counts"
    return project_texts()[key].format(right=len(grade.right))


def explain_end(grade: Grade) -> str:
    """Say when nothing can get better which of the findings are right."""
    texts, reason = project_texts(), explain_counts(grade)
    for finding in grade.findings:
        key = "verdict.is_right" if finding in grade.right else "verdict.is_wrong"
        reason += "\n- " + texts[key].format(kind=finding.kind, place=finding.place)
    return reason


def explain_closed(seed: str) -> str:
    """Say that the tries are used up, and which patient comes next."""
    return project_texts()["verdict.closed"].format(tries=TRIES, next=next_number(seed))
