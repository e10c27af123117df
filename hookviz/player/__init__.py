"""The widget that steps through a trace, in the browser alone."""

from hookviz.player.widget import Player, bundle

__all__ = ["Player", "bundle"]
