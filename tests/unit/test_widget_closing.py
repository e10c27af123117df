"""A widget that is closed leaves nothing in the kernel, which would otherwise keep it until it ends."""

import gc
import weakref
from typing import Any

import ipywidgets
import pytest
from ipywidgets.widgets import widget as room
from scenes import c_hook, leaf, recorded

import hookviz as hv
from hookviz.player import trace_content
from hookviz.player.widget import Player
from hookviz.what_if import slider_panel


def models() -> dict[str, Any]:
    """The models that Jupyter keeps, whoever else does."""
    return dict(room._instances if hasattr(room, "_instances") else ipywidgets.Widget.widgets)


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


@pytest.mark.parametrize("what", PLAYERS)
def test_a_closed_player_leaves_no_model_and_none_of_what_it_showed(what: str) -> None:
    before = models()
    player = PLAYERS[what]()
    assert len(models()) == len(before) + 2  # it and its layout
    player.close()
    assert models() == before
    assert player.content == {}
    player.close()


def test_a_closed_player_of_a_large_trace_lets_go_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_content, "MAX_UNSPLIT_STEPS", 5)
    trace = recorded()
    player, kept = trace.player(), weakref.ref(trace)
    assert player.content["chunks"] and player._chunk_listener is not None
    del trace
    player.close()
    gc.collect()
    assert kept() is None and player.content == {}


def test_a_layout_that_somebody_gave_stays_open() -> None:
    before, layout = models(), ipywidgets.Layout()
    Player(layout=layout).close()
    assert models() == {**before, layout.model_id: layout}
    layout.close()


class Kernel:
    """Says which cell it runs, as JupyterLab's does."""

    def __init__(self) -> None:
        self.kernel, self.message = self, {"header": {"msg_id": "0"}, "metadata": {}}

    def get_parent(self) -> dict[str, Any]:
        return self.message

    def run(self, cell: str | None, number: int) -> None:
        self.message = {"header": {"msg_id": str(number)}, "metadata": {} if cell is None else {"cellId": cell}}
        slider_panel.show(WITH_SLIDER)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(slider_panel, "get_ipython", lambda: made)
    monkeypatch.setattr(slider_panel, "display", lambda *_, **__: None)
    monkeypatch.setattr(slider_panel, "_shown_by_cell", {})
    return made


def test_sliders_whose_cell_runs_again_do_not_pile_up(kernel: Kernel) -> None:
    before = len(models())
    kernel.run("one", 1)
    each = len(models()) - before
    kernel.run("one", 2)
    kernel.run("one", 3)
    assert len(models()) == before + each
    kernel.run("two", 4)
    kernel.run("two", 4)  # a cell may show several
    assert len(models()) == before + 3 * each
    kernel.run("two", 5)
    assert len(models()) == before + 2 * each


def test_where_nobody_says_which_cell_runs_all_sliders_live_on(kernel: Kernel) -> None:
    before = len(models())
    kernel.run(None, 1)
    each = len(models()) - before
    kernel.run(None, 2)
    assert len(models()) == before + 2 * each
