"""In JupyterLab as it comes, on a small projector: all of a player at once, pictures whole, and as dark as the page."""

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
"""The part of JupyterLab that a notebook is scrolled in."""

HIDDEN_AT = """player => {
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
  // The source may be long, and is read at leisure; what happened and the values are there at once, each row whole.
  const told = (panel) => [...panel.querySelectorAll(".hv-sentence, .hv-values")].every(
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
"""Which parts of a player reach beyond the screen, or must be scrolled to see what is said of a step."""


HIDDEN = f"""async player => {{
  const at = {HIDDEN_AT};
  const found = {{}};
  player.focus();
  player.scrollIntoView({{ block: "start" }});
  // What the bar leaves to the picture is measured once it can be seen.
  await new Promise((done) => setTimeout(done, 200));
  for (let left = player.querySelector(".hv-timeline").ariaValueMax; left > 0; left--) {{
    const cut = at(player);
    if (cut.length) found[player.querySelector(".hv-head-line").innerText] = cut;
    player.dispatchEvent(new KeyboardEvent("keydown", {{ key: "ArrowRight", bubbles: true }}));
  }}
  return found;
}}"""
"""The same for every step: its heading → the parts."""


def outputs(page: Page, selector: str) -> Iterator[ElementHandle]:
    """Each such output of the notebook, from top to bottom: JupyterLab makes them only as one scrolls."""
    pane = page.locator(PANE).first
    top = 0
    while True:
        pane.evaluate("(pane, top) => pane.scrollTop = top", top)
        page.wait_for_timeout(200)
        for found in page.query_selector_all(f":is({selector}):not([data-seen])"):
            if found.is_visible():
                found.evaluate("e => e.dataset.seen = true")
                yield found
        reached = pane.evaluate("pane => pane.scrollTop")
        if reached < top:
            return
        top += 450


def test_each_player_is_on_the_screen_at_every_step_and_each_picture_is_whole(lesson: Page) -> None:
    hidden: dict[str, list[str]] = {}
    beyond: list[int] = []
    count = 0
    lesson.emulate_media(reduced_motion="reduce")  # the pane does not glide, it is there at once
    for output in outputs(lesson, ".hv-player, .jp-RenderedSVG"):
        if output.evaluate("e => e.matches('.jp-RenderedSVG')"):
            beyond.append(output.evaluate("e => e.scrollWidth - e.clientWidth"))
            continue
        count += 1
        hidden |= {f"player {count}, {head}": cut for head, cut in output.evaluate(HIDDEN).items()}
        expect(lesson.locator(":focus .hv-count")).to_have_text(re.compile(r"Step (\d+) of \1$"))
    assert count >= 3
    assert hidden == {}
    assert len(beyond) >= drawings(lesson.notebook) and set(beyond) <= {0}


def drawings(notebook: str) -> int:
    """How many cells of ``notebook`` end in a drawing."""
    cells = nbformat.read(NOTEBOOKS / notebook, as_version=4).cells
    return sum(bool(re.search(r"^hv\.(draw|render)\(.*\Z", cell.source, re.MULTILINE)) for cell in cells)


@pytest.fixture(scope="module")
def first(open_page: Opener) -> Page:
    return open_page("01_the_graph.ipynb")


def test_no_message_of_jupyterlab_covers_the_lesson(first: Page) -> None:
    first.wait_for_timeout(3000)
    assert first.locator(".Toastify__toast").count() == 0


def test_the_list_of_keys_opens_over_the_middle_of_its_player(lesson: Page) -> None:
    player = lesson.locator(".hv-player").first
    player.focus()
    lesson.keyboard.press("?")
    box, around = player.locator("dialog").bounding_box(), player.bounding_box()
    lesson.keyboard.press("Escape")
    assert box and around
    assert box["x"] + box["width"] / 2 == pytest.approx(around["x"] + around["width"] / 2, abs=2)


def test_each_key_stands_beside_what_it_does(lesson: Page) -> None:
    player = lesson.locator(".hv-player").first
    player.focus()
    lesson.keyboard.press("?")
    rows = player.locator("dialog").evaluate("""dialog => [...dialog.querySelectorAll("dt")].map((key) => {
      const [a, b] = [key, key.nextElementSibling].map((part) => part.getBoundingClientRect());
      return Math.abs(a.top - b.top) < 12 && a.right <= b.left;
    })""")
    lesson.keyboard.press("Escape")
    assert len(rows) >= 16 and all(rows)  # a key is listed where it does something


def test_asking_for_a_hook_where_there_is_none_says_so(first: Page) -> None:
    player = first.locator(".hv-player").first
    player.focus()
    player.press("]")
    expect(player.locator(".hv-told")).to_have_text("No hook fires after this step.")
    player.press("[")
    expect(player.locator(".hv-told")).to_have_text("No hook fired before this step.")
    player.press("ArrowRight")
    expect(player.locator(".hv-told")).not_to_contain_text("No hook")


PIXEL = """async (shot) => {
  const image = new Image();
  image.src = `data:image/png;base64,${shot}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  return [...canvas.getImageData(3, 3, 1, 1).data].slice(0, 3);
}"""
"""The colour near the upper left corner of a screenshot."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_is_as_dark_as_the_page(open_page: Opener, first: Page, theme: str) -> None:
    page = first if theme == "light" else open_page("01_the_graph.ipynb", theme=theme)
    papers = [paper(page, output) for output in outputs(page, ".jp-RenderedSVG")]
    assert len(papers) >= 3  # ours, the one with tensors, and torchviz's
    assert [max(colour) < 64 if theme == "dark" else min(colour) > 192 for colour in papers] == [True] * len(papers)


def paper(page: Page, output: ElementHandle) -> list[int]:
    image = output.query_selector("img")
    assert image
    colour: list[int] = page.evaluate(PIXEL, base64.b64encode(image.screenshot()).decode())
    return colour
