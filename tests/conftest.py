"""What all tests share."""

import gc
import signal
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.modules.module as torch_modules

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling


def pytest_configure() -> None:
    """A shell that starts the tests in the background lets them ignore Ctrl-C, which some of them are about."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadFileScheduling | None":
    """Share tests out by lesson, too, where they are shared out by file."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.scheduling import ByFileOrLesson

    return ByFileOrLesson(config, log)


@pytest.fixture(autouse=True, scope="module")
def frozen_memory() -> None:
    """Garbage collections in these tests visit what they made, not the million objects of torch and earlier tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def random_numbers() -> None:
    """The same in every run: what torch draws decides how long the words on the screen are."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="module")
def no_hooks_on_all_modules() -> Iterator[None]:
    """A hook that is left for all modules would run in the tests of other files."""
    yield
    left = {name: kept for name, kept in vars(torch_modules).items() if name.startswith("_global") and kept}
    assert not {name: kept for name, kept in left.items() if isinstance(kept, dict)}


@pytest.fixture
def compiler() -> Iterator[None]:
    """Importing the compiler warns of things that are not ours, and no compiled code stays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        torch._dynamo.reset()
