"""Unusual module names in a large trace are shown as text in boxes, breadcrumb, search and panel."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import nn

import hookviz as hv
from tests.browser.conftest import press
from tests.browser.test_large import FLAWS, search_for

NAMES = {
    "quotes": "say \"hi\" & 'bye'",
    "html": "<img src=x onerror=alert(1)>",
    "script": "</script><script>alert(1)</script>",
    "right_to_left": "\u202eכיוון",
    "wide": "损失函数😀",
    "long": "long_" * 40,
    "spaces": "  a   b  ",
    "backslash": "a\\nb\\l{x|y}",
    "braces": "{count} {{0}} %s",
    "combining": "é" * 6,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder_path = tmp_path_factory.mktemp("names")
    torch.manual_seed(0)
    model = nn.Sequential()
    for name in NAMES.values():
        model.add_module(name, nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(6))))
    model[4][0][0].weight.register_hook(lambda grad: grad * 2)
    with hv.record(model) as trace:
        model(torch.ones(2, 2)).sum().backward()
    trace.to_html(folder_path / "index.html", title=NAMES["script"])
    return folder_path


@pytest.fixture
def player(open_file: Callable[..., Page]) -> Locator:
    page = open_file(reduced_motion="reduce")
    page.on("dialog", lambda dialog: pytest.fail(f"something in the page ran: {dialog.message}"))
    player_element = page.locator(".hv-live .hv-player")
    expect(player_element.locator(".hv-picture")).to_be_visible()
    player_element.focus()
    return player_element


def test_boxes_show_unusual_names_as_text(player: Locator) -> None:
    titles = [text.strip() for text in player.locator(".hv-fold text:first-of-type").all_text_contents()]
    joined_titles = " ".join(titles)
    for kind in ("quotes", "html", "wide", "backslash", "braces", "combining"):
        assert NAMES[kind][:14] in joined_titles, (kind, titles)
    assert "\u202e" not in joined_titles and "�כיוון" in joined_titles
    assert any(title.startswith("long_long_") and "…" in title for title in titles)
    assert player.page.evaluate(FLAWS) == []
    assert player.page.errors == []  # type: ignore[attr-defined]


def test_search_and_breadcrumb_show_unusual_names(player: Locator) -> None:
    name = NAMES["script"]
    search_for(player, name[:40].strip())
    expect(player.get_by_role("listbox").get_by_role("option").first).to_contain_text(name[:30].strip())
    press(player.page, "Enter")
    expect(player.locator(".hv-here")).to_contain_text(name[:10])
    expect(player.locator(".hv-title")).to_contain_text(name[:20])
    assert player.page.evaluate(FLAWS) == []
    assert player.page.errors == []  # type: ignore[attr-defined]
