"""The plots in a page: a dialog shows one at a time, and a click leads to a step."""

from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect
from torch import nn

import hookviz as hv
from tests.browser.helpers import Opener, errors_of, violations

NAMES = ["Gradients", "Passes", "Loss", "Histograms: gradients", "Histograms: outputs", "Histograms: weights"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("plots")
    net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
    with hv.record(net, histograms=True) as trace:
        for _ in range(3):
            net(torch.randn(5, 3)).square().mean().backward()
    trace.to_html(path / "plots.html", plots=True)
    return path


def test_dialog_shows_each_plot_and_a_click_leads_to_its_step(open_file: Opener) -> None:
    page = open_file("plots")
    page.locator(".hv-player").press("v")
    dialog, tabs = page.locator(".hv-plots"), page.locator(".hv-plots-tabs button")
    expect(tabs).to_have_text(NAMES)
    for number in range(len(NAMES)):
        tabs.nth(number).click()
        expect(tabs.nth(number)).to_have_attribute("aria-pressed", "true")
        expect(dialog.locator("figure > svg")).to_be_in_viewport(ratio=0.9)
    assert violations(page, inside=".hv-plots") == []
    tabs.nth(0).click()
    bar = dialog.locator("svg a").nth(1)
    step = (bar.get_attribute("xlink:href") or "").removeprefix("#step-")
    bar.click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".hv-count")).to_contain_text(f"Step {step} of")
    assert errors_of(page) == page.requests[1:] == []  # type: ignore[attr-defined]


def test_dialog_keeps_the_keys_but_for_its_own(open_file: Opener) -> None:
    page = open_file("plots")
    dialog, count = page.locator(".hv-plots"), page.locator(".hv-count")
    page.locator(".hv-player").press("v")
    expect(dialog.locator("svg")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(count).to_contain_text("Step 1 of")
    page.keyboard.press("v")
    expect(dialog).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(count).to_contain_text("Step 2 of")
