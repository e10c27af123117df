"""Read the numbers in an answer that a person types, and judge them by the recorded numbers.

``player/browser/predict/questions.js`` follows the same rules; ``tests/js/verdicts.json`` checks both.

**Reading.** An answer is numbers with separators between them, before the first and behind the last. Separators are
commas, semicolons, blanks, round and square brackets, and the word ``tensor``. A comma is never part of a number:
``1,000`` is two numbers. Upper and lower case are equal. The grammar of a number is::

    number  = "none" | [sign] ("nan" | "inf" | "infinity" | decimal)
    sign    = "+" | "-"
    decimal = (digits ["." [digits]] | "." digits) ["e" [sign] digits]
    digits  = one or more of 0 1 2 3 4 5 6 7 8 9

Nothing else is a number: neither ``1_000`` nor ``0x10``, neither ``1/2`` nor ``½``. Characters that input methods for
Chinese or Japanese produce are accepted: full-width characters (``１２．５``), ``。`` for the point and ``、`` for the
comma. So are the other minus signs and short dashes for ``-``, and ``∞`` for ``inf``.

**Judging.** A number is right when it differs from the recorded one by at most a thousandth of the recorded one, or
when it is the recorded one rounded to three digits (of two roundings that are as near, both are right). 0 and -0
are the same, NaN is NaN, each infinity is itself, and only ``none`` is None.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

from hookviz.trace.values import flatten_numbers

Numbers = list[float | None]

TOLERANCE = 1e-3
"""A number is right if it differs from the recorded number by at most this fraction of the recorded number."""

DIGITS = 3
"""A number is also right if it is the recorded number rounded to this many significant digits."""

_SLACK = 1 + 1e-9
"""A factor on the tolerance: in binary, 3.003 - 3 is a little more than 0.003."""

_BLANKS = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\ufeff"
"""The characters that JavaScript treats as white space; Python's list differs."""

_SEPARATORS = re.compile(rf"(?:[,;()\[\]{_BLANKS}]|tensor)+")
_NUMBER = re.compile(r"[+-]?(?:nan|inf|infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?)")

_FULL_WIDTH = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
_PLAIN_CHARACTERS = str.maketrans({
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\u30fc\ufe63", "-"),
    **dict.fromkeys("\u3002\uff61", "."),
    **dict.fromkeys("\u3001\uff64", ","),
    "\u3000": " ",
    "\u221e": "inf",
})  # fmt: skip


def normalise(text: str) -> str:
    """Convert ``text`` to lower case, and replace full-width characters and other minus signs by the usual ones.

    >>> normalise("−１２．５ ∞")
    '-12.5 inf'
    """
    return text.translate(_FULL_WIDTH).translate(_PLAIN_CHARACTERS).lower()


def read_numbers(answer: Any) -> Numbers | None:
    """Read the numbers in ``answer`` by the rules above; None if it has no numbers, or anything else.

    Args:
        answer: a text; a number; None; a tensor or an array; or a list or tuple of these.

    >>> read_numbers("１２．５, -inf; none")
    [12.5, -inf, None]
    >>> read_numbers([1, "2"]), read_numbers("1_000")
    ([1.0, 2.0], None)
    """
    try:
        return list(_numbers_in(answer)) or None
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def are_near(given: Numbers, recorded: Numbers) -> bool:
    """Whether each number in ``given`` is right by the rules above; ``recorded`` has the same length.

    >>> are_near([0.333, None], [1 / 3, None]), are_near([1001.0009], [1000.0])
    (True, False)
    """
    return all(_is_near(one, other) for one, other in zip(given, recorded, strict=True))


def _numbers_in(answer: Any) -> Iterator[float | None]:
    if isinstance(answer, (list, tuple)):
        for part in answer:
            yield from _numbers_in(part)
    elif isinstance(answer, str):
        yield from (_parse_number(part) for part in _SEPARATORS.split(normalise(answer)) if part)
    elif hasattr(answer, "tolist"):
        yield from (float(part) for part in flatten_numbers(answer.tolist()))  # type: ignore[arg-type]
    else:
        yield None if answer is None else float(answer)


def _parse_number(text: str) -> float | None:
    if text == "none":
        return None
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def _is_near(given: float | None, recorded: float | None) -> bool:
    if given is None or recorded is None:
        return given is recorded
    if given == recorded or (math.isnan(given) and math.isnan(recorded)):
        return True
    if not (math.isfinite(given) and math.isfinite(recorded)):
        return False
    return abs(given - recorded) <= TOLERANCE * abs(recorded) * _SLACK or _is_rounded(given, recorded)


def _is_rounded(given: float, recorded: float) -> bool:
    """Whether ``given`` is ``recorded`` rounded to ``DIGITS`` significant digits."""
    if _round_to_digits(given) != given:
        return False
    nearest = _round_to_digits(recorded)
    return math.isfinite(nearest) and abs(given - recorded) <= abs(nearest - recorded) * _SLACK


def _round_to_digits(number: float) -> float:
    return float(f"{number:.{DIGITS - 1}e}")
