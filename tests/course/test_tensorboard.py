"""Lesson 09 shows TensorBoard if a browser can reach it, and leaves no server running."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
import pytest
from nbclient import NotebookClient

from tests.waiting import PATIENCE

LESSON = Path(__file__).parents[2] / "notebooks" / "09_watching_training.ipynb"
WRITE_LOG = """
import os, tempfile
from torch.utils.tensorboard import SummaryWriter
folder = tempfile.TemporaryDirectory()
with SummaryWriter(folder.name) as writer:
    writer.add_scalar("loss/train", 0.5, 1)
"""


@contextmanager
def tensorboard_outputs(**variables: str) -> Iterator[list[Any]]:
    """Run the lesson's TensorBoard cell in a kernel with these variables; yield its outputs while the kernel runs."""
    cells = nbformat.read(LESSON, as_version=4).cells
    [tensorboard_source] = [cell.source for cell in cells if "program.TensorBoard" in cell.source]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in (WRITE_LOG, tensorboard_source)]
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JPY_", "JUPYTERHUB_"))}
    client = NotebookClient(notebook, timeout=int(PATIENCE))
    with client.setup_kernel(env={**inherited, **variables}):
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
        yield notebook.cells[-1].outputs


def curve_names(port: str) -> Any:
    """The names of the curves that the TensorBoard at ``port`` shows."""
    with urlopen(f"http://localhost:{port}/data/plugin/scalars/tags", timeout=PATIENCE) as answer:
        return json.load(answer)["."]


def test_tensorboard_shows_the_log_in_an_iframe_and_stops_with_the_kernel() -> None:
    with tensorboard_outputs(JPY_SESSION_NAME="lesson.ipynb") as outputs:
        [frame] = [output.data["text/html"] for output in outputs]
        [port] = re.findall(r"const port = (\d+)", frame)
        assert "<iframe" in frame and list(curve_names(port)) == ["loss/train"]
    with pytest.raises(URLError, match="refused"):
        curve_names(port)


@pytest.mark.parametrize("variables", [{}, {"JPY_SESSION_NAME": "a.ipynb", "JUPYTERHUB_SERVICE_PREFIX": "/user/a/"}])
def test_tensorboard_is_not_started_if_no_browser_can_reach_it(variables: dict[str, str]) -> None:
    with tensorboard_outputs(**variables) as outputs:
        assert outputs == []
