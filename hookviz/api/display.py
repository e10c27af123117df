"""What shows itself as a player: in Jupyter, as a widget, and as a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookviz.support.atomic_files import write_atomically

if TYPE_CHECKING:
    from hookviz.player.payload import Content
    from hookviz.player.widget import Player


class Displayed:
    """Something that a player can show. What the player needs is loaded when it is asked for."""

    def content(self) -> "Content":
        """All that the player shows, as plain data."""
        raise NotImplementedError

    def player(self) -> "Player":
        """The widget; its traits, such as ``step`` and ``shown``, can be linked to other widgets."""
        from hookviz.player.widget import Player

        return Player.showing(self.content())

    def to_html(self, path: str | Path, title: str | None = None) -> None:
        """Write a page that plays this: one file, for which no Python, server or network is needed.

        Args:
            path: where to, such as ``lesson.html``; a file that is there stays as it is if anything fails.
            title: the heading of the page.

        Raises:
            OSError: the file cannot be written; the message says why.
            TypeError: ``path`` is no path.
            ValueError: ``path`` contains a null character.
        """
        from hookviz.player.html_page import render_page

        write_atomically(render_page(self.content(), title), path)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        from hookviz.player.html_page import render_output

        return {"text/html": render_output(self.content()), "text/plain": repr(self)}

    def _display_(self) -> "Player":
        """What marimo shows: it runs no scripts in HTML, but widgets."""
        return self.player()
