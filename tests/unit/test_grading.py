"""Numbers in an answer are read and judged by one rule, in Python as in the player."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hookviz.analysis.questions.grading import are_near, read_numbers

VERDICTS = json.loads((Path(__file__).parents[1] / "js" / "verdicts.json").read_text(encoding="utf-8"))
"""(recorded answer, verdict, answers with that verdict): the player's JavaScript tests use the same table."""


def verdict_on(recorded: str, answer: Any) -> str:
    """The verdict on ``answer`` where ``recorded`` is right: right, wrong, count or unread."""
    given, expected = read_numbers(answer), read_numbers(recorded)
    assert expected is not None
    if given is None:
        return "unread"
    if len(given) != len(expected):
        return "count"
    return "right" if are_near(given, expected) else "wrong"


def test_answers_get_the_verdicts_of_the_table_shared_with_the_player() -> None:
    verdicts = {(recorded, answer): expected for recorded, expected, answers in VERDICTS for answer in answers}
    assert {key: verdict_on(*key) for key in verdicts} == verdicts
    assert set(verdicts.values()) == {"right", "wrong", "count", "unread"} and len(verdicts) > 300
    regressions = {"1001.0009": "wrong", "1_000": "unread", "0x10": "unread", "1,000": "count"}
    assert {answer: verdicts["1000", answer] for answer in regressions} == regressions


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([1, [2.0, ["3"]], None], "right"),
        ((torch.tensor([1, 2]), np.array([3.0]), [None]), "right"),
        ([True, Fraction(2), Decimal(3), "none"], "right"),
        ([1, 2, 3, 4j], "unread"),
        (["1, 2", 3, None], "right"),
        (object(), "unread"),
        (torch.ones(1, device="meta"), "unread"),
    ],
)
def test_numbers_may_be_given_in_tensors_arrays_and_lists(answer: Any, expected: str) -> None:
    assert verdict_on("1, 2, 3, None", answer) == expected
