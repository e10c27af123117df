"""A saved notebook without a kernel plays if it is trusted, and shows the static picture otherwise."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import SCRIPT, SLIDERS, note_errors, slider_placeholder
from tests.browser.lab import Lab, write_notebook
from tests.waiting import PATIENCE

SLIDER_MESSAGE = "The sliders need a running kernel: run this cell again."


@pytest.fixture(scope="module")
def saved_notebooks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Executed notebooks: a trace; a what-if with a slider; the same what-if with stored widget state."""
    folder = tmp_path_factory.mktemp("ran")
    graph = execute(folder / "own.ipynb", SCRIPT[:4])
    return {
        "own": graph,
        "sliders": execute(folder / "sliders.ipynb", SLIDERS, store_widget_state=False),
        "stateful": execute(folder / "stateful.ipynb", SLIDERS),
    }


def execute(path: Path, cells: Iterable[str], **options: bool) -> Path:
    """Write, run and save a notebook of these cells."""
    write_notebook(path, *cells)
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=PATIENCE, **options).execute()
    nbformat.write(notebook, path)
    return path


def copy_notebooks(saved_notebooks: Mapping[str, Path], server: Lab) -> None:
    """Copy each notebook to the folder of ``server`` twice: signed, and unsigned as ``foreign_NAME``.

    Jupyter trusts signed notebooks only.
    """
    (server.home / "data").mkdir(exist_ok=True)
    notary = NotebookNotary(data_dir=str(server.home / "data"))
    for name, path in saved_notebooks.items():
        for copy_name in (name, f"foreign_{name}"):
            notebook = nbformat.read(path, as_version=4)
            notebook.cells[0].source += f"  # {copy_name}"  # otherwise both copies would have the same signature
            notebook.cells[-1].outputs[-1].metadata["opened"] = copy_name
            nbformat.write(notebook, server.folder / f"{copy_name}.ipynb")
            if copy_name == name:
                notary.sign(nbformat.read(server.folder / f"{name}.ipynb", as_version=4))
    notary.store.close()


@pytest.fixture(scope="module", params=["jupyterlab", "notebook"])
def open_notebook(
    request: pytest.FixtureRequest,
    chrome: Browser,
    saved_notebooks: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], Page]]:
    """Open a notebook in JupyterLab or in Notebook."""
    folder, home = tmp_path_factory.mktemp("folder"), tmp_path_factory.mktemp("home")
    with Lab(folder, home, request.param) as server:
        copy_notebooks(saved_notebooks, server)

        page = chrome.new_page(viewport={"width": 1280, "height": 1100})

        def open_it(name: str) -> Page:
            in_lab = server.app == "jupyterlab" and page.url != "about:blank"
            (server.turn_to if in_lab else server.show)(page, f"{name}.ipynb")
            return page

        yield open_it
        page.close()


def check_stepping(page: Page, player: Locator) -> None:
    """Check that the End key moves the player to the last step, with the player's own styles."""
    player.press("End")
    expect(player.locator(".hv-count")).to_have_text("Step 16 of 16")
    expect(player.locator(".hv-panel")).to_contain_text("b.grad is written: 20.")
    expect(page.locator("body")).not_to_contain_text("Error displaying widget")
    # Jupyter's styles for tables and drawings in outputs do not apply.
    assert player.locator(".hv-timeline .hv-tick").first.evaluate("e => e.clientHeight") == 18
    expect(player.locator("td").first).to_have_css("text-align", "left")


def check_static_view(still: Locator) -> None:
    """Check that the static picture and the table are visible."""
    image = still.locator("img")
    expect(image).to_be_visible()
    assert image.evaluate("e => e.complete && e.naturalWidth > 300")
    expect(still.locator("tbody tr")).to_have_count(4)


def test_trusted_notebook_plays_without_a_kernel(open_notebook: Callable[[str], Page]) -> None:
    page = open_notebook("own")
    check_stepping(page, page.locator(".hv-player"))
    assert page.locator(".hv-player").count() == 1


def test_untrusted_notebook_shows_the_static_picture_and_how_to_play_it(open_notebook: Callable[[str], Page]) -> None:
    output = open_notebook("foreign_own").locator(".jp-RenderedHTML")
    check_static_view(output)
    expect(output).to_contain_text("To step through it, run the cell or trust the notebook.")
    assert output.locator(".hv-player").count() == 0


@pytest.mark.parametrize("name", ["sliders", "stateful"])
def test_trusted_what_if_without_a_kernel_explains_its_missing_sliders(
    open_notebook: Callable[[str], Page], name: str
) -> None:
    page = open_notebook(name)
    missing_widget = {"sliders": ".jupyter-widgets:not(:has(*))", "stateful": ":has(> .jupyter-widgets-disconnected)"}
    slider_output = page.locator(f".jp-OutputArea-output{missing_widget[name]}")
    slider_output.wait_for(state="attached")  # Jupyter has noticed that no kernel has the widgets
    assert slider_placeholder(slider_output) == [f'"{SLIDER_MESSAGE}"', "visible"]
    assert slider_output.evaluate("e => e.getBoundingClientRect().height") == 32
    assert page.locator(".widget-slider:visible").count() == 0
    assert "displaying widget" not in page.locator("body").inner_text()
    check_hook_switch(page)


def check_hook_switch(page: Page) -> None:
    """Check that the page has one player, and that a key switches its hook off."""
    player = page.locator(".hv-player")
    expect(player).to_have_count(1)
    player.press("End")
    expect(player.locator(".hv-sentence")).to_have_text("x.grad is written: 60.")
    player.press("1")
    expect(player.locator(".hv-sentence")).to_have_text("x.grad is written: 6.")


def test_untrusted_what_if_explains_its_missing_sliders_above_the_picture(open_notebook: Callable[[str], Page]) -> None:
    outputs = open_notebook("foreign_sliders").locator(".jp-OutputArea-output")
    expect(outputs).to_have_count(2)
    first, second = outputs.all()
    expect(first).to_have_text(SLIDER_MESSAGE)
    assert slider_placeholder(first) == ["none", "visible"]
    expect(second.locator("img")).to_be_visible()
    expect(second.locator("tbody tr")).to_have_count(1)


@pytest.fixture
def open_converted(new_offline_page: Callable[..., Page], saved_notebooks: dict[str, Path]) -> Callable[..., Page]:
    """Open the HTML that nbconvert makes of a notebook, in a browser without a network."""

    def open_it(name: str, javascript: bool = True) -> Page:
        target = saved_notebooks[name].with_suffix(".html")
        if not target.exists():
            command = [sys.executable, "-m", "nbconvert", "--to", "html", str(saved_notebooks[name])]
            subprocess.run(command, check=True, capture_output=True)
        page = new_offline_page(java_script_enabled=javascript)
        page.goto(target.as_uri(), wait_until="domcontentloaded")
        return page

    return open_it


@pytest.mark.parametrize("javascript", [True, False])
def test_nbconvert_page_plays_offline(open_converted: Callable[..., Page], javascript: bool) -> None:
    page = open_converted("own", javascript)
    if javascript:
        check_stepping(page, page.locator(".hv-player"))
    else:
        # Locator.evaluate does not work in a page without JavaScript.
        expect(page.locator(".hv-still img")).to_be_visible()
        expect(page.locator(".hv-still tbody tr")).to_have_count(4)


def test_nbconvert_page_explains_the_missing_sliders(open_converted: Callable[..., Page]) -> None:
    page = open_converted("sliders")
    expect(page.locator(".jp-OutputArea-output").first).to_have_text(SLIDER_MESSAGE)
    check_hook_switch(page)


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
    return trace,
@app.cell
def _(trace):
    trace.plot()
    return
@app.cell
def _():
    def run(x=3.0):
        x = torch.tensor(x, requires_grad=True)
        x.register_hook(lambda grad: grad * 2)
        (x * x).backward()
    hv.whatif(run, x=(0, 10))
    return
"""


def test_marimo_plays_a_trace_and_a_what_if(chrome: Browser, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "run", "app.py", "--headless", "--no-token", "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        page = chrome.new_page()
        try:
            note_errors(page)
            page.goto(wait_for_server(f"http://127.0.0.1:{port}"))
            page.locator(".hv-player").nth(1).wait_for()
            for player in page.locator(".hv-player").all():
                player.press("]")
                expect(player.locator(".hv-panel")).to_contain_text("λ grad * 2 changed the gradient from 6 to 12")
            expect(page.locator(".hv-plot svg a")).to_have_count(1)
            page.locator(".hv-player").first.press("v")
            expect(page.locator(".hv-plots svg a")).to_have_count(1)
            assert page.errors == []  # type: ignore[attr-defined]
        finally:
            page.close()
            server.terminate()


def wait_for_server(url: str) -> str:
    """Wait until a server answers at ``url``, and return ``url``."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE):
                return url
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise TimeoutError(url)
