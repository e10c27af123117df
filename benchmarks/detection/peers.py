"""Ask other tools about the programs with faults: ``python -m benchmarks.detection.peers``.

Names of tools run only these and write no page; ``--show`` prints what each tool says beyond the healthy twin.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.detection.__main__ import PAGE, SEED
from benchmarks.detection.faults import FAULTS
from benchmarks.detection.nets import NETS
from benchmarks.detection.peer_run import TOOLS, Said, find_version
from benchmarks.detection.programs import Placed, find_marks, write_program
from benchmarks.tables import make_table, report

START = "<!-- detection peers -->\n"
NET, STYLE = NETS[0], "module"
Answer = Literal["names it", "says something", "silent"]
LABELS: tuple[Answer, ...] = ("names it", "says something", "silent")
_VARIES = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|(?<=program\.py:)\d+|(?<=program\.py\", line )\d+")
"""What differs between two runs without meaning anything: measured numbers, and the numbers of lines."""


def list_news(said: Iterable[Said], twin: Iterable[Said]) -> list[str]:
    """List the lines that a tool says of a program and not of its healthy twin."""
    known = {_VARIES.sub("0", line) for one in twin for line in one.text.splitlines()}
    return [line for one in said for line in one.text.splitlines() if _VARIES.sub("0", line) not in known]


def judge_news(news: Sequence[str], placed: Placed, marks: Iterable[int]) -> Answer:
    """Say whether lines name the fault: its object, one of its lines, or a word that says what was done."""
    if not news:
        return "silent"
    patterns = [rf"\bprogram\.py(?::|\", line ){mark}\b" for mark in marks]
    patterns += [rf"(?i){re.escape(word)}" for word in placed.fault.words]
    if placed.fault.on:
        patterns.append(rf"\b{placed.fault.on.format(i=placed.layer)}\b")
    return "names it" if any(re.search(pattern, line) for pattern in patterns for line in news) else "says something"


class Result(NamedTuple):
    """What a tool says of a program with a fault, and whether it has an alarm for the healthy twin."""

    answer: Answer
    is_alarmed: bool
    news: list[str]


def ask(tool: str, programs: Sequence[str]) -> list[list[Said]]:
    """Return what a tool says of each program."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}" / "program.py" for number, _text in enumerate(programs)]
        for path, text in zip(paths, programs, strict=True):
            path.parent.mkdir()
            path.write_text(_edit(text, TOOLS[tool].edits))
        subprocess.run([sys.executable, "-m", "benchmarks.detection.peer_run", tool, *map(str, paths)], check=True)
        answers = [path.with_suffix(".json").read_text().replace(f"{path.parent}/", "") for path in paths]
    return [[Said(*one) for one in json.loads(answer)] for answer in answers]


def _edit(text: str, edits: Mapping[str, str]) -> str:
    for before, after in edits.items():
        if before not in text:
            raise ValueError(f"no {before!r} in the program")
        text = text.replace(before, after)
    return text


def compare(tool: str) -> list[Result]:
    """Return the result of a tool for each fault."""
    # Every tool watches the same number of turns; the text of the loop is what its edits look for.
    placed = [Placed(fault._replace(turns=3), fault.layers[0]) for fault in FAULTS]
    texts = [write_program(NET, [one], STYLE, SEED) for one in placed]
    twins = [write_program(NET, [one._replace(is_healthy=True)], STYLE, SEED) for one in placed]
    said = ask(tool, texts + twins)
    results = []
    for one, text, of_fault, of_twin in zip(placed, texts, said[: len(texts)], said[len(texts) :], strict=True):
        news = list_news(of_fault, of_twin)
        answer = judge_news(news, one, find_marks(text))
        results.append(Result(answer, any(alarm.is_alarm for alarm in of_twin), news))
    return results


def _list_tools(asked: Sequence[str]) -> list[str]:
    tools = []
    for tool in asked or TOOLS:
        if find_version(tool) is None:
            print(f"{tool} is not installed.", file=sys.stderr)
        else:
            tools.append(tool)
    return tools


def _make_rows(results: Mapping[str, Sequence[Result]]) -> list[list[str]]:
    answers = {tool: [result.answer for result in of_tool] for tool, of_tool in results.items()}
    rows = [[fault.name, *(answers[tool][row] for tool in results)] for row, fault in enumerate(FAULTS)]
    totals = [[f"all: {label}", *(str(answers[tool].count(label)) for tool in results)] for label in LABELS]
    alarms = [str(sum(result.is_alarmed for result in of_tool)) for of_tool in results.values()]
    return [*rows, *totals, ["healthy twins with an alarm", *alarms]]


def main(arguments: list[str]) -> None:
    """Run each fault and its healthy twin with each tool that is installed, and print the table."""
    asked = [argument for argument in arguments if argument != "--show"]
    tools = _list_tools(asked)
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(tools, pool.map(compare, tools), strict=True))
    if "--show" in arguments:
        for tool, of_tool in results.items():
            for fault, result in zip(FAULTS, of_tool, strict=True):
                print(f"== {tool}, {fault.name}: {result.answer}", *result.news, sep="\n", file=sys.stderr)
    versions = [f"{TOOLS[tool].package} {find_version(tool)}" for tool in tools if TOOLS[tool].package != "torch"]
    setting = ", ".join([*versions, f"{date.today()}", f"seed {SEED}"])
    report(make_table(("fault", *tools), _make_rows(results)), setting, None if asked else PAGE, START)


if __name__ == "__main__":
    main(sys.argv[1:])
