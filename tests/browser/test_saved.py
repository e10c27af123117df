"""A saved notebook without a kernel plays if it is trusted, and shows the static picture otherwise."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import SCRIPT, SLIDERS, note_errors
from tests.browser.helpers import Opener, errors_of, is_at, slider_placeholder
from tests.browser.lab import Lab, free_port, wait_for_server, write_notebook
from tests.waiting import PATIENCE

SLIDER_MESSAGE = "The sliders need a running kernel: run this cell again."


@pytest.fixture(scope="module")
def saved_notebooks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Executed notebooks: a trace, and a what-if with a slider, as Jupyter saves it: without the state of widgets."""
    folder = tmp_path_factory.mktemp("ran")
    return {
        "own": execute(folder / "own.ipynb", SCRIPT[:4]),
        "sliders": execute(folder / "sliders.ipynb", SLIDERS, store_widget_state=False),
    }


def execute(path: Path, cells: Iterable[str], **options: bool) -> Path:
    """Write, run and save a notebook of these cells."""
    write_notebook(path, *cells)
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=PATIENCE, **options).execute()
    nbformat.write(notebook, path)
    return path


def copy_notebooks(saved_notebooks: Mapping[str, Path], folder: Path, data: Path) -> None:
    """Copy each notebook to ``folder`` twice: signed, which Jupyter trusts, and unsigned as ``foreign_NAME``."""
    data.mkdir()
    notary = NotebookNotary(data_dir=str(data))
    for name, path in saved_notebooks.items():
        for copy_name in (name, f"foreign_{name}"):
            notebook = nbformat.read(path, as_version=4)
            notebook.cells[0].source += f"  # {copy_name}"  # otherwise both copies would have the same signature
            notebook.cells[-1].outputs[-1].metadata["opened"] = copy_name
            nbformat.write(notebook, folder / f"{copy_name}.ipynb")
            if copy_name == name:
                notary.sign(nbformat.read(folder / f"{name}.ipynb", as_version=4))
    notary.store.close()


@pytest.fixture(scope="module")
def folders(saved_notebooks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of the notebooks, and the home of the user who trusts some of them."""
    folder, home = tmp_path_factory.mktemp("folder"), tmp_path_factory.mktemp("home")
    copy_notebooks(saved_notebooks, folder, home / "data")
    return folder, home


@pytest.fixture(scope="module")
def open_notebook(chrome: Browser, folders: tuple[Path, Path]) -> Iterator[Callable[[str], Page]]:
    """Open a notebook in JupyterLab."""
    with Lab(*folders) as server, closing(chrome.new_page(viewport={"width": 1280, "height": 1100})) as page:

        def open_it(name: str) -> Page:
            (server.show if page.url == "about:blank" else server.turn_to)(page, f"{name}.ipynb")
            return page

        yield open_it


def check_stepping(page: Page, player: Locator) -> None:
    """Check that the End key moves the player to the last step, with the player's own styles."""
    player.press("End")
    is_at(player, 16)
    expect(player.locator(".hv-panel")).to_contain_text("b.grad is written: 20.")
    expect(page.locator("body")).not_to_contain_text("Error displaying widget")
    # Jupyter's styles for tables and drawings in outputs do not apply.
    assert player.locator(".hv-timeline .hv-tick").first.evaluate("e => e.clientHeight") == 18
    expect(player.locator("td").first).to_have_css("text-align", "left")


def test_trusted_notebook_plays_without_a_kernel(open_notebook: Callable[[str], Page]) -> None:
    page = open_notebook("own")
    check_stepping(page, page.locator(".hv-player"))
    assert page.locator(".hv-player").count() == 1


def test_untrusted_notebook_shows_the_static_picture_and_how_to_play_it(open_notebook: Callable[[str], Page]) -> None:
    output = open_notebook("foreign_own").locator(".jp-RenderedHTML")
    image = output.locator("img")
    expect(image).to_be_visible()
    assert image.evaluate("e => e.complete && e.naturalWidth > 300")
    expect(output.locator("tbody tr")).to_have_count(4)
    expect(output).to_contain_text("To step through it, run the cell or trust the notebook.")
    assert output.locator(".hv-player").count() == 0


def test_trusted_what_if_without_a_kernel_explains_its_missing_sliders(open_notebook: Callable[[str], Page]) -> None:
    page = open_notebook("sliders")
    slider_output = page.locator(".jp-OutputArea-output.jupyter-widgets:not(:has(*))")
    slider_output.wait_for(state="attached")  # Jupyter has noticed that no kernel has the widgets
    assert slider_placeholder(slider_output) == [f'"{SLIDER_MESSAGE}"', "visible"]
    assert slider_output.evaluate("e => e.getBoundingClientRect().height") == 32
    assert page.locator(".widget-slider:visible").count() == 0
    assert "displaying widget" not in page.locator("body").inner_text()
    player = page.locator(".hv-player")
    expect(player).to_have_count(1)
    player.press("End")
    expect(player.locator(".hv-sentence")).to_have_text("x.grad is written: 60.")
    player.press("1")
    expect(player.locator(".hv-sentence")).to_have_text("x.grad is written: 6.")


def test_nbconvert_page_plays_offline(new_offline_page: Opener, saved_notebooks: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "nbconvert", "--to", "html", str(saved_notebooks["own"])]
    subprocess.run(command, check=True, capture_output=True)
    page = new_offline_page()
    page.goto(saved_notebooks["own"].with_suffix(".html").as_uri(), wait_until="domcontentloaded")
    check_stepping(page, page.locator(".hv-player"))


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
    port = free_port()
    command = [sys.executable, "-m", "marimo", "run", "app.py", "--headless", "--no-token", "--port", str(port)]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with server, closing(chrome.new_page()) as page:
        try:
            note_errors(page)
            page.goto(wait_for_server(f"http://127.0.0.1:{port}"))
            page.locator(".hv-player").nth(1).wait_for()
            for player in page.locator(".hv-player").all():
                player.press("]")
                expect(player.locator(".hv-panel")).to_contain_text("λ grad * 2 changed the gradient from 6 to 12")
            page.locator(".hv-player").first.press("v")
            expect(page.locator(".hv-plots svg a")).to_have_count(1)
            assert errors_of(page) == []
        finally:
            server.terminate()
