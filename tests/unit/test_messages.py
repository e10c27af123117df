"""Every message key is used, every used key exists, and every placeholder gets an argument."""

import ast
import dataclasses
import json
import re
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
import torch

import hookviz as hv
from hookviz import Step, Trace
from hookviz.autograd.tensor_statistics import measure
from hookviz.player.labels import screen_labels
from hookviz.support.messages import load_texts, say
from hookviz.trace import HOOK_KINDS, KINDS, HookRow, Note, StepRow, TraceData
from hookviz.trace.sentences import make_sentence, make_title

PACKAGE = Path(hv.__file__).parent
TEXTS = load_texts()


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@cache
def syntax_nodes() -> list[tuple[str, ast.AST]]:
    """(file, node) of every node of Python's syntax in the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    trees = {str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8")) for path in files}
    return [(file, node) for file, tree in trees.items() for node in ast.walk(tree)]


@cache
def message_calls() -> list[tuple[str, ast.Call]]:
    """(file, call) of each ``say(...)``, ``join(...)`` and ``Note.of(...)`` in the package."""
    found = [(file, node) for file, node in syntax_nodes() if isinstance(node, ast.Call)]
    return [(file, call) for file, call in found if ast.unparse(call.func) in ("say", "join", "Note.of")]


def patterns(node: ast.expr) -> list[str]:
    """Regular expressions for the keys that an expression can yield, with ``.+`` for each interpolated part."""
    if isinstance(node, ast.Constant):
        return [re.escape(node.value)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(re.escape(p.value) if isinstance(p, ast.Constant) else ".+" for p in node.values)]
    if isinstance(node, ast.IfExp):
        return patterns(node.body) + patterns(node.orelse)
    if isinstance(node, ast.BinOp):
        return [left + right for left in patterns(node.left) for right in patterns(node.right)]
    return []  # a key in a variable: its text is elsewhere in the package


@cache
def used_key_patterns() -> set[str]:
    """Regular expressions of the keys that ``say`` and ``join`` are called with."""
    return {pattern for _, call in message_calls() for pattern in patterns(call.args[0])}


SCRIPT = "\n".join(path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "player" / "browser").glob("*.js")))
KEYS_IN_SCRIPT = set(re.findall(r"\bsay\(\"(\w+)\"", SCRIPT))
KEY_PREFIXES_IN_SCRIPT = tuple(re.findall(r"\bsay\(`(\w*)\$\{", SCRIPT))
"""The prefixes of keys that JavaScript assembles."""


def test_message_keys_are_unique_and_texts_are_not_empty() -> None:
    pairs = json.loads(
        (PACKAGE / "support" / "messages" / "en.json").read_text(encoding="utf-8"), object_pairs_hook=list
    )
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys))
    assert all(isinstance(text, str) and (text.strip() or key.startswith("join.")) for key, text in pairs)


def test_every_key_that_the_code_uses_exists() -> None:
    assert [pattern for pattern in used_key_patterns() if not any(re.fullmatch(pattern, key) for key in TEXTS)] == []


def test_every_key_that_the_player_uses_exists() -> None:
    labels = screen_labels()
    assert KEYS_IN_SCRIPT and sorted(key for key in KEYS_IN_SCRIPT if key not in labels) == []
    assert [prefix for prefix in KEY_PREFIXES_IN_SCRIPT if not any(key.startswith(prefix) for key in labels)] == []


def test_every_kind_has_a_title_and_a_sentence() -> None:
    effects = {f"sentence.hook.{effect}" for effect in ("kept", "edited", "replaced")}
    titles = {f"kind.{kind}" for kind in KINDS}
    hooks = {f"{word}.{kind}" for kind in HOOK_KINDS for word in ("kept", "dict")}
    # The row of an unobserved call holds its sentence.
    sentences = {f"sentence.{kind}" for kind in KINDS if kind not in (*HOOK_KINDS, "unobserved")}
    assert sorted((effects | titles | hooks | sentences) - set(TEXTS)) == []


def literal_calls() -> list[tuple[str, str, ast.Call]]:
    """(file, key, call) of each call with a literal key and explicit keyword arguments."""
    plain = [
        (file, call) for file, call in message_calls() if isinstance(call.args[0], ast.Constant) and len(call.args) == 1
    ]
    return [(file, call.args[0].value, call) for file, call in plain if all(k.arg for k in call.keywords)]


def test_every_message_gets_exactly_the_arguments_it_names() -> None:
    given = [
        (file, call.lineno, key, {keyword.arg for keyword in call.keywords}) for file, key, call in literal_calls()
    ]
    assert given
    assert [entry for entry in given if placeholders(TEXTS[entry[2]]) != entry[3]] == []


def step_of_kind(kind: str, **row_fields: Any) -> Step:
    """A step of ``kind``, in a trace with one hook of that kind, one value and one more step."""
    trace = Trace(
        TraceData(ops=["MulBackward0", "AccumulateGrad"], edges={(0, 0): (1, 0)}, roots=[[(0, 0)]], hooked=[[0]])
    )
    trace._data.values.append(measure(torch.tensor(8.0)))
    fired = kind if kind in HOOK_KINDS else "tensor_hook"
    output = -1 if fired.startswith("node") else 0
    trace._data.hook_rows.append(HookRow(fired, 0, output, 0, "h", None, None, None, None))
    trace._data.rows += [
        StepRow(0, kind, 0, output, **row_fields),
        StepRow(0, fired, 1, output, hook=0, effect="edited"),
    ]
    return trace.steps[0]


ALL_FIELDS = {"before": 0, "after": 0, "error": "Boom", "region": "f", "note": Note.of("note.scaled")}
STEP_VARIANTS = {
    "from two edges": {**ALL_FIELDS, "parts": ((1, 0, 0), (1, 1, 0))},
    "with nothing known": {"error": "Boom", "region": "f", "note": Note.of("note.scaled")},
}


@pytest.mark.parametrize("variant", STEP_VARIANTS)
def test_every_step_has_a_title_and_a_sentence(variant: str) -> None:
    for kind in (kind for kind in KINDS if kind not in HOOK_KINDS):
        step = dataclasses.replace(step_of_kind(kind, **STEP_VARIANTS[variant]), on="c")
        texts = (make_title(step), make_sentence(step))
        assert all(texts) and "{" not in "".join(texts), kind


def test_placeholder_values_may_contain_braces_and_percent_signs() -> None:
    assert say("kind.retain_grad", on="{on} 100% {0}") == "retain_grad on {on} 100% {0}"
