"""The motion of steps in a page: which pills move, where they begin and end, and when nothing moves."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import helpers
from tests.browser.helpers import Opener, is_at, press

NOTE_ANIMATIONS = """() => {
  window.noted = [];
  window.holds = false;
  const { animate } = Element.prototype;
  Element.prototype.animate = function (frames, timing) {
    const animation = animate.call(this, frames, timing);
    if (holds) animation.pause();
    const text = [...this.querySelectorAll("[data-text]")].map(({ dataset }) => dataset.text).join("");
    noted.push({ name: this.className, text, frames, timing, animation, pill: this });
    return animation;
  };
}"""
"""Notes every animation that starts, and keeps it at its beginning while ``window.holds``."""

SHOWN_NAMES = """() => noted.map(({ name }) => name)"""
ENDS = """(times) => noted.filter(({ name }) => name.startsWith("hv-pill")).map(({ animation, pill, text }) => {
  const { delay, duration } = animation.effect.getTiming();
  return [text, ...times.map((part) => {
    animation.currentTime = delay + (duration - 0.01) * part;
    const { x, y, width, height } = pill.firstChild.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
  })];
})"""
"""The text of each pill, and its middle at the beginning and at the end of its trip."""

AT_REST = ".hv-live :is(.hv-motion, .hv-awaited)"


@pytest.fixture
def open_player(open_file: Opener) -> Opener:
    """Open a page at its first step, when nothing moves, with its animations noted."""

    def open_it(name: str = "index", width: int = 1280, **settings: Any) -> Page:
        page = open_file(name, width, **settings)
        page.evaluate(NOTE_ANIMATIONS)
        page.locator(".hv-live .hv-player").focus()
        press(page, "Home")
        rest(page)
        return page

    return open_it


def rest(page: Page) -> None:
    """Wait until nothing moves, and steps are no longer counted as fast; forget what has moved."""
    expect(page.locator(AT_REST)).to_have_count(0)
    page.wait_for_timeout(250)
    page.evaluate("noted.length = 0")


def go_before(page: Page, title: str) -> None:
    """Go to the step before the one with this title, and wait until nothing moves; then hold what moves next."""
    helpers.go_to(page, title)
    press(page, "ArrowLeft")
    rest(page)
    page.evaluate("holds = true")


def middle_of(page: Page, selector: str, text: str) -> tuple[float, float]:
    """The right end of the first text in the picture that ends with ``text``, and the middle of its height."""
    boxes = [one.bounding_box() for one in page.locator(selector).all() if one.text_content().endswith(text)]  # type: ignore[union-attr]
    assert boxes and boxes[0]
    return boxes[0]["x"] + boxes[0]["width"], boxes[0]["y"] + boxes[0]["height"] / 2


def are_near(place: list[float], other: tuple[float, float], slack: float = 20) -> bool:
    return abs(place[0] - other[0]) < slack and abs(place[1] - other[1]) < slack


def test_hook_takes_the_number_into_its_pin_and_gives_it_back_changed(open_player: Opener) -> None:
    page = open_player()
    go_before(page, "tensor hook ① on c")
    press(page, "ArrowRight")
    pin = middle_of(page, ".hv-live .hv-now .hv-pin-value", "8 → 10")
    gradient = middle_of(page, ".hv-live .hv-now .hv-grad", "gradient 10")
    inwards, outwards, *_ = page.evaluate(ENDS, [0, 1])
    assert (inwards[0], outwards[0]) == ("8", "10")
    assert are_near(inwards[1], gradient) and are_near(inwards[2], pin, 40)
    assert are_near(outwards[1], pin, 40) and are_near(outwards[2], gradient)
    assert page.locator(".hv-live .hv-awaited").all_text_contents() == ["gradient 10", "8 → 10"]
    assert "hv-program-line" in page.evaluate(SHOWN_NAMES), "the line of the hook lights up"


def test_with_reduced_motion_nothing_moves(open_player: Opener) -> None:
    page = open_player(reduced_motion="reduce")
    for _ in range(5):
        press(page, "ArrowRight")
        page.wait_for_timeout(200)
    assert page.evaluate("noted.length") == 0
    is_at(page, 6)
