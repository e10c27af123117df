"""The pictures of a large trace: boxes are collapsed into groups, and each has a picture in which it is opened."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import takewhile
from math import inf, log10

from hookviz.picture.figure import draw_for_player
from hookviz.picture.group_boxes import find_bar_height, name_group
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, Group, Views
from hookviz.picture.grouping.activity import merge_consecutive
from hookviz.picture.pass_pictures import PassPictures
from hookviz.picture.scene import Scene
from hookviz.picture.silent_pins import add_silent_pins
from hookviz.picture.visible_graph import leave_nodes_out, list_pictured_nodes, make_visible_graph
from hookviz.player.payload import Packed, SharedPicture, StackBar, View
from hookviz.player.scene_views import final_picture, make_view, own_picture, pass_title
from hookviz.player.search_index import Entry, search_entries
from hookviz.trace import TraceData


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
    norms = [norm for bar in find(whole).stack for _, norm in bar.norms]
    logarithms = [log10(norm) for norm in norms if 0 < norm < inf]
    scale = [min(logarithms), max(logarithms)] if logarithms else []
    return [
        {
            "count": bar.count,
            "view": views.view_name(pictures.groups[bar.group_id]),
            "spans": bar.spans,
            "heights": [(step, find_bar_height(norm, scale)) for step, norm in bar.norms],
        }
        for bar in find(stack).stack
    ]
