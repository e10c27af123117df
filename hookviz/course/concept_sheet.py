"""What somebody answered in the concept test, before or after the course: noted for the file of answers."""

from hookviz.course.answer_log import note_test
from hookviz.support.messages import _

QUESTIONS = 15
"""How many questions a form has."""
FORMS, MOMENTS = ("A", "B"), ("before", "after")


def note_answers(form: str, moment: str, answers: str) -> None:
    """As ``hookviz.course.concept_test``: check that the answers are complete, and remember them for ``report``."""
    if form not in FORMS or moment not in MOMENTS:
        raise ValueError(
            _('The form is "A" or "B", and the moment "before" or "after", not {given}.').format(
                given=f'"{form}", "{moment}"'
            )
        )
    letters = [letter for letter in answers.upper() if not letter.isspace() and letter != ","]
    if len(letters) != QUESTIONS or not set(letters) <= set("ABCD-"):
        raise ValueError(
            _(
                "A form has {count} questions. Give a letter from A to D for each, in their order, and - for one that "
                "you leave open; these are {given}."
            ).format(count=QUESTIONS, given=len(letters))
        )
    note_test(f"{form} {moment}", "".join(letters))
    print(_("Noted. What is right, you hear after the course. report(...) writes the answers into your file."))
