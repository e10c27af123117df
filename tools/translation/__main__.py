"""Translate hookviz: ``python -m tools.translation`` updates the catalogue and writes the edition in notebooks/zh.

``python -m tools.translation check`` only lists what is missing, fuzzy or breaks a rule, and returns 1 if anything is.
"""

import argparse
import sys

from hookviz.support.messages.languages import LANGUAGES
from tools.translation.catalogue import read_translations, update
from tools.translation.editions import write_edition
from tools.translation.rules import find_faults


def main(arguments: list[str]) -> int:
    """Update the catalogue, list what is wrong in it, and write the edition; with ``check``, only list."""
    parser = argparse.ArgumentParser(prog="python -m tools.translation", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["check"])
    only_lists = parser.parse_args(arguments).command == "check"
    faults = []
    for language in (language for language in LANGUAGES if language != "en"):
        if not only_lists:
            update(language)
            read_translations.cache_clear()
        faults += find_faults(language)
        for path in [] if only_lists else write_edition(language):
            print(path)
    print(*faults, sep="\n", end="\n" if faults else "")
    return int(only_lists and bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
