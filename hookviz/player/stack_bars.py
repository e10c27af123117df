"""The bars of stacks: how large the gradient was in each of equal calls, on one scale for a stack and its parts."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import takewhile
from math import inf, log10

from hookviz.picture.grouped_graph import StackBar as Bar
from hookviz.picture.grouped_graph import find_bar_height
from hookviz.picture.grouping import Group
from hookviz.picture.pass_pictures import PassPictures
from hookviz.player.payload import StackBar


class PicturesWithBars(PassPictures):
    """The scenes of a pass, and the bars of its stacks; a stack has the same bars in all views."""

    @cached_property
    def _bars(self) -> dict[Group, list[StackBar]]:
        return {}

    def find_bars(self, stack: Group) -> list[StackBar]:
        """Return the bars of a stack; those before and after an opened call have heights on one scale."""
        if stack not in self._bars:
            self._bars[stack] = self._make_bars(stack)
        return self._bars[stack]

    def _make_bars(self, stack: Group) -> list[StackBar]:
        *_, whole = takewhile(lambda group: group.kind == "stack", stack.chain_outwards())
        find = self.group_boxes.find
        return scale_bars(find(stack).stack, find(whole).stack, lambda name: self.views.view_name(self.groups[name]))


def scale_bars(bars: Sequence[Bar], scaled_with: Sequence[Bar], name_view: Callable[[str], str]) -> list[StackBar]:
    """Return ``bars`` with heights on the scale of all bars ``scaled_with``; ``name_view``: group id → its picture."""
    norms = [norm for bar in scaled_with for _, norm in bar.norms]
    scale = [log10(norm) for norm in norms if 0 < norm < inf]
    return [
        {
            "count": bar.count,
            "view": name_view(bar.group_id),
            "spans": bar.spans,
            "heights": [(step, find_bar_height(norm, scale)) for step, norm in bar.norms],
        }
        for bar in bars
    ]
