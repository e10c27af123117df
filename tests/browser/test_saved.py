"""A notebook that was run and saved, opened where nothing runs any more: it plays, or shows the picture, no error."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import SCRIPT, _note
from tests.browser.lab import Lab, write_notebook

NOTEBOOKS = ("own", "foreign")
"""One that was signed by who opens it, and one that nobody here has signed: Jupyter does not trust it."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook of the first graph, run and saved."""
    path = tmp_path_factory.mktemp("ran") / "saved.ipynb"
    write_notebook(path, *SCRIPT[:4])
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=60).execute()
    nbformat.write(notebook, path)
    return path


def hand_out(ran: Path, server: Lab) -> None:
    """Put the notebooks where ``server`` finds them; what is signed is signed as if it had been run there."""
    (server.home / "data").mkdir(exist_ok=True)
    notary = NotebookNotary(data_dir=str(server.home / "data"))
    for name in NOTEBOOKS:
        notebook = nbformat.read(ran, as_version=4)
        notebook.cells[0].source += f"  # {name}"  # or one signature would be that of all
        notebook.cells[-1].outputs[-1].metadata["opened"] = name
        nbformat.write(notebook, server.folder / f"{name}.ipynb")
        if name == "own":
            notary.sign(nbformat.read(server.folder / f"{name}.ipynb", as_version=4))
    notary.store.close()


@pytest.fixture(scope="module", params=["jupyterlab", "notebook"])
def show(
    request: pytest.FixtureRequest, chrome: Browser, ran: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Page]]:
    """Opens a notebook in one of Jupyter's two front ends."""
    folder, home = tmp_path_factory.mktemp("folder"), tmp_path_factory.mktemp("home")
    with Lab(folder, home, request.param) as server:
        hand_out(ran, server)

        context = chrome.new_context(viewport={"width": 1280, "height": 1100})

        def show_it(name: str) -> Page:
            page = context.new_page()
            server.show(page, f"{name}.ipynb")
            return page

        yield show_it
        context.close()


def steps(page: Page, player: Locator) -> None:
    """It is stepped by key, to the end."""
    player.press("End")
    expect(player.locator(".hv-count")).to_have_text("Step 16 of 16")
    expect(player.locator(".hv-panel")).to_contain_text("b.grad is written: 20.")
    expect(page.locator("body")).not_to_contain_text("Error displaying widget")
    # Jupyter's own dress for an output's tables and drawings is off.
    assert player.locator(".hv-timeline .hv-tick").first.evaluate("e => e.clientHeight") == 18
    expect(player.locator("td").first).to_have_css("text-align", "left")


def is_still(still: Locator) -> None:
    """The picture is drawn, and the table is there."""
    image = still.locator("img")
    expect(image).to_be_visible()
    assert image.evaluate("e => e.complete && e.naturalWidth > 300")
    expect(still.locator("tbody tr")).to_have_count(4)


def test_one_that_was_run_here_plays_without_its_kernel(show: Callable[[str], Page]) -> None:
    page = show("own")
    steps(page, page.locator(".hv-player"))
    assert page.locator(".hv-player").count() == 1


def test_one_from_somebody_else_shows_the_picture_and_how_to_play_it(show: Callable[[str], Page]) -> None:
    output = show("foreign").locator(".jp-RenderedHTML")
    is_still(output)
    expect(output).to_contain_text("To step through it, run the cell or trust the notebook.")
    assert output.locator(".hv-player").count() == 0


@pytest.fixture(scope="module")
def converted(ran: Path) -> Path:
    """The page that nbconvert makes of it."""
    command = [sys.executable, "-m", "nbconvert", "--to", "html", str(ran)]
    subprocess.run(command, check=True, capture_output=True)
    return ran.with_suffix(".html")


@pytest.mark.parametrize("javascript", [True, False])
def test_nbconverts_page_needs_no_network(chrome: Browser, converted: Path, javascript: bool) -> None:
    context = chrome.new_context(offline=True, java_script_enabled=javascript)
    page = context.new_page()
    page.goto(converted.as_uri(), wait_until="domcontentloaded")
    if javascript:
        steps(page, page.locator(".hv-player"))
    else:
        # No Locator.evaluate here: this page runs nothing.
        expect(page.locator(".hv-still img")).to_be_visible()
        expect(page.locator(".hv-still tbody tr")).to_have_count(4)
    context.close()


APP = """import marimo
app = marimo.App()
with app.setup:
    import torch, hookviz as hv
@app.cell
def _():
    x = torch.tensor(3.0, requires_grad=True)
    x.register_hook(lambda grad: grad * 2)
    with hv.record() as trace:
        (x * x).backward()
    trace
    return
"""


def test_marimo_plays_a_trace(chrome: Browser, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "run", "app.py", "--headless", "--no-token", "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            page = chrome.new_page()
            page.errors = []  # type: ignore[attr-defined]
            page.on("console", lambda message: _note(page, message))
            page.goto(answering(f"http://127.0.0.1:{port}"))
            player = page.locator(".hv-player")
            player.wait_for(timeout=60_000)
            player.press("]")
            expect(player.locator(".hv-panel")).to_contain_text("λ grad * 2 on x replaced the gradient: 6 → 12.")
            assert page.errors == []  # type: ignore[attr-defined]
        finally:
            server.terminate()


def answering(url: str) -> str:
    """``url``, once somebody answers there."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return url
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise TimeoutError(url)
