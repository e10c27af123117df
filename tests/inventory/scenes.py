"""Write pictures of twelve scenes in a headless Chromium, and print the sizes of their pages.

``python -m tests.inventory.scenes FOLDER`` writes FOLDER/01_hook.png to FOLDER/12_static.png, to be looked at.
"""

import gzip
import io
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import torch
from playwright.sync_api import Browser
from torch import nn

import hookviz as hv
from tests.browser.conftest import press
from tests.browser.lab import browser
from tests.scenes import recorded

Displayable = Any
"""A trace, a what-if or a comparison: whatever has ``to_html``."""


def double(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
    return tuple(None if grad is None else grad * 2 for grad in grad_input)


def look(*_: Any) -> None:
    """A hook that changes nothing."""


def record_mlp() -> hv.Trace:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    net[0].register_forward_hook(look)
    net[2].register_full_backward_hook(double)
    net[0].weight.register_hook(lambda grad: grad.clamp(-1, 1))
    x = torch.randn(3, 4, requires_grad=True)
    with hv.record(net) as trace:
        net(x).square().mean().backward()
    return trace


class Block(nn.Module):
    """A residual block of ResNet-18."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.norm2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        result: torch.Tensor = (y + self.shortcut(x)).relu()
        return result


def record_resnet() -> hv.Trace:
    widths = [(8, 8, 1), (8, 8, 1), (8, 16, 2), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
    stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    blocks = nn.Sequential(*(Block(*width) for width in widths))
    net = nn.Sequential(stem, blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    blocks[3].register_full_backward_hook(look)
    with hv.record(net) as trace:
        net(torch.randn(2, 3, 64, 64)).logsumexp(-1).mean().backward()
    return trace


def record_encoder() -> hv.Trace:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
    encoder.layers[6].linear1.register_full_backward_hook(double)
    with hv.record(encoder) as trace:
        encoder(torch.randn(2, 5, 16)).square().mean().backward()
    return trace


def record_lstm() -> hv.Trace:
    lstm, head = nn.LSTM(4, 8, num_layers=2, batch_first=True), nn.Linear(8, 1)
    lstm.weight_hh_l0.register_hook(lambda grad: grad * 0.5)
    with hv.record(lstm, head) as trace:
        output, _ = lstm(torch.randn(3, 6, 4))
        head(output[:, -1]).square().mean().backward()
    return trace


def multiply(*, hooked: bool = True) -> None:
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    c = a * b
    if hooked:
        c.register_hook(lambda grad: grad + 2)
    d.register_hook(lambda grad: grad + 100)
    e = c * d
    e.register_hook(lambda grad: grad * 2)
    e.backward()


def compare_with_and_without_a_hook() -> Displayable:
    with hv.record() as plain:
        multiply(hooked=False)
    with hv.record() as hooked:
        multiply()
    return plain.diff(hooked)


def train_twenty_steps() -> hv.Trace:
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    sgd, x = torch.optim.SGD(net.parameters(), lr=0.1), torch.randn(16, 2)
    net[0].weight.register_hook(look)
    with hv.record(net) as trace:
        for _ in range(20):
            sgd.zero_grad()
            (net(x) - x.sum(-1, keepdim=True)).square().mean().backward()
            sgd.step()
    return trace


def train_with_faults() -> hv.Trace:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    nn.init.constant_(net[0].bias, -100)
    net[1].register_forward_hook(look)
    sgd = torch.optim.SGD(net[2].parameters(), lr=0.0)
    with hv.record(net) as trace:
        for _ in range(3):
            h = net[1].forward(net[0](torch.rand(6, 4)))
            net[4](net[3](net[2](h.detach()))).square().mean().backward()
            sgd.step()
    return trace


class Scene(NamedTuple):
    """A page, and how it is shown."""

    make: Callable[[], Displayable]
    step: int = 0
    """The step that the address names, counted from 1; 0 for none."""
    keys: str = ""
    """The keys that are pressed, separated by blanks."""
    settings: dict[str, Any] = {}  # noqa: RUF012 - a default of a named tuple, which nobody changes
    """Settings of the browser's page."""


SCREEN: dict[str, Any] = {"viewport": {"width": 1280, "height": 720}, "reduced_motion": "reduce"}
DARK = {"color_scheme": "dark"}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
SCENES = {
    "01_hook": Scene(recorded, 9),
    "02_end_phone": Scene(recorded, 16, settings=PHONE),
    "03_tensors": Scene(recorded, 10, "t"),
    "04_mlp": Scene(record_mlp, 0, "] ]"),
    "05_resnet": Scene(record_resnet, 0, "]"),
    "06_encoder_dark": Scene(record_encoder, 0, "]", DARK),
    "07_lstm": Scene(record_lstm, 0, "]"),
    "08_whatif_dark": Scene(lambda: hv.whatif(multiply), 0, "1 End", DARK),
    "09_comparison": Scene(compare_with_and_without_a_hook, 0, "End"),
    "10_training": Scene(train_twenty_steps, 0, "] ] ]"),
    "11_findings": Scene(train_with_faults, 0, "w"),
    "12_static": Scene(recorded, settings={"java_script_enabled": False}),
}


def write_page(page_scene: Scene, path: Path) -> tuple[int, int]:
    """Write the page of a scene; return its size in bytes, raw and gzipped."""
    torch.manual_seed(0)
    with redirect_stdout(io.StringIO()):  # a hook prints
        page_scene.make().to_html(path)
    content = path.read_bytes()
    return len(content), len(gzip.compress(content, mtime=0))


def take_picture(chrome: Browser, page_scene: Scene, page: Path, picture: Path) -> None:
    """Open the page of a scene, press its keys, and write what the screen shows."""
    tab = chrome.new_page(**(SCREEN | page_scene.settings))
    tab.goto(page.as_uri() + (f"#step-{page_scene.step}" if page_scene.step else ""))
    if page_scene.settings.get("java_script_enabled", True):
        tab.locator(".hv-live .hv-picture svg").first.wait_for()
        tab.locator(".hv-live .hv-player").focus()
        for key in page_scene.keys.split():
            press(tab, key)
            tab.wait_for_timeout(500)  # a large trace draws the next box
    tab.wait_for_timeout(500)
    tab.screenshot(path=picture)
    tab.close()


def main(folder: Path) -> None:
    """Write all pictures into the folder, and print the sizes of the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    print("| scene | bytes | gzipped |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as pages, browser() as chrome:
        for name, page_scene in SCENES.items():
            page = Path(pages, f"{name}.html")
            raw, packed = write_page(page_scene, page)
            print(f"| {name} | {raw:,} | {packed:,} |", flush=True)
            take_picture(chrome, page_scene, page, folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
