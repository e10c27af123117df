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
    """What Jupyter shows: the sliders, if there are any, above the player."""
    player = whatif.player()
    box = ipywidgets.VBox([*sliders(whatif, player), player]) if whatif.ranges else player
    widget: Any = box._repr_mimebundle_() or {}
    return dict(widget[0] if isinstance(widget, tuple) else widget)
