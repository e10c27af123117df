"""The picture above those of the passes: all passes of a trace as one stack, with bars for them."""

from collections.abc import Iterator, Sequence
from math import ceil, hypot, isfinite

from hookviz.picture import element_ids as ids
from hookviz.picture.figure import draw_for_player
from hookviz.picture.grouped_graph import MAX_BARS, GroupBox, StackBar, write_norm_ranges
from hookviz.picture.grouping.activity import Arrival, find_arrival
from hookviz.picture.scene import Scene
from hookviz.picture.visible_graph import VisibleGraph
from hookviz.player.payload import View
from hookviz.player.scene_views import make_view, own_picture
from hookviz.player.stack_bars import scale_bars
from hookviz.support.messages import _
from hookviz.trace import TraceData
from hookviz.trace.sentences import format_pass_number

ALL_PASSES = "passes"
"""The name of the picture of all passes, and the id of the box in it."""


def make_pass_stack(trace: TraceData) -> View:
    """Make the picture in which the passes of ``trace`` are one stack."""
    first_pass = trace.lookup.passes[0]
    box = _make_box(trace)
    scene = Scene(trace, first_pass, {}, {}, {}, VisibleGraph(trace, first_pass, [], {}), 1, group_boxes=[box])
    view = make_view(scene, own_picture(draw_for_player(scene)), {}, {})
    view["stacks"] = {ALL_PASSES: scale_bars(box.stack, box.stack, lambda view_name: view_name)}
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
        bars.append(StackBar(len(members), f"{members[0]}/", steps, [*highest]))
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
