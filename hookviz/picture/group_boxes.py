"""A box that can be entered, as DOT."""

import graphviz

from hookviz.picture.grouped_graph import GroupBox
from hookviz.picture.html_labels import INK, PAPER, PURPLE, Style, cell, kept, row, small, words


def draw_group(graph: graphviz.Digraph, box: GroupBox, look: Style) -> None:
    """What it is called, what is in it, and what is known of that: two lines of small type below a name."""
    rows = row(cell(f"{box.id}-t", f"<B>{words(box.name, point_size=16)}</B>"))
    rows += row(cell(f"{box.id}-o", small(box.about)))
    for kind, color in (("g", PURPLE), ("c", INK)):
        longest = box.longest(kind)
        rows += row(kept(f"{box.id}-{kind}", longest, look, color)) if longest else ""
    inside = 'CELLBORDER="0" CELLSPACING="2" CELLPADDING="3"'
    edge = look.outline(box.id)
    label = f'<TABLE BORDER="2" COLOR="{edge}" BGCOLOR="{PAPER}" STYLE="ROUNDED" {inside}>{rows}</TABLE>'
    graph.node(box.id, f"<{label}>", id=box.id, **{"class": "hv-fold"})
