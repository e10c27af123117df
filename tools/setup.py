"""Make an environment and install hookviz into it; if that fails, say in one sentence what to do.

This file must be valid for Python 3.6, so that an old Python can report that it is too old.
"""

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List, Optional, Tuple

ROOT = Path(__file__).resolve().parent.parent
NEEDED_PYTHON = (3, 11)
NEEDED_GB = 3.0
OVERRIDES = "tools/overrides.json"
MAX_QUOTED_LINES = 4
"""At most this many lines of pip's output are quoted."""
NO_NETWORK = (
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "NameResolutionError",
    "NewConnectionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
)


class Problem(Exception):
    """The set-up is impossible; one sentence says what to do."""


def main(arguments: List[str], root: Path = ROOT) -> int:
    """Set up `root` with the given extras, and return the exit status."""
    try:
        set_up(root, arguments)
    except Problem as problem:
        return report_failure(str(problem))
    except OSError as error:
        return report_failure(
            f"The set-up cannot work in this folder ({error}): check its disk and rights, then run make again."
        )
    except KeyboardInterrupt:
        return report_failure("The set-up was stopped: run make again and it starts afresh.")
    return 0


def report_failure(sentence: str) -> int:
    """Print what is wrong, and return the exit status."""
    print(sentence, file=sys.stderr)
    return 1


def set_up(root: Path, extras: List[str]) -> None:
    """Install what pyproject.toml and constraints.txt require, unless that is done already."""
    check_version(sys.version_info[:2])
    venv = root / environment(extras)
    if is_ready(venv, extras):
        return
    check_modules()
    if not is_complete(venv):
        check_space(root)
        make_venv(venv)
    install(venv, extras)
    disable_news(venv)
    ready_mark(venv, extras).write_text(fingerprint(root))
    unfinished_mark(venv).unlink(missing_ok=True)


def environment(extras: List[str]) -> str:
    """The folder of the environment; the tools of the peers get one of their own."""
    return ".venv-peers" if "peers" in extras else ".venv"


def check_version(version: Tuple[int, ...]) -> None:
    """Refuse a Python that is too old."""
    if version >= NEEDED_PYTHON:
        return
    raise Problem(f"Python 3.11 or newer is needed; this is {version[0]}.{version[1]}: run make PYTHON=python3.11")


def check_modules() -> None:
    """Refuse a Python that cannot make a virtual environment: some systems package that separately."""
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        hint = "install python3-venv (Debian, Ubuntu) or name another Python: make PYTHON=..."
        raise Problem(f"This Python lacks its module {' and '.join(missing)}: {hint}")


def check_space(folder: Path) -> None:
    """Refuse to begin if the disk has too little space."""
    free = free_gb(folder)
    if free < NEEDED_GB:
        need = f"About {NEEDED_GB:.0f} GB of free disk space are needed"
        raise Problem(f"{need} and {free:.1f} GB are left here: make room, then run make again.")


def free_gb(folder: Path) -> float:
    """The free space on the disk of `folder`, in GB."""
    return shutil.disk_usage(str(folder)).free / 1e9


def ready_mark(venv: Path, extras: List[str]) -> Path:
    """The file with the fingerprint from which these extras were installed."""
    return venv / f"hookviz-ready-{'-'.join(extras)}"


def unfinished_mark(venv: Path) -> Path:
    """The file that exists while .venv is being made, and stays if that is interrupted."""
    return venv / "hookviz-unfinished"


def fingerprint(root: Path) -> str:
    """Hash everything that the installation depends on, with its path: an editable install points to it."""
    texts = [(root / name).read_bytes() for name in ("pyproject.toml", "constraints.txt", OVERRIDES)]
    return hashlib.sha256(b"\0".join([str(root).encode(), *texts])).hexdigest()


def is_ready(venv: Path, extras: List[str]) -> bool:
    """Whether an earlier run installed exactly this, and its Python still works."""
    mark = ready_mark(venv, extras)
    if not mark.is_file() or mark.read_text() != fingerprint(venv.parent):
        return False
    return is_complete(venv) and can_import(venv, "torch")


def is_complete(venv: Path) -> bool:
    """Whether .venv was made completely and has pip."""
    return not unfinished_mark(venv).exists() and can_import(venv, "pip")


def can_import(venv: Path, module: str) -> bool:
    """Whether the Python in .venv runs and finds `module`; it may be gone or newer than its packages."""
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    try:
        return subprocess.run([str(python_of(venv)), "-I", "-c", code], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def python_of(venv: Path) -> Path:
    """The Python inside an environment."""
    return venv / "bin" / "python"


def make_venv(venv: Path) -> None:
    """Make the environment anew; remove an earlier one."""
    print(f"Making {venv.name}; the first time takes some minutes.", flush=True)
    if venv.exists():
        shutil.rmtree(str(venv))
    venv.mkdir()
    # Set first, so that an interrupted run always leaves it behind.
    unfinished_mark(venv).touch()
    command = [sys.executable, "-m", "venv", str(venv)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        hint = "see that the temporary folder has room, or name another Python: make PYTHON=..."
        raise Problem(f"{sys.executable} cannot make {venv.name} ({last_line(done.stdout)}): {hint}")


def last_line(output: str) -> str:
    """The last line of a program's output."""
    lines = output.strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"


def install(venv: Path, extras: List[str]) -> None:
    """Install hookviz with its extras, in the versions from constraints.txt."""
    print("Installing hookviz with the packages it needs.", flush=True)
    requirements = ["-c", "constraints.txt", "-e", f".[{','.join(extras)}]"]
    command = [str(python_of(venv)), "-m", "pip", "install", "--no-compile", "--retries", "2", *requirements]
    log = venv / "install.log"
    if run_pip(command, venv.parent, log):
        raise Problem(explain_failure(log))
    compile_all(venv)


def compile_all(venv: Path) -> None:
    """Compile the installed packages on all cores: pip takes a minute, on one core.

    Errors are ignored: some packages have templates with the suffix .py. Python compiles the rest when it is imported.
    """
    subprocess.run([str(python_of(venv)), "-m", "compileall", "-qq", "-j", "0", str(venv / "lib")])


def disable_news(venv: Path) -> None:
    """Keep JupyterLab from asking about news over the lesson; the user's own settings take precedence."""
    settings = venv / "share" / "jupyter" / "lab" / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    shutil.copy(str(venv.parent / OVERRIDES), str(settings / "overrides.json"))


def run_pip(command: List[str], root: Path, log: Path) -> int:
    """Run pip with its output in `log`, and show the lines about its progress."""
    with log.open("w", encoding="utf-8") as file, subprocess.Popen(
        command, cwd=str(root), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        for raw in process.stdout or []:
            line = raw.decode("utf-8", "replace")
            file.write(line)
            show_progress(line.strip())
    return process.returncode


def show_progress(line: str) -> None:
    """Print a line of pip's output if it is about progress."""
    if line.startswith("Downloading "):
        print("  " + line, flush=True)
    elif line.startswith("Installing collected packages"):
        print("  Putting them in place", flush=True)


def explain_failure(log: Path) -> str:
    """Explain a failure of pip: what the user can do, and where its output is."""
    output = log.read_text(encoding="utf-8")
    package, conflict = missing_package(output), describe_conflict(output)
    if "No space left on device" in output:
        advice = "The disk is full: make room, or point TMPDIR to a larger disk, then run make again"
    elif conflict:
        hint = "try another Python or loosen constraints.txt, then run make again"
        advice = f"pip finds no versions that fit together ({conflict}): {hint}"
    elif any(sign in output for sign in NO_NETWORK):
        advice = "pip cannot reach its package index: check the network and proxy, then run make again"
    elif package:
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        advice = f"pip finds no {package} for Python {python}: check pip's index settings, or try another Python"
    else:
        errors = "\n".join(line for line in output.splitlines() if re.search(r"(Error|ERROR): ", line))
        advice = f"pip could not install the packages ({last_line(errors or output)}): mend that, then run make again"
    return f"{advice} ({log.parent.name}/{log.name} has pip's own words)."


def missing_package(output: str) -> Optional[str]:
    """The package that pip did not find, if any."""
    found = re.search(r"No matching distribution found for ([^\s(;]+)", output)
    return found.group(1) if found else None


def describe_conflict(output: str) -> str:
    """The first lines of pip's output about conflicting versions, or ``""``."""
    found = re.search(r"^The conflict is caused by:\n((?:[ \t]+\S.*\n)+)", output, re.MULTILINE)
    lines = [line.strip() for line in found.group(1).splitlines()] if found else []
    return "; ".join(lines[:MAX_QUOTED_LINES] + ["..."] * (len(lines) > MAX_QUOTED_LINES))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
