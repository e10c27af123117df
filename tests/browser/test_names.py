"""Strange names in a large trace: in boxes, in the trail, in the search and in the panel they are text, and whole."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import nn

import hookviz as hv
from tests.browser.conftest import press
from tests.browser.test_large import FLAWS, seek

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
    made = tmp_path_factory.mktemp("names")
    torch.manual_seed(0)
    model = nn.Sequential()
    for name in NAMES.values():
        model.add_module(name, nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(6))))
    model[4][0][0].weight.register_hook(lambda grad: grad * 2)
    with hv.record(model) as trace:
        model(torch.ones(2, 2)).sum().backward()
    trace.to_html(made / "index.html", title=NAMES["script"])
    return made


@pytest.fixture
def player(opened: Callable[..., Page]) -> Locator:
    page = opened(reduced_motion="reduce")
    page.on("dialog", lambda dialog: pytest.fail(f"something in the page ran: {dialog.message}"))
    found = page.locator(".hv-live .hv-player")
    expect(found.locator(".hv-picture")).to_be_visible()
    found.focus()
    return found


def test_boxes_show_them_as_text_and_whole(player: Locator) -> None:
    titles = [text.strip() for text in player.locator(".hv-fold text:first-of-type").all_text_contents()]
    told = " ".join(titles)
    for kind in ("quotes", "html", "wide", "backslash", "braces", "combining"):
        assert NAMES[kind][:14] in told, (kind, titles)
    assert "\u202e" not in told and "�כיוון" in told
    assert any(title.startswith("model.long_long_") and "…" in title for title in titles)
    assert player.page.evaluate(FLAWS) == []
    assert player.page.errors == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["quotes", "html", "script", "wide", "backslash", "braces", "long"])
def test_search_finds_them_and_the_trail_names_them(player: Locator, kind: str) -> None:
    seek(player, NAMES[kind][:40].strip())
    expect(player.get_by_role("listbox").get_by_role("option").first).to_contain_text(NAMES[kind][:30].strip())
    press(player.page, "Enter")
    expect(player.locator(".hv-here")).to_contain_text(NAMES[kind][:20])
    expect(player.locator(".hv-title")).to_contain_text(NAMES[kind][:20])
    assert player.page.evaluate(FLAWS) == []
    assert player.page.errors == []  # type: ignore[attr-defined]
