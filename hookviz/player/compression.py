"""Packing plain data into a short text, which the browser unpacks."""

import base64
import json
import zlib
from typing import Any


def pack(values: Any) -> str:
    """Pack ``values`` as compressed JSON in base64: no character in it can end a script or break a line.

    >>> unpack(pack({"a": [1, None, "</script>"]}))
    {'a': [1, None, '</script>']}
    """
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack(text: str) -> Any:
    """Return the values that ``pack`` packed."""
    return json.loads(zlib.decompress(base64.b64decode(text)))
