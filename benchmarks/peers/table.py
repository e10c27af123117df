"""The tables that the results make: all of them for the page of the benchmarks, a few lines for the README."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.peers.hooked import NAMES
from benchmarks.peers.runs import Cell
from benchmarks.peers.tools import PEERS
from benchmarks.peers.works import WORKS
from benchmarks.tables import format_spread, make_table

Results = dict[str, dict[str, Cell]]
"""Work → tool → cell; ``hooks`` is a work, too."""

COLUMNS = ("capture", "picture", "size", "memory")
HEAD = ("work", "tool", "capture ÷ plain", "first picture", "delivered", "peak of memory")
LOOKS = {
    **dict(zip(NAMES, ("forward hook's name", "tensor hook's name", "full backward hook's name"), strict=True)),
    "order": "order of firing",
    "values": "gradient before → after",
}
ESSENCE = ("resnet", "encoder48", "chain", "fan")
NOTHING, AT_ONCE = "–", "with the capture"
LITTLE = 1024
"""KiB: where a plain pass needs less memory, a ratio to it says nothing."""


def number(value: float) -> str:
    """Three digits, as far as they count.

    >>> number(1234.5), number(12.345), number(1.0), number(0.012345)
    ('1,234', '12.3', '1.00', '0.01')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def seconds(value: float) -> str:
    """A time.

    >>> seconds(0.0123), seconds(12.34)
    ('12.3 ms', '12.3 s')
    """
    return f"{number(1000 * value)} ms" if value < 1 else f"{number(value)} s"


def size(value: float) -> str:
    """How much is delivered.

    >>> size(1234), size(12_345_678)
    ('1.23 KB', '12.3 MB')
    """
    return f"{number(value / 1000)} KB" if value < 1e6 else f"{number(value / 1e6)} MB"


def more(value: float) -> str:
    """Memory on top of what there was, in KiB."""
    return f"{value / 1024:+.1f} MiB"


WORDS: dict[str, Callable[[float], str]] = {
    "capture": number, "picture": seconds, "size": size, "memory": number, "more": more,
}  # fmt: skip


def numbers(results: Results, work: str, peer: str, column: str) -> list[float]:
    """What was measured, round by round; memory as a ratio to that of plain passes."""
    found: list[float] = results[work].get(peer, {}).get(column, [])
    if column == "memory":
        base = statistics.median(results[work]["plain"]["memory"])
        return [one - base if base < LITTLE else one / base for one in found]
    return found


def words(results: Results, work: str, column: str) -> Callable[[float], str]:
    """How a number of this column is said."""
    little = column == "memory" and statistics.median(results[work]["plain"]["memory"]) < LITTLE
    return WORDS["more" if little else column]


def said(results: Results, work: str, peer: str, column: str, write: Callable[..., str] = format_spread) -> str:
    """What stands in a cell of the table: numbers, or why there are none."""
    failed = results[work].get(peer, {}).get("failed", {})
    found = numbers(results, work, peer, column)
    if column != "memory" and (failed.get("stage") == column or (failed and column == "capture" and not found)):
        return why(failed["why"])
    if not found:
        return AT_ONCE if column == "picture" and not failed and PEERS[peer].at_once else NOTHING
    form = words(results, work, column)
    return form(found[0]) if len({form(one) for one in found}) == 1 else write(found, form)


def why(reason: str) -> str:
    """A failure in the words of a table: one line, and not a long one.

    >>> why("ValueError: a | b")
    'ValueError: a / b'
    """
    line = " ".join(reason.replace("|", "/").split())
    return line if len(line) <= 90 else f"{line[:90].rstrip()} …"


def present(results: Results, names: Iterable[str]) -> list[str]:
    """The works among ``names`` for which there are results."""
    return [name for name in names if name in results]


def rows(results: Results) -> list[list[str]]:
    """Line after line of the large table."""
    return [
        [WORKS[work]().name, PEERS[peer].name, *(said(results, work, peer, column) for column in COLUMNS)]
        for work in present(results, WORKS)
        for peer in PEERS
        if peer in results[work]
    ]


def looks(cell: Cell) -> list[str]:
    """What a tool knows of hooks, thing by thing."""
    if "failed" in cell:
        return [why(cell["failed"]["why"]), *[NOTHING] * (len(LOOKS) - 1)]
    shown = {"shown": "shown", "data": "in its data", "": "no"}
    return [shown[cell["hooks"][0][look]] for look in LOOKS]


def hooks(results: Results) -> str:
    """The table of what each tool shows of hooks."""
    cells = results.get("hooks", {})
    return make_table(
        ["tool", *LOOKS.values()], [[PEERS[peer].name, *looks(cells[peer])] for peer in PEERS if peer in cells]
    )


def provenance(results: Results) -> str:
    """With which versions, when, and in how many rounds."""
    cells = [cell for found in results.values() for cell in found.values()]
    names = {"plain": "torch"} | {peer: tool.package for peer, tool in PEERS.items()}
    versions = {f"{names[peer]} {cell['version']}" for found in results.values() for peer, cell in found.items()}
    dates = sorted({cell["date"] for cell in cells})
    every = (cell for work, found in results.items() if work in WORKS for cell in found.values())
    counts = sorted(
        {
            max(map(len, lists))
            for cell in every
            if (lists := [numbers for numbers in cell.values() if isinstance(numbers, list)])
        }
    )
    return f"{', '.join(sorted(versions))}. {_range(dates)}, rounds: {_range(counts)}, one thread."


def _range(found: Sequence[Any]) -> str:
    return str(found[0]) if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def full(results: Results) -> str:
    """All of it, for the page of the benchmarks."""
    parts = [make_table(HEAD, rows(results)), *([hooks(results)] if "hooks" in results else []), provenance(results)]
    return "\n\n".join(parts) + "\n"


def brief(results: Results) -> str:
    """A few lines for the README: the median of what it costs, shows and delivers."""
    works = present(results, ESSENCE)
    head = ["", "sees of hooks", *(WORKS[work]().name.partition(", (")[0] for work in works)]
    return f"{make_table(head, [_brief(results, peer, works) for peer in PEERS])}\n\n{provenance(results)}\n"


def _brief(results: Results, peer: str, works: Sequence[str]) -> list[str]:
    seen = [look for look in results["hooks"][peer].get("hooks", [{}])[0].values() if look]
    return [PEERS[peer].name, f"{len(seen)} of {len(LOOKS)}", *(_medians(results, work, peer) for work in works)]


def _medians(results: Results, work: str, peer: str) -> str:
    texts = [said(results, work, peer, column, _middle) for column in COLUMNS[:3]]
    return ", ".join(text for text in texts if text not in (NOTHING, AT_ONCE)) or NOTHING


def _middle(found: Sequence[float], form: Callable[[float], str]) -> str:
    return form(statistics.median(found))
