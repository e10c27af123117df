"""Translate hookviz: ``python -m tools.translation [update | check | build] [language]``.

``update`` brings the catalogue in step with the texts, ``check`` says what is missing and which rules are broken, and
``build`` writes the edition in ``notebooks/zh`` and the tables of the package. Without an argument it does all three.
"""

import argparse
import sys

from hookviz.support.messages.languages import LANGUAGES
from tools.translation.catalogue import read_translations, update
from tools.translation.coverage import describe_coverage, find_faults
from tools.translation.editions import write_edition

OTHERS = [language for language in LANGUAGES if language != "en"]


def main(arguments: list[str]) -> int:
    """Carry out one of the commands, or all of them in turn; return 1 if something is missing or wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.translation", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("update", "check", "build"))
    parser.add_argument("languages", nargs="*", default=OTHERS, choices=[*OTHERS, OTHERS])
    options = parser.parse_args(arguments)
    failed = 0
    for language in options.languages:
        if options.command in (None, "update"):
            update(language)
            read_translations.cache_clear()
        if options.command in (None, "check"):
            faults = find_faults(language)
            print("\n".join([*faults, describe_coverage(language)]))
            failed |= bool(faults)
        if options.command in (None, "build"):
            for path in write_edition(language):
                print(path)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
