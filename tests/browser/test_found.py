"""What is wrong with the gradients is said below the player; a key leads there, and Enter to where it begins."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import nn

import hookviz as hv
from tests.browser.conftest import press
from tests.browser.test_large import Log, sick


def hooked(factor: float) -> hv.Trace:
    x = torch.tensor(2.0, requires_grad=True)
    x.register_hook(lambda grad: grad * factor)
    with hv.record() as trace:
        (x * x).backward()
    return trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("found")
    torch.manual_seed(0)
    small = nn.Linear(4, 4)
    sick(nn.Linear(16, 4), nn.ReLU(), small, Log(), nn.Linear(4, 1)).to_html(made / "nan.html")
    hooked(2.0).to_html(made / "healthy.html")
    hooked(0.0).to_html(made / "zero.html")
    return made


@pytest.fixture
def player(opened: Callable[..., Page]) -> Locator:
    page = opened("nan", reduced_motion="reduce")
    found = page.locator(".hv-live .hv-player")
    found.focus()
    return found


def test_two_keys_lead_to_the_culprit_of_a_small_trace(player: Locator) -> None:
    link = player.locator(".hv-found a").first
    expect(link).not_to_be_visible()
    press(player.page, "w")
    expect(link).to_be_focused()
    expect(link).to_contain_text("model.3 (Log) returns NaN: it takes the logarithm of numbers below 0")
    press(player.page, "Enter")
    expect(player.locator(".hv-sentence")).to_contain_text("model.3 returns")
    step = re.match(r"Step (\d+), error:", link.inner_text())
    assert step
    expect(player.locator(".hv-count")).to_contain_text(re.compile(rf"^step {step[1]} ", re.IGNORECASE))


def test_a_click_opens_them_too(player: Locator) -> None:
    player.locator(".hv-found summary").click()
    expect(player.locator(".hv-found a").first).to_be_visible()


def test_they_are_hidden_while_the_player_asks(opened: Callable[..., Page]) -> None:
    player = opened("zero").locator(".hv-live .hv-player")
    player.focus()
    expect(player.locator(".hv-found")).to_be_visible()
    press(player.page, "p")
    expect(player.locator(".hv-found")).not_to_be_visible()
    press(player.page, "w")
    expect(player.locator(".hv-told")).to_have_text("The findings are shown when you stop predicting.")


def test_where_nothing_is_wrong_the_key_says_so(opened: Callable[..., Page]) -> None:
    player = opened("healthy").locator(".hv-live .hv-player")
    player.focus()
    expect(player.locator(".hv-found")).not_to_be_visible()
    press(player.page, "w")
    expect(player.locator(".hv-told")).to_have_text("Nothing is wrong with the gradients of this trace.")
