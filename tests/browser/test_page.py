"""A page from disk, with the network off: on a projector and on a phone, with and without JavaScript, and on paper."""

import base64
import json
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from scenes import recorded

import hookviz as hv
from hookviz.player.html_page import render_output
from tests.browser.helpers import READ_PIXEL, Opener, errors_of, is_at, press, violations
from tests.proof.mutants import hostile, saved

FOREIGN_MARKUP = (
    '0"></text><image href="/etc/passwd"/><script>window.ran = 1</script><IMG SRC=x onerror="window.ran = 2">'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "foreign.json").write_text(json.dumps(hostile(json.loads(saved("modules")), FOREIGN_MARKUP)))
    hv.load(folder / "foreign.json").to_html(folder / "foreign.html", title=FOREIGN_MARKUP)
    return folder


def horizontal_overflow(page: Page) -> int:
    """The number of pixels by which the page is wider than its window."""
    overflow: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return overflow


# -- with JavaScript


def test_arrow_keys_step_through_the_page_without_horizontal_overflow(open_file: Opener) -> None:
    page = open_file(width=390)
    for step in range(1, 17):
        is_at(page, step)
        assert horizontal_overflow(page) == 0
        press(page, "ArrowRight")
    expect(page.locator(".hv-panel")).to_contain_text("b.grad is written: 20.")
    press(page, "Home", "]")
    expect(page.locator(".hv-panel")).to_contain_text("changed the gradient from 1 to 2")
    assert errors_of(page) == []


def test_page_makes_no_further_requests(open_file: Opener) -> None:
    page = open_file()
    press(page, "End")
    assert page.requests == [page.url.partition("#")[0]]  # type: ignore[attr-defined]


def test_buttons_on_a_phone_are_large_enough_to_tap(open_file: Opener) -> None:
    page = open_file(width=390, has_touch=True, is_mobile=True)
    page.get_by_label("Next step").tap()
    page.locator(".hv-row-step").nth(2).tap()
    expect(page.locator(".hv-sentence")).to_have_text("c_hook changed the gradient from 8 to 10")
    boxes = [button.bounding_box() for button in page.locator(".hv-live button:visible").all()]
    assert len(boxes) >= 15
    assert min(min(box["width"], box["height"]) for box in boxes if box) >= 40


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_reports_no_violation(open_file: Opener, width: int, scheme: str) -> None:
    page = open_file(width=width, color_scheme=scheme)
    press(page, "]")
    assert violations(page) == []


# -- markup in a file stays text, and injected content is blocked


def test_page_of_a_hostile_file_runs_and_loads_nothing_from_it(open_file: Opener) -> None:
    page = open_file("foreign")
    expect(page.locator("h1")).to_contain_text(FOREIGN_MARKUP[:20])
    press(page, *["]"] * 12, "/", "i", "m", "g", "Enter")
    assert page.locator("main :is(img, image, script:not(.hv-state)[src], iframe, object, a[href^=http])").count() == 0
    assert page.evaluate("window.ran") is None
    assert errors_of(page) == [] and len(page.requests) == 1  # type: ignore[attr-defined]


def test_content_security_policy_blocks_injected_content(open_file: Opener) -> None:
    page = open_file()
    blocked = page.evaluate("""() => new Promise((done) => {
      const stopped = [];
      document.addEventListener("securitypolicyviolation", (event) => stopped.push(event.effectiveDirective));
      document.body.insertAdjacentHTML("beforeend", '<img src="http://127.0.0.1/x.png" onerror="window.ran = 1">');
      const script = document.createElement("script");
      script.textContent = "window.ran = 2";
      document.body.append(script);
      fetch("http://127.0.0.1/").catch(() => {});
      setTimeout(() => done([window.ran ?? null, ...new Set(stopped)].map(String).sort()), 500);
    })""")
    assert blocked == ["connect-src", "img-src", "null", "script-src-attr", "script-src-elem"]


# -- without JavaScript, and on paper


def check_static_view(page: Page) -> None:
    """Check that the page shows the end of the pass with its table and caption, and no player."""
    still = page.locator(".hv-still")
    expect(still.locator("svg")).to_be_visible()
    for end in ("8 → 10", ".grad = 112", ".grad = 30"):
        expect(still.locator("svg")).to_contain_text(end)
    expect(still.locator("tbody tr")).to_have_count(4)
    expect(still).to_contain_text("The end of the recording: 16 steps.")
    expect(page.locator("footer")).to_contain_text("Made with hookviz")
    expect(page.locator(".hv-how")).not_to_be_visible()
    assert page.locator(".hv-player:visible").count() == 0


def test_page_without_javascript_shows_the_picture_and_the_table_in_the_dark(
    open_file: Opener, chrome: Browser
) -> None:
    page = open_file(width=390, java_script_enabled=False, color_scheme="dark")
    check_static_view(page)
    for part in ("svg", "table"):
        box = page.locator(f".hv-still {part}").bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390
    shot = base64.b64encode(page.screenshot()).decode()
    with closing(chrome.new_page()) as reader:  # the page itself cannot evaluate code without JavaScript
        assert reader.evaluate(READ_PIXEL, shot) == [11, 14, 18]


def test_print_shows_the_end_of_the_pass_after_stepping(open_file: Opener) -> None:
    page = open_file()
    press(page, "]")
    page.emulate_media(media="print")
    check_static_view(page)
    page.emulate_media(media="screen")
    expect(page.locator(".hv-still")).not_to_be_visible()
    is_at(page, 2)


# -- the output of a cell in a foreign page

INSERT_OUTPUT = """(html) => {
  const cell = document.createElement("div");
  cell.innerHTML = html;
  document.body.append(cell);
  for (const old of cell.querySelectorAll("script:not([type])")) {
    const script = document.createElement("script");
    script.textContent = old.textContent;
    document.head.append(script);
  }
}"""
"""Insert an output as notebooks do that extract its scripts and run them elsewhere."""


def test_output_without_scripts_follows_the_colour_scheme_and_does_not_block_another_player(chrome: Browser) -> None:
    html = render_output(recorded().content())
    with closing(chrome.new_page()) as page:
        page.set_content(f'<body style="color-scheme: dark">{html[: html.index("<script")]}')
        still = page.locator(".hv-still:visible img")
        colour = page.evaluate(READ_PIXEL, base64.b64encode(still.screenshot()).decode())
        assert max(colour) < 64
        page.evaluate(INSERT_OUTPUT, html)
        expect(page.locator(".hv-player")).to_have_count(1)
        expect(still).to_have_count(1)
        assert page.locator(".hv-player style").count() == 0, "it would turn the colours of every drawing"
