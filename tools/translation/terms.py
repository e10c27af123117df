"""The term base of the Chinese edition."""

import tomllib
from typing import Any

from tools.translation.message_sources import ROOT


def read_terms() -> list[dict[str, Any]]:
    """Read the terms: each with ``english`` and ``chinese``, and maybe with words that must not stand for it (``not``).

    >>> read_terms()[0]["english"]
    'hook'
    """
    terms: list[dict[str, Any]] = tomllib.loads(
        (ROOT / "translations" / "zh" / "terms.toml").read_text(encoding="utf-8")
    )["term"]
    return terms
