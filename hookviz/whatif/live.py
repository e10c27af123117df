"""Sliders for the values that a function is given: each move records afresh."""

import uuid

import ipywidgets
from IPython.display import display
from traitlets import Bunch

from hookviz.page import output
from hookviz.player import Player
from hookviz.whatif.whatif import Range, WhatIf

_STEPS = 100


def sliders(whatif: WhatIf, player: Player) -> list[ipywidgets.FloatSlider]:
    """One slider for each range of ``whatif``; a move records everything again and gives it to ``player``."""
    made = [_slider(name, bounds, whatif.values[name]) for name, bounds in whatif.ranges.items()]

    def moved(change: Bunch) -> None:
        whatif.change(**{change.owner.description: change.new})
        player.show(whatif.state())

    for slider in made:
        slider.observe(moved, "value")
    return made


def _slider(name: str, bounds: Range, value: float) -> ipywidgets.FloatSlider:
    low, high = bounds
    step = float(f"{(high - low) / _STEPS:.1g}")
    return ipywidgets.FloatSlider(value, min=low, max=high, step=step, description=name, readout_format=".4g")


def show(whatif: WhatIf) -> None:
    """Show the sliders above the player in Jupyter, where they live as long as their kernel.

    Before them stands a player that needs no kernel, for the time after: the living one hides it.
    """
    state = whatif.state()
    player = Player.showing(state)
    player.twin = uuid.uuid4().hex
    html = f'<div class="hv-twin" data-twin="{player.twin}">{output(state)}</div>'
    display({"text/html": html, "text/plain": repr(whatif)}, raw=True)  # type: ignore[no-untyped-call]
    display(ipywidgets.VBox([*sliders(whatif, player), player]))  # type: ignore[no-untyped-call]
