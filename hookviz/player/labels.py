"""The labels, hints and messages of the player itself, which the browser fills with numbers and names."""

from hookviz.support.messages import select_texts


def screen_labels() -> dict[str, str]:
    """Return key → text with ``{named}`` placeholders, in the language in which hookviz speaks now."""
    return select_texts("player")
