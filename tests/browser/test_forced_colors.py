"""Under forced colours, outlines and shapes show which controls and steps are on, current or faulty."""

from playwright.sync_api import Page

from tests.browser.helpers import FLAWS, Opener, player_of, press

STATE_STYLES = {
    "a switch": (".hv-switch[aria-checked='true']", ".hv-switch[aria-checked='false']", "borderTopWidth"),
    "a button of the menu": ("[aria-pressed='true']:has(kbd)", ".hv-menu [aria-pressed='false']", "borderTopWidth"),
    "the row of the step": ("tr.hv-now", "tr.hv-done", "outlineStyle"),
    "its button": (".hv-row-step[aria-current='step']", ".hv-row-step[aria-current='false']", "borderTopStyle"),
    "the running line": (
        ".hv-code [aria-current] > .hv-code-arrow",
        ".hv-code li:not([aria-current]) > .hv-code-arrow",
        "visibility",
    ),
    "the step on the timeline": (".hv-track .hv-now path", ".hv-track .hv-done path", "transform"),
    "a hook that has fired": (".hv-pin.hv-done > .hv-pin-box", ".hv-pin.hv-todo > .hv-pin-box", "strokeDasharray"),
    "a hook that runs": (".hv-pin.hv-now > .hv-pin-box", ".hv-pin.hv-done > .hv-pin-box", "strokeWidth"),
    "a box that is reached": (".hv-node.hv-now > .hv-box", ".hv-node.hv-done > .hv-box", "strokeWidth"),
}
"""Control → selector if active, selector if inactive, and the CSS property that differs."""
DOT = "knob => [getComputedStyle(knob, '::after'), getComputedStyle(knob)].map((style) => style.backgroundColor)"


FORCED = {"forced_colors": "active", "reduced_motion": "reduce"}


def computed_style(page: Page, selector: str, name: str) -> str:
    value: str = page.locator(f".hv-live {selector}").first.evaluate("(e, name) => getComputedStyle(e)[name]", name)
    return value


def test_active_and_inactive_controls_differ_in_more_than_colour(open_file: Opener) -> None:
    page = open_file("whatif", color_scheme="light", **FORCED)
    player_of(page)
    buttons = [f".hv-buttons [aria-disabled='{state}']" for state in ("false", "true")]
    assert [computed_style(page, button, "borderTopStyle") for button in buttons] == ["solid", "dashed"]
    press(page, "1", "l", "]", "]")
    for control, (active, inactive, name) in STATE_STYLES.items():
        assert computed_style(page, active, name) != computed_style(page, inactive, name), control
    on, off = (page.locator(f"[aria-checked='{state}'] .hv-knob").first for state in ("true", "false"))
    assert on.screenshot() != off.screenshot()
    for knob in (on, off):
        assert len(set(knob.evaluate(DOT))) == 2, "the dot is seen on its ground"
    assert page.evaluate(FLAWS) == []
