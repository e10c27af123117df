"""A picture shows every name and hook as escaped text, and its layout is the same at every step."""

import re
import shutil
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import graphviz
import pytest
import torch
import torchviz
from PIL import Image
from scenes import Scene, accumulator, c_hook, hook_everything, leaf, recorded, scene, silent

import hookviz as hv
from hookviz.picture import rasterizer
from hookviz.picture.html_labels import AMBER
from hookviz.picture.layout import FORMATS
from hookviz.picture.rasterizer import render_png
from hookviz.picture.scene import Scene as Picture

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def no_dot_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide a ``dot`` program of the system: hookviz must draw without it."""
    monkeypatch.setenv("PATH", "")
    assert shutil.which("dot") is None


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    return recorded()


def parsed(figure: Any) -> ET.Element:
    return ET.fromstring(figure.pipe("svg"))


def texts(figure: Any, *, hidden: bool = True) -> list[str]:
    found = parsed(figure).iter(f"{SVG}text")
    return [text.text or "" for text in found if hidden or text.get("fill") != "transparent"]


def ids(root: ET.Element) -> list[str]:
    return [element.get("id", "") for element in root.iter() if element.get("id")]


def draw_scene(tensors: Scene, **options: Any) -> hv.Figure:
    return hv.draw(tensors.e, names=tensors._asdict(), **options)


# -- formats


@pytest.mark.parametrize(("format", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("dot", b"digraph")])
def test_a_figure_renders_without_a_dot_program(format: str, start: bytes, trace: hv.Trace) -> None:
    assert trace.figure(3).pipe(format).startswith(start)
    assert draw_scene(scene()).pipe(format).startswith(start)


@pytest.mark.parametrize("format", FORMATS)
def test_every_supported_format_can_be_rendered(format: str, trace: hv.Trace) -> None:
    assert len(trace.figure().pipe(format)) > 100


@pytest.mark.parametrize("format", ["pdf", "mp4", "", "SVG "])
def test_an_unknown_format_is_refused_with_a_list_of_formats(format: str, trace: hv.Trace) -> None:
    with pytest.raises(ValueError, match="choose one of svg, png"):
        trace.figure().pipe(format or "nothing")


def test_a_figure_is_written_to_a_file(trace: hv.Trace, tmp_path: Path) -> None:
    assert trace.figure().render(f"{tmp_path}/a.png") == f"{tmp_path}/a.png"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert trace.figure().render(tmp_path / "b", format="svg") == f"{tmp_path}/b.svg"
    assert trace.figure().render(outfile=tmp_path / "c.svg") == f"{tmp_path}/c.svg"


def test_a_figure_is_written_into_a_folder(trace: hv.Trace, tmp_path: Path) -> None:
    path = trace.figure().render("slide", directory=tmp_path / "slides", format="svg")
    assert Path(path) == tmp_path / "slides" / "slide.svg"
    assert Path(path).read_bytes().startswith(b"<svg")


def test_a_figure_is_a_digraph_with_its_source(trace: hv.Trace) -> None:
    assert isinstance(trace.figure(), graphviz.Digraph)
    assert isinstance(draw_scene(scene()), hv.Figure)
    assert trace.figure().source.startswith("digraph")


def test_a_png_shows_the_letters_and_is_white_behind_them(trace: hv.Trace) -> None:
    with Image.open(BytesIO(trace.figure(3).pipe("png"))) as picture:
        shown = picture.convert("L")
    with Image.open(BytesIO(render_png(re.sub("<text.*?</text>", "", trace.figure(3).svg())))) as picture:
        without_texts = picture.convert("L")
    assert shown.size == without_texts.size and shown.width > 600
    assert shown.getpixel((0, 0)) == 255
    assert count_dark_pixels(shown) > 1.5 * count_dark_pixels(without_texts)


def count_dark_pixels(picture: Image.Image) -> int:
    return sum(picture.histogram()[:128])


def test_a_png_shows_different_chinese_letters() -> None:
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"><text y="16" font-family="sans-serif">'
    pictures = [render_png(f"{head}{letter}</text></svg>") for letter in ("", "钩", "子")]
    if pictures[1] == pictures[0]:
        pytest.skip("no Chinese font is installed")
    assert len(set(pictures)) == 3


def test_a_huge_picture_has_fewer_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rasterizer, "MAX_PIXELS", 10_000)
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90000 60000"/>'
    with Image.open(BytesIO(render_png(svg))) as picture:
        assert picture.width * picture.height == pytest.approx(10_000, rel=0.05)


def test_without_resvg_a_png_names_the_extra_and_an_svg_is_drawn(
    trace: hv.Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ImportError, match=r'pip install "hookviz\[images\]"'):
        trace.figure().render(tmp_path / "slide.png")
    assert trace.figure().render(tmp_path / "slide.svg") and [file.name for file in tmp_path.iterdir()] == ["slide.svg"]


def test_without_a_font_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rasterizer, "FAMILIES", {"serif_family": ("No such font",)})
    monkeypatch.setattr(rasterizer, "_find_families", rasterizer._find_families.__wrapped__)
    with pytest.raises(RuntimeError, match="DejaVu Sans"):
        render_png('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"/>')


def test_nothing_is_written_to_stderr(trace: hv.Trace, capfd: pytest.CaptureFixture[str]) -> None:
    trace.figure().pipe("png")
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_an_invalid_graph_raises_a_value_error() -> None:
    drawing = graphviz.Digraph(body=["this is { no graph\n"])
    with pytest.raises(ValueError, match="Graphviz could not read this graph"):
        hv.render(drawing).pipe("svg")


# -- torchviz


@pytest.mark.filterwarnings("ignore:distutils Version classes")
def test_render_accepts_a_graph_of_torchviz() -> None:
    tensors = scene()
    drawing = torchviz.make_dot(tensors.e, params=tensors._asdict())
    rendered = hv.render(drawing)
    assert {"MulBackward0", "AccumulateGrad"} <= {text.strip() for text in texts(rendered)}
    assert rendered.pipe("png").startswith(b"\x89PNG")
    assert rendered.source == drawing.source
    assert "image/svg+xml" in rendered._repr_mimebundle_()


def test_render_does_not_change_the_given_graph() -> None:
    drawing = graphviz.Digraph("g", comment="mine", graph_attr={"rankdir": "LR"}, strict=True, engine="neato")
    drawing.node("a & b")
    before = drawing.source
    rendered = hv.render(drawing)
    rendered.node("another")
    assert drawing.source == before
    assert rendered.engine == "neato"
    assert "a & b" in texts(rendered)


# -- content


def test_every_name_op_and_hook_is_shown_before_anything_runs() -> None:
    tensors = scene()
    hook_everything(tensors)
    shown = texts(draw_scene(tensors))
    for text in (
        "a",
        "b",
        "c",
        "d",
        "e",
        "\N{NO-BREAK SPACE}= 2",
        "\N{NO-BREAK SPACE}= 24",
        "MulBackward0",
        "leaf · AccumulateGrad",
    ):
        assert text in shown
    for label in ("① c_hook", "② print", "① λ grad * 2", "① λ grad + 100", "retain_grad"):
        assert label in shown


def test_every_kind_of_hook_is_shown() -> None:
    a = leaf(2.0)
    c = a * 3
    node = accumulator(a)
    c.grad_fn.register_prehook(silent("one"))
    c.grad_fn.register_hook(silent("two"))
    a.register_post_accumulate_grad_hook(silent("three"))
    node.register_prehook(silent("four"))
    shown = " ".join(texts(hv.draw(c)))
    for label in ("① pre one", "① post two", "① after .grad three", "① pre four"):
        assert label in shown


def test_hooks_are_listed_in_firing_order() -> None:
    a = leaf(2.0)
    c = a * 3
    c.grad_fn.register_hook(silent("post"))
    c.grad_fn.register_prehook(silent("pre"))
    c.retain_grad()
    c.register_hook(silent("tensor"))
    pins = [text for text in texts(hv.draw(c)) if text[:1] in "①r"]
    assert pins == ["① tensor", "retain_grad", "① pre pre", "① post post"]


def test_a_step_shows_past_values_and_hides_future_ones(trace: hv.Trace) -> None:
    shown = [" ".join(texts(trace.figure(step), hidden=False)) for step in (0, 1, 8, 15)]
    assert "1 → 2" not in shown[0] and "8 → 10" not in shown[0]
    assert "1 → 2" in shown[1] and "8 → 10" not in shown[1]
    assert "8 → 10" in shown[2] and "10 → 10" not in shown[2]
    assert all(text in shown[3] for text in ("1 → 2", "12 → 112", "8 → 10", "10 → 10", ".grad = 30", ".grad = 20"))


def test_the_elements_of_a_step_are_outlined(trace: hv.Trace) -> None:
    root = parsed(trace.figure(8))
    groups = [group for group in root.iter(f"{SVG}g") if group.get("id")]
    outlined = {g.get("id") for g in groups if any(p.get("stroke") == AMBER for p in g.findall(f"{SVG}path"))}
    step = trace.steps[8]
    assert outlined == {f"n{step.node}", f"n{step.node}-p{step.row.hook}"}


def test_an_unfired_hook_is_labelled_did_not_fire_at_the_end() -> None:
    tensors = scene()
    handle = tensors.c.register_hook(c_hook)
    tensors.e.register_hook(lambda grad: handle.remove())
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    assert "did not fire" in texts(trace.figure(-1), hidden=False)
    assert "did not fire" not in texts(trace.figure(0), hidden=False)


def test_a_hook_that_raised_is_marked() -> None:
    def boom(grad: torch.Tensor) -> None:
        raise KeyError("x")

    tensors = scene()
    tensors.c.register_hook(boom)
    with hv.record(names=tensors._asdict()) as trace, pytest.raises(KeyError):
        tensors.e.backward()
    assert "raised" in texts(trace.figure(-1), hidden=False)


def test_an_aliased_edit_is_shown_on_the_arrow_before_the_gradient_arrives() -> None:
    def in_place(grad: torch.Tensor) -> None:
        grad *= 100

    tensors = scene(torch.add)
    tensors.d.register_hook(in_place)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    kinds = [step.kind for step in trace.steps if step.on == "c"]
    assert kinds[:2] == ["aliased", "arrive"]
    (aliased_step,) = (step for step in trace.steps if step.kind == "aliased")
    assert "1 → 100" in texts(trace.figure(aliased_step.index), hidden=False)
    mark = Picture.from_trace(trace).marks[aliased_step.index]
    cause = trace.rows[aliased_step.row.cause or 0]
    assert f"n{cause.node}-p{cause.hook}" in mark.elements
    assert trace.steps[aliased_step.index + 1].sentence == "The gradient 100 arrives at c."


def test_an_empty_trace_has_an_empty_picture() -> None:
    assert texts(hv.Trace().figure()) == []


def test_a_pass_is_drawn_with_its_own_graph() -> None:
    x = leaf(2.0)
    with hv.record() as trace:
        x.sin().backward()
        x.cos().backward()
    assert "SinBackward0" in texts(trace.figure(0)) and "CosBackward0" not in texts(trace.figure(0))
    assert "CosBackward0" in texts(trace.figure()) and "SinBackward0" not in texts(trace.figure())


def test_a_pass_shows_only_its_own_hooks() -> None:
    a = leaf(2.0)
    y = a * 3
    first = a.register_hook(silent("first"))
    with hv.record() as trace:
        y.backward(retain_graph=True)
        first.remove()
        a.register_hook(silent("second"))
        y.backward()
    pins = [[text for text in texts(trace.figure(step)) if text[:1] in "①②"] for step in (0, -1)]
    assert pins == [["① first"], ["① second"]]


# -- stable layout


def outlines(figure: hv.Figure) -> tuple[Any, ...]:
    """The view box, and the outline of every box, pin and arrow."""
    root = parsed(figure)
    groups = [group for group in root.iter(f"{SVG}g") if group.get("id")]
    return root.get("viewBox"), {g.get("id"): [path.get("d") for path in g.findall(f"{SVG}path")] for g in groups}


@pytest.mark.parametrize("tensors", [False, True])
def test_the_layout_is_the_same_at_every_step(trace: hv.Trace, tensors: bool) -> None:
    first = outlines(trace.figure(0, tensors=tensors))
    assert all(outlines(trace.figure(step, tensors=tensors)) == first for step in range(1, len(trace.steps)))


def test_the_layout_is_the_same_when_gradient_texts_grow() -> None:
    x = torch.linspace(0.1, 0.9, 6).requires_grad_()
    y = (x * x).exp()
    x.register_hook(lambda grad: grad * 1e10)
    y.retain_grad()
    handle = y.register_hook(c_hook)
    y.register_hook(lambda grad: handle.remove())
    with hv.record() as trace:
        z = y.sum()
        z.backward(retain_graph=True)
        z.backward()
    for pass_id in (0, 1):
        steps = [step.index for step in trace.steps if step.pass_id == pass_id]
        first, *other_outlines = (outlines(trace.figure(step)) for step in steps)
        assert all(other == first for other in other_outlines)


# -- ids


def test_svg_ids_and_classes_match_css_and_player(trace: hv.Trace) -> None:
    root = parsed(trace.figure(-1))
    element_ids = ids(root)
    assert len(element_ids) == len(set(element_ids))
    assert {f"n{i}" for i in range(5)} <= set(element_ids)
    step = trace.steps[8]
    assert f"n{step.node}-p{step.row.hook}" in element_ids
    arrow = f"e{trace.steps[3].node}-0-{step.node}"
    assert arrow in element_ids
    classes = {name for element in root.iter() for name in (element.get("class") or "").split()}
    assert {"hv-node", "hv-leaf", "hv-edge", "hv-pin", "hv-retain", "hv-name", "hv-op", "hv-grad", "hv-box"} <= classes


def test_two_edges_between_the_same_nodes_have_different_ids() -> None:
    x = leaf(2.0)
    element_ids = ids(parsed(hv.draw(x * x)))
    arrows = [re.fullmatch(r"e(\d+)-(\d+)-(\d+)", name) for name in element_ids]
    starts, slots, ends = zip(*[arrow.groups() for arrow in arrows if arrow], strict=True)
    assert (len(set(starts)), slots, len(set(ends))) == (1, ("0", "1"), 1)
    assert len(element_ids) == len(set(element_ids))


def test_an_svg_contains_no_links_and_no_scripts(trace: hv.Trace) -> None:
    tags = {element.tag.removeprefix(SVG) for element in parsed(trace.figure()).iter()}
    assert tags <= {"svg", "g", "path", "polygon", "text", "polyline", "ellipse"}


# -- unusual names

NAMES = [
    '"', "'", "<b>bold</b>", "</script><script>", "&amp; & &lt;", "\\", "\\\\", "\\N \\l \\n", "\\G", "a\nb",
    "\u202eright to left", "\u2066isolated\u2069", "\x00\x07\x1b[31m", "损失", "😀", "{a|b}", "%", "]]>", "<!-- -->",
    "n0", "a:b", "{on}",
    "\ufffe", "\u00ad", "a\u2028b", " lead", "]", "&#0;", "&nope;",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_tensor_name_is_drawn_as_text(name: str) -> None:
    x = leaf(2.0)
    with hv.record(names={name: x}) as trace:
        (x * 3).backward()
    for figure in (trace.figure(), trace.figure(1, tensors=True)):
        root = parsed(figure)
        expected = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(name.split()))
        shown = [text.text or "" for text in root.iter(f"{SVG}text") if text.get("class") == "hv-name"]
        assert expected in [text.removeprefix("tensor ") for text in shown]
        assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {"svg", "g", "path", "polygon", "text"}


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_hook_name_is_drawn_as_text(name: str) -> None:
    tensors = scene()
    tensors.c.register_hook(silent(name))
    shown = [text for text in texts(draw_scene(tensors)) if text.startswith("①")]
    assert len(shown) == 1
    assert not any(c != " " and not c.isprintable() for c in shown[0])


@pytest.mark.parametrize("name", ["a" * 200, "很" * 200, "W" * 200])
def test_a_long_name_is_truncated_with_an_ellipsis(name: str) -> None:
    x = leaf(2.0)
    for layer in (False, True):
        shown = texts(hv.draw(x * 3, names={name: x}, tensors=layer))
        (truncated,) = [text for text in shown if text.removeprefix("tensor ").startswith(name[:2])]
        assert len(truncated) < 40 and truncated.endswith("…")


def test_a_long_hook_label_is_truncated_with_an_ellipsis() -> None:
    tensors = scene()
    tensors.c.register_hook(silent("very_" * 100))
    (shown,) = [text for text in texts(draw_scene(tensors)) if text.startswith("①")]
    assert len(shown) < 40 and shown.endswith("…")


def test_many_hooks_on_one_tensor_are_numbered() -> None:
    tensors = scene()
    for i in range(25):
        tensors.c.register_hook(silent(f"h{i}"))
    shown = texts(draw_scene(tensors))
    assert {"① h0", "⑳ h19", "(21) h20", "(25) h24"} <= set(shown)


# -- large graphs


def chain(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = leaf(1.0)
    y = x
    for _ in range(length):
        y = y + 1
    return x, y


def test_a_large_graph_is_truncated_with_a_note() -> None:
    _, y = chain(1000)
    figure = hv.draw(y, most=40)
    assert sum(bool(re.fullmatch(r"n\d+", i)) for i in ids(parsed(figure))) == 40
    assert "This picture would have 1001 boxes; only the 40 nearest to the roots are drawn." in " ".join(texts(figure))


def test_at_most_300_boxes_are_laid_out() -> None:
    _, y = chain(400)
    assert sum(bool(re.fullmatch(r"\tn\d+ \[.*", line)) for line in hv.draw(y, most=10_000).source.splitlines()) == 300


def recurrent_loss(steps: int) -> torch.Tensor:
    """The loss of an unrolled recurrent net: every step uses the same two weights."""
    weights, h = torch.ones(2, 3, 3).requires_grad_().unbind(), torch.ones(1, 3)
    for _ in range(steps):
        h = torch.tanh(torch.ones(1, 3) @ weights[0] + h @ weights[1])
    return h.sum()


def test_graphs_with_many_long_arrows_use_straight_arrows_with_a_note() -> None:
    short_net, long_net = hv.draw(recurrent_loss(10)), hv.draw(recurrent_loss(60))
    note = "Many arrows are long: all arrows are drawn straight and may cross boxes."
    assert "splines" not in short_net.source and note not in texts(short_net)
    assert "splines=line" in long_net.source and note in texts(long_net)


def test_a_large_trace_is_drawn_at_every_step() -> None:
    _, y = chain(400)
    with hv.record() as trace:
        y.backward()
    assert "only the 300 nearest" in trace.figure(-1).source
    assert trace.figure(0).source != trace.figure(5).source


def unusual_roots() -> Iterator[Any]:
    yield torch.zeros(0).requires_grad_() * 2
    yield leaf(1.0, 2.0).unbind()[1]
    yield torch.ones(2, dtype=torch.complex64, requires_grad=True) * 2
    yield torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))(torch.ones(2, 3)).sum()


@pytest.mark.parametrize("root", list(unusual_roots()), ids=["empty", "unbind", "complex", "model"])
def test_unusual_graphs_can_be_drawn(root: torch.Tensor) -> None:
    assert texts(hv.draw(root)) and texts(hv.draw(root, tensors=True))


def test_a_single_leaf_is_one_box() -> None:
    x = leaf(2.0)
    assert texts(hv.draw(x)) == ["x", "\N{NO-BREAK SPACE}= 2", "leaf · AccumulateGrad"]
