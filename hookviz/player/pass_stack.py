"""The picture above those of the passes: all passes of a trace as one stack, with a bar for each."""

from math import ceil, hypot

from hookviz.picture import element_ids as ids
from hookviz.picture.figure import draw_for_player
from hookviz.picture.grouped_graph import MAX_BARS, GroupBox, StackBar, write_norm_ranges
from hookviz.picture.grouping.activity import Arrival, BoxActivity, collect_pass_activity
from hookviz.picture.scene import Scene
from hookviz.picture.visible_graph import make_visible_graph
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
    passes = trace.lookup.passes
    activities = [collect_pass_activity(trace, pass_id) for pass_id in passes]
    norms = [_join_leaf_gradients(trace, activity) for activity in activities]
    size = ceil(len(passes) / MAX_BARS)
    bars = [
        StackBar(
            len(passes[start : start + size]),
            f"{passes[start]}/",
            sorted(step for activity in activities[start : start + size] for step in activity.steps),
            sorted((norm.step, norm.norm) for norm in norms[start : start + size] if norm),
        )
        for start in range(0, len(passes), size)
    ]
    box = GroupBox(
        ALL_PASSES,
        name := _name_passes(trace),
        name,
        _describe_bars(size),
        {ids.gradient_id(ALL_PASSES): write_norm_ranges(sorted(norm for norm in norms if norm))},
        [*range(len(trace.rows))],
        bars,
    )
    scene = Scene(trace, passes[0], {}, {}, {}, make_visible_graph(trace, passes[0], []), 1, group_boxes=[box])
    view = make_view(scene, own_picture(draw_for_player(scene)), {}, {})
    view["stacks"] = {ALL_PASSES: scale_bars(bars, bars, lambda name: name)}
    view["visible_steps"] = box.spans
    return view


def _join_leaf_gradients(trace: TraceData, activity: BoxActivity) -> Arrival | None:
    """Return the norm of the gradients of all leaves in a pass, once the last has arrived; None if none arrives.

    It is what ``clip_grad_norm_`` returns, unless there are leaves that it is not given, or hooks that change them.
    """
    arrivals = [arrival for arrival in activity.arrivals if _is_at_leaf(trace, arrival.step)]
    if not arrivals:
        return None
    nonfinite_count = sum(arrival.nonfinite_count for arrival in arrivals)
    return Arrival(arrivals[-1].step, hypot(*(arrival.norm for arrival in arrivals)), nonfinite_count)


def _is_at_leaf(trace: TraceData, step: int) -> bool:
    node = trace.rows[step].node
    return node is not None and trace.ops[node] == "AccumulateGrad"


def _name_passes(trace: TraceData) -> str:
    first, last = (format_pass_number(trace, trace.lookup.passes[at]) for at in (0, -1))
    return _("pass {first} – {last} × {count}").format(first=first, last=last, count=f"{len(trace.lookup.passes):,}")


def _describe_bars(size: int) -> str:
    if size == 1:
        return _("gradients of all leaves, by pass")
    return _("gradients of all leaves, {count} passes a bar").format(count=size)
