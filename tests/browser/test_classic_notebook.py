"""The classic notebook with ipywidgets 7.7.1, the version on Colab: players and sliders work, and keep their keys.

``make classic`` runs these tests in an environment of their own.
"""

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import SCRIPT, note_errors
from tests.browser.helpers import errors_of, is_at, press
from tests.browser.lab import TOKEN, Lab, write_notebook

SLIDERS = (
    "import ipywidgets, torch, hookviz as hv\ndef run(a=2.0):\n    a = torch.tensor(a, requires_grad=True)\n"
    "    a.register_hook(lambda grad: grad * 10)\n    (a * a).backward()",
    "hv.whatif(run, a=(-3, 3))",
    "print(ipywidgets.__version__)",
)
NO_WIDGETS = 'Failed to fetch ipywidgets through the "jupyter.widget.control" comm channel'
"""ipywidgets 7 writes this to the console if the kernel of the notebook has no widgets yet."""
HAS_RUN = """() => window.Jupyter.notebook.get_cells().every((cell) => cell.cell_type !== "code"
  || !cell.get_text().trim() || Number.isInteger(cell.input_prompt_number))"""


class ClassicNotebook(Lab):
    """A server of the classic notebook over ``folder``."""

    def _program(self) -> list[str]:
        # The notebook extensions are named in nbconfig, where Notebook 6 looked for them.
        return [sys.executable, "-m", "nbclassic", "--ConfigManager.config_dir_name=nbconfig"]

    def show(self, page: Page, notebook: str) -> None:
        """Open ``notebook``, and wait until it has asked its kernel for widgets: what runs earlier shows none."""
        with page.expect_console_message(lambda message: NO_WIDGETS in message.text):
            page.goto(f"http://127.0.0.1:{self.port}/nbclassic/notebooks/{notebook}?token={TOKEN}")

    def run_all(self, page: Page) -> None:
        """Run every cell, and wait until all have run."""
        page.evaluate("window.Jupyter.notebook.execute_all_cells()")
        page.wait_for_function(HAS_RUN)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClassicNotebook]:
    if not version("ipywidgets").startswith("7."):
        pytest.skip("make classic runs it: the classic notebook needs an environment of its own")
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebook(folder / "a_to_e.ipynb", *SCRIPT)
    write_notebook(folder / "sliders.ipynb", *SLIDERS)
    with ClassicNotebook(folder, tmp_path_factory.mktemp("home")) as server:
        yield server


@pytest.fixture(scope="module")
def open_notebook(chrome: Browser, notebook: ClassicNotebook) -> Iterator[Callable[[str], Page]]:
    """Open a notebook, run all of its cells, and wait for the last player; the same page is returned again."""
    pages: dict[str, Page] = {}

    def open_it(name: str) -> Page:
        if name in pages:
            return pages[name]
        # The classic notebook is light, whatever the system is.
        page = pages[name] = chrome.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
        note_errors(page)
        notebook.show(page, f"{name}.ipynb")
        notebook.run_all(page)
        expect(page.locator(".hv-player .hv-picture").last).to_be_visible()
        return page

    yield open_it
    for page in pages.values():
        page.close()


@pytest.fixture(params=["output", "widget"])
def player(request: pytest.FixtureRequest, open_notebook: Callable[[str], Page]) -> Locator:
    """The player of an output, and the widget with the same steps."""
    page = open_notebook("a_to_e")
    expect(page.locator(".hv-player")).to_have_count(2)
    return page.locator(".hv-player").nth(["output", "widget"].index(request.param))


def cell_texts(page: Page) -> list[str]:
    texts: list[str] = page.evaluate("window.Jupyter.notebook.get_cells().map((cell) => cell.get_text())")
    return texts


def test_player_steps_by_keys_and_by_its_button(player: Locator) -> None:
    page, before = player.page, cell_texts(player.page)
    player.locator(".hv-panel").click()
    press(page, "Home", "ArrowRight")
    is_at(player, 2)
    player.get_by_role("button", name="Next step").click()
    is_at(player, 3)
    # In its command mode the notebook would delete, cut and insert cells by these keys.
    press(page, "d", "d", "x", "b", "b", "m", "End")
    is_at(player, 16)
    assert cell_texts(page) == before
    # Esc, pressed twice, gives the keys back: B inserts a cell below.
    press(page, "Escape", "Escape", "b")
    assert len(cell_texts(page)) == len(before) + 1
    press(page, "d", "d")
    assert cell_texts(page) == before


def test_slider_records_again_and_a_hook_is_switched_off(open_notebook: Callable[[str], Page]) -> None:
    page = open_notebook("sliders")
    expect(page.locator(".output_area").last).to_have_text(version("ipywidgets"))
    player = page.locator(".hv-player")
    expect(player.locator(".hv-picture")).to_contain_text("= 2")
    slider = page.locator(".ui-slider-handle")
    slider.focus()
    press(page, "End")
    expect(page.locator(".widget-readout")).to_have_text("3.000")
    expect(player.locator(".hv-picture")).to_contain_text("= 2 3")
    player.focus()
    press(page, "1")
    expect(player.locator(".hv-panel")).to_contain_text("a.grad is 6 instead of 60.")
    assert errors_of(page) == []
