"""What of the texts is translated, what is missing or no longer fits, and which translations break a rule."""

from collections.abc import Iterator

from babel.messages.catalog import Message

from tools.translation.catalogue import read_catalogues
from tools.translation.message_sources import read_sources
from tools.translation.rules import check_entry


def list_entries(language: str) -> Iterator[tuple[str, Message]]:
    """Yield each entry of the catalogue with the name of its file."""
    for name, catalogue in read_catalogues(language).items():
        yield from ((name, message) for message in catalogue if message.id)


def describe_coverage(language: str) -> str:
    """Say how many texts there are, and how many are translated or fuzzy."""
    entries = [message for _, message in list_entries(language)]
    translated = [message for message in entries if message.string and not message.fuzzy]
    fuzzy = sum(message.fuzzy for message in entries)
    share = len(translated) / len(entries) if entries else 0
    return f"{language}: {len(entries):,} texts, {share:.1%} translated, {fuzzy} fuzzy"


def find_faults(language: str) -> list[str]:
    """Find the texts that have no translation or a fuzzy one, those that no source has, and broken rules."""
    sources = {message.text for messages in read_sources().values() for message in messages}
    known: set[str] = set()
    faults = []
    for name, message in list_entries(language):
        text, place = str(message.id), f"translations/{language}/{name}.po"
        known.add(text)
        if text not in sources:
            faults.append(f"{place}: no source has this text: {text}")
        if message.fuzzy or not message.string:
            state = "its English has changed" if message.fuzzy else "not translated"
            faults.append(f"{place}: {state}: {text}")
        else:
            faults += [f"{place}: {fault}: {message.string}" for fault in check_entry(text, str(message.string))]
    return faults + [f"translations/{language}: not in the catalogue: {text}" for text in sorted(sources - known)]
