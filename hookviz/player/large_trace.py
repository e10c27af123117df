"""A trace that is too large to be sent at once: an outline of all its steps, and parts that come when asked for."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain, islice
from typing import Any

from hookviz.analysis.findings import noted, nothing_found
from hookviz.picture.dot_source import dot
from hookviz.picture.group_scene import group_scene
from hookviz.picture.grouped_graph import named
from hookviz.picture.grouping import MANY, Group, View, Views
from hookviz.picture.grouping.activity import Activity, of_pass, spans
from hookviz.picture.grouping.pass_groups import groups_passes
from hookviz.picture.inline_svg import finished
from hookviz.picture.layout_cache import Layouts, Shared
from hookviz.picture.scene import Scene
from hookviz.player.compression import pack
from hookviz.player.frames import FrameBuilder, firings_in, glyph_of, hook_of, state
from hookviz.player.overview import PREFIX, PassViews
from hookviz.player.search_index import Entry, columns, entries
from hookviz.support.interpreter import gc_paused
from hookviz.support.messages import say, section
from hookviz.support.progress import progress
from hookviz.trace import TraceData
from hookviz.trace.traversal import UNREACHED, called, is_cut, makers, pictured
from hookviz.trace.traversal import chain as around

LONG = 400
"""A trace of more steps is sent in parts: each step is some 0.5 KB of words."""
CHUNK = 200
"""So many steps are told in one part."""
CHUNKS, BOXES = 3, 10
"""An output of a notebook, which asks no kernel, has the words of so many chunks, and so many boxes' pictures."""
FIRINGS = 1_000
"""The table of hooks has no more rows than this."""


def is_large(trace: TraceData) -> bool:
    """Whether ``trace`` has more steps, passes or boxes than can be sent and seen at once."""
    if len(trace.rows) > LONG or groups_passes(trace):
        return True
    return any(_boxes(trace, pass_id) > MANY for pass_id in range(len(trace.roots)))


def _boxes(trace: TraceData, pass_id: int) -> int:
    nodes = pictured(trace, pass_id)
    calls = {*makers(trace, nodes).values(), *called(trace, pass_id)}
    return len(nodes) + len({outer for call in calls for outer in around(trace, call)})


class LargePass:
    """One pass: its views, and which of its steps are told in which."""

    def __init__(self, trace: TraceData, pass_id: int) -> None:
        self.views = Views(trace, pass_id)
        self.happened = Activity(self.views.tree)

    def scene(self, view: View) -> Scene:
        """The picture of ``view``, with the steps that are about what is seen in it."""
        nodes = (self.happened.nodes[node].steps for node in view.nodes if node in self.happened.nodes)
        calls = (self.happened.calls[fold.call].steps for fold in view.opened if fold.call in self.happened.calls)
        return group_scene(view, self.happened, sorted(chain.from_iterable([*nodes, *calls])))

    @cached_property
    def folds(self) -> dict[str, Group]:
        """Id of a box that can be entered → it."""
        return {fold.id: fold for fold in self.views.tree.folds}


class Large:
    """What the player is given of a large trace, part by part.

    The parts are ``chunk0``, ``chunk1`` … with the words of the steps, and ``0/``, ``0/m3`` … with the pictures: the
    number of a pass, and the id of the box that is entered; and ``index``, with all that can be searched for. Of more
    than ``MANY`` passes there are also ``passes/``, ``passes/g3`` …, the pictures of the groups in which they are.
    """

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self.passes = trace.lookup.passes
        """The passes in which something happened."""
        self._groups = PassViews(trace) if groups_passes(trace) else None
        self._kept: dict[int, LargePass] = {}
        self._layouts, self._tops = Layouts(), Layouts()
        self._hooks = sorted({row.hook for row in trace.rows if row.hook is not None})
        self._fired = trace.firings
        asks = bool(self._fired) or len(trace.rows) <= LONG  # to find out what to ask of nodes, each must be looked at
        self._telling = FrameBuilder(trace, trace.steps, {}, self._hooks, asks=asks, fired=self._fired)

    @gc_paused()
    def state(self) -> dict[str, Any]:
        """What the player needs from the start."""
        names = [PREFIX] if self._groups else [f"{pass_id}/" for pass_id in self.passes]
        opened = {name: self._view(name, self._tops) for name in names}
        fired = self._fired[:FIRINGS]
        first = {name: pack(view | {"svg": k}) for k, (name, view) in enumerate(opened.items())}
        return {
            "svgs": [finished(view["svg"], _ends(view["texts"])) for view in opened.values()],
            "frames": [],
            "outline": pack(self._outline()),
            "parts": {**first, "chunk0": self.part("chunk0")},
            "count": len(self.trace.rows),
            "hooks": [hook_of(self.trace, index) for index in self._hooks],
            "firings": firings_in(fired),
            "layers": "",
            "notes": [*noted(self.trace), *self.trace.notes, *self._bounded(len(fired))],
            "words": section("player") | section("large") | {"found_none": nothing_found(self.trace)},
        }

    def whole(self) -> dict[str, Any]:
        """The same with all parts, for where there is no kernel to ask; it may take a while, and is shown."""
        state = self.state()
        parts = dict(state["parts"])
        found: list[Entry] = []
        chunks, groups = list(self._chunks()), self._groups.names if self._groups else []
        count = len(chunks) + len(groups) + len(self.passes)
        with progress(say("progress.preparing", n="{n}", total="{total}"), count) as tick:
            for name in (*chunks, *groups):
                parts[name] = parts.get(name) or self.part(name)
                tick()
            for pass_id in self.passes:
                for name in self._views_of(pass_id):
                    parts[name] = parts.get(name) or self.part(name)
                found += self._entries(pass_id)
                tick()
        return {**state, "parts": {**parts, "index": pack(columns(found))}}

    @gc_paused()
    def brief(self) -> dict[str, Any]:
        """The same with some parts: the words of the first steps, and the boxes that are entered first."""
        state, chunks = self.state(), list(self._chunks())
        boxes = list(islice(self._views(), BOXES + 1))
        sent = ["index", *chunks[:CHUNKS], *boxes[:BOXES]]
        left = len(chunks) > CHUNKS or len(boxes) > BOXES
        told = [say("trace.brief", steps=f"{CHUNKS * CHUNK:,}", boxes=BOXES)] if left else []
        parts = {name: self.part(name) for name in sent if name not in state["parts"]}
        return {**state, "parts": {**state["parts"], **parts}, "notes": [*state["notes"], *told]}

    def names(self) -> Iterator[str]:
        """The names of all parts."""
        yield from self._chunks()
        yield from self._views()
        yield "index"

    def _chunks(self) -> Iterator[str]:
        return (f"chunk{number}" for number in range(-(-len(self.trace.rows) // CHUNK)))

    def _views(self) -> Iterator[str]:
        yield from self._groups.names if self._groups else ()
        for pass_id in self.passes:
            yield from self._views_of(pass_id)

    def _views_of(self, pass_id: int) -> Iterator[str]:
        return (f"{pass_id}/{view.fold.id}" for view in self._pass(pass_id).views.all())

    def part(self, name: str) -> str:
        """One part, packed.

        Raises:
            KeyError, ValueError: there is no such part.
        """
        if name.startswith("chunk"):
            start = int(name.removeprefix("chunk")) * CHUNK
            steps = self.trace.steps[start : start + CHUNK]
            if not steps:
                raise KeyError(name)
            return pack([_lean(self._telling.frame(step)) for step in steps])
        if name == "index":
            return pack(columns(entry for pass_id in self.passes for entry in self._entries(pass_id)))
        return pack(self._view(name))

    def _entries(self, pass_id: int) -> Iterator[Entry]:
        """What can be searched for in a pass, and where there are very many of them, the pass itself."""
        own = self._pass(pass_id)
        if self._groups:
            steps = list(self.trace.lookup.steps(pass_id)[:1])
            yield Entry("pass", say("fold.pass", number=f"{pass_id + 1:,}"), "", -1, f"{pass_id}/", steps)
        yield from entries(self.trace, own.views, own.happened)

    def _pass(self, pass_id: int) -> LargePass:
        """One pass, of which a person enters one box after the other: those that were looked at last are kept."""
        if pass_id not in self._kept:
            self._kept[pass_id] = LargePass(self.trace, pass_id)
            for oldest in list(self._kept)[:-MANY]:
                del self._kept[oldest]
        return self._kept[pass_id]

    def _view(self, name: str, apart: Layouts | None = None) -> dict[str, Any]:
        """One picture and what is told in it; with ``apart`` the picture shares no template with others."""
        if self._groups and name.startswith(PREFIX):
            return self._groups.view(name)
        number, _, box = name.partition("/")
        pass_id = int(number)
        if not self.trace.lookup.steps(pass_id):
            raise KeyError(name)
        own = self._pass(pass_id)
        fold = own.folds[box]
        scene = own.scene(own.views.of(fold))
        figure = dot(scene, None, final=True)
        texts = {spot: [*map(list, sorted(there.items()))] for spot, there in scene.texts().items()}
        for closed in scene.folds:
            texts |= {spot: [*map(list, sorted(there.items()))] for spot, there in closed.texts.items()}
        around = self._groups.trail(pass_id) if self._groups else []
        inside = [[f"{pass_id}/{at.id}", self._title(pass_id, at)] for at in _entered(own.views, fold)]
        return {
            "svg": apart.svg(figure) if apart else _picture_part(self._layouts.shared(figure, name), name),
            "texts": texts,
            "steps": _steps(scene),
            "ports": {port.id: own.views.name(port.far) for port in scene.ports if port.far is not None},
            "spans": {closed.id: spans(closed.steps) for closed in scene.folds},
            "own": spans(own.happened.inside(fold).steps) if box else [(own.happened.first, own.happened.last)],
            "trail": [*around, *inside],
        }

    def _title(self, pass_id: int, fold: Group) -> str:
        if not fold.id:
            return say("fold.pass", number=f"{pass_id + 1:,}") if len(self.passes) > 1 else say("fold.whole")
        return named(self.trace, fold)[0]

    def _outline(self) -> dict[str, Any]:
        """A column each for what the timeline shows of every step; and the outermost pictures."""
        rows = self.trace.rows
        pictures, hooks = ({what: k for k, what in enumerate(there)} for there in (self.passes, self._hooks))
        norms: list[Any] = [None] * len(rows)
        for pass_id in self.passes:
            for arrival in of_pass(self.trace, pass_id).arrived:
                norms[arrival.step] = arrival.told
        return {
            "kind": [row.kind for row in rows],
            "glyph": [glyph_of(row.kind) for row in rows],
            "picture": [pictures[row.pass_id] for row in rows],
            "hook": [-1 if row.hook is None else hooks[row.hook] for row in rows],
            "norm": norms,
            "asks": self._telling.asked,
            "tops": [f"{pass_id}/" for pass_id in self.passes],
            "overview": PREFIX if self._groups else "",
        }

    def _bounded(self, fired: int) -> Iterator[str]:
        if fired < len(self._fired):
            yield say("trace.firings", count=f"{len(self._fired):,}", shown=f"{fired:,}")
        if self._groups:
            yield say("trace.passes", count=f"{len(self.passes):,}", most=MANY)
        pictures = (pictured(self.trace, pass_id) for pass_id in self.passes)
        if any(is_cut(self.trace.lookup.ways(nodes), nodes) for nodes in pictures):
            yield say("trace.unreached", most=UNREACHED)


def state_of(trace: TraceData) -> dict[str, Any]:
    """All that the player needs of ``trace``, as plain data, for where there is no kernel to ask."""
    return Large(trace).whole() if is_large(trace) else state(trace)


def brief(trace: TraceData) -> dict[str, Any]:
    """What an output of a notebook has of ``trace``: all of it, or of a large one the first parts."""
    return Large(trace).brief() if is_large(trace) else state(trace)


def _picture_part(picture: Shared | str, name: str) -> Any:
    """A picture as it is sent: itself, or a template with what fills it, or which view has the template."""
    if isinstance(picture, str):
        return picture
    template = picture.template
    where = {"pieces": template.pieces} if template.name == name else {"like": template.name}
    return {**where, "fill": picture.fill}


def _ends(texts: Mapping[str, list[list[Any]]]) -> dict[str, str]:
    """Id of a text → what it says in the end."""
    return {spot: there[-1][1] for spot, there in texts.items() if there}


def _lean(frame: dict[str, Any]) -> dict[str, Any]:
    """What a step marks and writes is told by the pictures."""
    return {name: told for name, told in frame.items() if name not in ("on", "texts", "picture")}


def _steps(scene: Scene) -> dict[str, list[int]]:
    """Id of what is seen → the steps that are about it."""
    found: dict[str, list[int]] = {name: [step] for name, step in scene.sent.items()}
    for index, mark in scene.marks.items():
        for spot in dict.fromkeys(mark.on):
            found.setdefault(spot, []).append(index)
    return found


def _entered(views: Views, fold: Group) -> list[Group]:
    """The boxes that one has entered to be in ``fold``, the outermost first."""
    trail = [fold]
    while trail[-1].parent is not None:
        trail.append(views.top(trail[-1].parent))
    return trail[::-1]
