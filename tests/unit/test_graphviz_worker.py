"""Graphviz runs in a process of its own: when it crashes or hangs, nothing is lost, and nothing is left behind."""

import ast
import html
import inspect
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from scenes import recorded

from hookviz.picture import graphviz_client, graphviz_worker, layout
from hookviz.picture.graphviz_client import Job, WorkerDiedError
from hookviz.picture.layout import NoPictureError, draw_source
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow

SMALL = "digraph { a -> b }"
CRASHING = (Path(__file__).with_name("crashing.dot")).read_text(encoding="utf-8").split("\n\n")
"""Graphs on which the library crashes when it is asked for the usual layout; reduced from pictures of real networks."""
ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WARNINGS = PROJECT["tool"]["pytest"]["ini_options"]["filterwarnings"]
"""What warnings are here, they are in a program of its own."""


def slow(nodes: int) -> str:
    """A graph that takes long."""
    edges = (f"n{start} -> n{end};" for start in range(nodes) for end in range(start + 1, nodes, 3))
    return f"digraph {{ node [shape=record]; {' '.join(edges)} }}"


SLOW = slow(260)
"""It would take minutes."""

posix = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture(autouse=True)
def own_worker() -> Iterator[None]:
    """Each test begins and ends without a worker, and nothing is remembered of other pictures."""
    graphviz_client.end_workers()
    layout._outcomes.clear()
    yield
    graphviz_client.end_workers()
    layout._outcomes.clear()


def worker() -> psutil.Process:
    """The one worker of this process."""
    (found,) = workers()
    assert found.pid == graphviz_client.worker_pid()
    return found


def workers() -> list[psutil.Process]:
    """The workers that this process has started; earlier tests may have left it other children, such as a browser."""
    return [child for child in psutil.Process().children(recursive=True) if is_worker(child)]


def is_worker(process: psutil.Process) -> bool:
    try:
        return graphviz_worker.__file__ in process.cmdline()
    except psutil.NoSuchProcess:  # it has ended, or it is a zombie
        return False


def drawn(source: str = SMALL) -> bool:
    return b"</svg>" in draw_source(source, "svg")


LIGHT = f"""
import sys, types
for name, folder in {{"hookviz": "hookviz", "hookviz.picture": "hookviz/picture"}}.items():
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [{str(ROOT)!r} + "/" + folder]
"""
"""Makes room for the modules about Graphviz alone: torch, which they do not need, takes two seconds to load."""


def run(
    code: str, *, shell: str = "", timeout: float = PATIENCE, light: bool = True, **options: Any
) -> subprocess.CompletedProcess[str]:
    """What becomes of a program of its own."""
    before = f"{inspect.getsource(slow)}\n{LIGHT if light else ''}"
    command = [sys.executable, *(part for warning in WARNINGS for part in ("-W", warning)), "-c", f"{before}\n{code}"]
    if shell:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, **options)


def gone(pid: int, within: float = PATIENCE) -> bool:
    """Whether a process has ended, or does so soon."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


# -- what the worker is


def test_the_worker_imports_nothing_but_the_standard_library_and_pygraphviz() -> None:
    tree = ast.parse(Path(graphviz_worker.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "pygraphviz"}
    assert drawn()
    assert worker().memory_info().rss < 100e6  # torch alone takes more


def test_no_library_of_graphviz_is_loaded_in_this_process() -> None:
    code = f"""
import sys, hookviz.picture.layout as layout
layout.draw_source({SMALL!r}, "png")
print("pygraphviz" in sys.modules)
"""
    done = run(code, light=False)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_one_worker_draws_all_pictures() -> None:
    assert drawn()
    first = worker().pid
    assert recorded().figure(3).pipe("png") and drawn("digraph { x }")
    assert worker().pid == first


def test_after_many_pictures_another_worker_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz_client, "MAX_PICTURES", 2)
    pids: list[int] = []
    ask = graphviz_client._Worker.ask
    monkeypatch.setattr(graphviz_client._Worker, "ask", lambda self, job: (pids.append(self.pid), ask(self, job))[1])
    for number in range(5):
        assert drawn(f"digraph {{ {number} }}")
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


def test_threads_draw_beside_each_other_and_each_gets_its_picture() -> None:
    with ThreadPoolExecutor(8) as pool:
        pictures = list(pool.map(lambda n: draw_source(f"digraph {{ number{n} }}", "svg"), range(40)))
    assert all(f">number{n}<".encode() in picture for n, picture in enumerate(pictures))
    assert 1 <= len(workers()) <= graphviz_client.MAX_IDLE


def test_a_relative_path_in_a_graph_is_one_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logo.png").write_bytes(draw_source(SMALL, "png"))
    assert b"logo.png" in draw_source('digraph { a [image="logo.png"] }', "svg")
    assert b"logo.png" not in draw_source('digraph { a [image="other.png"] }', "svg")


# -- crashes


@pytest.mark.parametrize("source", CRASHING, ids=range(len(CRASHING)))
def test_a_graph_on_which_graphviz_crashed_is_drawn(source: str) -> None:
    assert drawn(source)


@posix
def test_these_graphs_crash_the_usual_layout() -> None:
    """Should this fail with a newer pygraphviz, it was mended there, and the test above shows nothing any more."""
    for source in CRASHING[:3]:
        with pytest.raises(WorkerDiedError):
            graphviz_client.draw_in_worker(Job(source, "svg", "dot"))


ATTENTION = """
import torch, hookviz as hv
from torch import nn
class Attention(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
    def forward(self, x):
        return self.o((self.q(x) @ self.k(x).mT).softmax(-1) @ self.v(x))
class Layer(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.att, self.ln, self.drop = Attention(), nn.LayerNorm(d), nn.Dropout(0.0)
        self.mlp = nn.Sequential(nn.Linear(d, 24), nn.GELU(), nn.Linear(24, d))
    def forward(self, x):
        h = self.ln(x)
        return self.drop(self.att(h)) + self.drop(self.mlp(h)) + x
m = nn.Sequential(nn.Embedding(99, 16), Layer(), nn.LayerNorm(16))
with hv.record() as trace:
    m(torch.randint(0, 99, (2, 7))).sum().backward()
"""


def test_an_attention_block_is_shown_in_every_form(tmp_path: Path) -> None:
    """Each of these lines ended the process."""
    show = f"""
folder = {str(tmp_path)!r}
trace.to_html(folder + "/x.html"), trace.player(), trace._repr_mimebundle_(), trace.figure().render(folder + "/x.png")
print("alive")
"""
    done = run(ATTENTION + show, light=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "m.1.att" in page and "hv-module" in page and "This layout shows the same boxes" in page
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_a_worker_that_was_ended_is_replaced() -> None:
    assert drawn()
    first = worker()
    first.kill()
    assert gone(first.pid) and drawn("digraph { other }")
    assert worker().pid != first.pid


@posix
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_picture_is_not_blamed_for_what_an_earlier_one_did_to_the_worker(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker dies before it has drawn it, and a new one draws it as usual."""
    assert drawn()
    monkeypatch.setattr(graphviz_client._Worker, "is_ready", lambda self: True)
    worker().send_signal(number)
    svg = draw_source("digraph { other }", "svg").decode()
    assert "other" in svg and "Graphviz" not in svg


@posix
def test_a_program_that_dies_of_broken_pipes_lives_on() -> None:
    code = f"""
import os, signal, threading
from hookviz.picture import graphviz_client as c, layout
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
layout.draw_source({SMALL!r}, "svg")
pid = c.worker_pid()
os.kill(pid, signal.SIGSTOP)
threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
layout.draw_source("digraph {{ a" + " " * 3_000_000 + "}}", "png")
print("alive")
"""
    assert run(code).stdout == "alive\n"


def dies_of(monkeypatch: pytest.MonkeyPatch, fatal: Any) -> list[Job]:
    """Let the worker crash at some jobs; what it was asked."""
    asked: list[Job] = []
    ask = graphviz_client._Worker.ask

    def die(self: Any, job: Job) -> Any:
        asked.append(job)
        if fatal(job):
            os.kill(self.pid, signal.SIGSEGV)
        return ask(self, job)

    monkeypatch.setattr(graphviz_client._Worker, "ask", die)
    return asked


def ways(asked: list[Job]) -> int:
    """In how many ways a graph was to be drawn; in one of them perhaps by two workers."""
    return len({str(job) for job in asked})


def test_of_the_ways_to_draw_a_graph_those_that_lose_little_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {}
    for count in range(1, 5):
        with monkeypatch.context() as patch:
            layout._outcomes.clear()
            asked = dies_of(patch, lambda job: ways(asked) <= count)  # noqa: B023
            sources[count] = recorded().figure(3).pipe("svg", encoding="utf-8")
            assert ways(asked) == count + 1
    said = {count: " ".join(re.findall(">([^<]*)</text>", svg)) for count, svg in sources.items()}
    assert all("Graphviz crashed on the usual layout of this picture." in text for text in said.values())
    assert "the same boxes and arrows" in said[1] and "modules may appear in another order" in said[2]
    assert "straight and may cross boxes" in said[3] and "frames and hooks of modules are missing" in said[4]


def test_invisible_edges_are_what_is_left_out() -> None:
    inside = "subgraph cluster_x { c -> d [style=invis]; c -> e }"
    source = f'digraph {{ label="mine"; a -> b; b -> c [style=invis]; {inside} }}'
    job = Job(source, "dot", "dot", drop_invisible_edges=True, note="less")
    dot = graphviz_client.draw_in_worker(job).content.decode()
    assert "a -> b" in dot and "c -> e" in dot and "invis" not in dot and r"mine\nless" in dot


def test_where_nothing_can_be_drawn_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    dies_of(monkeypatch, lambda job: True)
    trace = recorded()
    with pytest.raises(NoPictureError, match="There is no picture: Graphviz crashed"):
        trace.figure(3).pipe("svg")
    assert "There is no picture" in " ".join(str(trace.figure(3)._repr_mimebundle_()["image/svg+xml"]).split("</text>"))
    player = trace.player()
    assert "There is no picture" in player.content["svgs"][0] and player.steps == len(trace.steps)
    bundle = trace._repr_mimebundle_()
    assert "There is no picture" in bundle["image/svg+xml"] and "hv-state" in bundle["text/html"]


def test_what_failed_is_not_tried_at_every_showing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = dies_of(monkeypatch, lambda job: True)
    for _ in range(3):
        with pytest.raises(NoPictureError):
            draw_source(SMALL, "svg")
    assert ways(asked) == 1 + len(layout.SIMPLER_METHODS)


# -- limits


def test_a_layout_without_end_is_given_up_and_one_with_straight_arrows_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graphviz_client, "LAYOUT_SECONDS", 1.0)
    start = time.monotonic()
    try:
        said = draw_source(SLOW, "svg").decode()
    except NoPictureError as error:
        said = str(error)
    assert "took more than 1 s" in said or "took too long" in said
    assert time.monotonic() - start < PATIENCE


@posix
def test_a_worker_that_stands_still_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz_client, "LAYOUT_SECONDS", 3.0)
    monkeypatch.setattr(graphviz_client, "GRACE_SECONDS", 0.5)
    assert drawn()
    stopped = worker()
    stopped.send_signal(signal.SIGSTOP)
    svg = draw_source("digraph { other }", "svg").decode()
    assert "other" in svg and gone(stopped.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_picture_that_needs_too_much_memory_costs_the_worker_only() -> None:
    with pytest.raises((NoPictureError, ValueError)):
        draw_source("digraph { graph [dpi=30000]; a [width=20, height=20] }", "png")
    assert drawn()


@posix
def test_an_interrupt_is_one_and_the_next_picture_is_drawn() -> None:
    assert drawn()
    before = worker().pid
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        draw_source(SLOW, "svg")
    assert gone(before)
    assert drawn("digraph { after }")


@posix
def test_ctrl_c_in_a_terminal_does_not_reach_the_worker() -> None:
    """Not even while it starts."""
    code = """
import os, signal, threading, time
from hookviz.picture import graphviz_client as c, layout
os.setpgrp()
signal.signal(signal.SIGINT, lambda *_: None)
pictures = []
def work():
    for number in range(10):
        pictures.append(layout.draw_source(f"digraph {{ n{number} }}", "svg"))
        c.end_workers()
thread = threading.Thread(target=work)
thread.start()
while thread.is_alive():
    os.killpg(0, signal.SIGINT)
    time.sleep(0.01)
print(len(pictures))
"""
    assert run(code).stdout == "10\n"


@posix
def test_a_second_interrupt_does_not_hand_a_picture_to_the_next_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C twice: the second time it comes while the worker is being ended."""
    assert drawn()
    end = graphviz_client._Worker.end

    def interrupted(self: Any) -> None:
        monkeypatch.setattr(graphviz_client._Worker, "end", end)
        raise KeyboardInterrupt

    monkeypatch.setattr(graphviz_client._Worker, "end", interrupted)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        draw_source(SLOW, "svg")
    for number in range(3):
        assert f">n{number}<".encode() in draw_source(f"digraph {{ n{number} }}", "svg")
    graphviz_client.end_workers()
    assert workers() == []


@posix
def test_an_interrupt_while_a_worker_starts_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    popen = graphviz_client._start_process

    def interrupted(theirs: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return popen(theirs)

    with monkeypatch.context() as patch:
        patch.setattr(graphviz_client, "_start_process", interrupted)
        with pytest.raises(KeyboardInterrupt):
            draw_source(SMALL, "svg")
    assert workers() == [] and drawn()


@posix
def test_interrupts_at_any_moment_leave_right_pictures_and_nothing_else() -> None:
    assert drawn()
    graphviz_client.end_workers()
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    choose, interrupts = random.Random(0), 0
    for number in range(120):
        layout._outcomes.clear()
        timer = threading.Timer(choose.uniform(0, 0.03), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            assert f">n{number}<".encode() in draw_source(f"digraph {{ n{number} -> {{ a b c }} }}", "svg")
            timer.join()
            time.sleep(0.001)
        except KeyboardInterrupt:
            interrupts += 1
        timer.join()
    assert interrupts > 20
    graphviz_client.end_workers()
    assert workers() == []
    assert sys.platform != "linux" or len(os.listdir("/proc/self/fd")) == before


@posix
def test_a_signal_handler_can_draw_while_a_picture_is_drawn() -> None:
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(draw_source("digraph { handler }", "svg")))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        assert b">n39<" in draw_source(slow(40), "svg")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(seen) == 1 and b">handler<" in seen[0]


# -- nothing is left behind


ENDS = {
    "returns": "pass",
    "raises": "raise ZeroDivisionError",
    "exits at once": "os._exit(0)",
    "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "is asked to end": "os.kill(os.getpid(), signal.SIGTERM)",
    "crashes": "faulthandler._sigsegv()",
}


@posix
@pytest.mark.parametrize("how", ENDS)
def test_the_worker_ends_with_its_program(how: str) -> None:
    code = f"""
import faulthandler, os, signal, sys
from hookviz.picture import graphviz_client as c, layout
layout.draw_source({SMALL!r}, "svg")
print(c.worker_pid(), flush=True)
{ENDS[how]}
"""
    assert gone(int(run(code).stdout))


@posix
def test_a_worker_at_work_ends_though_its_program_was_killed() -> None:
    code = f"""
import os, signal, threading
from hookviz.picture import graphviz_client as c, layout
c.LAYOUT_SECONDS = 2.0
layout.draw_source({SMALL!r}, "svg")
print(c.worker_pid(), flush=True)
threading.Timer(.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
layout.draw_source(slow(260), "svg")
"""
    assert gone(int(run(code).stdout))


def test_no_warning_when_a_program_ends() -> None:
    done = run(f"from hookviz.picture import layout; layout.draw_source({SMALL!r}, 'svg')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_program_ends_though_a_daemon_thread_is_drawing() -> None:
    code = """
import threading, time
from hookviz.picture import graphviz_client as c, layout
threading.Thread(target=layout.draw_source, args=(slow(260), "svg"), daemon=True).start()
while not c._workers: time.sleep(0.01)
time.sleep(0.3)
print(*[worker.pid for worker in c._workers])
"""
    assert gone(int(run(code).stdout))


@posix
def test_a_program_that_waits_for_all_its_children_is_not_kept_for_ever() -> None:
    code = f"""
import os
from hookviz.picture import graphviz_client as c, layout
c.IDLE_SECONDS = 1.0
layout.draw_source({SMALL!r}, "svg")
try:
    while True: os.wait()
except ChildProcessError: print("no child is left")
layout.draw_source("digraph {{ other }}", "svg")
"""
    done = run(code)
    assert (done.stdout, done.stderr) == ("no child is left\n", "")


def test_a_picture_can_be_drawn_while_a_program_ends() -> None:
    show = f"print(len(l.draw_source({SMALL!r}, 'png')) > 99)"
    code = f"import atexit, hookviz.picture.layout as l; atexit.register(lambda: {show})"
    assert run(code).stdout == "True\n"


# -- wherever a program runs


@posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_program_has_a_worker_of_its_own() -> None:
    code = f"""
import os
from hookviz.picture import graphviz_client as c, layout
layout.draw_source({SMALL!r}, "svg")
mine = c.worker_pid()
pid = os.fork()
for number in range(30):
    assert f"n{{number}}x".encode() in layout.draw_source(f"digraph {{{{ n{{number}}x }}}}", "svg")
if pid == 0:
    print(c.worker_pid() != mine, flush=True)
    c.end_workers()
    os._exit(0)
os.waitpid(pid, 0)
print(c.worker_pid() == mine, flush=True)
"""
    done = run(code)
    assert (done.stdout, done.stderr) == ("True\nTrue\n", "")


@posix
def test_a_child_that_lives_on_does_not_keep_the_worker_alive() -> None:
    code = f"""
import os, time
from hookviz.picture import graphviz_client as c, layout
layout.draw_source({SMALL!r}, "svg")
print(c.worker_pid(), flush=True)
if os.fork() == 0:
    os.close(1), os.close(2)
    time.sleep(30)
os._exit(0)
"""
    assert gone(int(run(code).stdout))


@posix
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams_are_no_obstacle(closed: str, tmp_path: Path) -> None:
    path = tmp_path / "picture.svg"
    code = f"""
import os
from pathlib import Path
from hookviz.picture import layout
svg = layout.draw_source({SMALL!r}, "svg")
try: os.write(2, b"into the pipe?")
except OSError: pass
svg = layout.draw_source("digraph {{ other }}", "svg")
Path({str(path)!r}).write_bytes(svg)
"""
    assert run(code, shell=closed).returncode == 0
    assert b"other" in path.read_bytes()


def test_a_script_without_a_guard_is_run_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"print('once')\nfrom hookviz.picture import layout\nlayout.draw_source({SMALL!r}, 'svg')\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert (done.stdout, done.stderr) == ("once\n", "")


def test_files_that_are_called_like_pythons_do_not_get_in_the_way(tmp_path: Path) -> None:
    for name in ("json", "struct", "faulthandler", "resource", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not me')")
    code = f"""
import os, hookviz.picture.layout as l
os.chdir({str(tmp_path)!r})
print(len(l.draw_source({SMALL!r}, "png")) > 99)
"""
    assert run(code, env={**os.environ, "PYTHONWARNINGS": "error"}).stdout == "True\n"


def test_variables_that_are_set_for_other_pythons_do_not_reach_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not me')")
    for name, value in {"PYTHONHOME": "/nonexistent", "PYTHONPATH": str(tmp_path), "PYTHONMALLOC": "none"}.items():
        monkeypatch.setenv(name, value)
    assert drawn()


@posix
def test_a_program_that_closes_all_files_and_opens_others_keeps_those(tmp_path: Path) -> None:
    code = f"""
import os
from hookviz.picture import layout
layout.draw_source({SMALL!r}, "svg")
os.closerange(3, 200)
files = [open({str(tmp_path)!r} + f"/{{number}}", "w+") for number in range(20)]
assert b"other" in layout.draw_source("digraph {{ other }}", "svg")
for file in files: print(file.seek(0), file.read(), end="", flush=True)
"""
    assert run(code).stdout == "0 " * 20


@posix
def test_a_folder_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    code = f"""
import os, hookviz.picture.layout as l
os.mkdir({gone!r}), os.chdir({gone!r}), os.rmdir({gone!r})
print(len(l.draw_source({SMALL!r}, "png")) > 99)
"""
    assert run(code).stdout == "True\n"


def test_what_keeps_graphviz_from_running_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "frozen", True, raising=False)
        with pytest.raises(NoPictureError, match="a frozen program has no Python"):
            draw_source("digraph { frozen }", "svg")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "python"))
        with pytest.raises(NoPictureError, match=r"could not be started \(.*No such file"):
            draw_source("digraph { no python }", "svg")
    with monkeypatch.context() as patch:
        patch.setattr(graphviz_client.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(NoPictureError, match="pip install"):
            draw_source("digraph { none }", "svg")
    with monkeypatch.context() as patch:
        patch.setattr(graphviz_worker, "__file__", str(tmp_path / "worker.py"))
        with pytest.raises(NoPictureError, match="ended before it was ready"):
            draw_source("digraph { silent }", "svg")


def test_a_broken_pygraphviz_is_said_to_be_one(tmp_path: Path) -> None:
    package = tmp_path / "pygraphviz"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "graphviz.py").write_text("raise ImportError('libcairo is missing')")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from hookviz.picture import layout
try: layout.draw_source({SMALL!r}, "svg")
except layout.NoPictureError as error: print(error)
"""
    assert run(code).stdout == "There is no picture: pygraphviz could not be loaded (libcairo is missing).\n"


def test_what_is_wrong_with_a_graph_is_not_taken_for_a_crash() -> None:
    with pytest.raises(ValueError, match="Graphviz could not read this graph"):
        draw_source("this is { no graph", "svg")
    with pytest.raises(ValueError, match="there is no layout engine oval"):
        draw_source(SMALL, "svg", "oval")
    first = worker().pid
    assert drawn() and worker().pid == first


@pytest.mark.parametrize(("name", "depth"), [("café", 1), ("d" * 200, 25)], ids=["café", "longer than paths may be"])
def test_a_folder_of_any_name_is_no_obstacle(name: str, depth: int, tmp_path: Path) -> None:
    before = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(depth):
            os.mkdir(name)
            os.chdir(name)
        assert drawn()
    finally:
        os.chdir(before)


def test_letters_in_another_encoding_are_drawn() -> None:
    assert "café" in draw_source('digraph { charset="latin1"; label="café"; a -> b }', "svg").decode()


def test_a_full_disk_is_no_fault_of_the_graph_and_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = recorded()
    with monkeypatch.context() as patch:
        full = graphviz_client.Answer("system", b"OSError: No space left on device")
        patch.setattr(graphviz_client, "draw_in_worker", lambda job: full)
        with pytest.raises(NoPictureError, match="No space left on device"):
            trace.figure().pipe("svg")
        assert "No space left" in " ".join(re.findall(">([^<]*)</text>", trace.player().content["svgs"][0]))
    assert "AccumulateGrad" in trace.player().content["svgs"][0]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says that no file can be written like this")
def test_where_no_file_can_be_written_a_sentence_says_so() -> None:
    code = f"""
import resource
from hookviz.picture import layout
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try: layout.draw_source({SMALL!r}, "svg")
except layout.NoPictureError as error: print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
from hookviz.picture import graphviz_client
graphviz_client.end_workers()
print(len(layout.draw_source({SMALL!r}, "svg")) > 99)
"""
    first, second = run(code).stdout.splitlines()
    assert first.startswith("There is no picture: Graphviz could not be run on this graph (OSError: [Errno 27]")
    assert second == "True"


@pytest.mark.parametrize("label", ["plain", "<b>", "a < b"])
def test_a_note_stands_below_the_label_that_a_graph_has(label: str) -> None:
    def texts(source: str) -> list[str]:
        svg = graphviz_client.draw_in_worker(Job(source, "svg", "dot", note="first\nsecond")).content.decode()
        return [html.unescape(text) for text in re.findall(">([^<\n]+)</text>", svg)]

    assert texts(f'digraph {{ label="{label}" }}') == [label, "first", "second"]
    assert texts("digraph { label=<hello <b>x</b>> }")[-2:] == ["first", "second"]
    assert texts("digraph { label=<hello <b>x</b>> }")[0].strip() == "hello"
