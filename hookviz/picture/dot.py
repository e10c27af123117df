"""A scene as DOT: rounded boxes with pins, coloured as they stand at one step."""

from collections.abc import Iterable
from html import escape
from typing import Any

from hookviz.picture.engine import Rendered, tidy
from hookviz.picture.scene import Arrow, Box, Pin, Scene, tiny
from hookviz.trace import TensorRow
from hookviz.words import say

MEASURED = "DejaVu Sans,Verdana,sans-serif"
"""The font the layout measures with: wider than those that show it, so that every label has room."""

INK, QUIET, PURPLE, AMBER, FAINT, LEAF, PAPER = (
    "#111827",
    "#475569",
    "#6d28d9",
    "#b45309",
    "#94a3b8",
    "#eff6ff",
    "white",
)
SPACE = "\N{NO-BREAK SPACE}"
HIDDEN = "transparent"
"""A text in this colour only keeps its room; ``engine.tidy`` leaves it out of the SVG."""
GLOW, PIN, DONE = "#fde68a", "#f8fafc", "#faf5ff"


class Figure(Rendered):
    """The picture of a graph, or of one step of a trace. A ``graphviz.Digraph``."""

    def finish(self, svg: bytes) -> bytes:
        """Give the SVG its ids and classes, and a size that it keeps in a notebook."""
        return tidy(svg)

    def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, bytes | str]:
        svg = sized(self.pipe("svg", encoding="utf-8"))
        return {"image/svg+xml": svg, "text/plain": repr(self)}


WIDEST = 720.0
"""Points: a picture that is wider is shown smaller. JupyterLab would cut it off at the edge of the cell."""


def sized(svg: str) -> str:
    """``svg`` at its natural size, or as wide as a notebook shows whole.

    >>> sized('<svg viewBox="0 0 1440 500">')
    '<svg width="720pt" height="250pt" viewBox="0 0 1440 500">'
    """
    width, height = map(float, svg.partition('viewBox="')[2].partition('"')[0].split()[2:])
    shrink = min(1.0, WIDEST / width)
    return svg.replace("<svg ", f'<svg width="{width * shrink:g}pt" height="{height * shrink:g}pt" ', 1)


class Look:
    """How things stand at one step: which are now, which are done, and the texts shown."""

    def __init__(self, scene: Scene, step: int | None) -> None:
        marks = [(index, mark) for index, mark in sorted(scene.marks.items()) if step is None or index <= step]
        self.texts = {spot: text for _, mark in marks for spot, text in mark.texts.items()}
        self.done = {spot for _, mark in marks for spot in mark.on}
        self.now = set(marks[-1][1].on) if marks and step is not None else set()


def dot(scene: Scene, step: int | None, *, tensors: bool = False, final: bool = False) -> Figure:
    """The figure of ``scene`` at ``step``; with ``final``, every text is laid out at its longest (for the player)."""
    look = Look(scene, step)
    figure: Figure = Figure("hookviz", format="svg")
    figure.attr("graph", rankdir="TB", nodesep="0.45", ranksep="0.5", pad="0.15", bgcolor="white", fontname=MEASURED)
    figure.attr("node", shape="plain", fontname=MEASURED, fontsize="14", fontcolor=INK)
    figure.attr("edge", fontname=MEASURED, fontsize="15", fontcolor=PURPLE, arrowsize="0.9")
    for box in scene.boxes.values():
        label = _box(scene, box, look, final, tensors)
        figure.node(box.id, label, id=box.id, **{"class": "hv-node hv-leaf" if box.leaf else "hv-node"})
    for arrow in scene.arrows.values():
        _draw_arrow(figure, arrow, look, final, ":b" if tensors else "")
    if scene.hidden:
        figure.attr(label=say("picture.large", nodes=scene.hidden + len(scene.boxes), shown=len(scene.boxes)))
    return figure


def _text(text: str, **font: Any) -> str:
    """User text, escaped for Graphviz's HTML-like labels; control characters, which XML forbids, are shown."""
    clean = "".join(c if c.isprintable() or c == SPACE else "\N{REPLACEMENT CHARACTER}" for c in text)
    safe = escape(clean).replace("\\", "\\\\")  # Graphviz reads escapes such as \N in these labels too
    attributes = "".join(f' {key.replace("_", "-").upper()}="{value}"' for key, value in font.items())
    return f"<FONT{attributes}>{safe}</FONT>"


def _cell(spot: str, inside: str, **attributes: Any) -> str:
    """A cell with an id: Graphviz keeps an id only for a link (``engine.tidy`` takes the link out again)."""
    more = "".join(f' {key.upper()}="{value}"' for key, value in {"align": "LEFT", **attributes}.items())
    return f'<TD ID="{spot}" HREF="#" TOOLTIP=" "{more}>{inside}</TD>'


def _box(scene: Scene, box: Box, look: Look, final: bool, tensors: bool) -> str:
    now, done = box.id in look.now, box.id in look.done
    edge = AMBER if now else PURPLE if done else FAINT
    fill = LEAF if box.leaf else PAPER
    rows = [*_names(box), _row(_cell(f"{box.id}-o", _text(_op(box), point_size=12, color=QUIET)))]
    rows += [_row(_pin(pin, look, final)) for pin in box.pins]
    if tensors:
        rows.append(_row(_cell(f"{box.id}-x", _text(_pre_hooks(scene, box), point_size=12, color=QUIET))))
    rows += _gradient(box, look, final)
    style = f'BORDER="2" COLOR="{edge}" BGCOLOR="{fill}" STYLE="ROUNDED"'
    table = f'<TABLE {style} CELLBORDER="0" CELLSPACING="4" CELLPADDING="3">{"".join(rows)}</TABLE>'
    if final:
        return f"<{table}>"
    halo = GLOW if now else PAPER  # always there, so that no step moves anything
    frame = f'BORDER="4" COLOR="{halo}" STYLE="ROUNDED" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"'
    framed = f"<TABLE {frame}><TR><TD>{table}</TD></TR></TABLE>"
    return f"<{_beside(scene, box, look, framed) if tensors else framed}>"


def _row(*cells: str) -> str:
    return f"<TR>{''.join(cells)}</TR>"


def _names(box: Box) -> Iterable[str]:
    for name, data in box.names:
        title = f"<B>{_text(name, point_size=19)}</B>"
        yield _row(_cell(f"{box.id}-t", title + (_text(f"{SPACE}= {data}", point_size=16) if data else "")))


def _op(box: Box) -> str:
    return say("picture.leaf", op=box.op) if box.leaf else box.op


def _pin(pin: Pin, look: Look, final: bool) -> str:
    spot = f"{pin.id}-v"
    shown = look.texts.get(spot, "")
    now, done = pin.id in look.now, pin.id in look.done
    fill, edge = (GLOW, AMBER) if now else (DONE, PURPLE) if done else (PIN, FAINT)
    number = _kept(spot, shown, pin.final, final, INK, align="RIGHT")
    label = _cell(f"{pin.id}-l", _text(pin.label, point_size=14))
    inner = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2"><TR>{label}<TD WIDTH="14"></TD>'
    look_ = {"border": 1, "color": edge, "bgcolor": fill, "style": "ROUNDED"}
    return _cell(pin.id, f"{inner}{number}</TR></TABLE>", **look_)


def _kept(spot: str, shown: str, longest: str, final: bool, color: str, **attributes: Any) -> str:
    """A cell for a text that may not be shown yet; it keeps room for the longest, so that no step moves anything."""
    if not longest:
        return ""
    if final:
        text = _text(longest, color=color)
    else:
        text = _text(shown, color=color) if shown else _text(longest, color=HIDDEN)
    weight = f"<B>{text}</B>" if color == INK else text
    return _cell(spot, weight, width=room_for(longest), **attributes)


def room_for(text: str) -> int:
    """How many points wide ``text`` can be at size 14 to 15 in the widest of the fonts that show it."""
    narrow = sum(char in " .,:;'|()[]il" for char in text)
    wide = sum(ord(char) > 0x2E7F for char in text)
    return 4 + 6 * narrow + 16 * wide + 11 * (len(text) - narrow - wide)


def _gradient(box: Box, look: Look, final: bool) -> list[str]:
    spot = f"{box.id}-g"
    cell = _kept(spot, look.texts.get(spot, ""), box.final, final, PURPLE)
    return [_row(cell)] if cell else []


def _draw_arrow(figure: Figure, arrow: Arrow, look: Look, final: bool, port: str) -> None:
    now, done = arrow.id in look.now, arrow.id in look.done
    color = AMBER if now else PURPLE if done or final else FAINT
    spot = f"{arrow.id}-v"
    cell = _kept(spot, look.texts.get(spot, ""), arrow.final, final, PURPLE)
    label = {}
    if cell:
        label["label"] = f'<<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="5"><TR>{cell}</TR></TABLE>>'
    style = "solid" if done or now or final else "dashed"
    drawn = {"id": arrow.id, "color": color, "style": style, "penwidth": "2.2", "class": "hv-edge"}
    figure.edge(f"{arrow.start}{port}{port and ':s'}", f"{arrow.end}{port}{port and ':n'}", **drawn, **label)


# -- the layer of Python tensors


def _pre_hooks(scene: Scene, box: Box) -> str:
    """The node's list of pre-hooks: the dict of an intermediate tensor's hooks is one of them, a leaf's is not."""
    rows = [row for row in scene.trace.hook_rows if row.node == box.node]
    names = {f"{_name(scene, row.node, row.output)}._backward_hooks" for row in rows if row.kind == "tensor_hook"}
    listed = [] if box.leaf else sorted(names)
    listed += [row.name for row in rows if row.kind == "node_pre_hook"]
    return say("picture.pre_hooks", hooks=", ".join(listed)) if listed else say("picture.no_pre_hooks")


def _name(scene: Scene, node: int, output: int) -> str:
    return scene.trace.name(node, output)


def _beside(scene: Scene, box: Box, look: Look, table: str) -> str:
    """A node's table with those of its tensors on its right; edges lead to and from the node (port ``b``)."""
    shown = [_tensor(scene, box, row, look) for row in box.tensors if row.name]
    stack = "".join(f"<TR><TD>{tensor}</TD></TR>" for tensor in shown)
    plain = 'BORDER="0" CELLBORDER="0" CELLPADDING="0" CELLSPACING="4"'
    side = f"<TD><TABLE {plain}>{stack}</TABLE></TD>" if shown else ""
    return f'<TABLE {plain}><TR><TD PORT="b">{table}</TD>{side}</TR></TABLE>'


def _tensor(scene: Scene, box: Box, row: TensorRow, look: Look) -> str:
    hooks = [h.name for h in scene.trace.hook_rows if h[:3] == ("tensor_hook", row.node, row.output)]
    facts = {
        "data": tiny(scene.trace.value(row.data)),
        "grad": _grad(scene, box, row, look),
        "grad_fn": say("name.none") if row.leaf else box.op,
        "is_leaf": str(row.leaf),
        "requires_grad": "True",
        "_backward_hooks": f"[{', '.join(hooks)}]" if hooks else say("name.none"),
    }
    head = f'<TR><TD COLSPAN="2" ALIGN="LEFT"><B>{_text(say("picture.tensor", name=row.name))}</B></TD></TR>'
    lines = (_row(*(f'<TD ALIGN="LEFT">{_text(part, point_size=12)}</TD>' for part in pair)) for pair in facts.items())
    return f'<TABLE BORDER="1" COLOR="{QUIET}" CELLBORDER="0" CELLSPACING="1">{head}{"".join(lines)}</TABLE>'


def _grad(scene: Scene, box: Box, row: TensorRow, look: Look) -> str:
    """The tensor's ``.grad`` at this step: what was written there last, or what it was before the pass."""
    written = look.texts.get(f"{box.id}-r{row.output}-v") or (look.texts.get(f"{box.id}-g") if box.leaf else None)
    mark = say("picture.grad", value="")
    if written and written.startswith(mark):
        return written.removeprefix(mark)
    return say("name.none") if row.grad is None else tiny(scene.trace.value(row.grad))
