"""Graphviz runs in a process of its own: if it crashes or hangs, the program goes on, and no process remains."""

import inspect
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import graphviz
import psutil
import pytest
import torch
from scenes import silent

import hookviz as hv
from hookviz.picture import graphviz_client, graphviz_worker, layered_layout
from hookviz.picture.graphviz_client import Job, WorkerDiedError
from hookviz.picture.graphviz_digraph import STRAIGHT_ARROWS, NoPictureError, draw_source
from hookviz.picture.layered_layout import Boxes, Edge, Size, place_boxes
from tests.picture_faults import PicturePlan
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow

SMALL_GRAPH = "digraph { a -> b }"
CRASHING_GRAPH = """digraph {
    node [fontsize=14 shape=plain]
    a [label="" height=0.1 width=0.9]
    subgraph cluster_outer {
        b [label=x]; c [label=x]; d [label=x]
        subgraph cluster_inner { e [label="" height=0.1 width=0.9] }
    }
    e -> a
    b -> c [penwidth=2.2]
}"""
"""A graph whose usual layout crashes Graphviz; reduced from the picture of a real network."""
ROOT = Path(__file__).resolve().parents[2]


def slow_graph(nodes: int) -> str:
    """Return a graph whose layout takes long; the time grows quickly with ``nodes``."""
    edges = (f"n{start} -> n{end};" for start in range(nodes) for end in range(start + 1, nodes, 3))
    return f"digraph {{ node [shape=record]; {' '.join(edges)} }}"


posix = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture(autouse=True)
def no_worker_before_and_after() -> Iterator[None]:
    """End the process and clear the cache of layouts before and after each test."""
    graphviz_client.end_worker()
    place_boxes.cache_clear()
    yield
    graphviz_client.end_worker()
    place_boxes.cache_clear()


def workers() -> list[psutil.Process]:
    """Return the Graphviz processes of this process, without those of kernels that earlier tests started."""
    return [child for child in psutil.Process().children() if is_worker(child)]


def is_worker(process: psutil.Process) -> bool:
    try:
        return graphviz_worker.__file__ in process.cmdline()
    except psutil.NoSuchProcess:  # the process has ended or is a zombie
        return False


def only_worker() -> psutil.Process:
    (process,) = workers()
    return process


def can_draw(source: str = SMALL_GRAPH) -> bool:
    return b"</svg>" in draw_source(source, "svg")


PREPARE_IMPORT_WITHOUT_TORCH = f"""
import sys, types
for name, folder in {{"hookviz": "hookviz", "hookviz.picture": "hookviz/picture"}}.items():
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [{str(Path(graphviz_worker.__file__).parents[2])!r} + "/" + folder]
"""
"""Lets a program import the Graphviz modules without torch, which they do not need and which takes two seconds."""


def run_program(code: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a Python subprocess."""
    program = f"{inspect.getsource(slow_graph)}\n{PREPARE_IMPORT_WITHOUT_TORCH}\n{code}"
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)


def has_ended(pid: int) -> bool:
    """Wait for a process to end; return whether it has ended in time."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_one_small_process_draws_all_pictures() -> None:
    assert can_draw()
    first = only_worker().pid
    assert record_network().figure().svg() and can_draw("digraph { x }")
    assert only_worker().pid == first
    assert only_worker().memory_info().rss < 100e6  # torch alone takes more


@posix
def test_a_graph_that_crashes_graphviz_is_drawn_with_straight_arrows() -> None:
    """If the usual layout no longer crashes with a newer pygraphviz, this test needs another graph."""
    with pytest.raises(WorkerDiedError):
        graphviz_client.draw_in_worker(Job(CRASHING_GRAPH, "svg", "dot"))
    assert can_draw(CRASHING_GRAPH)


@pytest.fixture
def dying_worker(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Let the process crash on each job; return the list of these jobs."""
    jobs: list[Job] = []
    ask = graphviz_client._Worker.ask

    def crash(self: Any, job: Job) -> Any:
        jobs.append(job)
        os.kill(self.process.pid, signal.SIGSEGV)
        return ask(self, job)

    monkeypatch.setattr(graphviz_client._Worker, "ask", crash)
    return jobs


@posix
def test_a_sentence_replaces_a_graph_of_which_graphviz_dies_in_any_case(dying_worker: list[Job]) -> None:
    drawing = hv.render(graphviz.Digraph(body=["a -> b\n"]))
    with pytest.raises(NoPictureError, match="There is no picture: Graphviz crashed"):
        drawing.pipe("svg")
    assert [job.attributes for job in dying_worker] == [{}, STRAIGHT_ARROWS]
    shown = drawing._repr_mimebundle_()
    assert shown.keys() == {"text/plain"} and "There is no picture" in str(shown["text/plain"])


def shown_texts(svg: str) -> list[str]:
    return re.findall("<text[^>]*>([^<]+)</text>", svg)


@pytest.fixture(scope="module")
def usual() -> str:
    """Return a picture of a network with hooks in which Graphviz places boxes."""
    return record_network().figure().svg()


def record_network() -> hv.Trace:
    torch.manual_seed(0)
    net = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    net.linear1.register_full_backward_hook(silent("looks"))
    with hv.record(net) as trace:
        net(torch.ones(2, 1, 4)).sum().backward()
    return trace


def assert_is_whole(svg: str, usual: str) -> None:
    """Check that a picture has the elements and texts of the usual one, no other text, and no box on another."""
    assert svg != usual
    assert sorted(re.findall(' id="[^"]*"', svg)) == sorted(re.findall(' id="[^"]*"', usual))
    assert sorted(shown_texts(svg)) == sorted(shown_texts(usual))
    assert PicturePlan(svg).find_faults() == []


@posix
def test_a_picture_is_drawn_as_usual_if_the_process_died_before_it(usual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_draw()
    first = only_worker()
    first.kill()
    assert has_ended(first.pid)
    monkeypatch.setattr(graphviz_client._Worker, "can_draw", lambda self: self.process.pid == first.pid)
    assert record_network().figure().svg() == usual


@posix
def test_boxes_stand_in_layers_if_graphviz_dies_and_no_reader_is_told(usual: str, dying_worker: list[Job]) -> None:
    trace = record_network()
    assert_is_whole(trace.figure().svg(), usual)
    assert dying_worker and workers() == []
    assert {*shown_texts(trace.player().content["svgs"][0])} <= {*shown_texts(usual)}


def test_boxes_stand_in_layers_if_graphviz_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz_client, "LAYOUT_SECONDS", 1.0)
    edges = tuple(Edge(start, end) for start in range(260) for end in range(start + 1, 260, 3))
    monkeypatch.setattr(layered_layout, "MAX_SPANNED_LAYERS", 10**9)
    start = time.monotonic()
    placement = place_boxes(Boxes((Size(60, 20),) * 260, edges, "down"))
    assert len({*placement.centres}) == 260 and len(placement.curves) == len(edges)
    assert 1 < time.monotonic() - start < PATIENCE


def test_invalid_dot_source_is_not_reported_as_a_crash() -> None:
    with pytest.raises(ValueError, match="Graphviz could not read this graph"):
        draw_source("this is { no graph", "svg")
    with pytest.raises(ValueError, match="there is no layout engine oval"):
        draw_source(SMALL_GRAPH, "svg", "oval")
    first = only_worker().pid
    assert can_draw() and only_worker().pid == first


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_picture_that_needs_too_much_memory_only_ends_the_process() -> None:
    """The pixels alone take 3 GB; without the limit, drawing them would end by the limit of time."""
    with pytest.raises(WorkerDiedError, match="crash"):
        graphviz_client.draw_in_worker(Job("digraph { graph [dpi=1400]; a [width=20, height=20] }", "png", "dot"))
    assert can_draw()


@posix
def test_an_interrupt_stops_the_layout_and_the_next_picture_is_drawn() -> None:
    assert can_draw()
    before = only_worker().pid
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        draw_source(slow_graph(260), "svg")  # would take minutes
    assert has_ended(before)
    assert can_draw("digraph { after }")


@posix
def test_interrupts_at_any_moment_leave_no_wrong_pictures_and_processes() -> None:
    assert can_draw()
    graphviz_client.end_worker()
    random_generator, interrupt_count = random.Random(0), 0
    for number in range(40):
        timer = threading.Timer(random_generator.uniform(0, 0.03), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            assert f">n{number}<".encode() in draw_source(f"digraph {{ n{number} -> {{ a b c }} }}", "svg")
            timer.join()
            time.sleep(0.001)
        except KeyboardInterrupt:
            interrupt_count += 1
        timer.join()
    assert interrupt_count > 7
    graphviz_client.end_worker()
    assert workers() == []


@posix
def test_the_process_ends_with_its_program_that_is_killed_while_a_thread_draws() -> None:
    code = f"""
import os, signal, threading, time
from hookviz.picture import graphviz_client as c, graphviz_digraph as drawing
c.LAYOUT_SECONDS = 2.0
drawing.draw_source({SMALL_GRAPH!r}, "svg")
print(c.worker_pid(), flush=True)
threading.Thread(target=drawing.draw_source, args=(slow_graph(260), "svg"), daemon=True).start()
time.sleep(0.3)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert has_ended(int(run_program(code).stdout))


def test_without_pygraphviz_the_error_says_how_to_install_it_and_boxes_stand_in_layers(
    usual: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphviz_client.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NoPictureError, match="pip install"):
        draw_source(SMALL_GRAPH, "svg")
    assert_is_whole(record_network().figure().svg(), usual)
    assert workers() == []
