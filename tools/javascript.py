"""The player's JavaScript: bundle it, check it, test it. Where Node is missing, say what was left out.

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
"""From here on Node sees by itself that a ``.js`` file is a module."""
ENTRIES = {
    # anywidget loads a module; a page has a plain script, since some notebooks run the scripts of an output elsewhere.
    "player.js": ("widget.js", "--format=esm"),
    "page.js": ("page.js", "--format=iife"),
    "player.css": ("index.css",),
    "page.css": ("page.css",),
    "static_picture.css": ("static_picture.css",),
}
"""Bundle → its entry point, and what esbuild is told besides."""


def main(arguments: list[str] | None = None) -> int:
    """Run the tasks that are named, all of them though one fails, and return the first exit status that is not 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="+", choices=sorted(TASKS))
    tasks: list[str] = parser.parse_args(arguments).tasks
    reason = why_not_node(shutil.which("node"))
    if reason is None and tasks != ["test"]:  # node alone runs the tests
        reason = why_no_tools()
    if reason is not None:
        print(f"Left out, for the player's JavaScript: {', '.join(tasks)}. {reason}.", flush=True)
        return int("node" in os.environ.get("HOOKVIZ_REQUIRE", "").split(","))
    return next((status for status in [TASKS[task]() for task in tasks] if status), 0)


def why_not_node(node: str | None) -> str | None:
    """Why Node cannot be used here, if it cannot."""
    needed = "{}.{} or newer is needed".format(*NEEDED_NODE)
    if node is None:
        return f"Node is not installed; {needed}"
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    numbers = re.match(r"v(\d+)\.(\d+)", version)
    if numbers is None or tuple(map(int, numbers.groups())) < NEEDED_NODE:
        return f"Node is {version or 'broken'} and {needed}"
    return None


def why_no_tools() -> str | None:
    """Why the tools of ``package-lock.json`` cannot be used here; they are installed first, unless they are there."""
    wanted, there = ROOT / "package-lock.json", ROOT / "node_modules" / ".package-lock.json"
    if there.is_file() and there.stat().st_mtime >= wanted.stat().st_mtime:
        return None
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    done = subprocess.run([npm, "ci", "--no-progress"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return f"npm could not install its tools ({said[0] if said else 'it said nothing'})"
    there.touch()
    return None


def bundle(folder: Path | None = None) -> int:
    """Write the bundles into ``folder``, those that are committed if None."""
    for name, (entry, *options) in ENTRIES.items():
        target = f"--outfile={(folder or ROOT / BUNDLES) / name}"
        status = run(
            "esbuild", str(SOURCES / entry), "--bundle", "--minify", "--charset=utf8", TARGET, *options, target
        )
        if status:
            return status
    return 0


TARGET = "--target=es2022,chrome105,firefox121,safari16"
"""The oldest browsers that the style sheet works in: they know :has()."""


def fresh() -> int:
    """Check that the committed bundles are what esbuild makes of the sources."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        status = bundle(folder)
        stale = [name for name in ENTRIES if (folder / name).read_bytes() != (ROOT / BUNDLES / name).read_bytes()]
    if stale:
        print(f"{BUNDLES}: {', '.join(stale)} not made from these sources: run make bundle", file=sys.stderr)
    return status or int(bool(stale))


def lint() -> int:
    """Check style and types."""
    return run("eslint", "--max-warnings=0") or run("tsc", "--noEmit")


def test() -> int:
    """Run the tests in ``tests/js``."""
    # The files by name, since node's releases differ in what they make of a folder.
    names = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests" / "js").glob("*.test.js"))]
    return subprocess.run(["node", "--test", *names], cwd=ROOT).returncode


def run(tool: str, *arguments: str) -> int:
    """Run one of the tools that npm installed."""
    quiet = ["--log-level=warning"] if tool == "esbuild" else []
    return subprocess.run([str(ROOT / "node_modules" / ".bin" / tool), *arguments, *quiet], cwd=ROOT).returncode


TASKS = {"bundle": bundle, "fresh": fresh, "lint": lint, "test": test}

if __name__ == "__main__":
    sys.exit(main())
