"""A box that can be entered, as DOT."""

import graphviz

from hookviz.picture import element_ids as ids
from hookviz.picture.grouped_graph import GroupBox
from hookviz.picture.html_labels import INK, PAPER, PURPLE, Style, cell, kept, row, small, words


def draw_group(graph: graphviz.Digraph, box: GroupBox, look: Style) -> None:
    """What it is called, what is in it, and what is known of that: two lines of small type below a name."""
    rows = row(cell(ids.name(box.id), f"<B>{words(box.name, point_size=16)}</B>"))
    rows += row(cell(ids.op(box.id), small(box.about)))
    for spot, color in ((ids.gradient(box.id), PURPLE), (ids.fired(box.id), INK)):
        longest = box.longest(spot)
        rows += row(kept(spot, longest, look, color)) if longest else ""
    inside = 'CELLBORDER="0" CELLSPACING="2" CELLPADDING="3"'
    edge = look.outline(box.id)
    label = f'<TABLE BORDER="2" COLOR="{edge}" BGCOLOR="{PAPER}" STYLE="ROUNDED" {inside}>{rows}</TABLE>'
    graph.node(box.id, f"<{label}>", id=box.id, **{"class": "hv-fold"})
