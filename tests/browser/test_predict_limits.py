"""While predicting, nothing that comes after the next open question is shown: every way around it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from scenes import recorded
from torch import nn

import hookviz as hv
from hookviz.player.labels import screen_labels
from tests.browser.helpers import Opener, answer, is_at, press

LATER = "112|→ 10|→ 2|30|20|tensor\\(10"
"""Values of the later steps of the shared scene, as the player writes them."""
ALL_TEXTS = """() => [...document.querySelectorAll(".hv-live *")].flatMap((element) => [
  ...[...element.childNodes].filter((node) => node instanceof Text).map((node) => node.data),
  ...[...element.attributes].filter(({ name }) => /title|aria|alt|value/.test(name)).map(({ value }) => value),
]).join("\\n")"""
"""All texts of the player, also hidden ones, and the texts in attributes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a link to its last step."""
    folder = tmp_path_factory.mktemp("limits")
    recorded().to_html(folder / "linked.html")
    page = (folder / "linked.html").read_text(encoding="utf-8")
    (folder / "linked.html").write_text(page.replace("<footer>", '<p><a href="#step-16">end</a></p><footer>'), "utf-8")
    record_cut().to_html(folder / "cut.html")
    return folder


def record_cut() -> hv.Trace:
    """Record a pass that a ``detach`` between two layers keeps from the first of them."""
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)
    head.weight.register_hook(lambda grad: grad * 2)
    with hv.record(nn.ModuleDict({"body": body, "head": head}), cuts=True) as trace:
        head(body(torch.ones(1, 2)).detach()).sum().backward()
    return trace


def is_held(page: Page) -> None:
    """The player is before the first question, which it asks."""
    expect(page.locator(".hv-question")).to_contain_text("is about to run on e")
    is_at(page, 1)


def score(page: Page) -> Locator:
    return page.locator(".hv-score > span")


def search_for_c_hook(page: Page) -> None:
    press(page, "/", *"c_hook", "Enter")


WAYS: dict[str, Callable[[Page], None]] = {
    "the last tick of the timeline": lambda page: page.locator(".hv-timeline").click(position={"x": 1150, "y": 18}),
    "a pin": lambda page: page.locator(".hv-player .hv-pin", has_text="c_hook").click(),
    "an address": lambda page: page.evaluate("location.hash = '#step-16'"),
    "a link to a step": lambda page: page.locator("a[href='#step-16']").first.click(),
    "a hit of the search": search_for_c_hook,
}


@pytest.mark.parametrize("way", WAYS)
def test_no_click_goes_further_than_the_next_question(open_file: Opener, way: str) -> None:
    page = open_file("linked")
    press(page, "p")
    WAYS[way](page)
    is_held(page)
    assert re.findall(LATER, page.evaluate(ALL_TEXTS)) == []
    WAYS[way](page)  # again, with the question open
    is_held(page)


def test_no_layer_and_no_hidden_text_has_a_later_value(open_file: Opener) -> None:
    page = open_file()
    for keys in ("p", "t", "n"):
        press(page, keys)
        page.wait_for_timeout(300)
        assert re.findall(LATER, page.evaluate(ALL_TEXTS)) == []
    press(page, "p", "End")
    assert len(set(re.findall(LATER, page.evaluate(ALL_TEXTS)))) >= 5, (
        "the pattern finds these values where they are shown"
    )


def test_scissors_do_not_tell_where_the_pass_ends(open_file: Opener) -> None:
    page = open_file("cut")
    scissors = page.locator(".hv-player .hv-cut-name")
    expect(scissors).to_be_visible()
    press(page, "p")
    expect(scissors).to_be_hidden()


def test_answers_that_were_seen_while_predict_was_off_count_as_not_right(open_file: Opener) -> None:
    page = open_file()
    press(page, "p", "ArrowRight")
    answer(page, "2")
    expect(score(page)).to_have_text(screen_labels()["score"].format(right=1, asked=1))
    press(page, "p", "End", "Home", "p")
    expect(score(page)).to_have_text(screen_labels()["score"].format(right=1, asked=4))
    expect(page.locator(".hv-told")).to_have_text(screen_labels()["ask_over"])
    page.get_by_role("button", name="Start over").click()
    press(page, "End")
    is_held(page)
    expect(score(page)).to_have_text("")  # nothing counts yet


def test_a_flipped_switch_shows_no_later_step_and_asks_what_the_gradient_is_now(open_file: Opener) -> None:
    page = open_file("whatif")
    press(page, "End", "p")
    page.get_by_role("switch").first.click()
    question, told = page.locator(".hv-question"), page.locator(".hv-told")
    expect(question).to_have_text("c_hook is off. What is a.grad now?")
    is_at(page, 8)
    answer(page, "30")
    expect(page.locator(".hv-reason")).to_contain_text("30 is a.grad with c_hook on.")
    answer(page, "24")
    expect(question).to_have_text("c_hook is off. What is b.grad now?")
    expect(told).to_have_text("Right.")
    answer(page, "16")
    is_at(page, 9)
    expect(score(page)).to_have_text(screen_labels()["score"].format(right=1, asked=2))
    press(page, "End")
    is_at(page, 16)
    expect(page.locator(".hv-player .hv-node", has_text="a =").locator(".hv-grad")).to_contain_text("24")


def test_another_run_does_not_give_away_the_answers_of_the_first(open_file: Opener) -> None:
    page = open_file("whatif")
    press(page, "p")
    page.get_by_role("switch", name="plus_hundred").click()
    expect(page.locator("[aria-checked=false]")).to_have_count(1)
    press(page, "End")
    is_held(page)
    expect(page.locator(".hv-ask > .hv-hint").first).to_have_text("With every hook on")
    answer(page, "2")
    press(page, "End")
    is_at(page, 4)
    expect(page.locator(".hv-question")).to_have_text("Which hook runs next?")
    press(page, "Escape", "s")
    expect(page.locator(".hv-split")).to_have_count(1)
    expect(page.locator(".hv-question")).to_have_text("Which hook runs next?")
    assert "112" not in page.evaluate(ALL_TEXTS)
    press(page, "Escape", "Escape")
    page.get_by_role("switch", name="plus_hundred").click()
    expect(page.locator("[aria-checked=false]")).to_have_count(0)
    expect(page.locator(".hv-question")).to_have_text("Which hook runs next?")
