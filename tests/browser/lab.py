"""A JupyterLab of its own for the browser tests: a server, a folder of notebooks, and a page to drive."""

import json
import os
import shutil
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

TOKEN = "hookviz"
TOOLS = Path(__file__).parents[2] / "tools"
"""Holds overrides.json, JupyterLab's settings for all who have none of their own."""
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


def chromium() -> str | None:
    """The Chromium that is installed here, if any."""
    named = os.environ.get("HOOKVIZ_CHROMIUM")
    return named or next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


CLOSE = """() => { for (const shown of [...window.jupyterapp.shell.widgets("main")]) shown.dispose(); }"""
TURN_TO = f"""async (path) => {{
  ({CLOSE})();
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
        opened = play.chromium.launch(executable_path=chromium(), args=FLAGS)
        for name in ("new_context", "new_page"):
            setattr(opened, name, patient(getattr(opened, name)))
        yield opened
        opened.close()


def patient(make: Callable[..., Any]) -> Callable[..., Any]:
    """``make``, which makes pages, with pages that wait as long as every test."""

    def made(**settings: Any) -> Any:
        opened = make(**settings)
        opened.set_default_timeout(MILLISECONDS)
        return opened

    return made


class Prose(str):
    """What stands in a markdown cell."""


def write_notebook(path: Path, *cells: str) -> None:
    """A notebook of code cells, and of markdown cells for ``Prose``."""
    code = {"cell_type": "code", "outputs": [], "execution_count": None}
    made = [
        {
            **({"cell_type": "markdown"} if isinstance(cell, Prose) else code),
            "id": f"cell{i}",
            "source": cell,
            "metadata": {},
        }
        for i, cell in enumerate(cells)
    ]
    path.write_text(json.dumps({**NOTEBOOK, "cells": made}))


class Lab:
    """A JupyterLab server (or Notebook's) over ``folder``, with the settings that ``make lab`` gives it."""

    def __init__(self, folder: Path, home: Path, app: str = "jupyterlab") -> None:
        self.folder, self.home, self.app = folder, home, app
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    def __enter__(self) -> "Lab":
        self.set_theme("light")
        self._log = (self.home / "server.log").open("w")
        arguments = [
            f"--ServerApp.port={self.port}",
            f"--IdentityProvider.token={TOKEN}",
            "--no-browser",
            "--allow-root",
            f"--LabApp.app_settings_dir={TOOLS}",
            "--LabApp.expose_app_in_browser=True",
        ]
        command = [sys.executable, "-m", self.app, *arguments, f"--ServerApp.root_dir={self.folder}"]
        self._server = subprocess.Popen(command, env=self._environment(), stdout=self._log, stderr=self._log)
        self._wait()
        return self

    def _environment(self) -> dict[str, str]:
        own = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "work",
        }
        own |= {"JUPYTER_RUNTIME_DIR": "run", "IPYTHONDIR": "ipython", "JUPYTER_DATA_DIR": "data"}
        return {**os.environ, **{name: str(self.home / folder) for name, folder in own.items()}}

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/status?token={TOKEN}", timeout=PATIENCE):
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        raise TimeoutError((self.home / "server.log").read_text())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.terminate()
        try:
            self._server.wait(timeout=20)
        except subprocess.TimeoutExpired:  # it waits for kernels, which end with it
            self._server.kill()
            self._server.wait()
        self._log.close()

    def set_theme(self, theme: str) -> None:
        """``light`` or ``dark``, from the next page on."""
        settings = self.home / "settings" / "@jupyterlab"
        name = "JupyterLab Dark" if theme == "dark" else "JupyterLab Light"
        self._write(settings / "apputils-extension" / "themes.jupyterlab-settings", {"theme": name})

    def _write(self, path: Path, setting: dict[str, object]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(setting))

    def show(self, page: Page, notebook: str) -> None:
        """Open ``notebook``, whether or not it gets a kernel."""
        lab = f"lab/workspaces/auto-{time.monotonic_ns()}/tree"
        where = "notebooks" if self.app == "notebook" else lab
        page.goto(f"http://127.0.0.1:{self.port}/{where}/{notebook}?token={TOKEN}&reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell")

    def open(self, page: Page, notebook: str) -> None:
        """Open ``notebook`` and wait for its kernel."""
        self.show(page, notebook)
        self.wait_for_kernel(page)

    def wait_for_kernel(self, page: Page) -> None:
        """Wait until the notebook that is shown has one."""
        page.wait_for_function(KERNEL_IS_IDLE, polling=100)

    def turn_to(self, page: Page, notebook: str) -> None:
        """As ``show``, in a JupyterLab that shows another, which is closed: to load all of it takes longest."""
        page.evaluate(TURN_TO, notebook)
        page.wait_for_selector(".jp-Notebook .jp-Cell")

    def end(self, notebook: str) -> None:
        """Shut down the kernel of ``notebook``: together those of all lessons would take gigabytes."""
        for session in json.loads(self._ask("/api/sessions")):
            if session["path"] == notebook:
                self._ask(f"/api/sessions/{session['id']}", "DELETE")

    def _ask(self, what: str, method: str = "GET") -> bytes:
        address, head = f"http://127.0.0.1:{self.port}{what}", {"Authorization": f"token {TOKEN}"}
        request = urllib.request.Request(address, headers=head, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return bytes(answer.read())

    def run_all(self, page: Page) -> None:
        """Run every cell, as the Run menu does."""
        page.click(".lm-MenuBar-itemLabel >> text=Run")
        page.click(".lm-Menu-itemLabel >> text=/^Run All Cells/")
