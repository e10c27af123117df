"""Randomly damaged files of traces of every kind, and all views of a trace."""

from __future__ import annotations

import copy
import json
import random
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from hookviz.course import quiz
from hookviz.picture import build_trace_figure, layered_layout
from hookviz.player import trace_content
from hookviz.player.html_page import page
from hookviz.player.trace_content import TraceContent
from hookviz.player.widget import Player
from hookviz.storage.files import decode_trace, encode_trace
from hookviz.trace.sentences import make_title

SECONDS, MEGABYTES = 10.0, 600
"""The limits of processor time and memory for one file."""

# -- the traces


def _graph() -> hv.Trace:
    """The graph of lesson 01 with tensor and node hooks, and two passes."""
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
    """A gradient edited in place that two tensors share, a call of autograd.grad, and a hook that raises."""
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
    """Three modules, one of which checkpointing calls a second time."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.norm = nn.Linear(3, 3), nn.Linear(3, 3), nn.LayerNorm(3)

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = checkpoint(self.one, self.norm(x), use_reentrant=False)
        return self.two(inner.relu()) + x


def _modules() -> hv.Trace:
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
    """Two steps of an optimizer with hooks, scaled by a GradScaler, and one artificial synchronised gradient."""
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
    leaf = next(row for row in trace._data.rows if row.kind == "accumulate")
    joined = leaf._replace(kind="synchronise", place=None, before=leaf.after, synchroniser="ddp", ranks=2)
    trace._data.rows.append(joined._replace(pass_id=len(trace._data.roots) - 1))
    trace._data.rank, trace._data.ranks = 0, 2
    return trace


def _formulas() -> hv.Trace:
    """Ops whose formulas have settings: shapes, dimensions, bounds, lists."""
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)
    parts = [
        x.mean(1, keepdim=True).expand(2, 3).amax(1),
        torch.cat([x, y.unsqueeze(0)]).t().reshape(-1)[2:5],
        x.clamp(0.5, 4.0).prod(1),
        y.pow(3).cumsum(0).flip(0),
        nn.functional.embedding(torch.tensor([1, 0]), x),
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
    """More boxes than one picture shows, with collapsed chains, fans and calls."""
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
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.dumps(encode_trace(KINDS_OF_TRACE[kind]()._data))


@cache
def undamaged(kind: str) -> hv.Trace:
    return hv.Trace(decode_trace(json.loads(saved(kind))))


# -- kinds of damage

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
WRONG_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 64, -(10**9), 10**9, 2**53, 2**64, 10**400, 0.5, -0.0, 1e308,
    float("nan"), float("inf"), "nan", "inf", "1+2j", "nanj", [], {}, [[]], [None], [0], [-1], [1, 2], [40_000, 40_000],
    [10**9] * 3, {"number": "inf"}, {"x": 1},
)  # fmt: skip
DTYPES = ("float32", "int64", "bool", "complex64", "bfloat16", "float8_e4m3fn", "load", "Tensor", "")

Location = tuple[Any, Any]
"""(a list or a dict, an index or a key of it)"""


def _random_location(rng: random.Random, data: Any) -> Location:
    """A random location in a file; a table is chosen first, so that small tables are damaged as often as large ones."""
    holder, key = data, rng.choice(list(data))
    while isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.9:
        holder = holder[key]
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    return holder, key


def _set_wrong_value(rng: random.Random, data: Any) -> None:
    holder, key = _random_location(rng, data)
    holder[key] = copy.deepcopy(rng.choice(WRONG_VALUES))


def _set_hostile_text(rng: random.Random, data: Any) -> None:
    for _ in range(20):
        holder, key = _random_location(rng, data)
        if isinstance(holder[key], str) and key not in ("format", "version"):
            holder[key] = rng.choice(HOSTILE)
            return


def _change_number(rng: random.Random, data: Any) -> None:
    """Change a number by one, or replace it by another number of its column."""
    for _ in range(20):
        holder, key = _random_location(rng, data)
        if type(holder[key]) is int and isinstance(holder, list):
            others = [x for x in holder if type(x) is int]
            holder[key] = rng.choice([holder[key] + 1, holder[key] - 1, rng.choice(others), len(others)])
            return


def _take_value_of_column(rng: random.Random, data: Any) -> None:
    """Replace a value by another one of its column, which is of the right type and says something else."""
    holder, key = _random_location(rng, data)
    if isinstance(holder, list):
        holder[key] = copy.deepcopy(rng.choice(holder))


def _random_table(rng: random.Random, data: Any) -> dict[str, list[Any]]:
    tables = [table for table in data.values() if isinstance(table, dict)]
    found: dict[str, list[Any]] = rng.choice(tables) if tables else {}
    return found


def _damage_rows(rng: random.Random, data: Any) -> None:
    table = _random_table(rng, data)
    columns = [column for column in table.values() if isinstance(column, list)]
    count = min(map(len, columns), default=0)
    if count:
        order, source, target = list(range(count)), rng.randrange(count), rng.randrange(count)
        match rng.randrange(5):
            case 0:
                del order[source]
            case 1:
                order.insert(target, source)
            case 2:
                order[source], order[target] = order[target], order[source]
            case 3:
                order.reverse()
            case _:
                order += [source] * 300
        for column in columns:
            column[:] = [copy.deepcopy(column[i]) for i in order if i < len(column)]


def _damage_edges(rng: random.Random, data: Any) -> None:
    """Add an edge that makes a cycle or leads to another node."""
    edges = data.get("edges")
    complete = (
        [edge for edge in edges if _is_pair(edge) and all(map(_is_pair, edge))] if isinstance(edges, list) else []
    )
    if complete:
        ((start, slot), (end, output)), (_, (other, _)) = rng.choice(complete), rng.choice(complete)
        loops = [[[start, slot], [start, 0]], [[end, 0], [start, 0]], [[end, 7], [end, 0]]]
        edges.append(rng.choice([*loops, [[start, slot], [other, output]]]))


def _is_pair(x: Any) -> bool:
    return isinstance(x, list) and len(x) == 2


def _damage_key(rng: random.Random, data: Any) -> None:
    holder = rng.choice([data, *(table for table in data.values() if isinstance(table, dict))])
    if holder and rng.random() < 0.5:
        del holder[rng.choice(list(holder))]
    else:
        holder["new"] = [1, 2]


def _nest_value(rng: random.Random, data: Any) -> None:
    holder, key = _random_location(rng, data)
    for _ in range(rng.choice((1, 5, 60, 400))):
        holder[key] = [holder[key]]


def _copy_from_elsewhere(rng: random.Random, data: Any) -> None:
    """Replace a value by a copy from elsewhere in the file."""
    (holder, key), (other, other_key) = _random_location(rng, data), _random_location(rng, data)
    holder[key] = copy.deepcopy(other[other_key])


def _damage_value(rng: random.Random, data: Any) -> None:
    values = data.get("values")
    value = rng.choice(values) if isinstance(values, list) and values else None
    if isinstance(value, list) and len(value) == 6:
        others = rng.choice(values)
        match rng.randrange(6):
            case 0:
                value[0] = rng.choice(([40_000, 40_000], [2**62], [0], [1] * 80, [1, 1], [0, 3], [10**30]))
            case 1:
                value[1] = rng.choice(DTYPES)
            case 2:
                value[3:5] = None, [0.0, 1.0, 0.5, 2.0, 0, 0, 3][: rng.choice((7, 7, 7, 3))]
            case 3:
                value[3] = rng.choice((1.0, [1.0], [[1.0, "nan"]], "inf", 300, True, "1j", [], "x"))
            case 4 if isinstance(others, list) and len(others) == 6:
                value[:] = copy.deepcopy([*others[:3], *value[3:]])
            case _:
                value[5] = rng.choice((None, *HOSTILE))


def _damage_setting(rng: random.Random, data: Any) -> None:
    plain = data.get("saved", {}).get("plain") if isinstance(data.get("saved"), dict) else None
    if isinstance(plain, list) and plain:
        settings = (*WRONG_VALUES, *HOSTILE, [40_000] * 2, [-1], [2, 3], 0, 1, -7, [0] * 100, [[1, 2], [3]], 2**62)
        plain[rng.randrange(len(plain))] = copy.deepcopy(rng.choice(settings))


DAMAGES = (
    _set_wrong_value, _set_hostile_text, _change_number, _take_value_of_column, _damage_rows, _damage_edges,
    _damage_key, _nest_value, _copy_from_elsewhere, _damage_value, _damage_setting,
)  # fmt: skip


def mutant(seed: int) -> str:
    """The JSON number ``seed``: a trace of some kind with one to three damages."""
    rng = random.Random(seed)
    data = json.loads(saved(kind_of(seed)))
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice(DAMAGES)(rng, data)
    return json.dumps(data)


def kind_of(seed: int) -> str:
    """The kind of trace in file number ``seed``; kinds with small files are more frequent, because they are faster."""
    return random.Random(-seed).choices(list(KINDS_OF_TRACE), (4, 4, 3, 4, 1, 1))[0]


def hostile(data: dict[str, Any], text: str) -> dict[str, Any]:
    """Put ``text`` into every field of ``data`` whose text comes from a user, and return ``data``."""
    data["ops"] = [op if op == "AccumulateGrad" else text for op in data["ops"]]
    data["remarks"] = {"fact": ["verbatim", text], "details": [[["text", text]], [[text, text]]]}
    fields = {"tensors": ["name"], "hook_rows": ["name", "file", "text"], "rows": ["error", "region"]}
    fields |= {"modules": ["name", "kind"], "optimizers": ["name", "kind"]}
    for table, columns in fields.items():
        for column in columns:
            if column in data[table]:  # otherwise it has no text of a user
                data[table][column] = [text] * len(data[table][column])
    data["saved"]["plain"] = [text if isinstance(plain, str) else plain for plain in data["saved"]["plain"]]
    labels = data["rows"].get("labels", [])
    data["rows"]["labels"] = [[[text] * len(names) for names in both] for both in labels]
    for value in data["values"]:
        value[2] = text
        value[5] = value[5] and ["verbatim", [["text", text]]]
    return data


# -- the views that are tried


CHEAP_VIEWS = 5
"""The number of cheap views at the start of ``views``, which are always tried."""


def views(trace: hv.Trace) -> list[Callable[[], Any]]:
    steps = range(min(len(trace._data.rows), 40))
    return [
        lambda: repr(trace),
        lambda: [(step.sentence, make_title(step), step.scale, repr(step)) for step in trace.steps],
        lambda: (repr(trace.firings), trace.firings._repr_html_()),
        lambda: (repr(trace.findings.values), trace.findings.values._repr_html_()),
        lambda: (str(trace), trace.text(width=80), trace.to_records()),
        lambda: (repr(trace.findings), trace.findings._repr_html_()),
        lambda: [repr(trace.why(index)) + trace.why(index)._repr_html_() for index in steps],
        lambda: _view_quiz(trace),
        lambda: trace.content(),
        lambda: _view_as_large(trace),
        lambda: _request_chunks(trace),
        lambda: page(trace._data, "A file that is not ours") if trace._data.rows else None,
        lambda: trace._repr_mimebundle_(),
        lambda: [
            build_trace_figure(trace._data, step, tensors=layer).svg()
            for step in _sample_steps(trace)
            for layer in (False, True)
        ],
        lambda: [trace.figure(step).svg() for step in _sample_steps(trace)[:1]],
        lambda: _view_difference(trace, trace),
    ]


def _view_quiz(trace: hv.Trace) -> None:
    questions = quiz(trace)
    repr(questions), questions._repr_html_()
    for question in questions:
        repr(questions.check(question.number, 1.0))


def _sample_steps(trace: hv.Trace) -> list[int | None]:
    count = len(trace._data.rows)
    return [None, *range(0, count, max(count // 3, 1))] if count else [None]


def _view_as_large(trace: hv.Trace) -> None:
    """Make the content of a page in which boxes are collapsed into groups."""
    with patch.object(trace_content, "MAX_UNSPLIT_STEPS", 0):
        TraceContent.of(trace._data).full_content()


def _request_chunks(trace: hv.Trace) -> None:
    player = trace.player()
    content = TraceContent.of(trace._data)
    if content.is_large:
        for name in (*content.chunk_names(), "steps999", "x", "7/y"):
            Player.answer(player, {"chunk": name}, None, content.chunk)


def _view_difference(trace: hv.Trace, other: hv.Trace) -> None:
    found = trace.diff(other)
    found.content()
    found._repr_html_()


def try_mutant(seed: int, folder: Path, share: float) -> str:
    """Load file number ``seed`` and make its views, a ``share`` of the slow ones; return ``refused`` or ``worked``.

    Raises:
        Exception: loading failed without a proper ValueError, or a view failed.
    """
    path, other, rng = folder / "trace.json", undamaged(kind_of(seed)), random.Random(seed)
    path.write_text(mutant(seed))
    try:
        trace = hv.load(path)
    except ValueError as error:
        if "\n" in str(error) or len(str(error)) > 600 or type(error) is not ValueError:
            raise AssertionError(str(error)) from None
        return "refused"
    for number, view in enumerate(views(trace)):
        if number < CHEAP_VIEWS or rng.random() < share:
            view()
    if rng.random() < share:
        try:
            _view_difference(other, trace)
        except ValueError as error:  # the traces have different graphs
            if type(error) is not ValueError or not str(error).endswith("."):
                raise
    trace.save(path)
    written = path.read_bytes()
    hv.load(path).save(path)
    if path.read_bytes() != written:
        raise AssertionError("saving the trace again changes the file")
    return "worked"


@contextmanager
def quick_layouts() -> Iterator[None]:
    """Place boxes in layers, without Graphviz, which is slow; other tests cover its layouts."""
    original = layered_layout._ask_graphviz
    layered_layout._ask_graphviz = lambda boxes: None
    layered_layout.place_boxes.cache_clear()
    try:
        yield
    finally:
        layered_layout._ask_graphviz = original
        layered_layout.place_boxes.cache_clear()


# -- limits


class TooSlow(BaseException):
    """A file exceeded the limit of processor time."""


def raise_too_slow(*_: Any) -> None:
    raise TooSlow


@contextmanager
def time_limit() -> Iterator[None]:
    before = signal.signal(signal.SIGVTALRM, raise_too_slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def peak_megabytes() -> float:
    """The peak memory of this process in megabytes."""
    import resource  # Windows has no such module

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
