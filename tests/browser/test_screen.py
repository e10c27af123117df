"""JupyterLab on a small projector: players fit the screen, pictures are whole and follow the theme."""

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import ElementHandle, Page, expect

Opener = Callable[..., Page]
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PANE = ".jp-WindowedPanel-outer"
"""The scrolling container of a notebook in JupyterLab."""

HIDDEN_PARTS = """player => {
  const pane = document.querySelector(".jp-WindowedPanel-outer").getBoundingClientRect();
  player.scrollIntoView({ block: "start" });
  const wide = (part) => part.scrollWidth > part.clientWidth + 1;
  const beyond = (part) => part.scrollHeight > part.clientHeight + 1 || wide(part);
  // A picture too large for its pane may be scrolled, if the pane follows the step.
  const lost = (graph) => {
    const now = graph.querySelector(".hv-picture:not([hidden]) :is(.hv-pin, .hv-node, .hv-module).hv-now");
    const [inner, outer] = [now, graph].map((part) => part?.getBoundingClientRect());
    return now && (inner.bottom < outer.top + 20 || inner.top > outer.bottom - 20
      || inner.right < outer.left + 20 || inner.left > outer.right - 20);
  };
  // The words may scroll above the code, and a shadow says so; the sentence must be visible, and each row be whole.
  const told = (panel) => [...panel.querySelectorAll(".hv-sentence")].every(
    (part) => part.getBoundingClientRect().bottom <= panel.getBoundingClientRect().bottom)
    && [...panel.querySelectorAll(".hv-value")].every((part) => part.textContent.includes("\\n") || !wide(part));
  const cut = (part) => {
    if (part.matches(".hv-graph")) return beyond(part) && lost(part);
    return part.matches(".hv-panel") ? wide(part) || !told(part) : beyond(part);
  };
  const hidden = [...player.querySelectorAll(".hv-graph, .hv-panel, .hv-bar")].filter((part) => {
    const { top, bottom } = part.getBoundingClientRect();
    return top < pane.top - 1 || bottom > pane.bottom + 1 || cut(part);
  });
  return hidden.map((part) => part.className);
}"""
"""The parts of a player that extend beyond the screen, or need scrolling to show a step's sentence and values."""


HIDDEN_PARTS_OF_STEPS = f"""async player => {{
  const at = {HIDDEN_PARTS};
  const found = {{}};
  player.focus();
  player.scrollIntoView({{ block: "start" }});
  // The player measures the height left for the picture once it is visible.
  await new Promise((done) => setTimeout(done, 200));
  for (let left = player.querySelector(".hv-timeline").ariaValueMax; left > 0; left--) {{
    const cut = at(player);
    if (cut.length) found[player.querySelector(".hv-head-line").innerText] = cut;
    player.dispatchEvent(new KeyboardEvent("keydown", {{ key: "ArrowRight", bubbles: true }}));
  }}
  return found;
}}"""
"""The same for every step: heading of the step → hidden parts."""


def scroll_through_outputs(page: Page, selector: str) -> Iterator[ElementHandle]:
    """Yield the matching outputs from top to bottom, scrolling because JupyterLab renders them on demand."""
    pane = page.locator(PANE).first
    top = 0
    while True:
        pane.evaluate("(pane, top) => pane.scrollTop = top", top)
        page.wait_for_timeout(200)
        for found in page.query_selector_all(f":is({selector}):not([data-seen])"):
            if found.is_visible():
                found.evaluate("e => e.dataset.seen = true")
                yield found
        scrolled_to = pane.evaluate("pane => pane.scrollTop")
        if scrolled_to < top:
            return
        top += 450


def test_each_player_fits_the_screen_at_every_step_and_pictures_are_not_cut_off(lesson: Page) -> None:
    hidden: dict[str, list[str]] = {}
    overflows: list[int] = []
    count = 0
    lesson.emulate_media(reduced_motion="reduce")  # without smooth scrolling
    for output in scroll_through_outputs(lesson, ".hv-player, .jp-RenderedSVG"):
        if output.evaluate("e => e.matches('.jp-RenderedSVG')"):
            overflows.append(output.evaluate("e => e.scrollWidth - e.clientWidth"))
            continue
        count += 1
        hidden |= {f"player {count}, {head}": parts for head, parts in output.evaluate(HIDDEN_PARTS_OF_STEPS).items()}
        expect(lesson.locator(":focus .hv-count")).to_have_text(re.compile(r"Step (\d+) of \1$"))
    assert count >= 2
    assert hidden == {}
    assert len(overflows) >= count_drawings(lesson.notebook) and set(overflows) <= {0}


def count_drawings(notebook: str) -> int:
    """The number of cells of ``notebook`` that end in a drawing."""
    cells = nbformat.read(NOTEBOOKS / notebook, as_version=4).cells
    return sum(bool(re.search(r"^hv\.(draw|render)\(.*\Z", cell.source, re.MULTILINE)) for cell in cells)


@pytest.fixture(scope="module")
def first_lesson(open_page: Opener) -> Page:
    return open_page("01_the_graph.ipynb")


def test_jupyterlab_shows_no_notification_over_the_lesson(first_lesson: Page) -> None:
    first_lesson.wait_for_timeout(3000)
    assert first_lesson.locator(".Toastify__toast").count() == 0


def test_key_list_is_centred_over_its_player(lesson: Page) -> None:
    player = lesson.locator(".hv-player").first
    player.focus()
    lesson.keyboard.press("?")
    box, player_box = player.locator("dialog").bounding_box(), player.bounding_box()
    lesson.keyboard.press("Escape")
    assert box and player_box
    assert box["x"] + box["width"] / 2 == pytest.approx(player_box["x"] + player_box["width"] / 2, abs=2)


def test_key_list_shows_each_key_next_to_its_description(lesson: Page) -> None:
    player = lesson.locator(".hv-player").first
    player.focus()
    lesson.keyboard.press("?")
    rows = player.locator("dialog").evaluate("""dialog => [...dialog.querySelectorAll("dt")].map((key) => {
      const [a, b] = [key, key.nextElementSibling].map((part) => part.getBoundingClientRect());
      return Math.abs(a.top - b.top) < 12 && a.right <= b.left;
    })""")
    lesson.keyboard.press("Escape")
    assert len(rows) >= 16 and all(rows)  # only keys that do something in this player are listed


def test_bracket_keys_report_a_missing_hook(first_lesson: Page) -> None:
    player = first_lesson.locator(".hv-player").first
    player.focus()
    player.press("End")
    player.press("]")
    expect(player.locator(".hv-told")).to_have_text("No hook fires after this step.")
    player.press("Home")
    player.press("[")
    expect(player.locator(".hv-told")).to_have_text("No hook fired before this step.")
    player.press("ArrowRight")
    expect(player.locator(".hv-told")).not_to_contain_text("No hook")


READ_PIXEL = """async (shot) => {
  const image = new Image();
  image.src = `data:image/png;base64,${shot}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  return [...canvas.getImageData(3, 3, 1, 1).data].slice(0, 3);
}"""
"""The colour near the upper left corner of a screenshot."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_follow_the_theme_of_jupyterlab(open_page: Opener, first_lesson: Page, theme: str) -> None:
    page = first_lesson if theme == "light" else open_page("01_the_graph.ipynb", theme=theme)
    background_colours = [background_colour(page, output) for output in scroll_through_outputs(page, ".jp-RenderedSVG")]
    assert len(background_colours) >= 3  # ours, the one with tensors, and torchviz's
    assert [max(colour) < 64 if theme == "dark" else min(colour) > 192 for colour in background_colours] == [
        True
    ] * len(background_colours)


def background_colour(page: Page, output: ElementHandle) -> list[int]:
    image = output.query_selector("img")
    assert image
    colour: list[int] = page.evaluate(READ_PIXEL, base64.b64encode(image.screenshot()).decode())
    return colour
