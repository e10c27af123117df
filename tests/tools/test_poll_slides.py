"""Polls for a projector: one on a slide, its answer on the slide below."""

import re

from hookviz.course.question_bank import read_questions
from tools.poll_slides import make_poll_slides

POLLS = [*read_questions("en").values()]


def test_a_poll_has_a_slide_and_its_answer_stands_on_the_one_below() -> None:
    columns: list[list[str]] = []
    for cell in make_poll_slides(POLLS).cells:
        match cell.metadata.slideshow.slide_type:
            case "slide":
                columns.append([cell.source])
            case "subslide":
                columns[-1].append(cell.source)
            case _:
                columns[-1][-1] += cell.source
    assert len(columns) == 1 + len(POLLS)
    for lesson, slide in re.findall(r"\[(\d\d)\]\(#/(\d+)\)", columns[0][0]):
        assert [poll.lesson for poll in POLLS].index(lesson) == int(slide) - 1
    for (asks, answers), poll in zip(columns[1:], POLLS, strict=True):
        assert poll.ask in asks and all(choice.text in asks for choice in poll.choices)
        assert not any(choice.reason in asks for choice in poll.choices)
        assert all(choice.reason in answers for choice in poll.choices)
