"""The player can be translated: every sentence it receives is a message key with arguments."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from shown import outline, unpack_chunk
from torch import nn

import hookviz as hv
from hookviz.player.payload import Content
from hookviz.support.messages import load_texts
from hookviz.support.messages.text import translate

ENGLISH = load_texts()
TRANSLATED = {
    key: re.sub(r"\{[^}]*\}|[A-Za-z]+", lambda m: m[0] if "{" in m[0] else "¤", text) for key, text in ENGLISH.items()
}
"""A language in which every word is ``¤``."""
ENGLISH_WORDS = {
    word for text in ENGLISH.values() for word in re.findall("[A-Za-z]{4,}", re.sub(r"\{[^}]*\}", "", text))
}
IDENTIFIERS = {"AccumulateGrad", "None", "ReLU", "grad", "other", "self", "shape", "weight", "where", "result"}
"""Identifiers of torch and of formulas, which are not translated."""
PATHS = {"test", "tests"}
"""Words in the path of this file, which is where the recorded code stands."""
UNTRANSLATED_FIELDS = (
    "words",
    "svgs",
    "svg",
    "layers",
    "source",
    "sources",
    "kind",
    "glyph",
    "initial_state",
    "views",
)


def qzx(grad: torch.Tensor) -> torch.Tensor:
    """A hook whose name is not an English word."""
    return grad * 2


def scalars() -> Content:
    qa, qb = (torch.tensor(x, requires_grad=True) for x in (2.0, 3.0))
    qc = qa * qb
    qc.register_hook(qzx)
    qc.retain_grad()
    with hv.record() as trace:
        (qc * qa).backward()
        torch.autograd.grad((qa * qb).sin(), qa)
    return trace.content()


def modules() -> Content:
    qnet = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    qnet[0].weight.register_hook(qzx)
    qnet[1].register_forward_hook(lambda qm, qx, qy: qy * 2)
    qopt = torch.optim.SGD(qnet.parameters(), lr=0.1)
    with hv.record(qnet) as trace:
        qnet(torch.ones(2, 4) * float("inf")).sum().backward()
        qopt.step()
    return trace.content()


def what_if() -> Content:
    def run() -> None:
        qa = torch.tensor(2.0, requires_grad=True)
        qa.register_hook(qzx)
        (qa * 3).backward()

    return hv.whatif(run).content()


def is_message(sent: Any) -> bool:
    """Whether ``sent`` is a message key with arguments."""
    pair = isinstance(sent, list) and len(sent) == 2 and isinstance(sent[0], str)
    return pair and sent[0] in TRANSLATED and isinstance(sent[1], (dict, list))


def sentences(sent: Any) -> Iterator[str]:
    """All texts in ``sent``, translated."""
    if is_message(sent):
        yield translate(sent, TRANSLATED)
    elif isinstance(sent, dict):
        yield from (text for name, part in sent.items() if name not in UNTRANSLATED_FIELDS for text in sentences(part))
    elif isinstance(sent, (list, tuple)):
        yield from (text for part in sent for text in sentences(part))
    elif isinstance(sent, str):
        yield sent


@pytest.mark.parametrize("make", [scalars, modules, what_if])
def test_every_sentence_of_the_content_is_translated(make: Callable[[], Content]) -> None:
    content = make()
    outlines = [outline(content, run) for run in range(len(content["runs"]))]
    parts = [unpack_chunk(content, name) for name in content["chunks"]]

    translated = [*sentences({**content, "runs": content["runs"], "chunks": parts}), *sentences(outlines)]
    assert len(translated) > 50
    untranslated = {
        word for text in translated for word in re.findall("[A-Za-z]{4,}", text)
    } & ENGLISH_WORDS - IDENTIFIERS - PATHS
    assert untranslated == set()
