"""A JupyterLab and a Chromium for the browser tests; without a Chromium they are left out, unless they must run."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, TimeoutError, expect

from tests.browser.lab import CLOSE, Lab, Prose, browser, chromium, write_notebook
from tests.requirements import skip_or_fail
from tests.waiting import MILLISECONDS

expect.set_options(timeout=MILLISECONDS)

LESSONS = Path(__file__).parents[2] / "notebooks"
SIZES = {1280: 800, 390: 844}
"""A projector and a phone: width and height."""
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

MODULES = (
    "import torch, hookviz as hv\nfrom torch import nn\n"
    "class SumNet(nn.Module):\n    def forward(self, a, b, c):\n        return a + b + c\nnet = SumNet()\n"
    "net.register_forward_pre_hook(lambda module, args: (args[0] + 10, args[1]))\n"
    "net.register_forward_hook(lambda module, args, output: output + 100)\n"
    "one, two, three = (torch.tensor(float(i), requires_grad=True) for i in (1, 2, 3))",
    "with hv.record(net) as trace:\n    net(one, two, c=three).backward()\ntrace",
)
"""Lesson 03's network."""

LINKS = (
    *SCRIPT[:3],
    "with hv.record() as first:\n    e.backward(retain_graph=True)\nfirst",
    Prose("Here [step 5](#step-5) and [a step that is not there](#step-500)."),
    "with hv.record() as second:\n    e.backward()\nsecond",
    Prose("There [step 3](#step-3), and [a heading](#step-by-step)."),
)
"""Two players, with links to their steps below each."""

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
"""A trace of which the kernel has most."""

TO_DO = """() => window.jupyterapp.shell.currentWidget.content.widgets.map(({ model }) => model)
  .filter(({ type, sharedModel: { source } }) => type === "code" && source.trim())
  .filter(({ executionCount, executionState }) => executionCount === null || executionState === "running")
  .map(({ sharedModel: { source } }) => source)"""
"""The code of the cells that have not run yet. JupyterLab leaves cells far below unmade until one scrolls to them."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What hangs on colours is tested in both themes, everything else in one."""
    if {"page", "theme"} <= set(metafunc.fixturenames):
        both = metafunc.definition.get_closest_marker("both_themes")
        metafunc.parametrize("theme", ["light", "dark"] if both else ["light"], scope="module")


SLOW = "[anywidget] Failed to initialize model."
"""Said where a widget was not there after two seconds; it comes all the same, but never hears its kernel again."""


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    if chromium() is None:
        skip_or_fail("browser", "no Chromium is here: install it, or name one in HOOKVIZ_CHROMIUM")
    with browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def lab(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebook(folder / "a_to_e.ipynb", *SCRIPT)
    write_notebook(folder / "modules.ipynb", *MODULES)
    write_notebook(folder / "sliders.ipynb", *SLIDERS)
    write_notebook(folder / "links.ipynb", *LINKS)
    write_notebook(folder / "large.ipynb", *LARGE)
    for lesson in LESSONS.glob("*.ipynb"):
        (folder / lesson.name).write_bytes(lesson.read_bytes())
    with Lab(folder, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="session")
def together(chrome: Browser) -> Iterator[BrowserContext]:
    """Where all pages of JupyterLab are: its megabytes of scripts are loaded once."""
    context = chrome.new_context()
    yield context
    context.close()


def ran(lab: Lab, page: Page) -> Page:
    """``page``, once all cells of its notebook have run and the players in it are there."""
    lab.run_all(page)
    page.wait_for_selector(".hv-player")
    try:
        page.wait_for_function(f"() => ({TO_DO})().length === 0", polling=300)
    except TimeoutError as error:
        raise AssertionError(f"These cells have not run: {page.evaluate(TO_DO)}") from error
    return page


@pytest.fixture(scope="session")
def free() -> list[Page]:
    """The light JupyterLabs that no test uses any more: to load another takes longer than most tests."""
    return []


@pytest.fixture(scope="module")
def open_page(together: BrowserContext, lab: Lab, free: list[Page]) -> Iterator[Callable[..., Page]]:
    """Opens a notebook in a JupyterLab of its own, runs it, and waits for the players in it."""
    pages: dict[Page, str] = {}

    def open_it(notebook: str, theme: str = "light", width: int = 1280, height: int = 1100) -> Page:
        lab.set_theme(theme)
        page = free.pop() if free and theme == "light" else together.new_page()
        pages[page] = theme
        page.set_viewport_size({"width": width, "height": height})
        if page.url == "about:blank":
            note_errors(page)
            lab.show(page, notebook)
        else:
            page.emulate_media(reduced_motion="no-preference")
            page.errors.clear()  # type: ignore[attr-defined]
            lab.turn_to(page, notebook)
        lab.wait_for_kernel(page)
        return ran(lab, page)

    yield open_it
    for page, theme in pages.items():
        if theme == "light" and not page.is_closed():
            page.evaluate(CLOSE)
            free.append(page)
        else:
            page.close()


@pytest.fixture(scope="session")
def context(chrome: Browser) -> Callable[..., BrowserContext]:
    """Gives the part of the browser that has these settings and no network: one for all tests that ask for the same."""

    @functools.cache
    def with_settings(**settings: Any) -> BrowserContext:
        made = chrome.new_context(offline=True, **settings)
        made.new_page()  # It stays, and with it a process that would take longer to start than a page takes to open.
        return made

    return with_settings


@pytest.fixture
def blank(context: Callable[..., BrowserContext]) -> Iterator[Callable[..., Page]]:
    """Gives an empty page with these settings, until the test is over."""
    pages: dict[Page, bool] = {}

    def blank_it(**settings: Any) -> Page:
        page = context(**settings).new_page()
        pages[page] = settings.get("java_script_enabled", True)
        return page

    yield blank_it
    for page, has_scripts in pages.items():
        if has_scripts and page.url != "about:blank":
            page.evaluate("localStorage.clear()")  # where the site, for one, notes which theme was chosen
        page.close()


@pytest.fixture
def opened(blank: Callable[..., Page], folder: Path) -> Callable[..., Page]:
    """Opens a page of ``folder``, which each module makes for itself, in a browser that has no network."""

    def open_it(name: str = "index", width: int = 1280, **settings: Any) -> Page:
        page = blank(**settings)
        page.set_viewport_size({"width": width, "height": SIZES[width]})
        note_errors(page)
        page.requests = []  # type: ignore[attr-defined]
        page.on("request", lambda request: page.requests.append(request.url))  # type: ignore[attr-defined]
        page.goto((folder / f"{name}.html").as_uri())
        if settings.get("java_script_enabled", True):
            expect(page.locator(":has(> .hv-still):not(.hv-plays)")).to_have_count(0)
        return page

    return open_it


@pytest.fixture(scope="session")
def desk(together: BrowserContext, lab: Lab) -> Iterator[Page]:
    """A JupyterLab on a small projector, in which one lesson is opened after the other."""
    lab.set_theme("light")
    page = together.new_page()
    page.set_viewport_size({"width": 1280, "height": 720})
    note_errors(page)
    yield page
    page.close()


@pytest.fixture(scope="session", params=sorted(path.name for path in LESSONS.glob("[01]*.ipynb")))
def lesson(request: pytest.FixtureRequest, desk: Page, lab: Lab) -> Iterator[Page]:
    """A lesson that has run; one is open at a time."""
    desk.emulate_media(reduced_motion="no-preference")
    desk.errors.clear()  # type: ignore[attr-defined]
    desk.notebook = request.param  # type: ignore[attr-defined]
    (lab.show if desk.url == "about:blank" else lab.turn_to)(desk, request.param)
    lab.wait_for_kernel(desk)
    yield ran(lab, desk)
    lab.end(request.param)


def note_errors(page: Page) -> None:
    """Keep what goes wrong in the page in ``page.errors``."""
    page.errors, page.slow = [], False  # type: ignore[attr-defined]
    page.on("console", lambda message: _note(page, message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: _note(page, str(error)))


def press(page: Page, *keys: str) -> None:
    """Press one key after the other."""
    for key in keys:
        page.keyboard.press(key)


def changes(player: Locator) -> list[int]:
    """How many places of the page each of the first steps changes: what a step costs, on any machine."""
    counts: list[int] = player.evaluate(Path(__file__).with_name("changes.js").read_text(encoding="utf-8"))
    return counts


def again(place: Locator) -> list[str]:
    """What stands in the place of a slider instead of it, and whether it is to be seen."""
    shown: list[str] = place.evaluate(
        "e => ['content', 'visibility'].map(name => getComputedStyle(e, '::after')[name])"
    )
    return shown


def _note(page: Page, error: str) -> None:
    if SLOW in error:
        page.slow = True  # type: ignore[attr-defined]
    else:
        page.errors.append(error)  # type: ignore[attr-defined]
