"""The language in which hookviz speaks: how it is chosen, and that every text is there in each."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import hookviz as hv
from hookviz.course import check
from hookviz.player.compression import unpack
from hookviz.player.trace_content import TraceContent
from hookviz.player.widget import Player
from hookviz.support.messages import join_sentences
from hookviz.support.messages.languages import speaking
from hookviz.support.terminal_text import measure_width


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    with speaking("en"):
        yield


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    a, b = (torch.tensor(x, requires_grad=True) for x in (2.0, 3.0))
    c = a * b
    c.register_hook(lambda grad: grad + 2)
    with hv.record() as trace:
        c.backward()
    return trace


# -- choosing


def test_language_chooses_and_tells() -> None:
    assert hv.language() == "en"
    assert hv.language("zh") == hv.language() == "zh"
    assert hv.language("en_US.UTF-8") == hv.language() == "en"
    for name in ("fr", "", 1):
        with pytest.raises(ValueError, match="It speaks: 'en', 'zh'"):
            hv.language(name)  # type: ignore[arg-type]
    assert hv.language() == "en"


@pytest.mark.parametrize(("value", "language"), [("zh_CN.UTF-8", "zh"), ("fr", "en")])
def test_the_environment_chooses_the_language(value: str, language: str) -> None:
    environ = {**os.environ, "HOOKVIZ_LANGUAGE": value}
    command = [sys.executable, "-c", "import hookviz as hv; print(hv.language())"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
    assert ran.stdout.strip() == language
    assert ("HOOKVIZ_LANGUAGE='fr' is no language of hookviz" in ran.stderr) == (value == "fr")


# -- texts


def test_errors_tables_and_answers_speak_the_language(trace: hv.Trace) -> None:
    hv.language("zh")
    with pytest.raises(IndexError, match="没有第 99 步"):
        trace.figure(99)
    assert "钩子" in repr(trace.firings)
    assert "答案" in check("01.1", None).reason
    assert join_sentences(["甲。", "乙。"]) == "甲。乙。"
    head, row = repr(trace.firings).splitlines()
    place = head.index(head.split("  ")[-1])
    assert measure_width(head[:place]) <= measure_width(row), "columns stand below each other"


# -- players


def test_a_page_in_two_languages_holds_both_contents_and_in_one_no_mark_of_it(trace: hv.Trace, tmp_path: Path) -> None:
    trace.to_html(tmp_path / "page.html", languages=("zh_CN", "zh", "en"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in page
    assert page.count('data-language="en" hidden>') == page.count('data-language="zh">') == 2
    content = unpack(page.partition('class="hv-state">')[2].partition("<")[0])["content"]
    other = unpack(content["others"]["en"])
    assert (content["language"], other["language"], list(content["others"])) == ("zh", "en", ["en"])
    assert (other["labels"]["play"], content["labels"]["play"]) == ("Play", "播放")
    trace.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<html lang="en">' in page and "<h1 lang=" not in page
    for languages in ("fr", ("en", 1)):
        with pytest.raises(ValueError, match="hookviz does not speak"):
            trace.to_html(tmp_path / "page.html", languages=languages)  # type: ignore[arg-type]


def test_the_widget_changes_its_language_and_keeps_its_step_and_score(
    trace: hv.Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Player, "send", None)  # nothing is to be sent
    player = Player.of(trace._data)
    player.step, player.asked, player.right = 3, 2, 1
    make = lambda: TraceContent.of(trace._data).content()  # noqa: E731
    player.answer({"language": "zh"}, make, None)
    assert player.content["language"] == "zh" and player.content["others"] == {"en": ""}
    assert (player.step, player.asked, player.right) == (3, 2, 1)
    assert hv.language() == "en"
    player.close()


def record_with_notes() -> hv.Trace:
    """Record what leaves notes and names in a trace: an unnamed tensor, dropped passes."""
    torch.manual_seed(0)
    torch.utils.hooks.RemovableHandle.next_id = 0
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    with hv.record(keep=2, until="nan") as trace:
        for _ in range(3):
            net(torch.ones(2, requires_grad=True)).sum().backward()
        (net(torch.ones(2)) / 0).sum().backward()
    return trace


def test_a_saved_trace_is_the_same_in_every_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.utils.hooks.RemovableHandle, "next_id", 0)
    record_with_notes().save(tmp_path / "en.json")
    with speaking("zh"):
        trace = record_with_notes()
        trace.save(tmp_path / "zh.json")
        assert len(trace.notes) == 2 and all("。" in note for note in trace.notes)
    assert (tmp_path / "en.json").read_bytes() == (tmp_path / "zh.json").read_bytes()
