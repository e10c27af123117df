"""A JupyterLab server for the browser tests, with a folder of notebooks and methods to drive its pages."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.waiting import MILLISECONDS, PATIENCE
from tools.handouts import find_browser

TOKEN = "hookviz"
TOOLS = Path(__file__).parents[2] / "tools"
"""The folder of overrides.json, JupyterLab's default settings."""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NOTEBOOK = {
    "metadata": {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}


CLOSE_ALL_TABS = """() => { for (const shown of [...window.jupyterapp.shell.widgets("main")]) shown.dispose(); }"""
SWITCH_NOTEBOOK = f"""async (path) => {{
  ({CLOSE_ALL_TABS})();
  await window.jupyterapp.commands.execute("docmanager:open", {{ path }});
}}"""

# The status bar may still show the kernel of a notebook that was closed a moment ago.
KERNEL_IS_IDLE = """() => {
  const context = window.jupyterapp.shell.currentWidget?.context;
  return context?.isReady && context.sessionContext.session?.kernel?.status === "idle";
}"""


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    with sync_playwright() as play:
        launched = play.chromium.launch(executable_path=find_browser(), args=FLAGS)
        for name in ("new_context", "new_page"):
            setattr(launched, name, with_long_timeout(getattr(launched, name)))
        yield launched
        launched.close()


def with_long_timeout(make: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``make``, which creates pages or contexts, to set the tests' timeout on them."""

    def make_with_timeout(**settings: Any) -> Any:
        page = make(**settings)
        page.set_default_timeout(MILLISECONDS)
        return page

    return make_with_timeout


class Prose(str):
    """The text of a markdown cell."""


def write_notebook(path: Path, *cells: str) -> None:
    """Write a notebook of code cells, and of markdown cells for ``Prose``."""
    code = {"cell_type": "code", "outputs": [], "execution_count": None}
    notebook_cells = [
        {
            **({"cell_type": "markdown"} if isinstance(cell, Prose) else code),
            "id": f"cell{i}",
            "source": cell,
            "metadata": {},
        }
        for i, cell in enumerate(cells)
    ]
    path.write_text(json.dumps({**NOTEBOOK, "cells": notebook_cells}))


def free_port() -> int:
    """Return a port that no server uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


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


class Lab:
    """A JupyterLab server over ``folder``, with the settings that ``make lab`` gives it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.port = free_port()

    def __enter__(self) -> "Lab":
        self.set_theme("light")
        self._log = (self.home / "server.log").open("w")
        self._server = subprocess.Popen(self._command(), env=self._environment(), stdout=self._log, stderr=self._log)
        wait_for_server(f"http://127.0.0.1:{self.port}/api/status?token={TOKEN}")
        return self

    def _command(self) -> list[str]:
        arguments = [
            f"--ServerApp.port={self.port}",
            f"--ServerApp.root_dir={self.folder}",
            f"--IdentityProvider.token={TOKEN}",
            "--no-browser",
            "--allow-root",
        ]
        return [*self._program(), *arguments]

    def _program(self) -> list[str]:
        options = [f"--LabApp.app_settings_dir={TOOLS}", "--LabApp.expose_app_in_browser=True"]
        return [sys.executable, "-m", "jupyterlab", *options]

    def _environment(self) -> dict[str, str]:
        own = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "work",
            "JUPYTER_RUNTIME_DIR": "run",
            "IPYTHONDIR": "ipython",
            "JUPYTER_DATA_DIR": "data",
        }
        return {**os.environ, **{name: str(self.home / folder) for name, folder in own.items()}}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.terminate()
        try:
            self._server.wait(timeout=20)
        except subprocess.TimeoutExpired:  # it waits for its kernels, which end with the server
            self._server.kill()
            self._server.wait()
        self._log.close()

    def set_theme(self, theme: str) -> None:
        """Set the theme of pages opened from now on: ``light`` or ``dark``."""
        settings = self.home / "settings" / "@jupyterlab"
        name = "JupyterLab Dark" if theme == "dark" else "JupyterLab Light"
        path = settings / "apputils-extension" / "themes.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"theme": name}))

    def show(self, page: Page, notebook: str) -> None:
        """Open ``notebook`` without waiting for a kernel."""
        route = f"lab/workspaces/auto-{time.monotonic_ns()}/tree"
        page.goto(f"http://127.0.0.1:{self.port}/{route}/{notebook}?token={TOKEN}&reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell")

    def open(self, page: Page, notebook: str) -> None:
        """Open ``notebook`` and wait for its kernel."""
        self.show(page, notebook)
        self.wait_for_kernel(page)

    def wait_for_kernel(self, page: Page) -> None:
        """Wait until the kernel of the open notebook is idle."""
        page.wait_for_function(KERNEL_IS_IDLE, polling=100)

    def turn_to(self, page: Page, notebook: str) -> None:
        """Replace the open notebook by ``notebook`` without reloading JupyterLab, which would be slow."""
        page.evaluate(SWITCH_NOTEBOOK, notebook)
        page.wait_for_selector(".jp-Notebook .jp-Cell")

    def end(self, notebook: str) -> None:
        """Shut down the kernel of ``notebook``, because the kernels of all lessons together take gigabytes."""
        for session in json.loads(self._request("/api/sessions")):
            if session["path"] == notebook:
                self._request(f"/api/sessions/{session['id']}", "DELETE")

    def _request(self, path: str, method: str = "GET") -> bytes:
        address, head = f"http://127.0.0.1:{self.port}{path}", {"Authorization": f"token {TOKEN}"}
        request = urllib.request.Request(address, headers=head, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return bytes(answer.read())

    def run_all(self, page: Page) -> None:
        """Run every cell, as the Run menu does."""
        page.click(".lm-MenuBar-itemLabel >> text=Run")
        page.click(".lm-Menu-itemLabel >> text=/^Run All Cells/")
