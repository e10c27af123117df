"""Plain data packed into a short text, which the browser unpacks."""

import base64
import json
import zlib
from typing import Any


def pack(values: Any) -> str:
    """``values`` as JSON, compressed, in letters and digits: nothing in it can end a script or turn a line.

    >>> unpack(pack({"a": [1, None, "</script>"]}))
    {'a': [1, None, '</script>']}
    """
    written = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(written.encode(), 9)).decode()


def unpack(text: str) -> Any:
    """What was packed."""
    return json.loads(zlib.decompress(base64.b64decode(text)))
