"""Measure what the motion of steps costs in Chromium, from its performance trace: ``python -m benchmarks.motion``.

It plays the player of three traces at the speed 1×, from the first tenth of the backward pass on, inside of the boxes
that are closed at first.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from playwright.sync_api import Browser, Page

import hookviz as hv
from benchmarks.cases import CASES
from benchmarks.opening import record_case
from benchmarks.tables import format_spread, make_table, report
from tests.browser.lab import browser

SECONDS = 16
"""How long each trace is played."""
START = "<!-- motion -->\n"
HEAD = ("trace", "steps played", "with motion", "a step is painted after", "the longest script", "layouts")
MARKS = Path(__file__).with_name("motion_marks.js").read_text(encoding="utf-8")
SCRIPTS = {"FunctionCall", "EvaluateScript", "RunMicrotasks", "EventDispatch", "TimerFire", "FireAnimationFrame"}
"""The names of events in which scripts run."""
CATEGORIES = ["blink.user_timing", "devtools.timeline", "disabled-by-default-devtools.timeline"]

Event = dict[str, Any]
Span = tuple[float, float]


class Motions(NamedTuple):
    """What a performance trace says about the steps that were played; times in milliseconds."""

    steps: int
    """The number of steps."""
    moving: int
    """The number of steps with motion."""
    paints: list[float]
    """For each step, the time from the start of the task that shows it to the end of its paint."""
    scripts: list[float]
    """For each frame during motion, the time of scripts."""
    layouts: int
    """The number of layouts during motion, after the step was painted."""


def a_to_e() -> hv.Trace:
    """Record the graph a to e of the lessons, with its hooks."""
    a, b, d = (torch.tensor(x, requires_grad=True) for x in (2.0, 3.0, 4.0))
    with hv.record() as trace:
        c = a * b
        c.register_hook(lambda grad: grad + 2)
        c.register_hook(lambda grad: None)
        d.register_hook(lambda grad: grad + 100)
        e = c * d
        e.register_hook(lambda grad: grad * 2)
        e.backward()
    return trace


TRACES: dict[str, Callable[[], hv.Trace]] = {
    "a to e, with hooks": a_to_e,
    "ResNet-18": lambda: record_case(CASES["resnet"]()),
    "encoder, 12 layers": lambda: record_case(CASES["encoder"]()),
}


def play(chrome: Browser, path: Path, first: int) -> list[Event]:
    """Play the page at ``path`` from step ``first`` on; return the events of its main thread, sorted by time."""
    page = chrome.new_page(viewport={"width": 1280, "height": 720})
    page.goto(path.as_uri())
    page.locator(".hv-live .hv-picture").wait_for()
    go_to(page, first)
    page.evaluate(MARKS)
    chrome.start_tracing(page=page, categories=CATEGORIES)
    page.keyboard.press("Space")
    page.wait_for_timeout(SECONDS * 1000)
    events: list[Event] = json.loads(chrome.stop_tracing())["traceEvents"]
    page.close()
    [thread, *_] = {(event["pid"], event["tid"]) for event in events if event["name"] == "hookviz step"}
    return sorted((event for event in events if (event["pid"], event["tid"]) == thread), key=lambda event: event["ts"])


def go_to(page: Page, step: int) -> None:
    """Go to a step, enter the boxes around it, and wait until nothing moves."""
    for key in ["Home", *["ArrowRight"] * step]:
        page.keyboard.press(key)
    for _ in range(2):
        page.keyboard.press("e")
        page.wait_for_timeout(1000)


def read_events(events: Sequence[Event]) -> Motions:
    """Read the motions in the events of a main thread."""
    frames = find_frame_ends(events)
    shown = find_step_tasks(events, frames)
    painted = [next(end for end in frames if end > task[1]) for task in shown]
    # The frame that shows a step is painted as without motion; the motion comes after it.
    motions = [(next((end for end in frames if end > begin), begin), last) for begin, last in find_motions(events)]
    scripts = merge([span_of(event) for event in events if event["name"] in SCRIPTS])
    return Motions(
        steps=len(shown),
        moving=len(motions),
        paints=[(end - begin) / 1000 for (begin, _), end in zip(shown, painted, strict=True)],
        scripts=[time for motion in motions for time in frame_times(motion, frames, scripts)],
        layouts=sum(event["name"] == "Layout" and is_within(event, motions) for event in events),
    )


def span_of(event: Event) -> Span:
    """The beginning and end of an event in microseconds."""
    return event["ts"], event["ts"] + event.get("dur", 0)


def is_within(event: Event, spans: Sequence[Span]) -> bool:
    """Whether an event begins in one of some spans."""
    return any(begin <= event["ts"] < end for begin, end in spans)


def find_motions(events: Sequence[Event]) -> Iterator[Span]:
    """Yield the beginning and end of each motion that ended."""
    begin = None
    for event in events:
        if event["name"] == "hookviz motion":
            begin = event["ts"]
        elif event["name"] == "hookviz rest" and begin is not None:
            yield begin, event["ts"]
            begin = None


def find_frame_ends(events: Sequence[Event]) -> list[float]:
    """Return the times at which the main thread had painted a frame."""
    return [span_of(event)[1] for event in events if event["name"] == "Commit"]


def find_step_tasks(events: Sequence[Event], frames: Sequence[float]) -> list[Span]:
    """Find the task that shows each step, as far as a frame came after it."""
    tasks = [span_of(event) for event in events if event["name"] == "RunTask"]
    shown = [event["ts"] for event in events if event["name"] == "hookviz step"]
    found = [next((task for task in tasks if task[0] <= at <= task[1]), None) for at in shown]
    return [task for task in found if task is not None and task[1] < max(frames)]


def merge(spans: list[Span]) -> list[Span]:
    """Merge spans that overlap.

    >>> merge([(0, 5), (3, 4), (7, 8)])
    [(0, 5), (7, 8)]
    """
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def frame_times(span: Span, frames: Sequence[float], scripts: Sequence[Span]) -> list[float]:
    """Return the milliseconds of scripts in each frame of a span; without a frame, in the whole span.

    >>> frame_times((0, 9000), [4000], [(1000, 2000), (4000, 4500)])
    [1.0, 0.5]
    """
    limits = [span[0], *(at for at in frames if span[0] < at < span[1]), span[1]]
    return [
        sum(max(0.0, min(end, last) - max(begin, first)) for begin, end in scripts) / 1000
        for first, last in pairwise(limits)
    ]


def make_row(name: str, chrome: Browser) -> list[str]:
    """Make the row of one trace."""
    trace = TRACES[name]()
    first = next(step.index for step in trace.steps if step.kind == "seed") + len(trace.steps) // 10
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        trace.to_html(page)
        motions = read_events(play(chrome, page, first))
    paints = format_spread(motions.paints, lambda number: f"{number:.0f} ms")
    times = (paints, f"{max(motions.scripts, default=0):.1f} ms")
    return [name, str(motions.steps), str(motions.moving), *times, str(motions.layouts)]


def main(names: Sequence[str]) -> None:
    """Print the table of the traces called ``names``; without names, measure all and write it into the page, too."""
    with browser() as chrome:
        table = make_table(HEAD, [make_row(name, chrome) for name in names or TRACES])
    report(table, f"{SECONDS} s each", None if names else Path(__file__).with_name("README.md"), START)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    main(sys.argv[1:])
