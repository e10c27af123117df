"""The rule by which ``benchmarks/detection/peers.py`` judges what a tool says, on made-up outputs."""

import pytest

from benchmarks.detection.faults import FAULTS
from benchmarks.detection.peer_run import Said
from benchmarks.detection.peers import Answer, judge_news, list_news
from benchmarks.detection.programs import Placed

BY_NAME = {fault.name: fault for fault in FAULTS}
DETACH = Placed(BY_NAME["detach"], 1)
LEARNING_RATE = Placed(BY_NAME["learning rate of 0"], 0)


@pytest.mark.parametrize(
    ("placed", "line", "expected"),
    [
        (DETACH, "l1.weight received no gradient", "names it"),
        (DETACH, "l10.weight received no gradient", "says something"),
        (DETACH, "program.py:12: something is odd", "names it"),
        (DETACH, 'File "program.py", line 12, in forward', "names it"),
        (DETACH, 'File "program.py", line 120, in forward', "says something"),
        (DETACH, 'File "other.py", line 12, in forward', "says something"),
        (DETACH, "The graph ends at Detach", "names it"),
        (LEARNING_RATE, "l0.weight did not change", "says something"),
        (LEARNING_RATE, "The learning rate is 0", "names it"),
    ],
)
def test_object_line_or_word_names_the_fault(placed: Placed, line: str, expected: Answer) -> None:
    assert judge_news([line], placed, [12]) == expected


def test_what_the_healthy_twin_hears_too_is_no_news() -> None:
    twin = [Said(False, "step 1: norm 0.25\nprogram.py:30: UserWarning: slow"), Said(True, "3 parameters changed")]
    said = [Said(False, "step 1: norm 7.5e-3\nprogram.py:31: UserWarning: slow"), Said(True, "0 parameters changed")]
    assert list_news(said, twin) == ["0 parameters changed"]
    assert judge_news(list_news(twin, twin), DETACH, [12]) == "silent"
