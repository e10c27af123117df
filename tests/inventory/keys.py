"""The keys of the player, read from its JavaScript."""

import re
from pathlib import Path

BINDINGS = Path(__file__).parents[2] / "hookviz" / "player" / "browser" / "common" / "key_bindings.js"
DIGITS = "123456789"


def read_keys() -> set[str]:
    """Return the keys of the table in ``key_bindings.js``, such as ``ArrowLeft`` or ``Shift+Enter``."""
    source = BINDINGS.read_text(encoding="utf-8")
    return {*_read_names(source, "KEYS"), *(f"Shift+{key}" for key in _read_names(source, "SHIFTED_ACTIONS")), *DIGITS}


def _read_names(source: str, table: str) -> list[str]:
    found = re.search(rf"\nconst {table} = \{{(.+?)\}};|\nexport const {table} = \{{(.+?)\}};", source, re.DOTALL)
    assert found, f"{BINDINGS.name} has no table {table}"
    entries = re.findall(r'(?:"([^"]+)"|(\w+)): "\w+"', found[1] or found[2])
    return [quoted or plain for quoted, plain in entries]
