"""Every sentence has its key, every key its use, and every place in a sentence something that fills it."""

import ast
import dataclasses
import itertools
import json
import re
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
import torch
from shown import shown_steps_of

from hookviz import Step, Trace
from hookviz.autograd.tensor_statistics import measure
from hookviz.player.step_words import _GLYPHS, _NOTES, _ONE_CARD
from hookviz.support.messages import load_texts, match_arguments, say, select_texts
from hookviz.trace import HOOK_KINDS, KINDS, HookRow, Note, StepRow
from hookviz.trace.sentences import make_sentence, make_title

PACKAGE = Path(__file__).resolve().parents[2] / "hookviz"
WORDS = load_texts()


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """(file, node) of every node of Python's syntax in the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    trees = {str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8")) for path in files}
    return [(file, node) for file, tree in trees.items() for node in ast.walk(tree)]


@cache
def calls() -> list[tuple[str, ast.Call]]:
    """(file, call) of each ``say(...)``, ``join(...)`` and ``Note.of(...)`` in the package."""
    found = [(file, node) for file, node in nodes() if isinstance(node, ast.Call)]
    return [(file, call) for file, call in found if ast.unparse(call.func) in ("say", "join", "Note.of")]


def patterns(node: ast.expr) -> list[str]:
    """Regular expressions of the keys that an expression can be: each of its constants with anything for its holes."""
    if isinstance(node, ast.Constant):
        return [re.escape(node.value)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(re.escape(p.value) if isinstance(p, ast.Constant) else ".+" for p in node.values)]
    if isinstance(node, ast.IfExp):
        return patterns(node.body) + patterns(node.orelse)
    if isinstance(node, ast.BinOp):
        return [one + other for one in patterns(node.left) for other in patterns(node.right)]
    return []  # a key kept in a variable: its text stands elsewhere in the package


@cache
def texts() -> set[str]:
    """Every text in the package's Python."""
    return {node.value for _, node in nodes() if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@cache
def used() -> set[str]:
    """Regular expressions of the keys that ``say`` and ``join`` are called with."""
    return {pattern for _, call in calls() for pattern in patterns(call.args[0])}


SCRIPT = "\n".join(path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "player" / "browser").glob("*.js")))
IN_SCRIPT = set(re.findall(r"\"(player\.\w+)\"", SCRIPT))
BEGUN_IN_SCRIPT = tuple(re.findall(r"`(player\.\w*)\$\{", SCRIPT))
"""What keys begin with that JavaScript puts together."""


def used_in_script(key: str) -> bool:
    """Whether JavaScript names a key, or puts it together: of the name of an action, say, which it names then."""
    ends = [key.removeprefix(begun) for begun in BEGUN_IN_SCRIPT if key.startswith(begun)]
    return key in IN_SCRIPT or any(map(is_named, ends))


def is_named(end: str) -> bool:
    """Whether the end of a key is a number, or stands alone in JavaScript or in Python, which sends the kinds."""
    return end.isdigit() or end in texts() or re.search(rf'"{end}"|^  {end}:', SCRIPT, re.MULTILINE) is not None


def test_the_table_holds_texts_each_under_one_key() -> None:
    pairs = json.loads(
        (PACKAGE / "support" / "messages" / "en.json").read_text(encoding="utf-8"), object_pairs_hook=list
    )
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys))
    assert all(isinstance(text, str) and (text.strip() or key.startswith("join.")) for key, text in pairs)


def test_every_key_that_the_code_uses_exists() -> None:
    assert [pattern for pattern in used() if not any(re.fullmatch(pattern, key) for key in WORDS)] == []


def used_in_python(key: str) -> bool:
    """Whether Python names a key: whole, as the beginning of one (``f"{text}.{effect}"``), or in a call of ``say``."""
    heads = [key[:place] for place, letter in enumerate(key) if letter == "." and "." in key[:place]]
    return not texts().isdisjoint([key, *heads]) or any(re.fullmatch(p, key) for p in used() if not p.startswith(".+"))


def test_every_key_that_exists_is_used() -> None:
    scripts = {key for key in WORDS if key.startswith("player.") and used_in_script(key)}
    assert [key for key in WORDS if key not in scripts and not used_in_python(key)] == []


def test_every_key_that_the_player_uses_exists() -> None:
    assert IN_SCRIPT and sorted(key for key in IN_SCRIPT if key not in WORDS) == []
    assert [begun for begun in BEGUN_IN_SCRIPT if not any(key.startswith(begun) for key in WORDS)] == []


def test_every_kind_has_a_title_and_a_sentence() -> None:
    effects = {f"sentence.hook.{effect}" for effect in ("kept", "edited", "replaced")}
    titles = {f"kind.{kind}" for kind in KINDS}
    hooks = {f"{word}.{kind}" for kind in HOOK_KINDS for word in ("kept", "dict")}
    # The row of an unobserved call holds its sentence.
    sentences = {f"sentence.{kind}" for kind in KINDS if kind not in (*HOOK_KINDS, "unobserved")}
    assert sorted((effects | titles | hooks | sentences) - set(WORDS)) == []


def test_every_kind_has_a_glyph_with_a_legend() -> None:
    glyphs = {
        kind: "hook" if kind in HOOK_KINDS else "note" if kind in _NOTES else _GLYPHS.get(kind, "node")
        for kind in KINDS
    }
    # A seed has a node's shape.
    legends = {f"player.legend_{glyph.replace('seed', 'node')}" for glyph in glyphs.values()}
    assert sorted((legends | {f"card.{kind}" for kind in _ONE_CARD}) - set(WORDS)) == []


@pytest.mark.parametrize("effect", ["kept", "edited", "replaced"])
def test_every_effect_has_its_words(effect: str) -> None:
    assert {f"effect.{effect}", f"sentence.hook.{effect}", f"sentence.data.{effect}"} <= set(WORDS)


def filled() -> list[tuple[str, str, ast.Call]]:
    """Each call that names its key outright and its parts one by one."""
    plain = [(file, call) for file, call in calls() if isinstance(call.args[0], ast.Constant) and len(call.args) == 1]
    return [(file, call.args[0].value, call) for file, call in plain if all(k.arg for k in call.keywords)]


def test_every_sentence_gets_exactly_the_parts_that_it_names() -> None:
    given = [(file, call.lineno, key, {keyword.arg for keyword in call.keywords}) for file, key, call in filled()]
    assert given
    assert [one for one in given if fields(WORDS[one[2]]) != one[3]] == []


def told(kind: str, **known: Any) -> Step:
    """A step of any kind, in a trace that knows one hook of that kind, one value and one more step."""
    trace = Trace(ops=["MulBackward0", "AccumulateGrad"], edges={(0, 0): (1, 0)}, roots=[[(0, 0)]], hooked=[[0]])
    trace.values.append(measure(torch.tensor(8.0)))
    fired = kind if kind in HOOK_KINDS else "tensor_hook"
    output = -1 if fired.startswith("node") else 0
    trace.hook_rows.append(HookRow(fired, 0, output, 0, "h", None, None, None, None))
    trace.rows += [StepRow(0, kind, 0, output, **known), StepRow(0, fired, 1, output, hook=0, effect="edited")]
    return trace.steps[0]


FULL = {"before": 0, "after": 0, "error": "Boom", "region": "f", "note": Note.of("note.scaled")}
WAYS = {
    "as it is": FULL,
    "with nothing known": {"error": "Boom", "region": "f", "note": Note.of("note.scaled")},
    "at no node": {**FULL, "node": -1},
    "from two edges": {**FULL, "parts": ((1, 0, 0), (1, 1, 0))},
    "by an edit": {**FULL, "cause": 1},
    "in a hook": {**FULL, "hook": 0},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_step_can_be_told(way: str) -> None:
    known = dict(WAYS[way])
    node = known.pop("node", 0)
    texts = {}
    for kind in (kind for kind in KINDS if kind not in HOOK_KINDS):
        step = dataclasses.replace(told(kind, **known), node=node, on="" if node < 0 else "c")
        texts[kind] = (make_title(step), make_sentence(step))
    assert unfinished(texts) == {}


def unfinished(texts: dict[Any, tuple[str, ...]]) -> dict[Any, tuple[str, ...]]:
    """Those of which one is empty, or has a place that nothing filled."""
    return {key: those for key, those in texts.items() if not all(those) or "{" in "".join(those)}


@pytest.mark.parametrize("effect", ["kept", "edited", "replaced"])
@pytest.mark.parametrize("subject", ["gradient", "data"])
def test_every_firing_can_be_told(effect: str, subject: str) -> None:
    texts = {}
    for kind, node in itertools.product(HOOK_KINDS, (0, 1)):
        step = told(kind, **FULL, hook=0, effect=effect, subject=subject)
        step.trace.rows[0] = step.trace.rows[0]._replace(node=node)
        frame = shown_steps_of(step.trace)[0]
        texts[kind, node] = (frame["title"], frame["sentence"], frame["registration"])
    assert unfinished(texts) == {}


def test_a_place_holds_whatever_is_put_in() -> None:
    assert say("kind.retain_grad", on="{on} 100% {0}") == "retain_grad on {on} 100% {0}"


def test_what_a_text_was_made_of_is_read_from_it() -> None:
    keys = [key for key, text in WORDS.items() if "!r}" not in text]
    given = {key: {name: f"<{name}>" for name in fields(WORDS[key])} for key in keys}
    found = {key: match_arguments(key, say(key, **given[key])) for key in keys}
    wrong = [key for key in keys if found[key] is None or found[key].keys() != given[key].keys()]
    assert wrong == []
    assert [key for key in keys if say(key, **(found[key] or {})) != say(key, **given[key])] == []


def test_a_section_comes_without_its_prefix() -> None:
    assert select_texts("effect") == {"kept": "kept", "ran": "ran", "edited": "edited in place", "replaced": "replaced"}
    assert all("." not in key for key in select_texts("player"))
