"""The bars of stacks: how large the gradient was in each of equal calls, on one scale for a stack and its parts."""

from functools import cached_property
from itertools import takewhile
from math import inf, log10

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
        norms = [norm for bar in self.group_boxes.find(whole).stack for _, norm in bar.norms]
        scale = [log10(norm) for norm in norms if 0 < norm < inf]
        return [
            {
                "count": bar.count,
                "view": self.views.view_name(self.groups[bar.group_id]),
                "spans": bar.spans,
                "heights": [(step, find_bar_height(norm, scale)) for step, norm in bar.norms],
            }
            for bar in self.group_boxes.find(stack).stack
        ]
