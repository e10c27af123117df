"""Where Graphviz cannot run, the picture has all its boxes, and the player works."""

import sys
from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect
from scenes import recorded, silent

import hookviz as hv
from hookviz.picture import graphviz_client
from hookviz.picture.layered_layout import place_boxes
from tests.browser.helpers import Opener, errors_of, press


def record_large_model() -> hv.Trace:
    """Record a model whose picture has collapsed boxes."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()) for _ in range(12)))
    net[3].register_full_backward_hook(silent("backward"))
    with hv.record(net) as trace:
        net(torch.ones(1, 2)).sum().backward()
    return trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    graphviz_client.end_worker()
    place_boxes.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "frozen", True, raising=False)  # a frozen program has no Graphviz
        recorded().to_html(folder / "small.html")
        record_large_model().to_html(folder / "large.html")
    place_boxes.cache_clear()
    return folder


@pytest.mark.parametrize(("name", "width"), [("small", 390), ("large", 1280)])
def test_player_steps_to_the_end_of_a_picture_in_layers(open_file: Opener, name: str, width: int) -> None:
    page = open_file(name, width=width)
    expect(page.locator(".hv-picture svg .hv-box").first).to_be_attached()
    expect(page.locator(".hv-picture")).not_to_contain_text("Graphviz")
    count = page.locator(".hv-count")
    steps = int(count.inner_text().split()[-1])
    press(page, *["ArrowRight"] * (steps - 1))
    expect(count).to_have_text(f"Step {steps} of {steps}")
    expect(page.locator(".hv-panel")).to_contain_text(".grad is written")
    press(page, "Home", "]", "[", "End", "p", "p", "t", "n", "l", "1", "s", "e", "u")
    assert errors_of(page) == []
