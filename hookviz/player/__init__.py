"""The widget that steps through a trace, in the browser alone."""

from hookviz.player.widget import Player

__all__ = ["Player"]
