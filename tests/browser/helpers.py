"""What tests of the player do and ask again and again: press keys, find the player, look for flaws."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

Opener = Callable[..., Page]
"""Opens a page by its name, as the fixture ``open_file`` does."""

READ_PIXEL = """async (shot) => {
  const image = new Image();
  image.src = `data:image/png;base64,${shot}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  return [...canvas.getImageData(3, 3, 1, 1).data].slice(0, 3);
}"""
"""The colour near the upper left corner of a screenshot."""


def read_script(name: str) -> str:
    """Return a JavaScript function in this folder, which a page evaluates."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


SERIOUS = ("serious", "critical")
"""The impacts of violations that keep people from using a page."""
FIT = read_script("fit.js")
"""Lists what is cut or out of sight in a player."""
FLAWS = read_script("flaws.js")
"""Lists the visible layout and contrast flaws of a player."""


def press(page: Page, *keys: str) -> None:
    """Press one key after the other."""
    for key in keys:
        page.keyboard.press(key)


def player_of(page: Page) -> Locator:
    """Return the player of a page, once its picture is there; it gets the focus."""
    player = page.locator(".hv-live .hv-player")
    expect(player.locator(".hv-picture").first).to_be_visible()
    player.focus()
    return player


def is_at(shown: Page | Locator, step: int, steps: int = 16) -> None:
    """Wait until the player is at a step."""
    expect(shown.locator(".hv-count")).to_have_text(f"Step {step} of {steps}")


def go_to(page: Page, title: str) -> None:
    """Step until the panel's head contains ``title``."""
    for _ in range(60):
        if title in page.locator(".hv-live .hv-head-line").inner_text().replace("\xa0", " "):
            return
        press(page, "ArrowRight")
    raise AssertionError(f"There is no step {title!r}.")


def answer(page: Page, text: str) -> None:
    """Type an answer in place of what is in the field, and hand it in."""
    field = page.locator(".hv-ask .hv-field").first
    field.fill("")
    page.keyboard.type(text)
    press(page, "Enter")


def search_for(player: Locator, query: str) -> None:
    """Open the search by its key, and type ``query``."""
    press(player.page, "/")
    expect(player.get_by_role("combobox", name="Search")).to_be_focused()
    player.page.keyboard.type(query)


def errors_of(page: Any) -> list[str]:
    """Return the console errors and exceptions of a page since it was opened."""
    errors: list[str] = page.errors
    return errors


def slider_placeholder(output: Locator) -> list[str]:
    """Return the text shown in place of a slider, and its CSS visibility."""
    style: list[str] = output.evaluate(
        "e => ['content', 'visibility'].map(name => getComputedStyle(e, '::after')[name])"
    )
    return style


def violations(
    page: Page, inside: str = "html", excluded: str | None = None, impacts: tuple[str, ...] = ()
) -> list[tuple[str, str, str]]:
    """Return what axe-core finds wrong inside an element, with these impacts or with any.

    Each is given as the id of its rule, what the rule asks for, and the start of the first element that violates it.
    """
    context = {"include": [[inside]], "exclude": [[excluded]] if excluded else []}
    # Without this, axe-core also describes each element that passes, which takes it as long again on a large page.
    options = {"resultTypes": ["violations"]}
    return [
        (rule["id"], rule["help"], rule["nodes"][0]["html"][:200])
        for rule in Axe().run(page, context=context, options=options).response["violations"]
        if not impacts or rule["impact"] in impacts
    ]
