"""The pictures of a trace of many boxes: one enters closed boxes, and each has a picture of its inside."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

from hookviz.picture.dot_source import build_figure
from hookviz.picture.group_scene import build_group_scene
from hookviz.picture.grouped_graph import describe_group
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, Group, Views
from hookviz.picture.grouping import View as Level
from hookviz.picture.grouping.activity import PassActivity, merge_consecutive
from hookviz.picture.grouping.pass_groups import needs_pass_groups
from hookviz.picture.inline_svg import fill_texts
from hookviz.picture.scene import Scene
from hookviz.picture.svg_templates import FilledTemplate, Templates
from hookviz.player.pass_views import PREFIX, PassViews
from hookviz.player.payload import Packed, SharedPicture, View
from hookviz.player.scene_views import ends, pass_title, view_of, written
from hookviz.player.search_index import Entry, entries
from hookviz.player.wording import Wording
from hookviz.trace import TraceData


class PassPictures:
    """One pass: its boxes, and which of its steps belong in which."""

    def __init__(self, trace: TraceData, pass_id: int) -> None:
        self.views = Views(trace, pass_id)
        self.happened = PassActivity(self.views.tree)

    def scene(self, level: Level) -> Scene:
        """The picture of one level, with the steps that are about what is seen in it."""
        nodes = (self.happened.nodes[node].steps for node in level.nodes if node in self.happened.nodes)
        calls = (
            self.happened.calls[fold.call].steps for fold in level.opened_calls if fold.call in self.happened.calls
        )
        return build_group_scene(level, self.happened, sorted(chain.from_iterable([*nodes, *calls])))

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Id of a box that can be entered → it."""
        return {group.id: group for group in self.views.tree.groups}


class GroupedViews:
    """The pictures of a trace, by name.

    ``0/`` is the whole of pass 0, and ``0/m3`` the inside of its box ``m3``. Of more than
    ``MAX_VISIBLE_BOXES`` passes there are also ``passes/``, ``passes/g3`` …, the pictures of the groups in which they
    are.
    """

    layers: Packed = ""
    """Nothing can be switched on in these pictures."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self._passes = trace.lookup.passes
        self._groups = PassViews(trace) if needs_pass_groups(trace) else None
        self._kept: dict[int, PassPictures] = {}
        self._templates = Templates()

    @property
    def overview(self) -> str:
        """The name of the picture of all passes; empty where they are not grouped."""
        return PREFIX if self._groups else ""

    @property
    def tops(self) -> list[str]:
        """The names of the outermost pictures, one for each pass."""
        return [f"{pass_id}/" for pass_id in self._passes]

    @cached_property
    def opening(self) -> list[str]:
        """The names of the pictures that are there from the start."""
        return [self.overview] if self._groups else self.tops

    @cached_property
    def svgs(self) -> list[str]:
        """The pictures that are there from the start."""
        if self._groups:
            return [self._groups.picture(PREFIX)]
        # These share no template with others: a page shows them where no script runs.
        return [self._opening_picture(self._scene(name)) for name in self.tops]

    def _opening_picture(self, scene: Scene) -> str:
        return fill_texts(build_figure(scene, None, for_player=True).svg(), ends(written(scene)))

    @property
    def group_names(self) -> Sequence[str]:
        """The names of the pictures of groups of passes."""
        return self._groups.names if self._groups else []

    def views_of(self, pass_id: int) -> list[str]:
        """The names of the pictures of one pass."""
        return [f"{pass_id}/{level.group.id}" for level in self._pass(pass_id).views.list_views()]

    def view(self, name: str, hooks: Mapping[int, int], wording: Wording) -> View:
        """One picture, and what is shown in it; ``hooks`` gives the place of a hook's row in ``Content.hooks``.

        Raises:
            KeyError, ValueError: there is none of that name.
        """
        if self._groups and name.startswith(PREFIX):
            svg = self.opening.index(name) if name in self.opening else self._groups.picture(name)
            return self._groups.view(name, svg, wording)
        pass_id, own, group = self._find(name)
        scene = self._scene(name)
        view = view_of(scene, self._picture(name, scene), hooks, wording)
        box_names = {closed.id: own.views.view_name(own.groups[closed.id]) for closed in scene.group_boxes}
        port_names = {port.id: own.views.view_name(port.member) for port in scene.ports if port.member is not None}
        view["doors"] = box_names | port_names
        view["own"] = (
            merge_consecutive(own.happened.merge_group(group).steps)
            if group.id
            else [(own.happened.first, own.happened.last)]
        )
        around = self._groups.trail(pass_id, wording) if self._groups else []
        entered = _entered(own.views, group)
        view["trail"] = [*around, *((f"{pass_id}/{at.id}", wording(self._title(pass_id, at))) for at in entered)]
        return view

    def entries(self, pass_id: int) -> Iterator[Entry]:
        """What can be searched for in a pass, and where passes are grouped, the pass itself."""
        own = self._pass(pass_id)
        if self._groups:
            steps = list(self._trace.lookup.steps(pass_id)[:1])
            yield Entry("pass", pass_title(pass_id, len(self._passes)), "", -1, f"{pass_id}/", steps)
        yield from entries(self._trace, own.views, own.happened)

    def _picture(self, name: str, scene: Scene) -> int | SharedPicture:
        """A picture as it is sent: its place among the first, or a template with what fills it."""
        if name in self.opening:
            return self.opening.index(name)
        return _sent(self._templates.fill_template(build_figure(scene, None, for_player=True).svg(), name), name)

    def _scene(self, name: str) -> Scene:
        _, own, group = self._find(name)
        return own.scene(own.views.view_of(group))

    def _find(self, name: str) -> tuple[int, PassPictures, Group]:
        """The pass and the box that a name stands for."""
        number, _, box = name.partition("/")
        pass_id = int(number)
        if not self._trace.lookup.steps(pass_id):
            raise KeyError(name)
        own = self._pass(pass_id)
        return pass_id, own, own.groups[box]

    def _pass(self, pass_id: int) -> PassPictures:
        """One pass, of which a person enters one box after the other: those that were looked at last are kept."""
        if pass_id not in self._kept:
            self._kept[pass_id] = PassPictures(self._trace, pass_id)
            for oldest in list(self._kept)[:-MAX_VISIBLE_BOXES]:
                del self._kept[oldest]
        return self._kept[pass_id]

    def _title(self, pass_id: int, group: Group) -> str:
        return describe_group(self._trace, group)[0] if group.id else pass_title(pass_id, len(self._passes))


def _sent(picture: FilledTemplate, name: str) -> SharedPicture:
    template = picture.template
    if template.name == name:
        return {"pieces": template.pieces, "fill": picture.fill}
    return {"like": template.name, "fill": picture.fill}


def _entered(views: Views, group: Group) -> list[Group]:
    """The boxes that one has entered to be in ``group``, the outermost first."""
    trail = [group]
    while trail[-1].parent is not None:
        trail.append(views.find_view_group(trail[-1].parent))
    return trail[::-1]
