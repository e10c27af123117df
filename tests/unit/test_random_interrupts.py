"""Ctrl-C after random times, as a person presses it: in torch, in Python, in the system, not only in this package."""

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
from hookviz.picture import graphviz_client, layout
from hookviz.storage.integrity import find_fault
from tests.unit.test_interrupts import POINTS, RecordedTraining, WhatIfTraining, global_state, objects_left_on_nodes

pytestmark = pytest.mark.slow

MOMENTS = max(3, POINTS // 5)
"""In each of five scenes so many times: ``HOOKVIZ_INTERRUPTS=600`` makes 600 in all."""


class Scenes:
    """What somebody may interrupt, with files to write over."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.recorded, self.switched = folder, RecordedTraining(), WhatIfTraining()
        self.recorded.run()
        self.trace = self.recorded.trace
        self.new = {name: folder.with_name(f"new.{name}") for name in ("json", "html", "svg")}
        self.there = {name: folder / f"file.{name}" for name in self.new}
        self.write("json", self.new), self.write("html", self.new), self.write("svg", self.new)

    def record(self) -> None:
        self.recorded.run()

    def whatif(self) -> None:
        self.switched.run()

    def save(self) -> None:
        self.write("json", self.there)

    def page(self) -> None:
        self.write("html", self.there)

    def render(self) -> None:
        self.write("svg", self.there)

    def write(self, kind: str, places: dict[str, Path]) -> None:
        layout._outcomes.clear()  # so that Graphviz draws
        match kind:
            case "json":
                self.trace.save(places[kind])
            case "html":
                self.trace.to_html(places[kind])
            case _:
                self.trace.figure(3).render(places[kind])

    def state(self) -> list[Any]:
        """What must be as it was."""
        return [global_state(), self.recorded.dicts(), self.switched.dicts()]

    def check(self) -> None:
        """The files are those of before or the new ones, and nothing else is there; nor is anything on a graph."""
        for kind, path in self.there.items():
            assert path.read_bytes() in (b"as it was", self.new[kind].read_bytes())
            path.write_bytes(b"as it was")
        assert set(self.folder.iterdir()) == set(self.there.values())
        assert objects_left_on_nodes([*self.recorded.outs, *self.switched.outs]) == []
        assert find_fault(self.recorded.trace) == ""


def children() -> list[int]:
    """The processes that this one has started and that are still there."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == os.getpid():
            found.append(int(place.parent.name))
    return found


def interrupted(run: Callable[[], None], seconds: float) -> bool:
    """Whether Ctrl-C came before ``run`` was over."""
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
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    made = Scenes(tmp_path_factory.mktemp("folder"))
    for path in made.there.values():
        path.write_bytes(b"as it was")
    return made


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="without /proc nobody knows the processes")
@pytest.mark.parametrize("name", ["record", "whatif", "save", "page", "render"])
def test_after_an_interrupt_at_a_random_moment_all_is_as_it_was(name: str, scenes: Scenes) -> None:
    run, luck, hits = getattr(scenes, name), random.Random(name), 0
    graphviz_client.end_workers()
    before, others = scenes.state(), children()
    began = time.perf_counter()
    run()
    took = time.perf_counter() - began
    scenes.check()
    for number in range(5 * MOMENTS):  # at some of them it is over already
        if hits == MOMENTS:
            break
        if number % 3 == 0:
            graphviz_client.end_workers()  # so that its start is interrupted, too
        hits += interrupted(run, luck.uniform(0, took))
        assert scenes.state() == before, number
        scenes.check()
        assert len(children()) <= len(others) + graphviz_client.MAX_IDLE, number
    graphviz_client.end_workers()
    assert children() == others
    assert hits >= MOMENTS // 2
    assert hv.load(scenes.new["json"]) == scenes.trace
