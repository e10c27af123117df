"""Fixtures with JupyterLab and Chromium for the browser tests; without Chromium, these are skipped or fail."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, expect
from scenes import c_hook, recorded

import hookviz as hv
from tests.browser.lab import CLOSE_ALL_TABS, Lab, Prose, browser, write_notebook
from tests.requirements import skip_or_fail
from tests.unit.test_variants import run_with_hook
from tests.unit.test_whatif import a_to_e
from tests.waiting import MILLISECONDS
from tools.handouts import find_browser

expect.set_options(timeout=MILLISECONDS)

LESSONS = Path(__file__).parents[2] / "notebooks"
SIZES = {1280: 800, 390: 844}
"""A projector and a phone: width and height."""
PAGES: dict[str, Callable[[], Any]] = {
    "index": recorded,
    "whatif": lambda: hv.whatif(a_to_e),
    "diff": lambda: run_with_hook(None).diff(run_with_hook(c_hook)),
}
"""Page → a function that makes what it shows, in all modules; a module adds to them in a ``PAGES`` of its own."""

SCRIPT = (
    "import torch, hookviz as hv\na = torch.tensor(2.0, requires_grad=True)\n"
    "b = torch.tensor(3.0, requires_grad=True)\nc = a * b\nd = torch.tensor(4.0, requires_grad=True)",
    "def c_hook(grad):\n    return grad + 2\n\nc.register_hook(c_hook)\nc.register_hook(lambda grad: print(grad))\n"
    "c.retain_grad()",
    "d.register_hook(lambda grad: grad + 100)\ne = c * d\ne.retain_grad()\ne.register_hook(lambda grad: grad * 2)",
    "with hv.record() as trace:\n    e.backward()\ntrace",
    "import ipywidgets\nplayer = trace.player()\nslider = ipywidgets.IntSlider(max=15)\n"
    'link = ipywidgets.jslink((player, "step"), (slider, "value"))\nipywidgets.VBox([player, slider])',
)

DRAWINGS = (
    "import graphviz, torch, hookviz as hv\nx = torch.tensor(2.0, requires_grad=True)\nhv.draw(x * x)",
    'drawing = graphviz.Digraph()\ndrawing.edge("loss", "weight")\nhv.render(drawing)',
    "with hv.record() as trace:\n    (x * x).backward()\ntrace",
)
"""A picture of ours, one of another package's graph, and a player."""

LINKS = (
    *SCRIPT[:3],
    "with hv.record() as first:\n    e.backward(retain_graph=True)\nfirst",
    Prose("Here [step 5](#step-5) and [a step that is not there](#step-500)."),
    "with hv.record() as second:\n    e.backward()\nsecond",
    Prose("There [step 3](#step-3), and [a heading](#step-by-step)."),
    "second.plot()",
)
"""Two players, with links to their steps below each, and a plot."""

SLIDERS = (
    "import torch, hookviz as hv\ndef run(x=3.0):\n    x = torch.tensor(x, requires_grad=True)\n"
    "    x.register_hook(lambda grad: grad * 10)\n    (x * x).backward()",
    "hv.whatif(run, x=(0, 10))",
)
"""A what-if with a slider."""

LARGE = (
    "import torch, hookviz as hv\nx = torch.tensor(1.0, requires_grad=True)\ny = x\n"
    "for _ in range(1000):\n    y = y * 1.001",
    "with hv.record() as trace:\n    y.backward()\ntrace.player()",
)
"""A large trace: the kernel sends most of it on request."""

CELLS_NOT_RUN = """() => window.jupyterapp.shell.currentWidget.content.widgets.map(({ model }) => model)
  .filter(({ type, sharedModel: { source } }) => type === "code" && source.trim())
  .filter(({ executionCount, executionState }) => executionCount === null || executionState === "running")
  .map(({ sharedModel: { source } }) => source)"""
"""The code of the cells that have not run yet, including cells that JupyterLab has not rendered."""

SLOW_WIDGET_ERROR = "[anywidget] Failed to initialize model."
"""anywidget's message if a widget takes over two seconds; it still appears, but gets no further kernel messages."""


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    if find_browser() is None:
        skip_or_fail("browser", "no Chromium is here: install it, or name one in HOOKVIZ_CHROMIUM")
    with browser() as chromium_browser:
        yield chromium_browser


# -- JupyterLab


@pytest.fixture(scope="session")
def lab(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("notebooks")
    notebooks = {"a_to_e": SCRIPT, "drawings": DRAWINGS, "sliders": SLIDERS, "links": LINKS, "large": LARGE}
    for name, cells in notebooks.items():
        write_notebook(folder / f"{name}.ipynb", *cells)
    for lesson in LESSONS.glob("*.ipynb"):
        (folder / lesson.name).write_bytes(lesson.read_bytes())
    with Lab(folder, tmp_path_factory.mktemp("home")) as server:
        yield server


@pytest.fixture(scope="session")
def lab_context(chrome: Browser) -> Iterator[BrowserContext]:
    """The context shared by all JupyterLab pages, so that its scripts are loaded once."""
    shared_context = chrome.new_context()
    yield shared_context
    shared_context.close()


def wait_until_run(lab: Lab, page: Page) -> Page:
    """Run all cells of the notebook in ``page``, and wait for its players."""
    lab.run_all(page)
    page.wait_for_selector(".hv-player")
    try:
        page.wait_for_function(f"() => ({CELLS_NOT_RUN})().length === 0", polling=300)
    except TimeoutError as error:
        raise AssertionError(f"These cells have not run: {page.evaluate(CELLS_NOT_RUN)}") from error
    return page


@pytest.fixture(scope="session")
def idle_pages() -> list[Page]:
    """Light JupyterLab pages that no test uses, kept because loading a new one is slow."""
    return []


@pytest.fixture(scope="module")
def open_page(lab_context: BrowserContext, lab: Lab, idle_pages: list[Page]) -> Iterator[Callable[..., Page]]:
    """Open a notebook in its own JupyterLab page, run it, and wait for its players."""
    pages: dict[Page, str] = {}

    def open_it(notebook: str, theme: str = "light") -> Page:
        lab.set_theme(theme)
        page = idle_pages.pop() if idle_pages and theme == "light" else lab_context.new_page()
        pages[page] = theme
        page.set_viewport_size({"width": 1280, "height": 1100})
        show(lab, page, notebook)
        return wait_until_run(lab, page)

    yield open_it
    for page, theme in pages.items():
        if theme == "light" and not page.is_closed():
            page.evaluate(CLOSE_ALL_TABS)
            idle_pages.append(page)
        else:
            page.close()


SHOWN_LESSON = "02_tensor_hooks.ipynb"
"""A lesson with drawings, a what-if and a player with findings; ``tests/course`` runs all without a browser."""


@pytest.fixture(scope="module")
def lesson(lab_context: BrowserContext, lab: Lab, idle_pages: list[Page]) -> Iterator[Page]:
    """A page with a lesson on a small projector, after all its cells have run."""
    page = idle_pages.pop() if idle_pages else lab_context.new_page()
    page.set_viewport_size({"width": 1280, "height": 720})
    show(lab, page, SHOWN_LESSON)
    yield wait_until_run(lab, page)
    lab.end(SHOWN_LESSON)
    idle_pages.append(page)


def show(lab: Lab, page: Page, notebook: str) -> None:
    """Open a notebook in a JupyterLab page, which may show another one, and wait for its kernel."""
    if page.url == "about:blank":
        note_errors(page)
        lab.show(page, notebook)
    else:
        page.emulate_media(reduced_motion="no-preference")
        page.errors.clear()  # type: ignore[attr-defined]
        lab.turn_to(page, notebook)
    lab.wait_for_kernel(page)


# -- pages from disk


@pytest.fixture(scope="session")
def get_context(chrome: Browser) -> Callable[..., BrowserContext]:
    """Get an offline browser context with these settings; tests with the same settings share it."""

    @functools.cache
    def with_settings(**settings: Any) -> BrowserContext:
        browser_context = chrome.new_context(offline=True, **settings)
        browser_context.new_page()  # Stays open, which keeps the renderer process alive for later pages.
        return browser_context

    return with_settings


@pytest.fixture
def new_offline_page(get_context: Callable[..., BrowserContext]) -> Iterator[Callable[..., Page]]:
    """Open an empty offline page with these settings, which notes its errors; it is closed after the test."""
    pages: dict[Page, bool] = {}

    def blank_it(**settings: Any) -> Page:
        page = get_context(**settings).new_page()
        note_errors(page)
        pages[page] = settings.get("java_script_enabled", True)
        return page

    yield blank_it
    for page, has_scripts in pages.items():
        if has_scripts and page.url != "about:blank":
            page.evaluate("localStorage.clear()")  # the site stores the chosen theme there
        page.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the pages of a module are."""
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def open_file(
    request: pytest.FixtureRequest, new_offline_page: Callable[..., Page], folder: Path
) -> Callable[..., Page]:
    """Open a page of ``folder`` in a browser without a network; one of ``PAGES`` is written when it is first opened."""

    def open_it(name: str = "index", width: int = 1280, height: int | None = None, **settings: Any) -> Page:
        page = new_offline_page(**settings)
        page.set_viewport_size({"width": width, "height": height or SIZES[width]})
        page.requests = []  # type: ignore[attr-defined]
        page.on("request", lambda request: page.requests.append(request.url))  # type: ignore[attr-defined]
        path = folder / f"{name}.html"
        if not path.exists():
            makers = {**PAGES, **getattr(request.module, "PAGES", {})}
            makers[name]().to_html(path)
        page.goto(path.as_uri())
        if settings.get("java_script_enabled", True):
            expect(page.locator(":has(> .hv-still):not(.hv-plays)")).to_have_count(0)
        return page

    return open_it


def note_errors(page: Page) -> None:
    """Collect console errors and exceptions of the page in ``page.errors``."""
    page.errors = []  # type: ignore[attr-defined]
    page.on("console", lambda message: _keep_error(page, message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: _keep_error(page, str(error)))


def _keep_error(page: Page, error: str) -> None:
    if SLOW_WIDGET_ERROR not in error:
        page.errors.append(error)  # type: ignore[attr-defined]
