"""Saved traces of every kind, damaged in ways that nobody thought of: what ``load`` and all views are tried with.

``python -m tests.proof.mutants 20000`` tries so many and prints how many were refused and how many worked, what failed,
the most processor time that one of them took, and the most memory. Given two numbers, it tries those from the first up
to the second.
"""

from __future__ import annotations

import copy
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from hookviz.analysis.formulas import derivatives
from hookviz.analysis.formulas.reason_table import add_reasons
from hookviz.picture import build_trace_figure, graphviz_digraph
from hookviz.player.html_page import page
from hookviz.player.trace_content import TraceContent
from hookviz.player.widget import Player
from hookviz.storage.decoding import decode_trace
from hookviz.storage.files import encode_trace
from hookviz.trace import EFFECTS, KINDS, SUBJECTS
from hookviz.trace.reason_rows import EXPLAINED, SYMBOLS, UNEXPLAINED
from hookviz.trace.sentences import make_title

SECONDS, MEGABYTES = 10.0, 600
"""What one file may cost at most."""

# -- the traces that are damaged


def _graph() -> hv.Trace:
    """The picture of the first lesson: hooks of tensors and nodes, two passes."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    c = a * b
    e = c * d
    c.register_hook(lambda grad: grad + 2)
    c.retain_grad()
    d.register_hook(lambda grad: grad.mul_(2))
    d.register_post_accumulate_grad_hook(lambda leaf: None)
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: None)
    assert c.grad_fn is not None
    c.grad_fn.register_prehook(lambda grads: None)
    c.grad_fn.register_hook(lambda sent, came: None)
    with hv.record(names={"a": a, "b": b, "c": c, "d": d, "e": e}) as trace:
        e.backward(retain_graph=True)
        e.backward()
    return trace


def _in_place() -> hv.Trace:
    """A gradient edited in place that others share, one that is asked for, and a hook that raises."""
    c, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0))
    e = c + d
    d.register_hook(lambda grad: grad.mul_(100))

    def fail(grad: Tensor) -> None:
        raise ValueError("no")

    with hv.record(names={"c": c, "d": d, "e": e}) as trace:
        e.backward()
        torch.autograd.grad(c * d, [c, d])
        c.register_hook(fail)
        with suppress(ValueError):
            (c * d).backward()
    return trace


class Block(nn.Module):
    """Three modules, one of them called a second time by checkpointing."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.norm = nn.Linear(3, 3), nn.Linear(3, 3), nn.LayerNorm(3)

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = checkpoint(self.one, self.norm(x), use_reentrant=False)
        return self.two(inner.relu()) + x


def _modules() -> hv.Trace:
    """A model with hooks of every kind on its modules."""
    net = Block()
    net.one.register_forward_pre_hook(lambda module, given: None)
    net.one.register_forward_hook(lambda module, given, made: made * 2)
    net.two.register_full_backward_pre_hook(lambda module, grads: None)
    net.two.register_full_backward_hook(lambda module, sent, came: (sent[0] * 0,))
    net.norm.register_backward_hook(lambda module, sent, came: None)
    with hv.record(net) as trace:
        net(torch.ones(2, 3)).sum().backward()
    return trace


def _training() -> hv.Trace:
    """Two steps of an optimizer with hooks, scaled by a GradScaler; as if gradients of ranks had been joined."""
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: None)
    optimizer.register_step_post_hook(lambda *_: None)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    with hv.record(net, keep=2) as trace:
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale(net(torch.ones(2, 2)).sum()).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
    leaf = next(row for row in trace.rows if row.kind == "accumulate")
    joined = leaf._replace(kind="synchronise", place=None, before=leaf.after, synchroniser="ddp", ranks=2)
    trace.rows.append(joined._replace(pass_id=len(trace.roots) - 1))
    trace.rank, trace.ranks = 0, 2
    return trace


def _formulas() -> hv.Trace:
    """Ops whose formulas have settings: shapes, dimensions, bounds, lists."""
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)
    parts = [
        x.sum(0).mul(y),
        x.mean(1, keepdim=True).expand(2, 3).amax(1),
        torch.cat([x, y.unsqueeze(0)]).t().reshape(-1)[2:5],
        x.clamp(0.5, 4.0).prod(1),
        y.pow(3).cumsum(0).flip(0),
        nn.functional.embedding(torch.tensor([1, 0]), x),
        torch.stack([y, y.exp()]).roll(1, 0).tril(),
        x.repeat(2, 1).index_select(0, torch.tensor([3])),
        (x @ y).var(correction=1),
        nn.functional.cross_entropy(x, torch.tensor([2, 0])),
        y.to(torch.complex64).abs(),
        torch.where(y > 0, y, y * 2).std(0),
    ]
    total = sum((part.sum() for part in parts), torch.zeros(()))
    with hv.record() as trace:
        total.backward()
    return trace


def _large() -> hv.Trace:
    """More boxes than are seen at once: runs, fans and calls that are folded."""
    net = nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(9)))
    for module in net[:3]:
        module.register_forward_hook(lambda *_: None)
    next(net.parameters()).register_hook(lambda grad: grad * 2)
    x = torch.ones(1, 2)
    with hv.record(net) as trace:
        made = net(x)
        for _ in range(9):
            made = made + 1
        (made.sum() + sum(torch.ones((), requires_grad=True) for _ in range(5))).backward()  # type: ignore[union-attr]
    return trace


KINDS_OF_TRACE: dict[str, Callable[[], hv.Trace]] = {
    "graph": _graph,
    "in place": _in_place,
    "modules": _modules,
    "training": _training,
    "formulas": _formulas,
    "large": _large,
}


@cache
def saved(kind: str) -> str:
    """A file with a trace of this kind."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.dumps(encode_trace(add_reasons(KINDS_OF_TRACE[kind]())))


@cache
def undamaged(kind: str) -> hv.Trace:
    """That trace."""
    return decode_trace(json.loads(saved(kind)), hv.Trace)


# -- how they are damaged

HOSTILE = (
    "",
    '0"><IMG SRC="/etc/passwd"/><FONT POINT-SIZE="13',
    "</script><script>alert(1)</script>",
    "<svg onload=alert(1)>",
    '"];x [label="',
    "a\\N\\G\\l\n\r\t\0\u202e\ud800",
    "&amp;&lt;&#0;",
    "{0.__class__} {on} %s ${x}",
    "load",
    "Ω損失😀" * 50,
    "x" * 20_000,
    "é" * 9_999,
)
WRONG: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 64, -(10**9), 10**9, 2**31, 2**53, 2**63 - 1, 2**64, 10**30, 10**400),
    *(0.5, -0.0, 1e308, float("nan"), float("inf"), "nan", "inf", "1+2j", "nanj"),
    *(
        [],
        {},
        [[]],
        [None],
        [0],
        [-1],
        [1, 2],
        [40_000, 40_000],
        [10**9] * 3,
        {"number": "inf"},
        {"number": 3},
        {"x": 1},
    ),
)
DTYPES = (
    "float32",
    "float64",
    "int64",
    "uint8",
    "bool",
    "complex64",
    "bfloat16",
    "float8_e4m3fn",
    "load",
    "Tensor",
    "",
)

Place = tuple[Any, Any]
"""(a list or an object, an index or a key of it)"""


def _walk(choose: random.Random, data: Any) -> Place:
    """Somewhere in a file: tables first, so that small ones are damaged as often as large ones."""
    holder, key = data, choose.choice(list(data))
    while isinstance(holder[key], dict | list) and holder[key] and choose.random() < 0.9:
        holder = holder[key]
        key = choose.choice(list(holder)) if isinstance(holder, dict) else choose.randrange(len(holder))
    return holder, key


def _wrong(choose: random.Random, data: Any) -> None:
    holder, key = _walk(choose, data)
    holder[key] = copy.deepcopy(choose.choice(WRONG))


def _hostile(choose: random.Random, data: Any) -> None:
    for _ in range(20):
        holder, key = _walk(choose, data)
        if isinstance(holder[key], str) and key not in ("format", "version"):
            holder[key] = choose.choice(HOSTILE)
            return


def _near(choose: random.Random, data: Any) -> None:
    """A number that is a little different, or another one of its column."""
    for _ in range(20):
        holder, key = _walk(choose, data)
        if type(holder[key]) is int and isinstance(holder, list):
            others = [x for x in holder if type(x) is int]
            holder[key] = choose.choice([holder[key] + 1, holder[key] - 1, choose.choice(others), len(others)])
            return


def _table(choose: random.Random, data: Any) -> dict[str, list[Any]]:
    tables = [part for part in data.values() if isinstance(part, dict)]
    found: dict[str, list[Any]] = choose.choice(tables) if tables else {}
    return found


def _rows(choose: random.Random, data: Any) -> None:
    """Rows of a table that are missing, there twice, or in another order."""
    table = _table(choose, data)
    columns = [column for column in table.values() if isinstance(column, list)]
    count = min(map(len, columns), default=0)
    if count:
        order, at, to = list(range(count)), choose.randrange(count), choose.randrange(count)
        way = choose.randrange(5)
        if way == 0:
            del order[at]
        elif way == 1:
            order.insert(to, at)
        elif way == 2:
            order[at], order[to] = order[to], order[at]
        elif way == 3:
            order = order[::-1]
        else:
            order += [at] * 300
        for column in columns:
            column[:] = [copy.deepcopy(column[i]) for i in order if i < len(column)]


def _column(choose: random.Random, data: Any) -> None:
    """A column that is too short, too long, in another order, or has the cells of another."""
    table = _table(choose, data)
    columns = [column for column in table.values() if isinstance(column, list) and column]
    if columns:
        column = choose.choice(columns)
        way = choose.randrange(4)
        if way == 0:
            column.pop()
        elif way == 1:
            column.append(copy.deepcopy(column[0]))
        elif way == 2:
            choose.shuffle(column)
        else:
            column[:] = copy.deepcopy(choose.choice(columns))


def _edges(choose: random.Random, data: Any) -> None:
    """A loop, a way back, or a way elsewhere."""
    edges = data.get("edges")
    whole = [edge for edge in edges if isinstance(edge, list) and len(edge) == 4] if isinstance(edges, list) else []
    if whole:
        (start, slot, end, output), other = choose.choice(whole), choose.choice(whole)
        loops = [[start, slot, start, 0], [end, 0, start, 0], [end, 7, end, 0]]
        edges.append(choose.choice([*loops, [start, slot, other[2], output]]))


def _key(choose: random.Random, data: Any) -> None:
    """A key that is missing, new, or another's."""
    holder = choose.choice([data, *(part for part in data.values() if isinstance(part, dict))])
    if holder:
        key = choose.choice(list(holder))
        way = choose.randrange(3)
        if way == 0:
            del holder[key]
        elif way == 1:
            holder["new"] = [1, 2]
        else:
            holder[key] = copy.deepcopy(holder[choose.choice(list(holder))])


def _deep(choose: random.Random, data: Any) -> None:
    holder, key = _walk(choose, data)
    for _ in range(choose.choice((1, 5, 60, 400))):
        holder[key] = [holder[key]]


def _graft(choose: random.Random, data: Any) -> None:
    """Something from elsewhere in the file."""
    (holder, key), (other, there) = _walk(choose, data), _walk(choose, data)
    holder[key] = copy.deepcopy(other[there])


def _of_step(choose: random.Random, data: Any) -> None:
    """A step of another kind, or with another effect."""
    rows = data.get("rows")
    if isinstance(rows, dict):
        name = choose.choice(("kind", "effect", "subject"))
        if isinstance(rows.get(name), list) and rows[name]:
            known = {"kind": KINDS, "effect": EFFECTS, "subject": SUBJECTS}[name]
            rows[name][choose.randrange(len(rows[name]))] = choose.choice(known)


def _of_gradients(choose: random.Random, data: Any) -> None:
    """A step with other gradients than it can have: none, one, fewer or more."""
    rows = data.get("rows")
    column = rows.get(choose.choice(("before", "after", "parts"))) if isinstance(rows, dict) else None
    if isinstance(column, list) and column:
        at = choose.randrange(len(column))
        given = column[at] if isinstance(column[at], list) else []
        column[at] = copy.deepcopy(choose.choice(([], None, 0, given[:1], given[1:], [*given, None], given * 2)))


def _of_value(choose: random.Random, data: Any) -> None:
    """A value of another shape or dtype, or with other numbers."""
    values = data.get("values")
    value = choose.choice(values) if isinstance(values, list) and values else None
    if isinstance(value, list) and len(value) == 6:
        others = choose.choice(values)
        way = choose.randrange(6)
        if way == 0:
            value[0] = choose.choice(([40_000, 40_000], [2**62], [0], [1] * 80, [1, 1], [0, 3], [10**30]))
        elif way == 1:
            value[1] = choose.choice(DTYPES)
        elif way == 2:
            value[3:5] = None, [0.0, 1.0, 0.5, 2.0, 0, 0, 3][: choose.choice((7, 7, 7, 3))]
        elif way == 3:
            value[3] = choose.choice((1.0, [1.0], [[1.0, "nan"]], "inf", 300, True, "1j", [], "x"))
        elif way == 4 and isinstance(others, list) and len(others) == 6:
            value[:] = copy.deepcopy([*others[:3], *value[3:]])
        else:
            value[5] = choose.choice((None, *HOSTILE))


def _of_setting(choose: random.Random, data: Any) -> None:
    """A setting of an op that is another."""
    plain = data.get("saved", {}).get("plain") if isinstance(data.get("saved"), dict) else None
    if isinstance(plain, list) and plain:
        settings = (*WRONG, *HOSTILE, [40_000] * 2, [-1], [2, 3], 0, 1, -7, [0] * 100, [[1, 2], [3]], 2**62)
        plain[choose.randrange(len(plain))] = copy.deepcopy(choose.choice(settings))


def _of_reason(choose: random.Random, data: Any) -> None:
    """A formula that is another's, or none; a verdict that is not true; a step with the reasons of another; or none."""
    reasons, explained = data.get("reasons"), data.get("explained")
    if not isinstance(reasons, dict) or not isinstance(explained, list):
        return
    way = choose.randrange(5)
    if way == 0:
        data["explained"] = []
    elif way == 1 and explained:
        explained[choose.randrange(len(explained))] = copy.deepcopy(choose.choice([*explained, [], [0], 0, None]))
    else:
        name = choose.choice(("reading", "verdict", "notes"))
        column = reasons.get(name)
        if isinstance(column, list) and column:
            others = {"reading": READINGS, "verdict": (EXPLAINED, SYMBOLS, UNEXPLAINED), "notes": NOTES}[name]
            column[choose.randrange(len(column))] = copy.deepcopy(choose.choice(others))


READINGS = (
    *(found.text for op in derivatives.list_ops() for found in derivatives.find_formulas(op, 0)),
    *("9" * 5_000, "-" * 5_000 + "grad", "(" * 500, "__import__('os')", "9 ** 9 ** 9", "t()", "unsqueeze(grad)", "\0"),
)
NOTES: tuple[Any, ...] = (
    *([], [["why.differs", []]], [["why.summed", []]], [["why.case", []]], [["error.step", [["step", "{step}"]]]]),
    *([["verbatim", [["text", text]]], [text, []]] for text in HOSTILE),
)

DAMAGES = (
    *(
        _wrong,
        _hostile,
        _near,
        _near,
        _rows,
        _column,
        _edges,
        _key,
        _deep,
        _graft,
        _of_step,
        _of_gradients,
        _of_value,
        _of_setting,
        _of_reason,
    ),
)


def mutant(seed: int) -> str:
    """File number ``seed``: that of a trace of some kind with one to three damages."""
    choose = random.Random(seed)
    data = json.loads(saved(kind_of(seed)))
    for _ in range(choose.choice((1, 1, 2, 3))):
        choose.choice(DAMAGES)(choose, data)
    return json.dumps(data)


def kind_of(seed: int) -> str:
    """The kind of trace that file number ``seed`` was; small ones more often, since they take less time."""
    return random.Random(-seed).choices(list(KINDS_OF_TRACE), (4, 4, 3, 4, 1, 1))[0]


def hostile(data: dict[str, Any], text: str) -> dict[str, Any]:
    """``data`` with ``text`` in every field that holds a text of somebody's."""
    data["ops"] = [op if op == "AccumulateGrad" else text for op in data["ops"]]
    data["remarks"] = [["verbatim", [["text", text]]], [text, [[text, text]]]]
    fields = {"tensors": ["name"], "hook_rows": ["name", "file", "text"], "rows": ["error", "region"]}
    fields |= {"modules": ["name", "kind"], "optimizers": ["name", "kind"]}
    for table, columns in fields.items():
        for column in columns:
            if column in data[table]:  # else it holds nothing of anybody's
                data[table][column] = [text] * len(data[table][column])
    data["reasons"]["source"] = [text] * len(data["reasons"]["source"])
    data["reasons"]["notes"] = [[[text, [[text, text]]], ["verbatim", [["text", text]]]]] * len(
        data["reasons"]["notes"]
    )
    data["saved"]["plain"] = [text if isinstance(plain, str) else plain for plain in data["saved"]["plain"]]
    labels = data["rows"].get("labels", [])
    data["rows"]["labels"] = [[[text] * len(names) for names in both] for both in labels]
    for value in data["values"]:
        value[2] = text
        value[5] = value[5] and ["verbatim", [["text", text]]]
    return data


# -- what is done with them


CHEAP = 4
"""So many of the views take next to no time: they are always looked at."""


def views(trace: hv.Trace) -> list[Callable[[], Any]]:
    """All that can be seen of ``trace``."""
    steps = range(min(len(trace.rows), 40))
    return [
        lambda: repr(trace),
        lambda: [(step.sentence, make_title(step), step.scale, repr(step)) for step in trace.steps],
        lambda: (repr(trace.firings), trace.firings._repr_html_()),
        lambda: (repr(trace.troubles), trace.troubles._repr_html_()),
        lambda: [repr(trace.why(index)) + trace.why(index)._repr_html_() for index in steps],
        lambda: _asked(trace),
        lambda: trace.content(),
        lambda: TraceContent(trace, grouped=True).full_content(),
        lambda: _answered(trace),
        lambda: page(trace, "A file that is not ours") if trace.rows else None,
        lambda: trace._repr_mimebundle_(),
        lambda: [
            build_trace_figure(trace, step, tensors=layer).source for step in _some(trace) for layer in (False, True)
        ],
        lambda: [trace.figure(step).svg() for step in _some(trace)[:1]],
        lambda: _compared(trace, trace),
    ]


def _asked(trace: hv.Trace) -> None:
    quiz = trace.quiz()
    repr(quiz), quiz._repr_html_()
    for asked in quiz:
        repr(quiz.check(asked.number, 1.0))


def _some(trace: hv.Trace) -> list[int | None]:
    """A few steps, and the end."""
    count = len(trace.rows)
    return [None, *range(0, count, max(count // 3, 1))] if count else [None]


def _answered(trace: hv.Trace) -> None:
    """The widget, and what it asks the kernel for."""
    player = trace.player()
    made = TraceContent(trace)
    if made.is_large:
        for name in (*made.names(), "steps999", "x", "7/y"):
            Player.answer(player, made, {"part": name})


def _compared(trace: hv.Trace, other: hv.Trace) -> None:
    found = trace.diff(other)
    found.content()
    found._repr_html_()


def shown(path: Path, other: hv.Trace, choose: random.Random, part: float) -> str:
    """What becomes of a file: ``refused``, or ``worked`` once it was seen: a ``part`` of what takes long to make.

    Raises:
        Exception: it was refused in other than a sentence, or some view failed.
    """
    try:
        trace = hv.load(path)
    except ValueError as error:
        if "\n" in str(error) or len(str(error)) > 600 or type(error) is not ValueError:
            raise AssertionError(str(error)) from None
        return "refused"
    for number, view in enumerate(views(trace)):
        if number < CHEAP or choose.random() < part:
            view()
    if choose.random() < part:
        try:
            _compared(other, trace)
        except ValueError as error:  # not a trace of the same graph, which a sentence says
            if type(error) is not ValueError or not str(error).endswith("."):
                raise
    trace.save(path)
    written = path.read_bytes()
    hv.load(path).save(path)
    if path.read_bytes() != written:
        raise AssertionError("saved again, it is another trace")
    return "worked"


def tried(seed: int, folder: Path, part: float = 1.0) -> str:
    """What becomes of file number ``seed``."""
    path = folder / "trace.json"
    path.write_text(mutant(seed))
    return shown(path, undamaged(kind_of(seed)), random.Random(seed), part)


BLANK = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0.00 0.00 9.00 9.00"><g id="graph0" class="graph">'
    b'<polygon fill="white" points="0,0 9,9"/></g></svg>'
)


@contextmanager
def blank_pictures() -> Iterator[None]:
    """Lay nothing out: that takes most of the time, and whether Graphviz can draw is tried elsewhere."""
    drawn = graphviz_digraph.draw_source
    graphviz_digraph.draw_source = lambda *_: BLANK  # type: ignore[assignment]
    try:
        yield
    finally:
        graphviz_digraph.draw_source = drawn


# -- a longer search

DRAWN, PART = 50, 0.06
"""One in so many has its pictures laid out, and so large a part of the views that take long is looked at."""


class TooSlow(BaseException):
    """A file took more processor time than it may."""


def too_slow(*_: Any) -> None:
    raise TooSlow


@contextmanager
def limited() -> Iterator[None]:
    """Within this, what takes more than ``SECONDS`` of processor time is ended by ``TooSlow``."""
    before = signal.signal(signal.SIGVTALRM, too_slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def told(seed: int, folder: Path) -> str:
    """What becomes of file number ``seed``: ``refused``, ``worked``, or what failed and where."""
    try:
        with limited(), nullcontext() if seed % DRAWN == 0 else blank_pictures():
            return tried(seed, folder, PART)
    except (Exception, TooSlow) as error:
        here = Path(__file__).parent.parent.parent
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(here))]
        where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[:-4:-1])
        return f"{type(error).__name__}: {str(error)[:100]!r} at {where}"


def peak() -> float:
    """Megabytes: the most memory that this process has ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(first: int, last: int) -> None:
    """Try the files of these numbers, and tell. No file can have taken more memory than the process has grown by."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_DATA, (8 * 2**30, resource.RLIM_INFINITY))
    counts: Counter[str] = Counter()
    slowest, base = (0.0, -1), 0.0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            begun, before = time.process_time(), peak()
            found = told(seed, Path(folder))
            seconds = time.process_time() - begun
            counts[found if found in ("refused", "worked") else "failed"] += 1
            slowest = max(slowest, (seconds, seed))
            base = base or peak()
            if found not in ("refused", "worked") or seconds > SECONDS or peak() - before > MEGABYTES / 4:
                print(f"{seed}: {found} ({seconds:.1f} s, {peak() - before:.0f} MB more)", flush=True)
            if (seed + 1 - first) % 500 == 0 or seed + 1 == last:
                line = f"{first} to {seed}: {dict(counts)}; at most {slowest[0]:.1f} s (file {slowest[1]})"
                print(f"{line}; {peak():.0f} MB, {peak() - base:.0f} more than at first", flush=True)


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:])) if len(sys.argv) > 2 else main(0, int(sys.argv[1]))
