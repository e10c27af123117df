"""The catalogue of translations: gettext files in ``translations/``, one for each source, which are read as one."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from hookviz.support.version import VERSION
from tools.translation.markdown_blocks import has_prose
from tools.translation.message_sources import ROOT, read_sources

FOLDER = ROOT / "translations"
MARK = "〔英文〕"
"""Stands before an English text whose translation is missing or no longer fits it."""
HEADER = "# hookviz in {language}: {name}. CONTRIBUTING.md says how to change a translation."
WRITTEN = datetime(2026, 11, 26, tzinfo=UTC)
"""The date in every file: the history of the project knows when a translation changed."""


class Translations:
    """The translations into one language.

    A text has one translation. Where it needs another one, an entry with the key as its context gives it.
    """

    def __init__(self, catalogues: Mapping[str, Catalog]) -> None:
        self.catalogues = catalogues
        self._texts = {
            (message.context, str(message.id)): str(message.string)
            for catalogue in catalogues.values()
            for message in catalogue
            if message.id and message.string and not message.fuzzy
        }

    def translate(self, text: str, key: str = "") -> str:
        """Return the translation of ``text``, or if there is none, the text itself with a mark before its words."""
        found = self._texts.get((key, text)) or self._texts.get((None, text))
        return found or (f"{MARK}{text}" if has_prose(text) else text)


@cache
def read_translations(language: str) -> Translations:
    """Read the catalogue of a language."""
    return Translations(read_catalogues(language))


def read_catalogues(language: str) -> dict[str, Catalog]:
    """Read the files of the catalogue of a language: name → its entries."""
    return {path.stem: _read(path, language) for path in sorted((FOLDER / language).glob("*.po"))}


def _read(path: Path, language: str) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=_locale(language))


def _locale(language: str) -> str:
    return {"zh": "zh_CN"}.get(language, language)


def update(language: str) -> None:
    """Bring the files of a language in step with the sources.

    New texts get an empty entry. An entry whose English changed keeps its translation and is marked as fuzzy.
    """
    present = read_catalogues(language)
    known = {
        (message.context, message.id): message for catalogue in present.values() for message in catalogue if message.id
    }
    for name, template in make_templates(language, present).items():
        catalogue = present.get(name, Catalog(locale=_locale(language)))
        for message in template:
            moved = known.get((message.context, message.id))
            if message.id and moved is not None:
                catalogue.add(message.id, moved.string, flags=moved.flags, context=message.context)
        catalogue.update(template, no_fuzzy_matching=not len(catalogue), update_creation_date=False)
        catalogue.obsolete.clear()
        write_catalogue(FOLDER / language / f"{name}.po", catalogue)


def make_templates(language: str, present: Mapping[str, Catalog]) -> dict[str, Catalog]:
    """Make the catalogue without translations: each text once, in the file of its first source."""
    seen: dict[str, Catalog] = {}
    templates: dict[str, Catalog] = {}
    contexts = {
        (message.context, message.id) for catalogue in present.values() for message in catalogue if message.context
    }
    for name, messages in read_sources().items():
        template = templates[name] = Catalog(locale=_locale(language))
        for message in messages:
            home = seen.setdefault(message.text, template)
            home.add(message.text, locations=[(message.place, 0)])
            if (message.key, message.text) in contexts:
                template.add(message.text, locations=[(message.place, 0)], context=message.key)
    return templates


def write_catalogue(path: Path, catalogue: Catalog) -> None:
    """Write one file of a catalogue, without dates and line numbers, so that it changes only with its texts."""
    catalogue.header_comment = HEADER.format(language=path.parent.name, name=path.stem)
    catalogue.project, catalogue.version, catalogue.fuzzy = "hookviz", VERSION, False
    catalogue.msgid_bugs_address = catalogue.last_translator = catalogue.language_team = ""
    catalogue.creation_date = catalogue.revision_date = WRITTEN
    with path.open("wb") as file:
        write_po(file, catalogue, width=0, omit_header=False, include_lineno=False, ignore_obsolete=True)


def compile_screens(language: str) -> bytes:
    """Compile what hookviz says, as ``gettext`` reads it: a text without a translation, or a fuzzy one, is left out."""
    compiled = BytesIO()
    write_mo(compiled, read_catalogues(language)["screens"])
    return compiled.getvalue()
