"""The pictures of a large trace: boxes are collapsed into groups, and each has a picture in which it is opened.

Above the pictures of the passes is one of all passes, as a stack with bars for them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from math import ceil, hypot, inf, isfinite, log10

from hookviz.picture import element_ids as ids
from hookviz.picture.figure import draw_for_player
from hookviz.picture.group_boxes import MAX_BARS, GroupBox, find_bar_height, name_group, write_norm_ranges
from hookviz.picture.group_boxes import StackBar as Bar
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, Group, Views
from hookviz.picture.grouping.activity import Arrival, find_arrival, merge_consecutive
from hookviz.picture.pass_pictures import PassPictures
from hookviz.picture.scene import Scene
from hookviz.picture.silent_pins import add_silent_pins
from hookviz.picture.visible_graph import VisibleGraph, leave_nodes_out, list_pictured_nodes, make_visible_graph
from hookviz.player.payload import Packed, SharedPicture, StackBar, View
from hookviz.player.scene_views import final_picture, make_view, own_picture, pass_title
from hookviz.player.search_index import Entry, search_entries
from hookviz.support.messages import _
from hookviz.trace import TraceData
from hookviz.trace.sentences import format_pass_number

ALL_PASSES = "passes"
"""The name of the picture of all passes, and the id of the box in it."""


class GroupedViews:
    """The named pictures of a large trace.

    ``0/`` is the top-level picture of pass 0, and ``0/m3`` the pass with its group ``m3`` opened.
    """

    layers: Packed = ""
    """Empty: these pictures have no layers."""

    def __init__(self, trace: TraceData, reasons: Mapping[int, str]) -> None:
        self._trace, self._reasons = trace, reasons
        self._passes = trace.lookup.passes
        self._pictures_by_pass: dict[int, PassPictures] = {}
        self._templates: dict[tuple[str, ...], str] = {}
        """The pieces of a picture → the name of the first picture that has them."""

    @property
    def top_views(self) -> list[str]:
        """The name of the top-level picture of each pass."""
        return [f"{pass_id}/" for pass_id in self._passes]

    @property
    def leave_nodes_out(self) -> bool:
        """Whether a pass has nodes that none of its pictures shows."""
        return any(leave_nodes_out(self._trace, list_pictured_nodes(self._trace, number)) for number in self._passes)

    @cached_property
    def initial_views(self) -> list[str]:
        """The names of the pictures that are sent first: the player begins with the first pass.

        The static version of the player shows the last one.
        """
        return list(dict.fromkeys([self.top_views[0], self.top_views[-1]]))

    @cached_property
    def svgs(self) -> list[str]:
        """The SVGs of these pictures in their final state."""
        # They share no template with others: the static page shows the last one where scripts are blocked.
        return [final_picture(self._scene(name)) for name in self.initial_views]

    def views_of(self, pass_id: int) -> list[str]:
        """Return the names of the pictures of one pass."""
        views = self._pass_pictures(pass_id).views
        return [views.name_view(level.group) for level in views.list_views()]

    def view(self, name: str, hooks: Mapping[int, int]) -> View:
        """Return a picture and what it shows at each step; ``hooks``: hook row → index in ``Content.hooks``.

        Raises:
            KeyError, ValueError: there is no picture ``name``.
        """
        pass_id, pictures, group = self._locate(name)
        scene = self._scene(name)
        view = make_view(scene, self._picture(name, scene), hooks, self._reasons)
        views = pictures.views
        view["links"] = {closed.id: views.linked_view(closed) for closed in views.view_of(group).closed_groups}
        view["stacks"] = {
            closed.id: _list_bars(pictures, closed)
            for closed in views.view_of(group).closed_groups
            if closed.kind == "stack"
        }
        activity = pictures.activity
        view["visible_steps"] = (
            merge_consecutive(activity.merge_group(group).steps) if group.id else [(activity.first, activity.last)]
        )
        groups = _enclosing_groups(pictures.views, group)
        view["breadcrumbs"] = [(views.name_view(at), self._title(pass_id, at)) for at in groups]
        return view

    def entries(self, pass_id: int) -> Iterator[Entry]:
        """Yield the search entries of one pass, and if there are several passes, an entry for the pass itself."""
        pictures = self._pass_pictures(pass_id)
        if len(self._passes) > 1:
            steps = list(self._trace.lookup.steps(pass_id)[:1])
            yield Entry("pass", pass_title(self._trace, pass_id), "", -1, f"{pass_id}/", steps)
        yield from search_entries(self._trace, pictures.views, pictures.activity)

    def _picture(self, name: str, scene: Scene) -> int | SharedPicture:
        """Return an initial picture as its index, and another one as a template with the texts that fill it."""
        if name in self.initial_views:
            return self.initial_views.index(name)
        picture = draw_for_player(scene)
        first = self._templates.setdefault(picture.pieces, name)
        return own_picture(picture) if first == name else {"like": first, "fill": picture.fill}

    def _scene(self, name: str) -> Scene:
        _, pictures, group = self._locate(name)
        scene = pictures.scene(pictures.views.view_of(group))
        add_silent_pins(scene, self._reasons)
        return scene

    def _locate(self, name: str) -> tuple[int, PassPictures, Group]:
        """Return the pass and the group that ``name`` stands for."""
        number, _, group_id = name.partition("/")
        pass_id = int(number)
        if not self._trace.lookup.steps(pass_id):
            raise KeyError(name)
        pictures = self._pass_pictures(pass_id)
        return pass_id, pictures, pictures.groups[group_id]

    def _pass_pictures(self, pass_id: int) -> PassPictures:
        """Return the pictures of one pass. Those of the latest passes are cached: users open group after group."""
        if pass_id not in self._pictures_by_pass:
            self._pictures_by_pass[pass_id] = PassPictures(make_visible_graph(self._trace, pass_id))
            for oldest in list(self._pictures_by_pass)[:-MAX_VISIBLE_BOXES]:
                del self._pictures_by_pass[oldest]
        return self._pictures_by_pass[pass_id]

    def _title(self, pass_id: int, group: Group) -> str:
        return name_group(self._trace, group) if group.id else pass_title(self._trace, pass_id)


def _enclosing_groups(views: Views, group: Group) -> list[Group]:
    """Return the groups around ``group``, the outermost first, and ``group`` itself."""
    groups = [group]
    while groups[-1].parent is not None:
        groups.append(views.find_view_group(groups[-1].parent))
    return groups[::-1]


def _list_bars(pictures: PassPictures, stack: Group) -> list[StackBar]:
    """List the bars of a stack; those before and after an opened call have heights on one scale."""
    *_, whole = takewhile(lambda group: group.kind == "stack", stack.chain_outwards())
    find, views = pictures.group_boxes.find, pictures.views
    return _scale_bars(find(stack).stack, find(whole).stack, lambda name: views.view_name(pictures.groups[name]))


def _scale_bars(bars: Sequence[Bar], scaled_with: Sequence[Bar], name_view: Callable[[str], str]) -> list[StackBar]:
    """Return ``bars`` with heights on the scale of all bars ``scaled_with``; ``name_view``: group id → its picture."""
    norms = [norm for bar in scaled_with for _, norm in bar.norms]
    logarithms = [log10(norm) for norm in norms if 0 < norm < inf]
    scale = [min(logarithms), max(logarithms)] if logarithms else []
    return [
        {
            "count": bar.count,
            "view": name_view(bar.group_id),
            "spans": bar.spans,
            "heights": [(step, find_bar_height(norm, scale)) for step, norm in bar.norms],
        }
        for bar in bars
    ]


# -- the picture of all passes


def make_pass_stack(trace: TraceData) -> View:
    """Make the picture in which the passes of ``trace`` are one stack."""
    first_pass = trace.lookup.passes[0]
    box = _make_box(trace)
    scene = Scene(trace, first_pass, {}, {}, {}, VisibleGraph(trace, first_pass, [], {}), 1, group_boxes=[box])
    view = make_view(scene, own_picture(draw_for_player(scene)), {}, {})
    view["stacks"] = {ALL_PASSES: _scale_bars(box.stack, box.stack, lambda view_name: view_name)}
    view["visible_steps"] = box.spans
    return view


def _make_box(trace: TraceData) -> GroupBox:
    """Make the box of the stack; in a long training, a bar stands for several passes."""
    passes = trace.lookup.passes
    norms = {pass_id: norm for pass_id in passes if (norm := _join_leaf_gradients(trace, pass_id)) is not None}
    size = ceil(len(passes) / MAX_BARS)
    bars = []
    for start in range(0, len(passes), size):
        members = passes[start : start + size]
        steps = sorted(step for pass_id in members for step in trace.lookup.steps(pass_id))
        highest = _list_highest(sorted(norms[pass_id] for pass_id in members if pass_id in norms))
        bars.append(Bar(len(members), f"{members[0]}/", steps, [*highest]))
    name, texts = _name_passes(trace), {ids.gradient_id(ALL_PASSES): write_norm_ranges(sorted(norms.values()))}
    return GroupBox(ALL_PASSES, name, name, _describe_bars(size), texts, [*range(len(trace.rows))], bars)


def _join_leaf_gradients(trace: TraceData, pass_id: int) -> Arrival | None:
    """Return the norm of the gradients of all leaves in a pass, once the last has arrived; None if none arrives.

    It is what ``clip_grad_norm_`` returns, unless there are leaves that it is not given, or hooks that change them.
    """
    at_leaves = (step for step in trace.lookup.steps(pass_id) if _is_at_leaf(trace, step))
    arrivals = [arrival for step in at_leaves if (arrival := find_arrival(trace, step)) is not None]
    if not arrivals:
        return None
    nonfinite_count = sum(arrival.nonfinite_count for arrival in arrivals)
    return Arrival(arrivals[-1].step, hypot(*(arrival.norm for arrival in arrivals)), nonfinite_count)


def _is_at_leaf(trace: TraceData, step: int) -> bool:
    node = trace.rows[step].node
    return node is not None and trace.ops[node] == "AccumulateGrad"


def _list_highest(norms: Sequence[Arrival]) -> Iterator[tuple[int, float]]:
    """Yield (step, norm) of each norm that exceeds those before it; none exceeds NaN or Inf."""
    highest = -1.0
    for arrival in norms:
        if isfinite(highest) and not arrival.norm <= highest:
            highest = arrival.norm
            yield arrival.step, highest


def _name_passes(trace: TraceData) -> str:
    passes = trace.lookup.passes
    first, last = (format_pass_number(trace, pass_id) for pass_id in (passes[0], passes[-1]))
    return _("pass {first} – {last} × {count}").format(first=first, last=last, count=f"{len(passes):,}")


def _describe_bars(size: int) -> str:
    if size == 1:
        return _("gradients of all leaves, by pass")
    return _("gradients of all leaves, largest of {count} passes").format(count=size)
