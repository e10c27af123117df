"""Sentences as messages for the browser: keys and arguments, with the texts for these keys."""

from hookviz.player.payload import Content, Words
from hookviz.support.messages import load_texts, select_texts
from hookviz.support.messages.text import Message, Text

SCREEN_SECTION = "player"
"""The section of the texts of buttons, labels and hints of the player."""


class Wording:
    """Turns sentences into messages, and collects the keys whose texts these need.

    >>> from hookviz.support.messages import say
    >>> wording = Wording()
    >>> wording(say("card.before")), wording.words
    (['card.before', {}], {'card.before': 'before'})
    """

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}

    def __call__(self, text: str) -> Message:
        """Return ``text`` as a message: a plain string as it is, a ``Text`` as its key with arguments."""
        if type(text) is str or not isinstance(text, Text):
            return text
        self._keys[text.key] = None
        if isinstance(text.arguments, tuple):
            return [text.key, [self(item) for item in text.arguments]]
        # Most parts are plain strings: without a call for each, thousands of sentences take a third of the time.
        parts = text.arguments.items()
        return [text.key, {name: part if type(part) is str else self(part) for name, part in parts}]

    def messages(self, texts: "list[str] | tuple[str, ...]") -> list[Message]:
        """Return a message for each of ``texts``."""
        return [self(text) for text in texts]

    @property
    def words(self) -> Words:
        """Key → text, for the keys of all messages made so far."""
        texts = load_texts()
        return {key: texts[key] for key in self._keys}


def screen_words() -> Words:
    """Return key → text for the buttons, labels and hints of the player."""
    return {f"{SCREEN_SECTION}.{key}": text for key, text in select_texts(SCREEN_SECTION).items()}


def add_notes(content: Content, notes: list[str]) -> None:
    """Insert ``notes`` before the notes of ``content``."""
    wording = Wording()
    content["notes"] = [*wording.messages(notes), *content["notes"]]
    content["words"] = content["words"] | wording.words
