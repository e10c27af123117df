"""The player's JavaScript and CSS without what only its readers need: it is saved with every player.

Every line of these files stands for itself: no text in them goes on in a second line.
"""

import re
from collections.abc import Iterator

_TEXT = re.compile(r'("(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)')
_PATTERN = re.compile(r"[(=,:] ?/")
"""Where a regular expression begins."""
_SIGN = r"[=,;:?(){}\[\]<>&|*]"
_NEEDLESS = re.compile(rf" (?=!?{_SIGN}|[+\-/] (?![+\-]))|(?<={_SIGN}) |(?<= [+\-/]) (?![+\-])")
"""A space beside a sign that says nothing."""
_TRUTH = re.compile(r"(?<![\w$.])(?:(true)|false)(?![\w$:])")
"""A truth value by its name; not the name of a property."""
_ONE = re.compile(r"(?<![\w$)\]])\((\w+)\)=>")
"""A function of one argument needs no brackets around it."""


def compact_script(code: str) -> str:
    """``code`` without comments, imports, exports by name, indents, needless line ends and needless spaces.

    >>> compact_script("export const f = (a) => {\\n  // As is.\\n  return [a, 1];\\n};")
    'const f=a=>{return[a,1]};'
    """
    lines = (re.sub(r"^export (?=function|const|class|async)", "", line) for line in _lines(code))
    closed = [close(line) for line in lines if not line.startswith("import ")]
    return re.sub(r";\n?(?=})|(?<=[;,}])\n(?=\w)", "", _joined(_declared(closed)))


def compact_style(css: str) -> str:
    """``css`` without comments and without the spaces that say nothing.

    >>> compact_style(".a > .b, .c :is(.d, .e) { margin: 1px 2px;\\nwidth: calc(1px + 2px); }")
    '.a>.b,.c :is(.d,.e){margin:1px 2px;width:calc(1px + 2px)}'
    """
    return re.sub(r"\n|(?<=[:;,{>]) | (?=[{>])|;?\s?(?=})", "", _joined(_lines(css)))


def close(line: str) -> str:
    """``line`` of JavaScript without the spaces beside signs; texts, and lines with a regular expression, stay.

    >>> close('const f = (a, b) => say("a , b") + [a, ...b, true];')
    'const f=(a,b)=>say("a , b")+[a,...b,!0];'
    """
    if _PATTERN.search(line):
        return line
    parts = enumerate(_TEXT.split(line))
    return "".join(part if place % 2 else _closed(part) for place, part in parts)


def _closed(part: str) -> str:
    short = _TRUTH.sub(lambda truth: "!0" if truth[1] else "!1", _NEEDLESS.sub("", part))
    return _ONE.sub(lambda one: f"{one[1]}=>", short)


def _declared(lines: list[str]) -> Iterator[str]:
    """Declarations one after the other, each in a line of its own, as one."""
    going_on = False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        one = line.removeprefix("const ") if going_on else line
        going_on = line.startswith("const ") and line.find(";") == len(line) - 1 and after.startswith("const ")
        yield f"{one[:-1]}," if going_on else one


def _lines(code: str) -> Iterator[str]:
    code = re.sub(r"^\s*/\*.*?\*/$", "", code, flags=re.DOTALL | re.MULTILINE)
    lines = (line.strip() for line in code.splitlines())
    return (line for line in lines if line and not line.startswith("//"))


def _joined(lines: Iterator[str]) -> str:
    return re.sub(r"(?<=[;{,(\[])\n", "", "\n".join(lines))
