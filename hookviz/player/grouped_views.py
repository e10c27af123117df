"""The pictures of a trace of many boxes: one enters closed boxes, and each has a picture of its inside."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

from hookviz.picture.dot_source import dot
from hookviz.picture.group_scene import group_scene
from hookviz.picture.grouped_graph import named
from hookviz.picture.grouping import MANY, Group, Views
from hookviz.picture.grouping import View as Level
from hookviz.picture.grouping.activity import Activity, spans
from hookviz.picture.grouping.pass_groups import groups_passes
from hookviz.picture.inline_svg import finished
from hookviz.picture.scene import Scene
from hookviz.picture.svg_templates import Shared, Templates
from hookviz.player.pass_views import GROUP_PREFIX, PassViews
from hookviz.player.payload import Packed, SharedPicture, View
from hookviz.player.scene_views import final_texts, make_view, pass_title, step_texts
from hookviz.player.search_index import Entry, search_entries
from hookviz.player.wording import Wording
from hookviz.trace import TraceData


class PassPictures:
    """One pass: its boxes, and which of its steps belong in which."""

    def __init__(self, trace: TraceData, pass_id: int) -> None:
        self.views = Views(trace, pass_id)
        self.activity = Activity(self.views.tree)

    def scene(self, level: Level) -> Scene:
        """The picture of one level, with the steps that are about what is seen in it."""
        nodes = (self.activity.nodes[node].steps for node in level.nodes if node in self.activity.nodes)
        calls = (self.activity.calls[fold.call].steps for fold in level.opened if fold.call in self.activity.calls)
        return group_scene(level, self.activity, sorted(chain.from_iterable([*nodes, *calls])))

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Id of a box that can be entered → it."""
        return {group.id: group for group in self.views.tree.folds}


class GroupedViews:
    """The pictures of a trace, by name.

    ``0/`` is the whole of pass 0, and ``0/m3`` the inside of its box ``m3``. Of more than ``MANY`` passes there are
    also ``passes/``, ``passes/g3`` …, the pictures of the groups in which they are.
    """

    layers: Packed = ""
    """Nothing can be switched on in these pictures."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self._passes = trace.lookup.passes
        self._groups = PassViews(trace) if groups_passes(trace) else None
        self._pictures_by_pass: dict[int, PassPictures] = {}
        self._templates = Templates()

    @property
    def overview(self) -> str:
        """The name of the picture of all passes; empty where they are not grouped."""
        return GROUP_PREFIX if self._groups else ""

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
            return [self._groups.picture(GROUP_PREFIX)]
        # These share no template with others: a page shows them where no script runs.
        return [self._opening_picture(self._scene(name)) for name in self.tops]

    def _opening_picture(self, scene: Scene) -> str:
        return finished(dot(scene, None, final=True).svg(), final_texts(step_texts(scene)))

    @property
    def group_names(self) -> Sequence[str]:
        """The names of the pictures of groups of passes."""
        return self._groups.names if self._groups else []

    def views_of(self, pass_id: int) -> list[str]:
        """The names of the pictures of one pass."""
        return [f"{pass_id}/{level.fold.id}" for level in self._pass(pass_id).views.all()]

    def view(self, name: str, hooks: Mapping[int, int], wording: Wording) -> View:
        """One picture, and what is shown in it; ``hooks`` gives the place of a hook's row in ``Content.hooks``.

        Raises:
            KeyError, ValueError: there is none of that name.
        """
        if self._groups and name.startswith(GROUP_PREFIX):
            svg = self.opening.index(name) if name in self.opening else self._groups.picture(name)
            return self._groups.view(name, svg, wording)
        pass_id, own, group = self._find(name)
        scene = self._scene(name)
        view = make_view(scene, self._picture(name, scene), hooks, wording)
        box_names = {closed.id: own.views.name(own.groups[closed.id]) for closed in scene.folds}
        port_names = {port.id: own.views.name(port.far) for port in scene.ports if port.far is not None}
        view["links"] = box_names | port_names
        view["visible_steps"] = (
            spans(own.activity.inside(group).steps) if group.id else [(own.activity.first, own.activity.last)]
        )
        around = self._groups.trail(pass_id, wording) if self._groups else []
        entered = _enclosing_groups(own.views, group)
        view["breadcrumbs"] = [*around, *((f"{pass_id}/{at.id}", wording(self._title(pass_id, at))) for at in entered)]
        return view

    def entries(self, pass_id: int) -> Iterator[Entry]:
        """What can be searched for in a pass, and where passes are grouped, the pass itself."""
        own = self._pass(pass_id)
        if self._groups:
            steps = list(self._trace.lookup.steps(pass_id)[:1])
            yield Entry("pass", pass_title(pass_id, len(self._passes)), "", -1, f"{pass_id}/", steps)
        yield from search_entries(self._trace, own.views, own.activity)

    def _picture(self, name: str, scene: Scene) -> int | SharedPicture:
        """A picture as it is sent: its place among the first, or a template with what fills it."""
        if name in self.opening:
            return self.opening.index(name)
        return _shared_picture(self._templates.shared(dot(scene, None, final=True).svg(), name), name)

    def _scene(self, name: str) -> Scene:
        _, own, group = self._find(name)
        return own.scene(own.views.of(group))

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
        if pass_id not in self._pictures_by_pass:
            self._pictures_by_pass[pass_id] = PassPictures(self._trace, pass_id)
            for oldest in list(self._pictures_by_pass)[:-MANY]:
                del self._pictures_by_pass[oldest]
        return self._pictures_by_pass[pass_id]

    def _title(self, pass_id: int, group: Group) -> str:
        return named(self._trace, group)[0] if group.id else pass_title(pass_id, len(self._passes))


def _shared_picture(picture: Shared, name: str) -> SharedPicture:
    template = picture.template
    if template.name == name:
        return {"pieces": template.pieces, "fill": picture.fill}
    return {"like": template.name, "fill": picture.fill}


def _enclosing_groups(views: Views, group: Group) -> list[Group]:
    """The boxes that one has entered to be in ``group``, the outermost first."""
    trail = [group]
    while trail[-1].parent is not None:
        trail.append(views.top(trail[-1].parent))
    return trail[::-1]
