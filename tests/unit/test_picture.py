"""A picture shows every name and hook as escaped text, and its layout is the same at every step."""

import itertools
import re
import shutil
import sys
import xml.etree.ElementTree as ET
from io import BytesIO
from pathlib import Path
from typing import Any

import graphviz
import pytest
import torch
import torchviz
from PIL import Image
from scenes import Scene, accumulator, chain, hook_everything, leaf, recorded, scene, silent
from torch import nn

import hookviz as hv
from hookviz.picture.rasterizer import render_png
from tests.picture_faults import PicturePlan

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


def draw_scene(tensors: Scene, **options: Any) -> hv.Figure:
    return hv.draw(tensors.e, names=tensors._asdict(), **options)


# -- formats


def test_an_unknown_format_is_refused_with_a_list_of_formats(trace: hv.Trace, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no format 'pdf' here: choose one of svg, png"):
        trace.figure().pipe("pdf")
    with pytest.raises(ValueError, match="choose one of svg, png"):
        trace.figure().render(tmp_path / "slide.pdf")
    assert not list(tmp_path.iterdir())


def test_the_suffix_of_a_file_names_the_format(trace: hv.Trace, tmp_path: Path) -> None:
    assert trace.figure().render(f"{tmp_path}/slides/a.png") == f"{tmp_path}/slides/a.png"
    assert (tmp_path / "slides" / "a.png").read_bytes().startswith(b"\x89PNG")
    assert trace.figure().render(tmp_path / "b") == f"{tmp_path}/b.svg"
    assert (tmp_path / "b.svg").read_bytes() == trace.figure().pipe() == trace.figure().svg().encode()


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


def test_without_resvg_a_png_names_the_extra_and_an_svg_is_drawn(
    trace: hv.Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    (tmp_path / "slide.png").write_bytes(b"mine")
    with pytest.raises(ImportError, match=r'pip install "hookviz\[images\]"'):
        trace.figure().render(tmp_path / "slide.png")
    assert (tmp_path / "slide.png").read_bytes() == b"mine"
    assert Path(trace.figure().render(tmp_path / "slide.svg")).read_bytes().startswith(b"<svg")


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


@pytest.mark.parametrize(("format", "beginning"), [("png", b"\x89PNG"), ("dot", b"digraph")])
def test_a_graph_of_a_user_is_written_in_the_formats_of_graphviz(format: str, beginning: bytes, tmp_path: Path) -> None:
    rendered = hv.render(graphviz.Digraph("g", body=["a -> b\n"]))
    assert rendered.pipe(format).startswith(beginning)
    assert rendered.render("slide", directory=tmp_path, format=format) == f"{tmp_path}/slide.{format}"
    assert (tmp_path / f"slide.{format}").read_bytes().startswith(beginning)


# -- the graph behind a picture


def test_a_figure_gives_its_graph_as_a_digraph_to_go_on_from(trace: hv.Trace) -> None:
    digraph = trace.figure().digraph
    assert isinstance(digraph, graphviz.Digraph)
    digraph.node("note", "mine")
    words = " ".join(" ".join(texts(hv.render(digraph))).split())
    for text in ("a = 2", "e = 24", "MulBackward0", "① c_hook", "8 → 10", "gradient 2", "mine"):
        assert text in words.replace("\N{NO-BREAK SPACE}", " ")
    edges = [line for line in digraph.source.splitlines() if "->" in line]
    assert len(edges) == 4 and "note" not in trace.figure().digraph.source


def test_the_digraph_of_a_network_frames_each_call_with_its_hooks() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    net[0].register_forward_hook(lambda *_: None)
    with hv.record(net) as trace:
        net(torch.ones(1, 2)).sum().backward()
    source = trace.figure().digraph.source
    assert 'label="net Sequential"' in source and 'label="net.0 Linear\nforward ①' in source


# -- content


def test_every_name_op_and_hook_is_shown_before_anything_runs() -> None:
    tensors = scene()
    hook_everything(tensors)
    tensors.c.grad_fn.register_prehook(silent("one"))
    tensors.c.grad_fn.register_hook(silent("two"))
    tensors.a.register_post_accumulate_grad_hook(silent("three"))
    accumulator(tensors.a).register_prehook(silent("four"))
    shown = [text.replace("\N{NO-BREAK SPACE}", " ").strip() for text in texts(draw_scene(tensors))]
    assert {"a", "b", "c", "d", "e", "= 2", "= 24", "MulBackward0", "leaf · AccumulateGrad"} <= {*shown}
    assert {"① c_hook", "② print", "① λ grad * 2", "① λ grad + 100", "retain_grad"} <= {*shown}
    assert {"① pre one", "① post two", "① after .grad three", "① pre four"} <= {*shown}


def test_a_step_shows_past_values_and_hides_future_ones(trace: hv.Trace) -> None:
    shown = [" ".join(texts(trace.figure(step), hidden=False)) for step in (0, 1, 8, 15)]
    assert "1 → 2" not in shown[0] and "8 → 10" not in shown[0]
    assert "1 → 2" in shown[1] and "8 → 10" not in shown[1]
    assert "8 → 10" in shown[2] and "10 = 10" not in shown[2]
    assert all(text in shown[3] for text in ("1 → 2", "12 → 112", "8 → 10", "10 = 10", ".grad = 30", ".grad = 20"))


# -- stable layout


def outlines(figure: hv.Figure) -> tuple[Any, ...]:
    """The view box, and where every box, pin, arrow and text is."""
    plan = PicturePlan(figure.svg())
    return plan.view_box, plan.areas, plan.arrows, {words[:-1] for words in plan.words}


@pytest.mark.parametrize("tensors", [False, True])
def test_the_layout_is_the_same_at_every_step(trace: hv.Trace, tensors: bool) -> None:
    first = outlines(trace.figure(0, tensors=tensors))
    assert all(outlines(trace.figure(step, tensors=tensors)) == first for step in range(1, len(trace.steps)))


# -- unusual names

NAMES = ["</script><script>", "'\" &amp; &nope;", "\u202eright to \u2066left\u2069", "\x00\x1b[31m", "损失😀"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_tensor_name_is_drawn_as_text(name: str) -> None:
    x = leaf(2.0)
    x.register_hook(silent(name))
    with hv.record(names={name: x}) as trace:
        (x * 3).backward()
    for figure in (trace.figure(), trace.figure(1, tensors=True)):
        root = parsed(figure)
        expected = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(name.split()))
        shown = [text.text or "" for text in root.iter(f"{SVG}text") if text.get("class") == "hv-name"]
        assert expected in [text.removeprefix("tensor ") for text in shown]
        assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {"svg", "g", "path", "rect", "text"}
        (pin,) = [text.text for text in root.iter(f"{SVG}text") if str(text.text).startswith("①")]
        assert all(c == " " or c.isprintable() for c in str(pin))


def test_a_long_name_is_truncated_and_many_hooks_are_numbered() -> None:
    x = leaf(2.0)
    for name, layer in itertools.product(("a" * 200, "很" * 200), (False, True)):
        shown = texts(hv.draw(x * 3, names={name: x}, tensors=layer))
        (truncated,) = [text for text in shown if text.removeprefix("tensor ").startswith(name[:2])]
        assert len(truncated) < 40 and "…" in truncated
    tensors = scene()
    for i in range(25):
        tensors.c.register_hook(silent(f"h{i}"))
    shown = texts(draw_scene(tensors))
    assert {"① h0", "⑳ h19", "(21) h20", "(25) h24"} <= set(shown)


# -- large graphs


def count_boxes(figure: hv.Figure) -> int:
    return sum(bool(re.fullmatch(r"n\d+", element.get("id", ""))) for element in parsed(figure).iter())


def test_a_large_graph_is_truncated_with_a_note() -> None:
    assert count_boxes(hv.draw(chain(400), most=10_000)) == 300
    figure = hv.draw(chain(1000), most=40)
    assert count_boxes(figure) == 40
    assert "This picture would have 1001 boxes; only the 40 nearest to the roots are drawn." in " ".join(texts(figure))


# -- where things stand


def test_in_a_network_gradients_go_from_right_to_left(trace: hv.Trace) -> None:
    tensors = PicturePlan(trace.figure().svg()).arrows.values()
    assert len(tensors) == 4 and all(points[0][1] < points[-1][1] for points in tensors), "else down"
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    with hv.record(net) as recording:
        net(torch.ones(1, 2)).backward(torch.ones(1, 2))
    plan = PicturePlan(recording.figure().svg())
    assert plan.arrows and all(points[0][0] > points[-1][0] for points in plan.arrows.values())
    first, second = (plan.frames[name] for name in sorted(plan.frames, key=lambda name: int(name[1:]))[1:])
    assert first.right < second.left, "the network is read from left to right"
