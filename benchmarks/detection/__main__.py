"""Count how often the findings name the fault of a generated program: ``python -m benchmarks.detection``."""

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import date
from itertools import product
from pathlib import Path

from benchmarks.detection.faults import FAULTS
from benchmarks.detection.judge import judge, list_alarms, record_program
from benchmarks.detection.nets import NETS
from benchmarks.detection.programs import STYLES, Placed, write_program
from benchmarks.tables import make_table, report

SEED = 20261128
PAIRS, TRIPLES = 200, 150
"""How often two faults are drawn for one program, and how often two and one in the training loop."""
PAGE, START = Path(__file__).parents[1] / "README.md", "<!-- detection -->\n"
VERDICTS = ("right", "open", "silent", "false")


def list_programs() -> Iterator[tuple[str, list[Placed]]]:
    """Yield each program with its faults: each fault in each net and style, then two and three faults in one."""
    draw = random.Random(SEED)
    for fault, net, style in product(FAULTS, NETS, STYLES):
        for layer in fault.layers:
            placed = [Placed(fault, layer)]
            yield write_program(net, placed, style, draw.randrange(1000)), placed
    for number in range(PAIRS + TRIPLES):
        net, style, placed = draw.choice(NETS), draw.choice(STYLES), _draw_faults(draw, number >= PAIRS)
        if placed:
            yield write_program(net, placed, style, draw.randrange(1000)), placed


def _draw_faults(draw: random.Random, with_loop: bool) -> list[Placed]:
    """Draw faults for two layers, and one for the training loop; none if one of them would hide the other."""
    first, second = draw.sample([fault for fault in FAULTS if len(fault.layers) > 1 and not fault.is_alone], 2)
    if second.hides:  # only what is nearer to the loss has an effect
        first, second = second, first
    if second.hides:
        return []
    loops = [fault for fault in FAULTS if fault.layers == (0,) and not (fault.made or fault.is_alone)]
    return [Placed(first, 1), Placed(second, 2), *([Placed(draw.choice(loops), 0)] if with_loop else [])]


def count_false_alarms(folder: Path) -> list[str]:
    """Return the errors and warnings of healthy twins."""
    found = []
    for fault, net, style in product(FAULTS, NETS, STYLES):
        path = folder / "twin.py"
        path.write_text(write_program(net, [Placed(fault, fault.layers[0], is_healthy=True)], style, 0))
        alarms = list_alarms(record_program(path))
        found += [f"{fault.name} in {net.name} ({style}): {finding.sentence}" for finding in alarms]
    return found


def main(arguments: list[str]) -> None:
    """Print the table; with ``--show``, also each program that was not right."""
    counts: dict[str, Counter[str]] = {fault.name: Counter() for fault in FAULTS}
    with tempfile.TemporaryDirectory() as folder:
        for number, (text, faults) in enumerate(list_programs()):
            path = Path(folder) / f"program_{number}.py"
            path.write_text(text)
            for name, verdict in judge(path, faults):
                names = [name] if name else [fault.fault.name for fault in faults]
                for one in names:
                    counts[one][verdict] += 1
                if verdict != "right" and "--show" in arguments:
                    print(f"{verdict}: {[fault.fault.name for fault in faults]} {number}\n{text}", file=sys.stderr)
        alarms = count_false_alarms(Path(folder))
    rows = [[name, *(str(counted[verdict]) for verdict in VERDICTS)] for name, counted in counts.items()]
    total = [str(sum(counted[verdict] for counted in counts.values())) for verdict in VERDICTS]
    table = make_table(("fault", *VERDICTS), [*rows, ["all", *total]])
    twins = len(FAULTS) * len(NETS) * len(STYLES)
    report(table, f"{date.today()}, seed {SEED}; {twins} healthy twins with {len(alarms)} alarms", PAGE, START)
    print("\n".join(alarms), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
