"""Make tables of the results: all of them for the page of the benchmarks, a summary for the site."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.peers.runs import Cell
from benchmarks.peers.tools import PEERS
from benchmarks.peers.workloads import WORKS
from benchmarks.tables import format_spread, make_table

Results = dict[str, dict[str, Cell]]
"""Work → tool → cell; ``hooks`` is a work, too."""

COLUMNS = ("capture", "picture", "size", "memory")
HEAD = ("work", "tool", "capture ÷ plain", "first picture", "delivered", "peak of memory")
HOOK_COLUMNS = {
    "spot_pre": "forward pre-hook's name",
    "spot_forward": "forward hook's name",
    "spot_tensor": "tensor hook's name",
    "spot_backward": "full backward hook's name",
    "order": "order of firing",
    "values": "gradient before → after",
}
SUMMARY_WORKS = ("resnet", "encoder48", "chain", "fan")
NOTHING, AT_ONCE = "–", "with the capture"
SMALL_MEMORY = 1024
"""KiB: if a plain pass needs less memory, the table shows a difference instead of a ratio."""


def format_number(value: float) -> str:
    """Format a number with about three digits.

    >>> format_number(1234.5), format_number(12.345), format_number(1.0), format_number(0.012345)
    ('1,234', '12.3', '1.00', '0.01')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def format_seconds(value: float) -> str:
    """Format a time.

    >>> format_seconds(0.0123), format_seconds(12.34)
    ('12.3 ms', '12.3 s')
    """
    return f"{format_number(1000 * value)} ms" if value < 1 else f"{format_number(value)} s"


def format_size(value: float) -> str:
    """Format a number of bytes.

    >>> format_size(1234), format_size(12_345_678)
    ('1.23 KB', '12.3 MB')
    """
    return f"{format_number(value / 1000)} KB" if value < 1e6 else f"{format_number(value / 1e6)} MB"


def format_difference(value: float) -> str:
    """Format a difference of memory, given in KiB."""
    return f"{value / 1024:+.1f} MiB"


FORMATS: dict[str, Callable[[float], str]] = {
    "capture": format_number,
    "picture": format_seconds,
    "size": format_size,
    "memory": format_number,
    "more": format_difference,
}


def read_numbers(results: Results, work: str, peer: str, column: str) -> list[float]:
    """The measurements of all rounds; memory as a ratio to that of plain passes, or as a difference."""
    measured: list[float] = results[work].get(peer, {}).get(column, [])
    if column == "memory":
        base = statistics.median(results[work]["plain"]["memory"])
        return [memory - base if base < SMALL_MEMORY else memory / base for memory in measured]
    return measured


def choose_format(results: Results, work: str, column: str) -> Callable[[float], str]:
    """Choose the format of the numbers in a column."""
    is_difference = column == "memory" and statistics.median(results[work]["plain"]["memory"]) < SMALL_MEMORY
    return FORMATS["more" if is_difference else column]


def format_cell(results: Results, work: str, peer: str, column: str, write: Callable[..., str] = format_spread) -> str:
    """Format a cell of the table: numbers, or why there are none."""
    failed = results[work].get(peer, {}).get("failed", {})
    found = read_numbers(results, work, peer, column)
    if column != "memory" and (failed.get("stage") == column or (failed and column == "capture" and not found)):
        return shorten_failure(failed["why"])
    if not found:
        return AT_ONCE if column == "picture" and not failed and PEERS[peer].at_once else NOTHING
    form = choose_format(results, work, column)
    return form(found[0]) if len({form(number) for number in found}) == 1 else write(found, form)


def shorten_failure(reason: str) -> str:
    """Shorten a failure to one line for the table.

    >>> shorten_failure("ValueError: a | b")
    'ValueError: a / b'
    """
    line = " ".join(reason.replace("|", "/").split())
    return line if len(line) <= 90 else f"{line[:90].rstrip()} …"


def filter_measured(results: Results, names: Iterable[str]) -> list[str]:
    """The works among ``names`` that have results."""
    return [name for name in names if name in results]


def make_rows(results: Results) -> list[list[str]]:
    """Make the rows of the large table."""
    return [
        [WORKS[work]().name, PEERS[peer].name, *(format_cell(results, work, peer, column) for column in COLUMNS)]
        for work in filter_measured(results, WORKS)
        for peer in PEERS
        if peer in results[work]
    ]


def hook_columns(cell: Cell) -> list[str]:
    """Make the columns about the hooks that a tool shows."""
    if "failed" in cell:
        return [shorten_failure(cell["failed"]["why"]), *[NOTHING] * (len(HOOK_COLUMNS) - 1)]
    shown = {"shown": "shown", "data": "in its data", "": "no"}
    return [shown[cell["hooks"][0][look]] for look in HOOK_COLUMNS]


def make_hook_table(results: Results) -> str:
    """Make the table of the hooks that each tool shows."""
    cells = results.get("hooks", {})
    return make_table(
        ["tool", *HOOK_COLUMNS.values()],
        [[PEERS[peer].name, *hook_columns(cells[peer])] for peer in PEERS if peer in cells],
    )


def describe_setting(results: Results) -> str:
    """Describe the versions, the dates and the number of rounds."""
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
    return f"{', '.join(sorted(versions))}. {_format_range(dates)}, rounds: {_format_range(counts or [1])}, one thread."


def _format_range(found: Sequence[Any]) -> str:
    return str(found[0]) if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def make_full_tables(results: Results) -> str:
    """Make all tables, for the page of the benchmarks."""
    parts = [
        make_table(HEAD, make_rows(results)),
        *([make_hook_table(results)] if "hooks" in results else []),
        describe_setting(results),
    ]
    return "\n\n".join(parts) + "\n"


def make_summary(results: Results) -> str:
    """Make the summary for the page of promises on the site: the medians of cost and output, and the hooks shown."""
    works = filter_measured(results, SUMMARY_WORKS)
    head = ["", "sees of hooks", *(WORKS[work]().name.partition(", (")[0] for work in works)]
    return (
        f"{make_table(head, [_summary_row(results, peer, works) for peer in PEERS])}\n\n{describe_setting(results)}\n"
    )


def _summary_row(results: Results, peer: str, works: Sequence[str]) -> list[str]:
    seen = [look for look in results["hooks"][peer].get("hooks", [{}])[0].values() if look]
    return [
        PEERS[peer].name,
        f"{len(seen)} of {len(HOOK_COLUMNS)}",
        *(_median_texts(results, work, peer) for work in works),
    ]


def _median_texts(results: Results, work: str, peer: str) -> str:
    texts = [format_cell(results, work, peer, column, _format_median) for column in COLUMNS[:3]]
    return ", ".join(text for text in texts if text not in (NOTHING, AT_ONCE)) or NOTHING


def _format_median(found: Sequence[float], form: Callable[[float], str]) -> str:
    return form(statistics.median(found))
