"""Each key of the player changes what is on the screen."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from playwright.sync_api import Page, expect
from scenes import leaf, recorded
from torch import nn

import hookviz as hv
from tests.browser.helpers import Opener, player_of, press
from tests.inventory.keys import DIGITS, read_keys


def nine_hooks() -> None:
    x = leaf(3.0)
    y = x * x
    for number in range(1, 10):
        y.register_hook(lambda grad, number=number: grad + number)
    y.backward()


def record_a_deep_net() -> hv.Trace:
    net = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(60)))
    with hv.record(net) as trace:
        net(torch.ones(2, 4)).sum().backward()
    return trace


class Change(NamedTuple):
    """What a key changes on a page."""

    page: str
    before: str
    """The keys that are pressed before it, separated by blanks."""
    seen: str
    """A JavaScript function of the player whose result changes."""
    after: str = ""
    """The keys that put it back."""


COUNT = "player => player.querySelector('.hv-count').textContent"
PLACE = "player => player.querySelector('.hv-here').textContent"
HELP = "player => player.querySelector('dialog.hv-help').open"
TENSORS = "player => player.querySelector('.hv-picture:not([hidden])').textContent.includes('tensor c')"
RAMP = "player => player.querySelector('.hv-ramp').checkVisibility({ visibilityProperty: true })"
ZOOM = """player => { const { x, y, width } = player.querySelector('.hv-graph svg').getBoundingClientRect();
  return [x, y, width].map(Math.round).join(); }"""
CHANGES: dict[str, Change] = {
    "ArrowRight": Change("a_to_e", "", COUNT),
    "ArrowLeft": Change("a_to_e", "", COUNT),
    "]": Change("a_to_e", "", COUNT),
    "[": Change("a_to_e", "] ]", COUNT),
    "End": Change("a_to_e", "", COUNT),
    "Home": Change("a_to_e", "", COUNT),
    " ": Change("a_to_e", "", "player => player.querySelector('.hv-button-play').ariaLabel", "Home"),
    "h": Change("a_to_e", "", "player => player.querySelector('.hv-button-playHooks').ariaLabel", "Home"),
    "?": Change("a_to_e", "", HELP),
    "Escape": Change("a_to_e", "", HELP),
    "/": Change("a_to_e", "", "player => Boolean(document.activeElement.closest('.hv-search'))", "Escape"),
    "p": Change("a_to_e", "", "player => player.matches('.hv-predicting')", "p"),
    "r": Change("a_to_e", "", "player => Boolean(player.querySelector('.hv-room[open]'))", "Escape Escape p"),
    "b": Change("a_to_e", "]", "player => player.querySelectorAll('.hv-sign').length"),
    "t": Change("a_to_e", "", TENSORS, "t"),
    "l": Change("a_to_e", "", "player => player.matches('.hv-large')", "l"),
    "f": Change("a_to_e", "", "player => document.fullscreenElement === player", "f"),
    "+": Change("a_to_e", "", ZOOM, "-"),
    "=": Change("a_to_e", "", ZOOM),
    "-": Change("a_to_e", "", ZOOM),
    "z": Change("a_to_e", "+", ZOOM),
    "Shift+ArrowRight": Change("a_to_e", "+ + +", ZOOM),
    "Shift+ArrowLeft": Change("a_to_e", "", ZOOM),
    "Shift+ArrowDown": Change("a_to_e", "", ZOOM),
    "Shift+ArrowUp": Change("a_to_e", "", ZOOM),
    "Shift+Enter": Change("a_to_e", "", "player => document.activeElement === player"),
    "v": Change("deep", "", "player => player.querySelector('.hv-plots').open", "v"),
    "w": Change("deep", "", "player => player.querySelector('.hv-found').open"),
    "c": Change("deep", "", RAMP),
    "u": Change("deep", "End", PLACE),
    "e": Change("deep", "", PLACE),
    "s": Change("whatif", "1", "player => player.querySelectorAll('.hv-graph').length"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    recorded().to_html(folder / "a_to_e.html")
    record_a_deep_net().to_html(folder / "deep.html", plots=True)
    hv.whatif(nine_hooks).to_html(folder / "whatif.html")
    return folder


@pytest.mark.parametrize("name", ["a_to_e", "deep", "whatif"])
def test_key_changes_the_screen(name: str, open_file: Opener) -> None:
    page = open_file(name, reduced_motion="reduce")
    page.bring_to_front()  # the browser fills the screen with the page in front only
    for key, change in CHANGES.items():
        if change.page == name:
            player_of(page)
            press_slowly(page, change.before)
            read = f"JSON.stringify(({change.seen})(document.querySelector('.hv-live .hv-player')))"
            before = page.evaluate(read)
            press(page, key)
            page.wait_for_function(f"before => {read} !== before", arg=before)
            press_slowly(page, change.after)


def press_slowly(page: Page, keys: str) -> None:
    for key in keys.split():
        press(page, key)
        page.wait_for_timeout(100)  # pictures of groups are unpacked first


def test_each_digit_flips_its_switch(open_file: Opener) -> None:
    page = open_file("whatif")
    switches = player_of(page).locator(".hv-switches [role=switch]")
    for digit in DIGITS:
        press(page, digit)
        expect(switches.nth(int(digit) - 1)).to_have_attribute("aria-checked", "false")


def test_every_key_of_the_player_is_pressed() -> None:
    assert {*CHANGES, *DIGITS} == read_keys()
