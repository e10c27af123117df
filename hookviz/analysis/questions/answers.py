"""Answers that a person types: which numbers they hold, and whether those are the numbers of a trace.

``player/asking.js`` follows the same rule, and ``tests/js/verdicts.json`` holds both to it.

**Reading.** An answer is numbers with separators between them, before the first and behind the last. Separators are
commas, semicolons, blanks, round and square brackets, and the word ``tensor``. A comma never stands inside a number:
``1,000`` is two numbers. Capital letters and small ones are the same. Each number is written like this::

    number  = "none" | [sign] ("nan" | "inf" | "infinity" | decimal)
    sign    = "+" | "-"
    decimal = (digits ["." [digits]] | "." digits) ["e" [sign] digits]
    digits  = one or more of 0 1 2 3 4 5 6 7 8 9

Nothing else is a number: neither ``1_000`` nor ``0x10``, neither ``1/2`` nor ``½``. As in the output of an input method
for Chinese or Japanese, full-width characters stand for the usual ones (``１２．５``), ``。`` for the point and ``、``
for the comma; the other minus signs and short dashes stand for ``-``, and ``∞`` for ``inf``.

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

PART = 1e-3
"""A number that differs from the recorded one by no more than this part of it is right."""

DIGITS = 3
"""A person who gives this many digits of a number has given it."""

_SLACK = 1 + 1e-9
"""3.003 - 3 is a little more than 0.003 in binary: so much more still counts."""

_BLANKS = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\ufeff"
"""What JavaScript takes for a blank: Python's list differs."""

_SEPARATORS = re.compile(rf"(?:[,;()\[\]{_BLANKS}]|tensor)+")
_NUMBER = re.compile(r"[+-]?(?:nan|inf|infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?)")

_FULL_WIDTH = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
_SIGNS = str.maketrans({
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\u30fc\ufe63", "-"),
    **dict.fromkeys("\u3002\uff61", "."),
    **dict.fromkeys("\u3001\uff64", ","),
    "\u3000": " ",
    "\u221e": "inf",
})  # fmt: skip


def plain(text: str) -> str:
    """``text`` in small letters and usual characters: what stands for one (full-width, a minus sign) is replaced.

    >>> plain("−１２．５ ∞")
    '-12.5 inf'
    """
    return text.translate(_FULL_WIDTH).translate(_SIGNS).lower()


def read_numbers(answer: Any) -> Numbers | None:
    """The numbers in ``answer``, by the rule above; None where it holds anything else, or nothing.

    Args:
        answer: a text; a number; None; a tensor or an array; or a list or tuple of such things.

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
    """Whether ``given``, of the same length as ``recorded``, is right: each number by the rule above.

    >>> are_near([0.333, None], [1 / 3, None]), are_near([1001.0009], [1000.0])
    (True, False)
    """
    return all(_is_near(one, other) for one, other in zip(given, recorded, strict=True))


def _numbers_in(answer: Any) -> Iterator[float | None]:
    if isinstance(answer, (list, tuple)):
        for part in answer:
            yield from _numbers_in(part)
    elif isinstance(answer, str):
        yield from (_number(part) for part in _SEPARATORS.split(plain(answer)) if part)
    elif hasattr(answer, "tolist"):
        yield from (float(part) for part in flatten_numbers(answer.tolist()))  # type: ignore[arg-type]
    else:
        yield None if answer is None else float(answer)


def _number(written: str) -> float | None:
    if written == "none":
        return None
    if not _NUMBER.fullmatch(written):
        raise ValueError(f"{written!r} is not a number")
    return float(written)


def _is_near(given: float | None, recorded: float | None) -> bool:
    if given is None or recorded is None:
        return given is recorded
    if given == recorded or (math.isnan(given) and math.isnan(recorded)):
        return True
    if not (math.isfinite(given) and math.isfinite(recorded)):
        return False
    return abs(given - recorded) <= PART * abs(recorded) * _SLACK or _is_rounded(given, recorded)


def _is_rounded(given: float, recorded: float) -> bool:
    """Whether ``given`` is ``recorded`` rounded to three digits."""
    if _rounded(given) != given:
        return False
    nearest = _rounded(recorded)
    return math.isfinite(nearest) and abs(given - recorded) <= abs(nearest - recorded) * _SLACK


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS - 1}e}")
