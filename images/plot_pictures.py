"""Draw the figures of site/plots.md: run its programs, and save each plot under the name of its variable."""

import re
from pathlib import Path
from typing import Any

import hookviz as hv

HERE = Path(__file__).parent
PAGE = HERE.parent / "site" / "plots.md"


def run_page() -> dict[str, Any]:
    """Run the programs of the page, one after the other, and return all their variables."""
    variables: dict[str, Any] = {}
    for program in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(program, "<plots>", "exec"), variables)
    return variables


def main(target: Path = HERE / "plots") -> dict[str, hv.Plot]:
    """Write all figures into ``target``; return the plots."""
    target.mkdir(exist_ok=True)
    plots = {name: value for name, value in run_page().items() if isinstance(value, hv.Plot)}
    for name, plot in plots.items():
        plot.save(target / f"{name}.svg")
    return plots


if __name__ == "__main__":
    main()
