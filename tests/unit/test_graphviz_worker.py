"""Graphviz runs in a worker process: if it crashes or hangs, another worker or method draws, and no process remains."""

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

SMALL_GRAPH = "digraph { a -> b }"
CRASHING_GRAPHS = (Path(__file__).with_name("crashing.dot")).read_text(encoding="utf-8").split("\n\n")
"""Graphs whose usual layout crashes Graphviz; reduced from pictures of real networks."""
ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WARNINGS = PYPROJECT["tool"]["pytest"]["ini_options"]["filterwarnings"]
"""The warning filters of these tests, which programs in a subprocess also get."""


def slow_graph(nodes: int) -> str:
    """Return a graph whose layout takes long; the time grows quickly with ``nodes``."""
    edges = (f"n{start} -> n{end};" for start in range(nodes) for end in range(start + 1, nodes, 3))
    return f"digraph {{ node [shape=record]; {' '.join(edges)} }}"


SLOW_GRAPH = slow_graph(260)
"""A graph whose layout would take minutes."""

posix = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture(autouse=True)
def no_worker_before_and_after() -> Iterator[None]:
    """End all workers and clear the cache of outcomes before and after each test."""
    graphviz_client.end_workers()
    layout._outcomes.clear()
    yield
    graphviz_client.end_workers()
    layout._outcomes.clear()


def only_worker() -> psutil.Process:
    """Return the only worker of this process."""
    (process,) = workers()
    assert process.pid == graphviz_client.worker_pid()
    return process


def workers() -> list[psutil.Process]:
    """Return the workers of this process, without other children, such as a browser of earlier tests."""
    return [child for child in psutil.Process().children(recursive=True) if is_worker(child)]


def is_worker(process: psutil.Process) -> bool:
    try:
        return graphviz_worker.__file__ in process.cmdline()
    except psutil.NoSuchProcess:  # the process has ended or is a zombie
        return False


def can_draw(source: str = SMALL_GRAPH) -> bool:
    return b"</svg>" in draw_source(source, "svg")


PREPARE_IMPORT_WITHOUT_TORCH = f"""
import sys, types
for name, folder in {{"hookviz": "hookviz", "hookviz.picture": "hookviz/picture"}}.items():
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [{str(Path(graphviz_worker.__file__).parents[2])!r} + "/" + folder]
"""
"""Lets a program import the Graphviz modules without torch, which they do not need and which takes two seconds."""


def run_program(
    code: str, *, shell: str = "", timeout: float = PATIENCE, without_torch: bool = True, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a Python subprocess; ``shell`` adds redirections."""
    prelude = f"{inspect.getsource(slow_graph)}\n{PREPARE_IMPORT_WITHOUT_TORCH if without_torch else ''}"
    command = [sys.executable, *(part for warning in WARNINGS for part in ("-W", warning)), "-c", f"{prelude}\n{code}"]
    if shell:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, **options)


def has_ended(pid: int, timeout: float = PATIENCE) -> bool:
    """Wait for a process to end; return whether it has ended within ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


# -- what the worker is


def test_the_worker_imports_only_the_standard_library_and_pygraphviz() -> None:
    tree = ast.parse(Path(graphviz_worker.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "pygraphviz"}
    assert can_draw()
    assert only_worker().memory_info().rss < 100e6  # torch alone takes more


def test_pygraphviz_is_not_imported_in_the_main_process() -> None:
    code = f"""
import sys, hookviz.picture.layout as layout
layout.draw_source({SMALL_GRAPH!r}, "png")
print("pygraphviz" in sys.modules)
"""
    result = run_program(code, without_torch=False)
    assert (result.stdout, result.stderr) == ("False\n", "")


def test_one_worker_draws_all_pictures() -> None:
    assert can_draw()
    first = only_worker().pid
    assert recorded().figure(3).pipe("png") and can_draw("digraph { x }")
    assert only_worker().pid == first


def test_a_worker_is_replaced_after_max_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz_client, "MAX_PICTURES", 2)
    pids: list[int] = []
    ask = graphviz_client._Worker.ask
    monkeypatch.setattr(graphviz_client._Worker, "ask", lambda self, job: (pids.append(self.pid), ask(self, job))[1])
    for number in range(5):
        assert can_draw(f"digraph {{ {number} }}")
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


def test_threads_draw_concurrently_and_each_gets_its_picture() -> None:
    with ThreadPoolExecutor(8) as pool:
        pictures = list(pool.map(lambda n: draw_source(f"digraph {{ number{n} }}", "svg"), range(40)))
    assert all(f">number{n}<".encode() in picture for n, picture in enumerate(pictures))
    assert 1 <= len(workers()) <= graphviz_client.MAX_IDLE


def test_relative_image_paths_start_at_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_draw()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logo.png").write_bytes(draw_source(SMALL_GRAPH, "png"))
    assert b"logo.png" in draw_source('digraph { a [image="logo.png"] }', "svg")
    assert b"logo.png" not in draw_source('digraph { a [image="other.png"] }', "svg")


# -- crashes


@pytest.mark.parametrize("source", CRASHING_GRAPHS, ids=range(len(CRASHING_GRAPHS)))
def test_a_graph_that_crashes_graphviz_is_drawn_in_another_way(source: str) -> None:
    assert can_draw(source)


@posix
def test_the_crashing_graphs_still_crash_the_usual_layout() -> None:
    """If this fails with a newer pygraphviz, the crash was fixed there, and the test above needs other graphs."""
    for source in CRASHING_GRAPHS[:3]:
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


def test_an_attention_block_is_drawn_in_every_output_format(tmp_path: Path) -> None:
    """Each of these calls once crashed the process."""
    show = f"""
folder = {str(tmp_path)!r}
trace.to_html(folder + "/x.html"), trace.player(), trace._repr_mimebundle_(), trace.figure().render(folder + "/x.png")
print("alive")
"""
    result = run_program(ATTENTION + show, without_torch=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "alive\n", "")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "m.1.att" in page and "hv-module" in page and "This layout shows the same boxes" in page
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_a_killed_worker_is_replaced() -> None:
    assert can_draw()
    first = only_worker()
    first.kill()
    assert has_ended(first.pid) and can_draw("digraph { other }")
    assert only_worker().pid != first.pid


@posix
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_picture_is_drawn_as_usual_if_the_worker_died_before_it(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker dies before the job begins, so a new one draws the picture with the usual layout."""
    assert can_draw()
    monkeypatch.setattr(graphviz_client._Worker, "is_ready", lambda self: True)
    only_worker().send_signal(number)
    svg = draw_source("digraph { other }", "svg").decode()
    assert "other" in svg and "Graphviz" not in svg


@posix
def test_a_broken_pipe_to_the_worker_does_not_kill_the_program() -> None:
    code = f"""
import os, signal, threading
from hookviz.picture import graphviz_client as c, layout
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
layout.draw_source({SMALL_GRAPH!r}, "svg")
pid = c.worker_pid()
os.kill(pid, signal.SIGSTOP)
threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
layout.draw_source("digraph {{ a" + " " * 3_000_000 + "}}", "png")
print("alive")
"""
    assert run_program(code).stdout == "alive\n"


def crash_worker_on(monkeypatch: pytest.MonkeyPatch, should_crash: Any) -> list[Job]:
    """Crash the worker on jobs for which ``should_crash`` is true; return the list of requested jobs."""
    jobs: list[Job] = []
    ask = graphviz_client._Worker.ask

    def crash_or_ask(self: Any, job: Job) -> Any:
        jobs.append(job)
        if should_crash(job):
            os.kill(self.pid, signal.SIGSEGV)
        return ask(self, job)

    monkeypatch.setattr(graphviz_client._Worker, "ask", crash_or_ask)
    return jobs


def count_distinct_jobs(jobs: list[Job]) -> int:
    """Count the different jobs; a job may be repeated by a second worker."""
    return len({str(job) for job in jobs})


def test_simpler_methods_are_tried_in_order_of_lost_detail(monkeypatch: pytest.MonkeyPatch) -> None:
    svg_by_count = {}
    for count in range(1, 5):
        with monkeypatch.context() as patch:
            layout._outcomes.clear()
            jobs = crash_worker_on(patch, lambda job: count_distinct_jobs(jobs) <= count)  # noqa: B023
            svg_by_count[count] = recorded().figure(3).pipe("svg", encoding="utf-8")
            assert count_distinct_jobs(jobs) == count + 1
    texts = {count: " ".join(re.findall(">([^<]*)</text>", svg)) for count, svg in svg_by_count.items()}
    assert all("Graphviz crashed on the usual layout of this picture." in text for text in texts.values())
    assert "the same boxes and arrows" in texts[1] and "modules may appear in another order" in texts[2]
    assert "straight and may cross boxes" in texts[3] and "frames and hooks of modules are missing" in texts[4]


def test_drop_invisible_edges_drops_only_invisible_edges() -> None:
    inside = "subgraph cluster_x { c -> d [style=invis]; c -> e }"
    source = f'digraph {{ label="mine"; a -> b; b -> c [style=invis]; {inside} }}'
    job = Job(source, "dot", "dot", drop_invisible_edges=True, note="less")
    dot = graphviz_client.draw_in_worker(job).content.decode()
    assert "a -> b" in dot and "c -> e" in dot and "invis" not in dot and r"mine\nless" in dot


def test_a_message_replaces_a_picture_that_no_method_can_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    crash_worker_on(monkeypatch, lambda job: True)
    trace = recorded()
    with pytest.raises(NoPictureError, match="There is no picture: Graphviz crashed"):
        trace.figure(3).pipe("svg")
    assert "There is no picture" in " ".join(str(trace.figure(3)._repr_mimebundle_()["image/svg+xml"]).split("</text>"))
    player = trace.player()
    assert "There is no picture" in player.content["svgs"][0] and player.steps == len(trace.steps)
    bundle = trace._repr_mimebundle_()
    assert "There is no picture" in bundle["image/svg+xml"] and "hv-state" in bundle["text/html"]


def test_a_failed_picture_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = crash_worker_on(monkeypatch, lambda job: True)
    for _ in range(3):
        with pytest.raises(NoPictureError):
            draw_source(SMALL_GRAPH, "svg")
    assert count_distinct_jobs(jobs) == 1 + len(layout.SIMPLER_METHODS)


# -- limits


def test_a_layout_that_times_out_is_replaced_by_straight_arrows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graphviz_client, "LAYOUT_SECONDS", 1.0)
    start = time.monotonic()
    try:
        text = draw_source(SLOW_GRAPH, "svg").decode()
    except NoPictureError as error:
        text = str(error)
    assert "took more than 1 s" in text or "took too long" in text
    assert time.monotonic() - start < PATIENCE


@posix
def test_a_stopped_worker_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz_client, "LAYOUT_SECONDS", 3.0)
    monkeypatch.setattr(graphviz_client, "GRACE_SECONDS", 0.5)
    assert can_draw()
    stopped = only_worker()
    stopped.send_signal(signal.SIGSTOP)
    svg = draw_source("digraph { other }", "svg").decode()
    assert "other" in svg and has_ended(stopped.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_picture_that_needs_too_much_memory_only_kills_the_worker() -> None:
    with pytest.raises((NoPictureError, ValueError)):
        draw_source("digraph { graph [dpi=30000]; a [width=20, height=20] }", "png")
    assert can_draw()


@posix
def test_an_interrupt_stops_the_layout_and_the_next_picture_is_drawn() -> None:
    assert can_draw()
    before = only_worker().pid
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        draw_source(SLOW_GRAPH, "svg")
    assert has_ended(before)
    assert can_draw("digraph { after }")


@posix
def test_ctrl_c_in_a_terminal_does_not_reach_the_worker() -> None:
    """This also holds while the worker starts."""
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
    assert run_program(code).stdout == "10\n"


@posix
def test_a_second_interrupt_does_not_give_a_picture_to_the_wrong_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second Ctrl-C comes while the client ends the worker."""
    assert can_draw()
    end = graphviz_client._Worker.end

    def interrupted(self: Any) -> None:
        monkeypatch.setattr(graphviz_client._Worker, "end", end)
        raise KeyboardInterrupt

    monkeypatch.setattr(graphviz_client._Worker, "end", interrupted)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        draw_source(SLOW_GRAPH, "svg")
    for number in range(3):
        assert f">n{number}<".encode() in draw_source(f"digraph {{ n{number} }}", "svg")
    graphviz_client.end_workers()
    assert workers() == []


@posix
def test_an_interrupt_while_a_worker_starts_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    popen = graphviz_client._start_process

    def interrupted(options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return popen(options)

    with monkeypatch.context() as patch:
        patch.setattr(graphviz_client, "_start_process", interrupted)
        with pytest.raises(KeyboardInterrupt):
            draw_source(SMALL_GRAPH, "svg")
    assert workers() == [] and can_draw()


@posix
def test_interrupts_at_any_moment_leave_no_wrong_pictures_workers_or_files() -> None:
    assert can_draw()
    graphviz_client.end_workers()
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    random_generator, interrupt_count = random.Random(0), 0
    for number in range(120):
        layout._outcomes.clear()
        timer = threading.Timer(random_generator.uniform(0, 0.03), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            assert f">n{number}<".encode() in draw_source(f"digraph {{ n{number} -> {{ a b c }} }}", "svg")
            timer.join()
            time.sleep(0.001)
        except KeyboardInterrupt:
            interrupt_count += 1
        timer.join()
    assert interrupt_count > 20
    graphviz_client.end_workers()
    assert workers() == []
    assert sys.platform != "linux" or len(os.listdir("/proc/self/fd")) == before


@posix
def test_a_signal_handler_can_draw_while_a_picture_is_drawn() -> None:
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(draw_source("digraph { handler }", "svg")))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        assert b">n39<" in draw_source(slow_graph(40), "svg")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(seen) == 1 and b">handler<" in seen[0]


# -- workers end with their program


PROGRAM_ENDINGS = {
    "returns": "pass",
    "raises": "raise ZeroDivisionError",
    "exits at once": "os._exit(0)",
    "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "is asked to end": "os.kill(os.getpid(), signal.SIGTERM)",
    "crashes": "faulthandler._sigsegv()",
}


@posix
@pytest.mark.parametrize("ending", PROGRAM_ENDINGS)
def test_the_worker_ends_with_its_program(ending: str) -> None:
    code = f"""
import faulthandler, os, signal, sys
from hookviz.picture import graphviz_client as c, layout
layout.draw_source({SMALL_GRAPH!r}, "svg")
print(c.worker_pid(), flush=True)
{PROGRAM_ENDINGS[ending]}
"""
    assert has_ended(int(run_program(code).stdout))


@posix
def test_a_busy_worker_ends_after_its_program_was_killed() -> None:
    code = f"""
import os, signal, threading
from hookviz.picture import graphviz_client as c, layout
c.LAYOUT_SECONDS = 2.0
layout.draw_source({SMALL_GRAPH!r}, "svg")
print(c.worker_pid(), flush=True)
threading.Timer(.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
layout.draw_source(slow_graph(260), "svg")
"""
    assert has_ended(int(run_program(code).stdout))


def test_a_program_with_a_worker_exits_without_warnings() -> None:
    result = run_program(f"from hookviz.picture import layout; layout.draw_source({SMALL_GRAPH!r}, 'svg')")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_program_can_exit_while_a_daemon_thread_draws() -> None:
    code = """
import threading, time
from hookviz.picture import graphviz_client as c, layout
threading.Thread(target=layout.draw_source, args=(slow_graph(260), "svg"), daemon=True).start()
while not c._workers: time.sleep(0.01)
time.sleep(0.3)
print(*[worker.pid for worker in c._workers])
"""
    assert has_ended(int(run_program(code).stdout))


@posix
def test_an_idle_worker_ends_so_that_os_wait_returns() -> None:
    code = f"""
import os
from hookviz.picture import graphviz_client as c, layout
c.IDLE_SECONDS = 1.0
layout.draw_source({SMALL_GRAPH!r}, "svg")
try:
    while True: os.wait()
except ChildProcessError: print("no child is left")
layout.draw_source("digraph {{ other }}", "svg")
"""
    result = run_program(code)
    assert (result.stdout, result.stderr) == ("no child is left\n", "")


def test_a_picture_can_be_drawn_in_an_atexit_handler() -> None:
    show = f"print(len(l.draw_source({SMALL_GRAPH!r}, 'png')) > 99)"
    code = f"import atexit, hookviz.picture.layout as l; atexit.register(lambda: {show})"
    assert run_program(code).stdout == "True\n"


# -- unusual environments


@posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_its_own_worker() -> None:
    code = f"""
import os
from hookviz.picture import graphviz_client as c, layout
layout.draw_source({SMALL_GRAPH!r}, "svg")
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
    result = run_program(code)
    assert (result.stdout, result.stderr) == ("True\nTrue\n", "")


@posix
def test_a_surviving_forked_child_does_not_keep_the_worker_alive() -> None:
    code = f"""
import os, time
from hookviz.picture import graphviz_client as c, layout
layout.draw_source({SMALL_GRAPH!r}, "svg")
print(c.worker_pid(), flush=True)
if os.fork() == 0:
    os.close(1), os.close(2)
    time.sleep(30)
os._exit(0)
"""
    assert has_ended(int(run_program(code).stdout))


@posix
@pytest.mark.parametrize("redirections", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_pictures_are_drawn_with_closed_standard_streams(redirections: str, tmp_path: Path) -> None:
    path = tmp_path / "picture.svg"
    code = f"""
import os
from pathlib import Path
from hookviz.picture import layout
svg = layout.draw_source({SMALL_GRAPH!r}, "svg")
try: os.write(2, b"into the pipe?")
except OSError: pass
svg = layout.draw_source("digraph {{ other }}", "svg")
Path({str(path)!r}).write_bytes(svg)
"""
    assert run_program(code, shell=redirections).returncode == 0
    assert b"other" in path.read_bytes()


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"print('once')\nfrom hookviz.picture import layout\nlayout.draw_source({SMALL_GRAPH!r}, 'svg')\n"
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert (result.stdout, result.stderr) == ("once\n", "")


def test_local_files_named_like_standard_modules_are_not_imported(tmp_path: Path) -> None:
    for name in ("json", "struct", "faulthandler", "resource", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not me')")
    code = f"""
import os, hookviz.picture.layout as l
os.chdir({str(tmp_path)!r})
print(len(l.draw_source({SMALL_GRAPH!r}, "png")) > 99)
"""
    assert run_program(code, env={**os.environ, "PYTHONWARNINGS": "error"}).stdout == "True\n"


def test_python_environment_variables_do_not_affect_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not me')")
    for name, value in {"PYTHONHOME": "/nonexistent", "PYTHONPATH": str(tmp_path), "PYTHONMALLOC": "none"}.items():
        monkeypatch.setenv(name, value)
    assert can_draw()


@posix
def test_closing_all_file_descriptors_does_not_mix_up_new_files(tmp_path: Path) -> None:
    code = f"""
import os
from hookviz.picture import layout
layout.draw_source({SMALL_GRAPH!r}, "svg")
os.closerange(3, 200)
files = [open({str(tmp_path)!r} + f"/{{number}}", "w+") for number in range(20)]
assert b"other" in layout.draw_source("digraph {{ other }}", "svg")
for file in files: print(file.seek(0), file.read(), end="", flush=True)
"""
    assert run_program(code).stdout == "0 " * 20


@posix
def test_pictures_are_drawn_in_a_deleted_current_directory(tmp_path: Path) -> None:
    removed_folder = str(tmp_path / "gone")
    code = f"""
import os, hookviz.picture.layout as l
os.mkdir({removed_folder!r}), os.chdir({removed_folder!r}), os.rmdir({removed_folder!r})
print(len(l.draw_source({SMALL_GRAPH!r}, "png")) > 99)
"""
    assert run_program(code).stdout == "True\n"


def test_the_error_says_why_graphviz_cannot_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


def test_the_error_says_that_pygraphviz_cannot_be_imported(tmp_path: Path) -> None:
    package = tmp_path / "pygraphviz"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "graphviz.py").write_text("raise ImportError('libcairo is missing')")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from hookviz.picture import layout
try: layout.draw_source({SMALL_GRAPH!r}, "svg")
except layout.NoPictureError as error: print(error)
"""
    assert run_program(code).stdout == "There is no picture: pygraphviz could not be loaded (libcairo is missing).\n"


def test_invalid_dot_source_is_not_reported_as_a_graphviz_crash() -> None:
    with pytest.raises(ValueError, match="Graphviz could not read this graph"):
        draw_source("this is { no graph", "svg")
    with pytest.raises(ValueError, match="there is no layout engine oval"):
        draw_source(SMALL_GRAPH, "svg", "oval")
    first = only_worker().pid
    assert can_draw() and only_worker().pid == first


@pytest.mark.parametrize(("name", "depth"), [("café", 1), ("d" * 200, 25)], ids=["café", "longer than paths may be"])
def test_pictures_are_drawn_in_a_directory_of_any_name(name: str, depth: int, tmp_path: Path) -> None:
    before = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(depth):
            os.mkdir(name)
            os.chdir(name)
        assert can_draw()
    finally:
        os.chdir(before)


def test_a_latin1_graph_is_drawn() -> None:
    assert "café" in draw_source('digraph { charset="latin1"; label="café"; a -> b }', "svg").decode()


def test_a_full_disk_is_reported_and_the_picture_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = recorded()
    with monkeypatch.context() as patch:
        answer = graphviz_client.Answer("system", b"OSError: No space left on device")
        patch.setattr(graphviz_client, "draw_in_worker", lambda job: answer)
        with pytest.raises(NoPictureError, match="No space left on device"):
            trace.figure().pipe("svg")
        assert "No space left" in " ".join(re.findall(">([^<]*)</text>", trace.player().content["svgs"][0]))
    assert "AccumulateGrad" in trace.player().content["svgs"][0]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says that no file can be written like this")
def test_the_error_says_that_no_file_can_be_written() -> None:
    code = f"""
import resource
from hookviz.picture import layout
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try: layout.draw_source({SMALL_GRAPH!r}, "svg")
except layout.NoPictureError as error: print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
from hookviz.picture import graphviz_client
graphviz_client.end_workers()
print(len(layout.draw_source({SMALL_GRAPH!r}, "svg")) > 99)
"""
    first, second = run_program(code).stdout.splitlines()
    assert first.startswith("There is no picture: Graphviz could not be run on this graph (OSError: [Errno 27]")
    assert second == "True"


@pytest.mark.parametrize("label", ["plain", "<b>", "a < b"])
def test_a_note_is_drawn_below_the_label_of_a_graph(label: str) -> None:
    def texts(source: str) -> list[str]:
        svg = graphviz_client.draw_in_worker(Job(source, "svg", "dot", note="first\nsecond")).content.decode()
        return [html.unescape(text) for text in re.findall(">([^<\n]+)</text>", svg)]

    assert texts(f'digraph {{ label="{label}" }}') == [label, "first", "second"]
    assert texts("digraph { label=<hello <b>x</b>> }")[-2:] == ["first", "second"]
    assert texts("digraph { label=<hello <b>x</b>> }")[0].strip() == "hello"
