"""Split Markdown or HTML into the texts that are translated and the marks around them, and put it together again."""

import re
from collections.abc import Callable, Iterator
from html import unescape

from tools.translation.code_comments import collect_texts, translate_comments

Translate = Callable[[str], str]
"""Gives the translation of a text."""

FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)")
COLON_FENCE = re.compile(r" *:{3,}.*")
OPTION = re.compile(r" *:[\w-]+:( .*)?")
"""An option of a directive, such as ``:class: question``."""
START = re.compile(r" *(?:(?:[-*+]|\d+[.)]|>|:|#{1,6}|[a-d]\)) +)*")
"""The marks with which a block begins: bullets, numbers, marks of quotations, definitions and headings."""
MARK = re.compile(r" *(?:[-*+]|1[.)]|>) +\S")
"""The mark of a block that ends the paragraph before it. (A line of it may begin with a number and a full stop.)"""
ITEM = re.compile(r" *(?:\d+[.)]) +\S")
CODE_INDENT = " " * 4
"""A block that begins so is code, unless it belongs to a list."""
TABLE_RULE = re.compile(r" *\|?[ :|-]*-[ :|-]*\|?")
CELL_BORDER = re.compile(r"(?<!\\)\|")
TAG = r"<[^<>]+>"
HTML_LINE = re.compile(rf" *{TAG}.*")
TAGGED = re.compile(rf"(?P<before>\s*(?:{TAG}\s*)*)(?P<text>.*?)(?P<after>(?:\s*{TAG})*\s*)")
TOC_ENTRY = re.compile(r"(?P<before>\s*)(?P<text>\S[^<]*?)(?P<after> <[^<>]+>)")
DESCRIPTION = re.compile(r'(?P<before> *(?:description|title): ")(?P<text>.*)(?P<after>")')
LESSON_MARK = re.compile(r"### (?:BEGIN|END) (?:SOLUTION|HIDDEN TESTS)")
"""The marks of what a student does not get."""
DIRECTIVES_WITH_PROSE = ("{note}", "{admonition}", "{tip}", "{warning}", "{important}", "{container}")
CODE_LANGUAGES = ("python", "py", "pycon")
SHELL_LANGUAGES = ("console", "bash", "sh")
SHELL_COMMENT = re.compile(r"(?P<before>(?:.*\S)? *# )(?P<text>.+)(?P<after>)")
ELEMENT = re.compile(r"(?P<open><(?P<tag>title|h1|h2|p|td|li)\b[^>]*>)(?P<text>.*?)(?P<close></(?P=tag)>)", re.DOTALL)
"""A heading, paragraph, item or cell of a page of HTML."""
LETTER = re.compile(r"[A-Za-z]")
"""English has a Latin letter; what is Chinese already stays."""
INVISIBLE = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^<>]+>|&\w+;|\{[^{}]*\}")
"""What is no prose: code, targets of links, tags, entities and placeholders."""


def has_prose(text: str) -> bool:
    """Return whether ``text`` has a word that can be translated.

    >>> has_prose("`loss.backward()`: 12"), has_prose("`loss` is 12")
    (False, True)
    """
    return LETTER.search(INVISIBLE.sub("", text)) is not None


def list_texts(markdown: str) -> list[str]:
    """List the texts of ``markdown`` that are translated, in their order.

    A text is a heading, a paragraph, an item of a list, a cell of a table, or a comment in a block of Python.

    >>> list_texts("# The graph\\n\\n- one\\n  line\\n- two\\n")
    ['The graph', 'one line', 'two']
    """
    return collect_texts(lambda translate: translate_markdown(markdown, translate))


def translate_markdown(markdown: str, translate: Translate) -> str:
    """Translate the texts of ``markdown``; code, tags and marks stay.

    A paragraph of several lines becomes one line: a line break inside Chinese would be shown as a space.

    >>> translate_markdown("- The *first*\\n  line\\n", str.upper)
    '- THE *FIRST* LINE\\n'
    """
    return "\n".join(_translate_lines(markdown.split("\n"), translate))


def _translate_lines(lines: list[str], translate: Translate) -> Iterator[str]:
    position = 0
    if lines[:1] == ["---"] and "---" in lines[1:]:  # the head of a page of the site
        position = lines.index("---", 1) + 1
        yield from (_translate_matched(DESCRIPTION, line, translate) for line in lines[:position])
    is_in_list = False
    while position < len(lines):
        end = _find_end(lines, position)
        block = lines[position:end]
        is_code = block[0].startswith(CODE_INDENT) and not is_in_list
        yield from block if is_code else _translate_block(block, translate)
        if block[0].strip():
            is_in_list = block[0].startswith("  ") or bool(MARK.match(block[0]) or ITEM.match(block[0]))
        position = end


def _find_end(lines: list[str], start: int) -> int:
    """Return the index of the line after the block that begins at ``start``."""
    fence = FENCE.fullmatch(lines[start])
    if fence:
        closing = re.compile(rf" *{re.escape(fence['fence'])} *")
        return next((at + 1 for at in range(start + 1, len(lines)) if closing.fullmatch(lines[at])), len(lines))
    if lines[start].lstrip().startswith("<!--"):
        return next((at + 1 for at in range(start, len(lines)) if "-->" in lines[at]), len(lines))
    if _stands_alone(lines[start]):
        return start + 1
    for at in range(start + 1, len(lines)):
        is_item = MARK.match(lines[at]) or (ITEM.match(lines[at]) and ITEM.match(lines[start]))
        if is_item or _stands_alone(lines[at]) or FENCE.fullmatch(lines[at]):
            return at
    return len(lines)


def _stands_alone(line: str) -> bool:
    """Return whether a line belongs to no paragraph of several lines."""
    is_heading = line.startswith("#")
    is_mark = COLON_FENCE.fullmatch(line) or OPTION.fullmatch(line) or HTML_LINE.fullmatch(line)
    return not line.strip() or is_heading or bool(is_mark) or line.lstrip().startswith("|")


def _translate_block(block: list[str], translate: Translate) -> Iterator[str]:
    first = block[0]
    if FENCE.fullmatch(first):
        yield from _translate_fence(block, translate)
    elif (
        LESSON_MARK.fullmatch(first)
        or not has_prose("\n".join(block))
        or first.lstrip().startswith("<!--")
        or OPTION.fullmatch(first)
    ):
        yield from block
    elif COLON_FENCE.fullmatch(first):
        yield first
    elif first.lstrip().startswith("|"):
        yield first if TABLE_RULE.fullmatch(first) else _translate_row(first, translate)
    elif HTML_LINE.fullmatch(first) and len(block) == 1:
        yield _translate_matched(TAGGED, first, translate)
    else:
        marks = START.match(first)
        prefix = marks[0] if marks else ""
        text = " ".join(line.strip() for line in [first[len(prefix) :], *block[1:]])
        yield prefix + translate(text)


def _translate_row(row: str, translate: Translate) -> str:
    cells = CELL_BORDER.split(row)
    return "|".join(cell.replace(cell.strip(), translate(cell.strip())) if has_prose(cell) else cell for cell in cells)


def _translate_matched(pattern: re.Pattern[str], line: str, translate: Translate) -> str:
    match = pattern.fullmatch(line)
    if match is None or not has_prose(match["text"]):
        return line
    return match["before"] + translate(match["text"]) + match["after"]


def _translate_fence(block: list[str], translate: Translate) -> Iterator[str]:
    fence = FENCE.fullmatch(block[0])
    info = fence["info"].strip() if fence else ""
    first, *inside = block
    if info.startswith("{toctree}"):
        yield first
        yield from (_translate_matched(TOC_ENTRY, line, translate) for line in inside)
    elif info.startswith(DIRECTIVES_WITH_PROSE):
        directive, _, title = first.partition("} ")
        yield f"{directive}}} {translate(title)}" if has_prose(title) else first
        yield from _translate_lines(inside, translate)
    elif info in CODE_LANGUAGES:
        yield first
        yield from translate_comments("\n".join(inside), translate).split("\n")
    elif info in SHELL_LANGUAGES:
        yield first
        yield from (_translate_matched(SHELL_COMMENT, line, translate) for line in inside)
    else:
        yield from block


def translate_html(page: str, translate: Translate) -> str:
    """Translate the text of each heading, paragraph, item and cell of a table; its elements stay.

    >>> translate_html("<p>one</p><p>2</p>", str.upper)
    '<p>ONE</p><p>2</p>'
    """

    def translate_element(element: re.Match[str]) -> str:
        text = " ".join(element["text"].split())
        return element["open"] + (translate(text) if has_prose(unescape(text)) else text) + element["close"]

    return ELEMENT.sub(translate_element, page)
