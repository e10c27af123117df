"""Pictures of equal structure are laid out once, and each still has its own ids, names and numbers."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import hookviz as hv
from benchmarks.resnet import ResNet18
from hookviz.picture.dot_source import Figure, dot
from hookviz.picture.layout_cache import Layouts, Structure
from hookviz.player.grouped_views import PassPictures

NAMES = ("plain", "<b>&amp;\"'", "back\\slash", "1 & 2", "损失")


def encoder(names: list[str]) -> hv.Trace:
    torch.manual_seed(0)
    model = nn.Sequential()
    for name in names:
        model.add_module(name, nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
    with hv.record(model, fastpath=False) as trace:
        (model(torch.randn(2, 3, 8)) * torch.randn(8)).sum().backward()
    return trace


def figures(trace: hv.Trace) -> Iterator[Figure]:
    own = PassPictures(trace, 0)
    return (dot(own.scene(view), None, final=True) for view in own.views.all())


def parts(svg: str) -> tuple[list[str], list[str]]:
    """The ids, and the texts that no step writes anew."""
    root = ET.fromstring(svg)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    return ids, [text.text or "" for text in texts if not re.search(r"-[vgaic]$", text.get("id", ""))]


def test_layers_that_are_equal_are_laid_out_once() -> None:
    layouts = Layouts()
    every = [layouts.svg(figure) for figure in figures(encoder([str(k) for k in range(10)]))]
    assert len(every) >= 40 and layouts.count <= len(every) / 2
    assert len({re.sub(r'.*?viewBox="([^"]*)".*', r"\1", svg, flags=re.DOTALL) for svg in every}) <= layouts.count


@pytest.mark.parametrize("names", [[str(k) for k in range(5)], [name + str(k) for k in range(2) for name in NAMES]])
def test_each_has_the_ids_and_texts_of_one_that_is_laid_out_by_itself(names: list[str]) -> None:
    layouts = Layouts()
    for figure in figures(encoder(names)):
        assert parts(layouts.svg(figure)) == parts(figure.pipe("svg", encoding="utf-8"))
    assert layouts.count > 1


def figure(*texts: str, width: int = 10) -> Figure:
    drawn: Figure = Figure("hookviz", format="svg")
    for k, text in enumerate(texts):
        cell = f'<TD ID="n{k}-o" HREF="#" WIDTH="{width}"><FONT POINT-SIZE="13">{text}</FONT></TD>'
        drawn.node(f"n{k}", f"<<TABLE><TR>{cell}</TR></TABLE>>", id=f"n{k}", shape="plain")
    return drawn


def test_where_one_text_would_have_to_become_two_it_is_laid_out_anew() -> None:
    layouts = Layouts()
    for texts in (("a1", "a1"), ("a2", "a3"), ("a4", "a4")):
        assert parts(layouts.svg(figure(*texts)))[1] == list(texts)
    assert layouts.count == 1


def test_other_widths_colours_and_letters_are_other_structures() -> None:
    one = Structure.of(figure("a1").source).key
    assert one == Structure.of(figure("a2").source).key
    others = [figure("b1"), figure("a10"), figure("a1", width=20), figure("a1", "a1")]
    assert all(Structure.of(other.source).key != one for other in others)
    assert Structure.of('n1 [color="#e1aaaa"]').key != Structure.of('n1 [color="#e9eef5"]').key


def test_two_digits_have_the_room_of_three_and_are_shown_as_two() -> None:
    layouts = Layouts()
    shown = [parts(layouts.svg(figure(f"MulBackward0 #{number}", f"({number}, 3)")))[1] for number in (99, 100, 64)]
    assert shown == [
        ["MulBackward0 #99", "(99, 3)"],
        ["MulBackward0 #100", "(100, 3)"],
        ["MulBackward0 #64", "(64, 3)"],
    ]
    assert layouts.count == 1


def test_the_blocks_of_a_resnet_share_layouts() -> None:
    model = ResNet18()
    with hv.record(model) as trace:
        model(torch.randn(2, 3, 32, 32)).mean().backward()
    layouts = Layouts()
    every = [layouts.svg(figure) for figure in figures(trace)]
    assert len(every) == 9 and layouts.count <= 6
