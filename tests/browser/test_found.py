"""The player lists findings below the picture; the key w focuses them, and Enter goes to the step of a finding."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import nn

import hookviz as hv
from tests.browser.conftest import press


class Log(nn.Module):
    """A logarithm as an activation, which returns NaN for negative inputs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logarithm of ``x``."""
        return x.log()


def record_faulty_model(*layers: nn.Module) -> hv.Trace:
    model = nn.Sequential(*layers)
    with hv.record(model) as trace:
        model(torch.randn(8, 16)).square().mean().backward()
    return trace


def record_scaled_gradient(factor: float) -> hv.Trace:
    x = torch.tensor(2.0, requires_grad=True)
    x.register_hook(lambda grad: grad * factor)
    with hv.record() as trace:
        (x * x).backward()
    return trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder_path = tmp_path_factory.mktemp("found")
    torch.manual_seed(0)
    small = nn.Linear(4, 4)
    record_faulty_model(nn.Linear(16, 4), nn.ReLU(), small, Log(), nn.Linear(4, 1)).to_html(folder_path / "nan.html")
    record_scaled_gradient(2.0).to_html(folder_path / "healthy.html")
    record_scaled_gradient(0.0).to_html(folder_path / "zero.html")
    return folder_path


@pytest.fixture
def player(open_file: Callable[..., Page]) -> Locator:
    page = open_file("nan", reduced_motion="reduce")
    player_element = page.locator(".hv-live .hv-player")
    player_element.focus()
    return player_element


def test_w_and_enter_lead_to_the_module_that_returned_nan(player: Locator) -> None:
    link = player.locator(".hv-found a").first
    expect(link).not_to_be_visible()
    press(player.page, "w")
    expect(link).to_be_focused()
    expect(link).to_contain_text("model.3 (Log) returns NaN: it takes the logarithm of numbers below 0")
    expect(player.locator(".hv-graph")).to_be_in_viewport(ratio=0.9)
    press(player.page, "Enter")
    expect(player.locator(".hv-sentence")).to_contain_text("model.3 returns")
    step = re.match(r"Step (\d+), error:", link.inner_text())
    assert step
    expect(player.locator(".hv-count")).to_contain_text(re.compile(rf"^step {step[1]} ", re.IGNORECASE))


def test_findings_are_hidden_while_predicting(open_file: Callable[..., Page]) -> None:
    player = open_file("zero").locator(".hv-live .hv-player")
    player.focus()
    expect(player.locator(".hv-found")).to_be_visible()
    press(player.page, "p")
    expect(player.locator(".hv-found")).not_to_be_visible()
    press(player.page, "w")
    expect(player.locator(".hv-told")).to_have_text("The findings are shown when you stop predicting.")


def test_w_reports_a_trace_without_findings(open_file: Callable[..., Page]) -> None:
    player = open_file("healthy").locator(".hv-live .hv-player")
    player.focus()
    expect(player.locator(".hv-found")).not_to_be_visible()
    press(player.page, "w")
    expect(player.locator(".hv-told")).to_contain_text("Nothing was found. Looked at:")
