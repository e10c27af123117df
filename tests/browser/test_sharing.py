"""Sharing: links to steps, embedded pages, copied pictures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, expect

import hookviz as hv
from tests.browser.helpers import errors_of, is_at, press
from tests.scenes import recorded

WIDTH, HEIGHT = 720, 560
"""The size of the frame in the embed code."""


def run_with_three_hooks() -> None:
    """A pass in which two hooks have the same label."""

    def c_hook(grad: torch.Tensor) -> torch.Tensor:
        return grad + 2

    def double(grad: torch.Tensor) -> torch.Tensor:
        return grad * 2

    a, b, d = (torch.tensor(float(number), requires_grad=True) for number in (2, 3, 4))
    c = a * b
    c.register_hook(c_hook)
    c.register_hook(double)
    d.register_hook(double)
    (c * d).backward()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shared")
    recorded().to_html(path / "trace.html")
    hv.whatif(run_with_three_hooks).to_html(path / "whatif.html")
    frame = f'<iframe src="trace.html?embed#step-5" width="{WIDTH}" height="{HEIGHT}" loading="lazy"></iframe>'
    (path / "host.html").write_text(f'<input id="field" autofocus>{frame}<p style="height: 2000px">')
    return path


@pytest.fixture
def visit(new_offline_page: Callable[..., Page], folder: Path) -> Callable[..., Page]:
    """Open an address in the folder, in a browser with an open clipboard."""

    def visit_it(address: str, **settings: Any) -> Page:
        page = new_offline_page(permissions=("clipboard-read", "clipboard-write"), **settings)
        page.set_viewport_size({"width": 1280, "height": 720})
        page.goto(f"{folder.as_uri()}/{address}")
        return page

    return visit_it


def hash_of(page: Page) -> str:
    return str(page.evaluate("location.hash"))


def share(page: Page, name: str) -> None:
    page.locator(".hv-share summary").click()
    page.get_by_role("button", name=name).click()


# -- addresses


def test_address_opens_a_step_with_a_switch_and_follows_the_steps(visit: Callable[..., Page]) -> None:
    page = visit("whatif.html#step-7&off=c_hook")
    off = page.locator("[role=switch][aria-checked=false]")
    is_at(page, 7, 13)
    expect(off).to_have_count(1)
    expect(off).to_contain_text("c_hook")
    entries = page.evaluate("history.length")
    press(page, "ArrowRight")
    assert hash_of(page) == "#step-8&off=c_hook"
    press(page, "3")
    expect(off).to_have_count(2)
    is_at(page, 8, 13)
    assert hash_of(page) == "#step-8&off=c_hook,double%40d"
    assert page.evaluate("history.length") == entries
    page.evaluate("location.hash = '#step-2'")
    is_at(page, 2, 13)
    expect(off).to_have_count(0)
    assert errors_of(page) == []


# -- the menu


def test_menu_copies_the_link_and_the_embed_code(visit: Callable[..., Page], folder: Path) -> None:
    page = visit("whatif.html#step-7&off=c_hook")
    is_at(page, 7, 13)
    share(page, "Copy link to this step")
    expect(page.locator(".hv-told")).to_contain_text("This page is a file on your computer")
    address = f"{folder.as_uri()}/whatif.html"
    assert page.evaluate("navigator.clipboard.readText()") == f"{address}#step-7&off=c_hook"
    share(page, "Copy embed code")
    expect(page.locator(".hv-told")).to_contain_text("The code is copied")
    code = page.evaluate("navigator.clipboard.readText()")
    assert f'<iframe src="{address}?embed#step-7&amp;off=c_hook" width="720" height="560" loading="lazy" title=' in code
    assert errors_of(page) == []


def test_copied_picture_looks_like_the_one_on_the_screen(visit: Callable[..., Page]) -> None:
    page = visit("whatif.html#step-7", color_scheme="dark")
    expect(page.locator(".hv-now").first).to_be_visible()
    share(page, "Copy picture as SVG")
    expect(page.locator(".hv-told")).to_contain_text("copied as SVG")
    markup = page.evaluate("navigator.clipboard.readText()")
    halo, halos = page.evaluate("""() => {
      const halo = document.querySelector(".hv-now > .hv-halo");
      const all = [...document.querySelectorAll(".hv-graph .hv-halo")];
      return [getComputedStyle(halo).stroke, all.filter((one) => getComputedStyle(one).display !== "none").length];
    }""")
    assert markup.count(halo) == halos >= 1
    assert "class=" not in markup and "style=" not in markup and "var(" not in markup
    share(page, "Copy picture as PNG")
    expect(page.locator(".hv-told")).to_contain_text("paste it into a slide or a chat")
    width, height, corner = page.evaluate("""async () => {
      const [item] = await navigator.clipboard.read();
      const bitmap = await createImageBitmap(await item.getType("image/png"));
      const canvas = Object.assign(document.createElement("canvas"), { width: bitmap.width, height: bitmap.height });
      const context = canvas.getContext("2d");
      context.drawImage(bitmap, 0, 0);
      return [bitmap.width, bitmap.height, context.getImageData(2, 2, 1, 1).data[0]];
    }""")
    assert width > 600 and height > 400
    assert corner < 50
    assert errors_of(page) == []


def test_without_a_clipboard_the_text_is_shown_and_the_picture_downloaded(visit: Callable[..., Page]) -> None:
    page = visit("trace.html#step-3")
    is_at(page, 3)
    page.evaluate("""() => {
      const refuse = () => Promise.reject(new Error("refused"));
      Object.defineProperty(navigator, "clipboard", { value: { writeText: refuse, write: refuse } });
    }""")
    share(page, "Copy link to this step")
    expect(page.locator(".hv-told")).to_contain_text("trace.html#step-3")
    for name, file in (("Copy picture as SVG", "step-3.svg"), ("Copy picture as PNG", "step-3.png")):
        with page.expect_download() as download:
            share(page, name)
        assert download.value.suggested_filename == file
        expect(page.locator(".hv-told")).to_contain_text(f"downloaded as {file}")


# -- in another page


def test_embedded_page_fits_its_frame_and_leaves_the_focus_to_its_host(visit: Callable[..., Page]) -> None:
    page = visit("host.html")
    frame = page.frame_locator("iframe")
    player = frame.locator(".hv-player")
    is_at(player, 5)
    assert page.evaluate("document.activeElement.id") == "field"
    for hidden in ("h1", ".hv-how", "footer"):
        expect(frame.locator(hidden)).to_be_hidden()
    for selector in (".hv-picture", ".hv-sentence", ".hv-foot", ".hv-timeline"):
        box = frame.locator(selector).evaluate("(e) => e.getBoundingClientRect().toJSON()")
        assert box["top"] >= 0 and box["left"] >= 0, selector
        assert box["bottom"] <= HEIGHT and box["right"] <= WIDTH, selector
    press(page, "ArrowRight")
    is_at(player, 5)
    frame.locator(".hv-sentence").click()
    press(page, "ArrowRight")
    is_at(player, 6)
    frame.get_by_role("button", name="Next step").click()
    is_at(player, 7)
    assert page.evaluate("scrollY") == 0
    assert errors_of(page) == []
