"""Lesson 09 shows TensorBoard where a browser can reach it, and leaves no server behind."""

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
WRITE = """
import os, tempfile
from torch.utils.tensorboard import SummaryWriter
folder = tempfile.TemporaryDirectory()
with SummaryWriter(folder.name) as writer:
    writer.add_scalar("loss/train", 0.5, 1)
"""


@contextmanager
def shown(**variables: str) -> Iterator[list[Any]]:
    """What the lesson's cell with TensorBoard puts out in a kernel with these variables, while the kernel lives."""
    cells = nbformat.read(LESSON, as_version=4).cells
    [board] = [cell.source for cell in cells if "program.TensorBoard" in cell.source]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (WRITE, board)])
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JPY_", "JUPYTERHUB_"))}
    client = NotebookClient(notebook, timeout=int(PATIENCE))
    with client.setup_kernel(env={**inherited, **variables}):
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
        yield notebook.cells[-1].outputs


def tags(port: str) -> Any:
    """The names of the curves that a TensorBoard shows."""
    with urlopen(f"http://localhost:{port}/data/plugin/scalars/tags", timeout=PATIENCE) as answer:
        return json.load(answer)["."]


def test_it_shows_the_log_in_a_frame_and_ends_with_the_kernel() -> None:
    with shown(JPY_SESSION_NAME="lesson.ipynb") as outputs:
        [frame] = [output.data["text/html"] for output in outputs]
        [port] = re.findall(r"const port = (\d+)", frame)
        assert "<iframe" in frame and list(tags(port)) == ["loss/train"]
    with pytest.raises(URLError, match="refused"):
        tags(port)


@pytest.mark.parametrize("variables", [{}, {"JPY_SESSION_NAME": "a.ipynb", "JUPYTERHUB_SERVICE_PREFIX": "/user/a/"}])
def test_it_shows_nothing_where_no_browser_could_reach_it(variables: dict[str, str]) -> None:
    with shown(**variables) as outputs:
        assert outputs == []
