"""What all tests share."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def random_numbers() -> None:
    """The same in every run: what torch draws decides how long the words on the screen are."""
    torch.manual_seed(0)
