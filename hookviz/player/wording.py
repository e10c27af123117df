"""Sentences on their way to the browser: as keys and arguments, with the texts for these keys."""

from hookviz.player.payload import Content, Words
from hookviz.support.messages import load_texts, select_texts
from hookviz.support.messages.text import Message, Text

SCREEN = "player"
"""The keys of the texts that the player itself has on screen begin with this."""


class Wording:
    """Turns sentences into messages, and knows which texts these need.

    >>> from hookviz.support.messages import say
    >>> wording = Wording()
    >>> wording(say("card.before")), wording.words
    (['card.before', {}], {'card.before': 'before'})
    """

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}

    def __call__(self, text: str) -> Message:
        """``text`` as a message: itself, or a key with arguments."""
        if not isinstance(text, Text):
            return text
        self._keys[text.key] = None
        if isinstance(text.arguments, tuple):
            return [text.key, [self(item) for item in text.arguments]]
        return [text.key, {name: self(part) for name, part in text.arguments.items()}]

    def all(self, texts: "list[str] | tuple[str, ...]") -> list[Message]:
        """Several texts as messages."""
        return [self(text) for text in texts]

    @property
    def words(self) -> Words:
        """Key → text, for all messages so far."""
        texts = load_texts()
        return {key: texts[key] for key in self._keys}


def screen_words() -> Words:
    """The texts that the player itself has on screen, under their keys."""
    return {f"{SCREEN}.{key}": text for key, text in select_texts(SCREEN).items()}


def add_notes(content: Content, notes: list[str]) -> None:
    """Put ``notes`` before those of ``content``."""
    wording = Wording()
    content["notes"] = [*wording.all(notes), *content["notes"]]
    content["words"] = content["words"] | wording.words
