"""The comments in code, which are translated while the code stays as it is."""

import re
from collections.abc import Callable

COMMENT = re.compile(r"(?P<mark># *)(?P<text>.*)")
NO_PROSE = re.compile(r"###|# *(?:noqa|type:|%|@|doctest:|fmt:|mypy:)|#!")
"""Comments for tools, which stay."""
TEST_BEGIN, TEST_END = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
"""The lines around the checks of a lesson with solutions; no student sees what is between them."""
STRING_MARK = re.compile(r"\\.|'''|\"\"\"|['\"]|#", re.DOTALL)
LETTER = re.compile(r"[^\W\d_]")


def collect_texts(visit: Callable[[Callable[[str], str]], object]) -> list[str]:
    """Collect the texts that ``visit`` hands to the translation which it gets as its argument.

    >>> collect_texts(lambda translate: translate_comments("x = 1  # one", translate))
    ['one']
    """
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    visit(note)
    return texts


def translate_comments(code: str, translate: Callable[[str], str]) -> str:
    """Translate the comments in ``code``; all else stays as it is.

    >>> translate_comments('print("# 1")  # two', str.upper)
    'print("# 1")  # TWO'
    """
    lines, is_test, quote = [], False, ""
    for line in code.split("\n"):
        start, quote = _find_comment(line, quote)
        is_test = (is_test or line.strip() == TEST_BEGIN) and line.strip() != TEST_END
        comment = COMMENT.fullmatch(line[start:])
        if comment is None or is_test or NO_PROSE.match(line[start:]) or not LETTER.search(comment["text"]):
            lines.append(line)
        else:
            lines.append(line[:start] + comment["mark"] + translate(comment["text"]))
    return "\n".join(lines)


def _find_comment(line: str, quote: str) -> tuple[int, str]:
    """Return where the comment of a line begins, and the mark of the string that goes on in the next line.

    Args:
        line: a line of code.
        quote: the mark of the string in which the line begins; empty if there is none.
    """
    for mark in STRING_MARK.finditer(line):
        if quote:
            quote = "" if mark[0] == quote else quote
        elif mark[0] == "#":
            return mark.start(), ""
        elif not mark[0].startswith("\\"):
            quote = mark[0]
    return len(line), quote if len(quote) == 3 else ""
