"""Sliders for the values that a function is given: each move records afresh."""

from typing import Any

import ipywidgets
from traitlets import Bunch

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


def bundle(whatif: WhatIf) -> dict[str, Any]:
    """What Jupyter shows where widgets run: the sliders above the player."""
    player = whatif.player()
    widget: Any = ipywidgets.VBox([*sliders(whatif, player), player])._repr_mimebundle_()
    return {kind: data for kind, data in widget.items() if kind != "text/plain"}
