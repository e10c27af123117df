"""What hookviz says: every text is found for the catalogue, and gets the arguments that it names."""

import ast
import re
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

import hookviz as hv
from hookviz.player.labels import screen_labels
from hookviz.trace import notes

PACKAGE = Path(hv.__file__).parent


def placeholders(text: str) -> set[str]:
    return {re.split(r"\W", name)[0] for _, name, _, _ in Formatter().parse(text) if name is not None}


@cache
def trees() -> dict[str, ast.Module]:
    return {str(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def calls() -> list[tuple[str, ast.Call]]:
    """(file, call) of each call in the package."""
    nodes = ((file, node) for file, tree in trees().items() for node in ast.walk(tree))
    return [(file, node) for file, node in nodes if isinstance(node, ast.Call)]


def literal_of(node: ast.AST) -> str | None:
    """The text that ``_`` or ``N_`` is called with, if it is a literal."""
    is_marked = isinstance(node, ast.Call) and ast.unparse(node.func) in ("_", "N_")
    text = node.args[0] if is_marked else None  # type: ignore[attr-defined]
    return text.value if isinstance(text, ast.Constant) else None


@pytest.mark.slow
def test_every_text_is_found_for_the_catalogue() -> None:
    """Babel does not look into f-strings, and a text that is computed has no translation."""
    assert len({text for _, call in calls() if (text := literal_of(call)) is not None}) > 1_000
    f_strings = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inside = [node for f_string in f_strings for node in ast.walk(f_string) if literal_of(node) is not None]
    assert [ast.unparse(node) for node in inside] == []


def test_every_text_gets_exactly_the_arguments_that_it_names() -> None:
    wrong = []
    for file, call in calls():
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "format"):
            continue
        text = literal_of(call.func.value)
        if text is not None and all(keyword.arg for keyword in call.keywords):
            given = {keyword.arg for keyword in call.keywords}
            wrong += [(file, call.lineno, text)] if placeholders(text) != given else []
    assert wrong == []


def test_every_fact_that_the_package_notes_has_a_sentence() -> None:
    noted = [call.args[0] for _, call in calls() if ast.unparse(call.func) in ("Note.of", "notes.say")]
    facts = {argument.value for argument in noted if isinstance(argument, ast.Constant)}
    assert len(facts) > 20 and facts - set(notes._TEXTS) == set()


SCRIPT = "\n".join(path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "player" / "browser").rglob("*.js")))
KEYS_IN_SCRIPT = set(re.findall(r"\bsay\(\"(\w+)\"", SCRIPT))
KEY_PREFIXES_IN_SCRIPT = tuple(re.findall(r"\bsay\(`(\w*)\$\{", SCRIPT))
"""The prefixes of keys that JavaScript assembles."""


@pytest.mark.skipif(
    not (PACKAGE / "player" / "browser").exists(), reason="the wheel has the player's bundle, not its sources"
)
def test_every_label_that_the_player_uses_exists() -> None:
    labels = screen_labels()
    assert KEYS_IN_SCRIPT and sorted(key for key in KEYS_IN_SCRIPT if key not in labels) == []
    assert [prefix for prefix in KEY_PREFIXES_IN_SCRIPT if not any(key.startswith(prefix) for key in labels)] == []
