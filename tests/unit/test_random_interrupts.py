"""Ctrl-C at random times, as a person presses it: in torch, in Python, in system calls, not only in this package."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hookviz.picture import graphviz_client
from hookviz.picture.layered_layout import place_boxes
from hookviz.storage.integrity import find_fault
from tests.unit.test_interrupts import POINTS, RecordedTraining

pytestmark = pytest.mark.slow

INTERRUPTS_PER_SCENE = max(3, POINTS // 5)
"""Interrupts in each of the scenes: ``HOOKVIZ_INTERRUPTS=600`` makes 120 in each."""


def children() -> list[int]:
    """The ids of the living child processes."""
    process_ids = []
    for stat_file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat_file.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        if int(fields[1]) == os.getpid():
            process_ids.append(int(stat_file.parent.name))
    return process_ids


def run_interrupted(run: Callable[[], object], seconds: float) -> bool:
    """Whether Ctrl-C arrived before ``run`` ended."""
    main = threading.get_ident()
    timer = threading.Timer(seconds, lambda: signal.pthread_kill(main, signal.SIGINT))
    try:
        timer.start()
        run()
        timer.cancel()
        timer.join()
    except KeyboardInterrupt:
        timer.join()
        return True
    return False


@pytest.fixture(autouse=True)
def default_sigint_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc to list processes")
# Once torch's compiler is loaded, it has a callback in the garbage collector, which an interrupt may hit, too.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function gc_cumulative_time")
@pytest.mark.parametrize("scene", ["record", "page", "picture"])
def test_an_interrupt_at_a_random_moment_leaves_everything_unchanged(scene: str, tmp_path: Path) -> None:
    work, generator, hits = RecordedTraining(), random.Random(scene), 0
    work.run()
    trace, path = work.trace, tmp_path / f"there.{'svg' if scene == 'picture' else 'html'}"
    scenes: dict[str, Callable[[], object]] = {
        "record": work.run,
        "page": lambda: trace.to_html(path),
        "picture": lambda: trace.figure(3).render(path),
    }

    def run() -> None:
        place_boxes.cache_clear()  # forces Graphviz to run
        scenes[scene]()

    graphviz_client.end_worker()
    before, other_children, start = work.state(), children(), time.perf_counter()
    run()
    duration, written = time.perf_counter() - start, path.read_bytes() if path.exists() else b""
    for number in range(5 * INTERRUPTS_PER_SCENE):  # some interrupts come after the end
        if hits == INTERRUPTS_PER_SCENE:
            break
        path.write_bytes(b"as it was")
        if number % 3 == 0:
            graphviz_client.end_worker()  # so that its start is interrupted, too
        hits += run_interrupted(run, generator.uniform(0, duration))
        assert work.state() == before, number
        assert find_fault(work.trace._data) == "", number
        assert path.read_bytes() in (b"as it was", written), number
        assert list(tmp_path.iterdir()) == [path], number
        assert len(children()) <= len(other_children) + 1, number
    graphviz_client.end_worker()
    assert children() == other_children
    assert hits >= INTERRUPTS_PER_SCENE // 2
