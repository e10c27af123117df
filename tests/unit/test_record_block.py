"""``record()`` returns a context manager; any other use is answered with the code to write instead."""

import pytest
import torch
from scenes import Doubled

import hookviz as hv


def test_a_block_that_is_never_entered_warns_with_its_line() -> None:
    with pytest.warns(hv.HookvizWarning, match=r"Write: with hv\.record\(net\) as trace:") as caught:
        hv.record(Doubled())
    assert caught[0].filename == __file__


def test_the_repr_of_a_block_shows_what_to_write_and_a_block_is_entered_once() -> None:
    block = hv.record()
    assert repr(block).startswith("Nothing is recorded: record() only records in a with block.")
    with block:
        pass
    assert repr(block) == (
        "This recording has started or ended. Its trace is the variable after 'as': with hv.record(net) as trace:"
    )
    with pytest.raises(RuntimeError, match="call record\\(\\) again"), block:
        pass


def test_the_arguments_of_record_are_checked_on_entering_the_block() -> None:
    with pytest.raises(TypeError, match="takes the modules to follow"), hv.record(torch.ones(1)):  # type: ignore[arg-type]
        pass
