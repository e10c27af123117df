"""Make ``.venv-classic``: the classic notebook with ipywidgets 7.7.1, the version on Colab. ``make classic`` needs it.

The environment sees all packages of the one whose Python runs this, and gets only those that differ.
"""

import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-classic"
PACKAGES = (
    "ipywidgets==7.7.1",
    "widgetsnbextension==3.6.10",
    "nbclassic==1.3.3",
    "ipython-genutils==0.2.0",
    "nest-asyncio==1.6.0",
)
"""These versions were run together."""


def main() -> int:
    """Make the environment unless it is there already, and return the exit status."""
    packages = [*PACKAGES, f"anywidget=={version('anywidget')}"]
    mark = FOLDER / "hookviz-ready"
    contents = "\n".join([*packages, sys.prefix])
    if mark.is_file() and mark.read_text(encoding="utf-8") == contents:
        return 0
    print(f"Making {FOLDER.name}: the classic notebook with {PACKAGES[0]}.", flush=True)
    make_environment(FOLDER)
    # Its scripts are served from the folder of the environment, so anywidget is installed once more.
    failed = install(FOLDER, packages)
    if not failed:
        mark.write_text(contents, encoding="utf-8")
    return failed


def make_environment(folder: Path) -> None:
    """Make an environment without pip that sees the packages of this one."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # addsitedir also follows the path of an editable installation.
    path_line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (packages / "other_environment.pth").write_text(path_line, encoding="utf-8")


def install(folder: Path, packages: list[str]) -> int:
    """Install packages without what they require, which the other environment has; return pip's exit status."""
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    return subprocess.run([*pip, "install", "--quiet", "--no-deps", "--ignore-installed", *packages]).returncode


if __name__ == "__main__":
    sys.exit(main())
