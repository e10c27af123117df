"""Pictures of equal structure share a template and keep their own ids, names and numbers."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.picture.dot_source import Figure, build_figure
from hookviz.picture.svg_templates import Templates
from hookviz.player.grouped_views import PassPictures

NAMES = ("plain", "<b>&amp;\"'", "back\\slash", "1 & 2", "损失")


def pictures(names: list[str]) -> Iterator[str]:
    """The SVGs of an encoder with layers called ``names``."""
    torch.manual_seed(0)
    model = nn.Sequential()
    for name in names:
        model.add_module(name, nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
    with hv.record(model) as trace:
        (model(torch.randn(2, 3, 8)) * torch.randn(8)).sum().backward()
    pass_pictures = PassPictures(trace, 0)
    return (
        build_figure(pass_pictures.scene(view), None, for_player=True).svg()
        for view in pass_pictures.views.list_views()
    )


def one_cell_svg(text: str, width: int = 100) -> str:
    figure: Figure = Figure("hookviz", format="svg")
    cell = f'<TD ID="n0-o" HREF="#" ALIGN="LEFT" WIDTH="{width}"><FONT POINT-SIZE="13">{text}</FONT></TD>'
    figure.node("n0", f"<<TABLE><TR>{cell}</TR></TABLE>>", id="n0", shape="plain")
    return figure.svg()


def test_equal_layers_share_templates() -> None:
    templates = Templates()
    shared = [templates.fill_template(svg, str(k)) for k, svg in enumerate(pictures([str(k) for k in range(10)]))]
    assert len(shared) >= 40 and len(templates) <= len(shared) / 2


@pytest.mark.parametrize("names", [[str(k) for k in range(10)], [name + str(k) for k in range(3) for name in NAMES]])
def test_a_filled_template_equals_the_picture(names: list[str]) -> None:
    templates = Templates()
    for svg in pictures(names):
        assert templates.fill_template(svg, "").svg == svg
    assert len(templates) > 1


def test_different_texts_share_a_template_but_different_widths_do_not() -> None:
    templates = Templates()
    first, second, wider = (
        templates.fill_template(svg, "")
        for svg in (one_cell_svg("a1"), one_cell_svg("b"), one_cell_svg("a1", width=200))
    )
    assert first.template == second.template != wider.template
    assert [filled.fill[-1] for filled in (first, second, wider)] == ["a1", "b", "a1"]
