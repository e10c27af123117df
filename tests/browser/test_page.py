"""A page from disk, with the network off: on a projector and on a phone, with and without JavaScript, and on paper."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from scenes import c_hook, leaf, recorded

import hookviz as hv
from hookviz.player.html_page import render_output
from tests.browser.conftest import SIZES
from tests.browser.test_screen import PIXEL
from tests.proof.mutants import hostile, saved

Opener = Callable[..., Page]
HOSTILE = "</script><img src=x onerror=alert(1)><!--\u202e"
MARKUP = '0"></text><image href="/etc/passwd"/><script>window.ran = 1</script><IMG SRC=x onerror="window.ran = 2">'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    recorded().to_html(folder / "index.html", title="The graph a to e")
    x = leaf(2.0)
    x.register_hook(c_hook)
    with hv.record(names={HOSTILE: x}) as trace:
        (x * x).backward()
    trace.hook_rows[0] = trace.hook_rows[0]._replace(text=HOSTILE, name=HOSTILE)
    trace.notes.append(HOSTILE)
    trace.to_html(folder / "hostile.html", title=HOSTILE)
    (folder / "foreign.json").write_text(json.dumps(hostile(json.loads(saved("modules")), MARKUP)))
    hv.load(folder / "foreign.json").to_html(folder / "foreign.html", title=MARKUP)
    return folder


def beyond(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    wider: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return wider


def steps_by_key(page: Page) -> Iterator[str]:
    """From the first step to the last, and what is said of each."""
    for _ in range(16):
        yield page.locator(".hv-count").inner_text()
        page.keyboard.press("ArrowRight")


# -- with JavaScript


@pytest.mark.parametrize("width", SIZES)
def test_its_keys_work_from_the_start_and_nothing_reaches_beyond_the_window(opened: Opener, width: int) -> None:
    page = opened(width=width)
    wider = set()
    seen = []
    for count in steps_by_key(page):
        seen.append(count)
        wider.add(beyond(page))
    assert seen == [f"Step {i} of 16" for i in range(1, 17)]
    assert wider == {0}
    expect(page.locator(".hv-panel")).to_contain_text("b.grad is written: 20.")
    page.keyboard.press("Home")
    page.keyboard.press("]")
    expect(page.locator(".hv-panel")).to_contain_text("replaced the gradient: 1 → 2.")
    assert page.errors == []  # type: ignore[attr-defined]


def test_it_asks_for_nothing_but_itself(opened: Opener) -> None:
    page = opened()
    page.keyboard.press("End")
    assert page.requests == [page.url]  # type: ignore[attr-defined]


def test_it_plays(opened: Opener) -> None:
    page = opened()
    page.keyboard.press(" ")
    expect(page.locator(".hv-count")).to_have_text(re.compile(r"Step (?!1 |2 )\d+ of 16"))


def test_on_a_phone_it_is_stepped_by_taps_on_buttons_large_enough(opened: Opener) -> None:
    page = opened(width=390, has_touch=True, is_mobile=True)
    page.get_by_label("Next step").tap()
    page.locator(".hv-row-step").nth(2).tap()
    expect(page.locator(".hv-sentence")).to_have_text("c_hook on c replaced the gradient: 8 → 10.")
    boxes = [button.bounding_box() for button in page.locator(".hv-live button:visible").all()]
    assert len(boxes) == 12
    assert min(min(box["width"], box["height"]) for box in boxes if box) >= 40


def test_on_a_phone_the_graph_is_above_the_controls_and_the_words_below(opened: Opener) -> None:
    page = opened(width=390)
    parts = [page.locator(f".{name}").bounding_box() for name in ("hv-graph", "hv-bar", "hv-panel", "hv-firings")]
    tops = [part["y"] for part in parts if part]
    assert len(tops) == 4 and tops == sorted(tops)
    bar = parts[1]
    assert bar and bar["y"] + bar["height"] <= SIZES[390]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
def test_axe_finds_nothing_serious(opened: Opener, width: int, scheme: str) -> None:
    page = opened(width=width, color_scheme=scheme)
    page.keyboard.press("]")
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], rule["help"]) for rule in found if rule["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize("javascript", [True, False])
def test_it_is_dark_where_the_system_is(opened: Opener, chrome: Browser, javascript: bool) -> None:
    page = opened(color_scheme="dark", java_script_enabled=javascript)
    shot = base64.b64encode(page.screenshot()).decode()
    with closing(chrome.new_page()) as reader:  # without JavaScript, nothing in the page itself can be asked
        assert reader.evaluate(PIXEL, shot) == [11, 14, 18]


# -- what people wrote stays text, and nothing else gets in


@pytest.mark.parametrize("javascript", [True, False])
def test_hostile_names_and_sources_are_shown_as_text(opened: Opener, javascript: bool) -> None:
    page = opened("hostile", java_script_enabled=javascript)
    expect(page.locator("h1")).to_contain_text("</script><img src=x onerror=alert(1)><!--")
    shown = page.locator(".hv-live" if javascript else ".hv-still")
    expect(shown).to_contain_text("</script><img src=x onerror=alert(1)>")
    assert page.locator("main img").count() == 0
    if javascript:
        page.keyboard.press("]")
        expect(page.locator(".hv-code")).to_contain_text(HOSTILE[:-1] + "\N{REPLACEMENT CHARACTER}")
    assert "\u202e" not in page.locator("body").inner_text()
    assert page.errors == [] and len(page.requests) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("javascript", [True, False])
def test_a_page_made_of_a_file_that_is_not_ours_runs_and_loads_nothing_of_it(opened: Opener, javascript: bool) -> None:
    page = opened("foreign", java_script_enabled=javascript)
    expect(page.locator("h1")).to_contain_text(MARKUP[:20])
    for _ in range(12 if javascript else 0):
        page.keyboard.press("]")
    assert page.locator("main :is(img, image, script:not(.hv-state)[src], iframe, object, a[href^=http])").count() == 0
    assert not javascript or page.evaluate("window.ran") is None
    assert page.errors == [] and len(page.requests) == 1  # type: ignore[attr-defined]


def test_its_policy_stops_what_might_get_in(opened: Opener) -> None:
    page = opened()
    ran = page.evaluate("""() => new Promise((done) => {
      const stopped = [];
      document.addEventListener("securitypolicyviolation", (event) => stopped.push(event.effectiveDirective));
      document.body.insertAdjacentHTML("beforeend", '<img src="http://127.0.0.1/x.png" onerror="window.ran = 1">');
      const script = document.createElement("script");
      script.textContent = "window.ran = 2";
      document.body.append(script);
      fetch("http://127.0.0.1/").catch(() => {});
      setTimeout(() => done([window.ran ?? null, ...new Set(stopped)].map(String).sort()), 500);
    })""")
    assert ran == ["connect-src", "img-src", "null", "script-src-attr", "script-src-elem"]


# -- without JavaScript, and on paper


def is_still(page: Page) -> None:
    """The end of the pass is seen, with its table and a line that says what it is; and no player."""
    still = page.locator(".hv-still")
    expect(still.locator("svg")).to_be_visible()
    for end in ("8 → 10", ".grad = 112", ".grad = 30"):
        expect(still.locator("svg")).to_contain_text(end)
    expect(still.locator("tbody tr")).to_have_count(4)
    expect(still).to_contain_text("The end of the recording: 16 steps.")
    expect(page.locator("footer")).to_contain_text("Made with hookviz")
    expect(page.locator(".hv-how")).not_to_be_visible()
    assert page.locator(".hv-player:visible").count() == 0


@pytest.mark.parametrize("width", SIZES)
def test_without_javascript_it_is_a_picture_with_a_table(opened: Opener, width: int) -> None:
    page = opened(width=width, java_script_enabled=False)
    is_still(page)
    for part in ("svg", "table"):
        box = page.locator(f".hv-still {part}").bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width


def test_on_paper_it_is_the_same_also_after_stepping(opened: Opener) -> None:
    page = opened()
    page.keyboard.press("]")
    page.emulate_media(media="print")
    is_still(page)
    page.emulate_media(media="screen")
    expect(page.locator(".hv-still")).not_to_be_visible()
    expect(page.locator(".hv-count")).to_have_text("Step 2 of 16")


# -- the output of a cell, in a page that is not ours

ELSEWHERE = """(html) => {
  const cell = document.createElement("div");
  cell.innerHTML = html;
  document.body.append(cell);
  for (const old of cell.querySelectorAll("script:not([type])")) {
    const script = document.createElement("script");
    script.textContent = old.textContent;
    document.head.append(script);
  }
}"""
"""As notebooks do that take scripts out of an output and run them in a place of their own."""


def test_outputs_play_each_once_wherever_their_scripts_are_run(chrome: Browser) -> None:
    page = chrome.new_page()
    for _ in range(2):
        page.evaluate(ELSEWHERE, render_output(recorded().content()))
    players = page.locator(".hv-player")
    expect(players).to_have_count(2)
    players.nth(0).press("End")
    expect(page.locator(".hv-count")).to_have_text(["Step 16 of 16", "Step 1 of 16"])
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_where_no_script_runs_the_picture_is_as_dark_as_the_page_around_it(chrome: Browser, scheme: str) -> None:
    shown = render_output(recorded().content())
    with closing(chrome.new_page()) as page:
        page.set_content(f'<body style="color-scheme: {scheme}">{shown[: shown.index("<script")]}')
        shot = base64.b64encode(page.locator(".hv-still img").screenshot()).decode()
        colour = page.evaluate(PIXEL, shot)
        assert max(colour) < 64 if scheme == "dark" else min(colour) > 192
        page.evaluate(ELSEWHERE, shown)
        expect(page.locator(".hv-player")).to_have_count(1)
        assert page.locator(".hv-player style").count() == 0, "it would turn the colours of every drawing"


def test_one_that_was_cleaned_does_not_keep_another_from_playing(chrome: Browser) -> None:
    page = chrome.new_page()
    shown = render_output(recorded().content())
    page.evaluate("html => { document.body.innerHTML = html; }", shown[: shown.index("<script")])
    page.evaluate(ELSEWHERE, shown)
    expect(page.locator(".hv-player")).to_have_count(1)
    expect(page.locator(".hv-still:visible img")).to_have_count(1)
    page.close()
