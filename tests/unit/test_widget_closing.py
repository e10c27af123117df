"""A closed widget leaves nothing in the kernel, which would otherwise keep it alive."""

import gc
import weakref
from typing import Any

import ipywidgets
import pytest
from ipywidgets.widgets import widget as widget_module
from scenes import c_hook, leaf, recorded

import hookviz as hv
from hookviz.player import trace_content
from hookviz.what_if import slider_panel


def models() -> dict[str, Any]:
    """The widget models that ipywidgets keeps alive."""
    return dict(widget_module._instances if hasattr(widget_module, "_instances") else ipywidgets.Widget.widgets)


def run(x: float = 2.0) -> None:
    start = leaf(x)
    start.register_hook(c_hook)
    (start * 3).backward()


WITH_SLIDER = hv.whatif(run, x=(0, 5))
PLAYERS = {
    "trace": lambda: recorded().player(),
    "what-if": lambda: hv.whatif(run).player(),
    "diff": lambda: recorded().diff(recorded()).player(),
}


@pytest.mark.parametrize("kind", PLAYERS)
def test_a_closed_player_leaves_no_model_and_no_content(kind: str) -> None:
    before = models()
    player = PLAYERS[kind]()
    assert len(models()) == len(before) + 2  # the player and its layout
    player.close()
    assert models() == before
    assert player.content == {}
    player.close()


def test_a_closed_player_of_a_large_trace_releases_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_content, "MAX_UNSPLIT_STEPS", 5)
    trace = recorded()
    player, reference = trace.player(), weakref.ref(trace)
    assert player.content["chunks"] and player._listener is not None
    del trace
    player.close()
    gc.collect()
    assert reference() is None and player.content == {}


class Kernel:
    """A kernel that sends the id of the running cell, as JupyterLab's does."""

    def __init__(self) -> None:
        self.kernel, self.message = self, {"header": {"msg_id": "0"}, "metadata": {}}

    def get_parent(self) -> dict[str, Any]:
        return self.message

    def run(self, cell: str | None, number: int) -> None:
        self.message = {"header": {"msg_id": str(number)}, "metadata": {} if cell is None else {"cellId": cell}}
        slider_panel.show(WITH_SLIDER)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    instance = Kernel()
    monkeypatch.setattr(slider_panel, "get_ipython", lambda: instance)
    monkeypatch.setattr(slider_panel, "display", lambda *_, **__: None)
    monkeypatch.setattr(slider_panel, "_shown_by_cell", {})
    return instance


def test_sliders_of_a_rerun_cell_are_closed(kernel: Kernel) -> None:
    before = len(models())
    kernel.run("one", 1)
    models_per_output = len(models()) - before
    kernel.run("one", 2)
    kernel.run("one", 3)
    assert len(models()) == before + models_per_output
    kernel.run("two", 4)
    kernel.run("two", 4)  # a cell may show several slider panels
    assert len(models()) == before + 3 * models_per_output
    kernel.run("two", 5)
    assert len(models()) == before + 2 * models_per_output
    kernel.run(None, 6)
    kernel.run(None, 7)
    assert len(models()) == before + 4 * models_per_output, "without the id of a cell none is closed"
