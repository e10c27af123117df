"""Ctrl-C at random times, as a person presses it: in torch, in Python, in system calls, not only in this package."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hookviz as hv
from hookviz.picture import graphviz_client
from hookviz.picture.layered_layout import place_boxes
from hookviz.storage.integrity import find_fault
from tests.unit.test_interrupts import POINTS, RecordedTraining, WhatIfTraining, global_state, objects_left_on_nodes

pytestmark = pytest.mark.slow

INTERRUPTS_PER_SCENE = max(3, POINTS // 5)
"""Interrupts in each of the five scenes: ``HOOKVIZ_INTERRUPTS=600`` makes 600 in all."""


class Scenes:
    """Operations to interrupt, with files to overwrite."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work, self.whatif_work = folder, RecordedTraining(), WhatIfTraining()
        self.work.run()
        self.trace = self.work.trace
        self.references = {name: folder.with_name(f"new.{name}") for name in ("json", "html", "svg")}
        self.targets = {name: folder / f"file.{name}" for name in self.references}
        self.write("json", self.references), self.write("html", self.references), self.write("svg", self.references)

    def record(self) -> None:
        self.work.run()

    def whatif(self) -> None:
        self.whatif_work.run()

    def save(self) -> None:
        self.write("json", self.targets)

    def page(self) -> None:
        self.write("html", self.targets)

    def render(self) -> None:
        self.write("svg", self.targets)

    def write(self, kind: str, places: dict[str, Path]) -> None:
        place_boxes.cache_clear()  # forces Graphviz to run
        match kind:
            case "json":
                self.trace.save(places[kind])
            case "html":
                self.trace.to_html(places[kind])
            case _:
                self.trace.figure(3).render(places[kind])

    def state(self) -> list[Any]:
        """The state that an interrupt must not change."""
        return [global_state(), self.work.dicts(), self.whatif_work.dicts()]

    def check(self) -> None:
        """Check that each file is old or complete, that there are no other files, and no marks on a graph."""
        for kind, path in self.targets.items():
            assert path.read_bytes() in (b"as it was", self.references[kind].read_bytes())
            path.write_bytes(b"as it was")
        assert set(self.folder.iterdir()) == set(self.targets.values())
        assert objects_left_on_nodes([*self.work.outs, *self.whatif_work.outs]) == []
        assert find_fault(self.work.trace._data) == ""


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


def run_interrupted(run: Callable[[], None], seconds: float) -> bool:
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


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    instance = Scenes(tmp_path_factory.mktemp("folder"))
    for path in instance.targets.values():
        path.write_bytes(b"as it was")
    return instance


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc to list processes")
# Once torch's compiler is loaded, it has a callback in the garbage collector, which an interrupt may hit, too.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function gc_cumulative_time")
@pytest.mark.parametrize("name", ["record", "whatif", "save", "page", "render"])
def test_an_interrupt_at_a_random_moment_leaves_everything_unchanged(name: str, scenes: Scenes) -> None:
    run, generator, hits = getattr(scenes, name), random.Random(name), 0
    graphviz_client.end_worker()
    before, other_children = scenes.state(), children()
    start = time.perf_counter()
    run()
    duration = time.perf_counter() - start
    scenes.check()
    for number in range(5 * INTERRUPTS_PER_SCENE):  # some interrupts come after the end
        if hits == INTERRUPTS_PER_SCENE:
            break
        if number % 3 == 0:
            graphviz_client.end_worker()  # so that its start is interrupted, too
        hits += run_interrupted(run, generator.uniform(0, duration))
        assert scenes.state() == before, number
        scenes.check()
        assert len(children()) <= len(other_children) + 1, number
    graphviz_client.end_worker()
    assert children() == other_children
    assert hits >= INTERRUPTS_PER_SCENE // 2
    assert hv.load(scenes.references["json"]) == scenes.trace
