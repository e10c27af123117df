"""The texts of the final project: the reason of a verdict, and of a patient for practice what each fault is."""

from collections.abc import Iterable, Mapping

from hookviz.course.fault_draw import STAGES, Fault
from hookviz.course.project_grading import Grade
from hookviz.course.texts import read_texts
from hookviz.support.messages import _
from hookviz.support.messages.languages import current_language


def project_texts() -> Mapping[str, str]:
    """The texts of the project, in the current language."""
    return read_texts(f"project.{current_language()}.json")


def sort_by_place(faults: Iterable[Fault]) -> list[Fault]:
    """Sort faults from the first stage to the last."""
    return sorted(faults, key=lambda fault: STAGES.index(fault.place))


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


def explain_best(best: Grade) -> str:
    """Say what is counted: the best try."""
    key = "verdict.passed" if best.passed else "verdict.best"
    return project_texts()[key].format(right=len(best.right))


def list_right_and_wrong(grade: Grade) -> str:
    """Say which of the findings of a try are right."""
    texts, lines = project_texts(), ""
    for finding in grade.findings:
        key = "verdict.is_right" if finding in grade.right else "verdict.is_wrong"
        lines += "\n- " + texts[key].format(kind=finding.kind, place=finding.place)
    return lines
