"""The base class of objects that the player shows: in Jupyter, as a widget, and as an HTML page."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookviz.support.atomic_files import write_atomically

if TYPE_CHECKING:
    from hookviz.player.payload import Content
    from hookviz.player.widget import Player


class Displayable:
    """An object that the player can show; the player's code is imported when it is first needed."""

    def content(self) -> "Content":
        """Everything that the player shows, as plain data."""
        raise NotImplementedError

    def player(self) -> "Player":
        """The widget; its traits, such as ``step`` and ``shown``, can be linked to other widgets."""
        from hookviz.player.widget import Player

        return Player.showing(self.content(), self.content)

    def to_html(
        self, path: str | Path, title: str | None = None, *, languages: str | Sequence[str] | None = None
    ) -> None:
        """Write an HTML page with the player: a single file that needs no Python, server or network.

        Args:
            path: the file, such as ``lesson.html``; an existing file stays unchanged if writing fails.
            title: the heading of the page.
            languages: the language of the page, or several, such as ``("en", "zh")``: the page opens in the reader's
                language if it is one of them, else in the first, and has a switch. None is the current language.

        Raises:
            OSError: the file cannot be written; the message says why.
            TypeError: ``path`` is not a path.
            ValueError: ``path`` contains a null character, or hookviz does not have a language.
        """
        from hookviz.player.editions import check_languages, make_editions
        from hookviz.player.html_page import render_page

        write_atomically(render_page(make_editions(self.content, check_languages(languages)), title), path)

    def _repr_mimebundle_(self, **_ignored: Any) -> dict[str, Any]:
        from hookviz.player.html_page import render_output

        return {"text/html": render_output(self.content()), "text/plain": repr(self)}

    def _display_(self) -> "Player":
        """The object that marimo shows: it runs widgets, but no scripts in HTML."""
        return self.player()
