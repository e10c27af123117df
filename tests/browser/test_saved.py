"""A notebook that was run and saved, opened where nothing runs any more: it plays, or shows the picture, no error."""

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

from tests.browser.conftest import SCRIPT, SLIDERS, again, note_errors
from tests.browser.lab import Lab, write_notebook
from tests.waiting import PATIENCE

SENTENCE = "The sliders need a running kernel: run this cell again."


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Notebooks, run and saved: the first graph; a what-if with a slider; the same, with the state of its widgets."""
    folder = tmp_path_factory.mktemp("ran")
    graph = execute(folder / "own.ipynb", SCRIPT[:4])
    return {
        "own": graph,
        "sliders": execute(folder / "sliders.ipynb", SLIDERS, store_widget_state=False),
        "stateful": execute(folder / "stateful.ipynb", SLIDERS),
    }


def execute(path: Path, cells: Iterable[str], **options: bool) -> Path:
    """A notebook of these cells, run and saved."""
    write_notebook(path, *cells)
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=PATIENCE, **options).execute()
    nbformat.write(notebook, path)
    return path


def hand_out(ran: Mapping[str, Path], server: Lab) -> None:
    """Put the notebooks where ``server`` finds them, each as if it had been run there, and as if somebody else had.

    What nobody here has signed Jupyter does not trust.
    """
    (server.home / "data").mkdir(exist_ok=True)
    notary = NotebookNotary(data_dir=str(server.home / "data"))
    for name, path in ran.items():
        for opened in (name, f"foreign_{name}"):
            notebook = nbformat.read(path, as_version=4)
            notebook.cells[0].source += f"  # {opened}"  # or one signature would be that of all
            notebook.cells[-1].outputs[-1].metadata["opened"] = opened
            nbformat.write(notebook, server.folder / f"{opened}.ipynb")
            if opened == name:
                notary.sign(nbformat.read(server.folder / f"{name}.ipynb", as_version=4))
    notary.store.close()


@pytest.fixture(scope="module", params=["jupyterlab", "notebook"])
def show(
    request: pytest.FixtureRequest, chrome: Browser, ran: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Page]]:
    """Opens a notebook in one of Jupyter's two front ends."""
    folder, home = tmp_path_factory.mktemp("folder"), tmp_path_factory.mktemp("home")
    with Lab(folder, home, request.param) as server:
        hand_out(ran, server)

        page = chrome.new_page(viewport={"width": 1280, "height": 1100})

        def show_it(name: str) -> Page:
            in_lab = server.app == "jupyterlab" and page.url != "about:blank"
            (server.turn_to if in_lab else server.show)(page, f"{name}.ipynb")
            return page

        yield show_it
        page.close()


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
    output = show("foreign_own").locator(".jp-RenderedHTML")
    is_still(output)
    expect(output).to_contain_text("To step through it, run the cell or trust the notebook.")
    assert output.locator(".hv-player").count() == 0


@pytest.mark.parametrize("name", ["sliders", "stateful"])
def test_where_the_sliders_were_stands_what_they_need_and_the_player_plays(
    show: Callable[[str], Page], name: str
) -> None:
    page = show(name)
    none = {"sliders": ".jupyter-widgets:not(:has(*))", "stateful": ":has(> .jupyter-widgets-disconnected)"}
    place = page.locator(f".jp-OutputArea-output{none[name]}")
    place.wait_for(state="attached")  # Jupyter has found out that no kernel has the widgets
    assert again(place) == [f'"{SENTENCE}"', "visible"]
    assert place.evaluate("e => e.getBoundingClientRect().height") == 32
    assert page.locator(".widget-slider:visible").count() == 0
    assert "displaying widget" not in page.locator("body").inner_text()
    switched_off(page)


def switched_off(page: Page) -> None:
    """There is one player, and its hook is switched off by key."""
    player = page.locator(".hv-player")
    expect(player).to_have_count(1)
    player.press("End")
    expect(player.locator(".hv-sentence")).to_have_text("x.grad is written: 60.")
    player.press("1")
    expect(player.locator(".hv-sentence")).to_have_text("x.grad is written: 6.")


@pytest.mark.parametrize("name", ["sliders", "stateful"])
def test_sliders_of_somebody_else_are_a_sentence_above_the_picture(show: Callable[[str], Page], name: str) -> None:
    outputs = show(f"foreign_{name}").locator(".jp-OutputArea-output")
    expect(outputs).to_have_count(2)
    first, second = outputs.all()
    expect(first).to_have_text(SENTENCE)
    assert again(first) == ["none", "visible"]
    expect(second.locator("img")).to_be_visible()
    expect(second.locator("tbody tr")).to_have_count(1)


@pytest.fixture
def offline(blank: Callable[..., Page], ran: dict[str, Path]) -> Callable[..., Page]:
    """Opens the page that nbconvert makes of a notebook, in a browser without a network."""

    def open_it(name: str, javascript: bool = True) -> Page:
        command = [sys.executable, "-m", "nbconvert", "--to", "html", str(ran[name])]
        subprocess.run(command, check=True, capture_output=True)
        page = blank(java_script_enabled=javascript)
        page.goto(ran[name].with_suffix(".html").as_uri(), wait_until="domcontentloaded")
        return page

    return open_it


@pytest.mark.parametrize("javascript", [True, False])
def test_nbconverts_page_needs_no_network(offline: Callable[..., Page], javascript: bool) -> None:
    page = offline("own", javascript)
    if javascript:
        steps(page, page.locator(".hv-player"))
    else:
        # No Locator.evaluate here: this page runs nothing.
        expect(page.locator(".hv-still img")).to_be_visible()
        expect(page.locator(".hv-still tbody tr")).to_have_count(4)


def test_nbconverts_page_says_what_sliders_need(offline: Callable[..., Page]) -> None:
    page = offline("sliders")
    expect(page.locator(".jp-OutputArea-output").first).to_have_text(SENTENCE)
    switched_off(page)


def test_sliders_whose_state_is_kept_leave_their_place_empty_in_nbconverts_page(offline: Callable[..., Page]) -> None:
    page = offline("stateful")
    assert page.locator(".jp-OutputArea-output").first.inner_text().strip() == ""
    switched_off(page)


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
@app.cell
def _():
    def run(x=3.0):
        x = torch.tensor(x, requires_grad=True)
        x.register_hook(lambda grad: grad * 2)
        (x * x).backward()
    hv.whatif(run, x=(0, 10))
    return
"""


def test_marimo_plays_a_trace_and_a_what_if_without_its_sliders(chrome: Browser, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "run", "app.py", "--headless", "--no-token", "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        page = chrome.new_page()
        try:
            note_errors(page)
            page.goto(answering(f"http://127.0.0.1:{port}"))
            page.locator(".hv-player").nth(1).wait_for()
            for player in page.locator(".hv-player").all():
                player.press("]")
                expect(player.locator(".hv-panel")).to_contain_text("λ grad * 2 on x replaced the gradient: 6 → 12.")
            assert page.errors == []  # type: ignore[attr-defined]
        finally:
            page.close()
            server.terminate()


def answering(url: str) -> str:
    """``url``, once somebody answers there."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE):
                return url
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise TimeoutError(url)
