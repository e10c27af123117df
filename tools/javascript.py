"""Bundle, check and test the player's JavaScript. If Node is missing, report the tasks that were left out.

The bundles in ``hookviz/static`` are committed, so that nobody who installs or runs hookviz needs Node.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES, BUNDLES = Path("hookviz/player/browser"), Path("hookviz/static")
NEEDED_NODE = (20, 19)
"""From this version on, Node detects that a ``.js`` file is a module."""
NODE = ("node", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON")
ENTRIES = {
    # anywidget loads a module; a page has a plain script, which works where a notebook runs the scripts of an output.
    "player.js": ("host/anywidget.js", "--format=esm"),
    "page.js": ("host/page.js", "--format=iife"),
    "loader.js": ("host/loader.js", "--format=iife"),
    "player.css": ("styles/index.css",),
    "page.css": ("styles/page.css",),
    "static_picture.css": ("styles/static_picture.css",),
}
"""Bundle → its entry point, and further options of esbuild."""


def main(arguments: list[str] | None = None) -> int:
    """Run all given tasks, even if one fails, and return the first exit status that is not 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="+", choices=sorted(TASKS))
    tasks: list[str] = parser.parse_args(arguments).tasks
    reason = node_problem(shutil.which("node"))
    if reason is None and tasks != ["test"]:  # the tests need Node only
        reason = tools_problem()
    if reason is not None:
        print(f"Left out, for the player's JavaScript: {', '.join(tasks)}. {reason}.", flush=True)
        return int("node" in os.environ.get("HOOKVIZ_REQUIRE", "").split(","))
    return next((status for status in [TASKS[task]() for task in tasks] if status), 0)


def node_problem(node: str | None) -> str | None:
    """Say why Node cannot be used here; None if it can."""
    needed = "{}.{} or newer is needed".format(*NEEDED_NODE)
    if node is None:
        return f"Node is not installed; {needed}"
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    numbers = re.match(r"v(\d+)\.(\d+)", version)
    if numbers is None or tuple(map(int, numbers.groups())) < NEEDED_NODE:
        return f"Node is {version or 'broken'} and {needed}"
    return None


def tools_problem() -> str | None:
    """Install the tools of ``package-lock.json`` if needed. Say why that is impossible; None if they are installed."""
    lock, installed = ROOT / "package-lock.json", ROOT / "node_modules" / ".package-lock.json"
    if installed.is_file() and installed.stat().st_mtime >= lock.stat().st_mtime:
        return None
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    done = subprocess.run([npm, "ci", "--no-progress"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return f"npm could not install its tools ({output[0] if output else 'it said nothing'})"
    installed.touch()
    return None


def write_bundles(folder: Path | None = None) -> int:
    """Write the bundles into ``folder``; if None, overwrite the committed ones."""
    for name, (entry, *options) in ENTRIES.items():
        target = f"--outfile={(folder or ROOT / BUNDLES) / name}"
        status = run_npm_tool(
            "esbuild", str(SOURCES / entry), "--bundle", "--minify", "--charset=utf8", TARGET, *options, target
        )
        if status:
            return status
    return 0


TARGET = "--target=es2022,chrome105,firefox121,safari16"
"""The oldest browsers for which the style sheet works: they support :has()."""


def check_bundles() -> int:
    """Check that the committed bundles are the ones that esbuild makes from the sources."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        status = write_bundles(folder)
        stale = [name for name in ENTRIES if (folder / name).read_bytes() != (ROOT / BUNDLES / name).read_bytes()]
    if stale:
        print(f"{BUNDLES}: {', '.join(stale)} not made from these sources: run make bundle", file=sys.stderr)
    return status or int(bool(stale))


def lint_sources() -> int:
    """Check style and types."""
    return run_npm_tool("eslint", "--max-warnings=0") or run_npm_tool("tsc", "--noEmit")


def run_tests() -> int:
    """Run the tests in ``tests/js``."""
    # List the files, since releases of Node treat a folder differently.
    names = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests" / "js").glob("*.test.js"))]
    # package.json does not call all scripts below it modules: JupyterLab in .venv has one that is not.
    return subprocess.run([*NODE, "--test", *names], cwd=ROOT).returncode


def run_npm_tool(tool: str, *arguments: str) -> int:
    """Run one of the tools that npm installed."""
    quiet = ["--log-level=warning"] if tool == "esbuild" else []
    return subprocess.run([str(ROOT / "node_modules" / ".bin" / tool), *arguments, *quiet], cwd=ROOT).returncode


TASKS = {"bundle": write_bundles, "fresh": check_bundles, "lint": lint_sources, "test": run_tests}

if __name__ == "__main__":
    sys.exit(main())
