"""Make an environment and install hookviz into it; where that cannot be done, say in one sentence what to do.

This file must be readable for Python 3.6, so that an old Python can say that it is too old.
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
FEW = 4
"""No more of pip's lines than this are quoted."""
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
    """What stands in the way, as one sentence that says what to do."""


def main(arguments: List[str], root: Path = ROOT) -> int:
    """Set up `root` with the extras that are named, and return the exit status."""
    try:
        set_up(root, arguments)
    except Problem as problem:
        return fail(str(problem))
    except OSError as error:
        return fail(f"The set-up cannot work in this folder ({error}): check its disk and rights, then run make again.")
    except KeyboardInterrupt:
        return fail("The set-up was stopped: run make again and it starts afresh.")
    return 0


def fail(sentence: str) -> int:
    """Say what is wrong, and return the exit status."""
    print(sentence, file=sys.stderr)
    return 1


def set_up(root: Path, extras: List[str]) -> None:
    """Bring the environment to what pyproject.toml and constraints.txt ask for, and do nothing when it is there."""
    check_version(sys.version_info[:2])
    venv = root / environment(extras)
    if is_ready(venv, extras):
        return
    check_modules()
    if not is_sound(venv):
        check_space(root)
        make_venv(venv)
    install(venv, extras)
    quieten(venv)
    stamp(venv, extras).write_text(fingerprint(root))
    unfinished(venv).unlink(missing_ok=True)


def environment(extras: List[str]) -> str:
    """The folder for these extras; what the peers' tools need stays out of the one that everything else runs in."""
    return ".venv-peers" if "peers" in extras else ".venv"


def check_version(version: Tuple[int, ...]) -> None:
    """Refuse a Python that is too old."""
    if version >= NEEDED_PYTHON:
        return
    raise Problem(f"Python 3.11 or newer is needed; this is {version[0]}.{version[1]}: run make PYTHON=python3.11")


def check_modules() -> None:
    """Refuse a Python that cannot make a virtual environment, as some systems split that off."""
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        hint = "install python3-venv (Debian, Ubuntu) or name another Python: make PYTHON=..."
        raise Problem(f"This Python lacks its module {' and '.join(missing)}: {hint}")


def check_space(folder: Path) -> None:
    """Refuse to begin what the disk cannot hold."""
    free = free_gb(folder)
    if free < NEEDED_GB:
        need = f"About {NEEDED_GB:.0f} GB of free disk space are needed"
        raise Problem(f"{need} and {free:.1f} GB are left here: make room, then run make again.")


def free_gb(folder: Path) -> float:
    """How much the disk that holds `folder` has left."""
    return shutil.disk_usage(str(folder)).free / 1e9


def stamp(venv: Path, extras: List[str]) -> Path:
    """The file that says what these extras were installed from."""
    return venv / f"hookviz-ready-{'-'.join(extras)}"


def unfinished(venv: Path) -> Path:
    """The file that is there while .venv is being made, and stays when that was cut short."""
    return venv / "hookviz-unfinished"


def fingerprint(root: Path) -> str:
    """What the installed packages depend on, the place too: an editable install points to it."""
    texts = [(root / name).read_bytes() for name in ("pyproject.toml", "constraints.txt", OVERRIDES)]
    return hashlib.sha256(b"\0".join([str(root).encode(), *texts])).hexdigest()


def is_ready(venv: Path, extras: List[str]) -> bool:
    """Whether an earlier run installed just this, and its Python still works."""
    mark = stamp(venv, extras)
    if not mark.is_file() or mark.read_text() != fingerprint(venv.parent):
        return False
    return is_sound(venv) and can_find(venv, "torch")


def is_sound(venv: Path) -> bool:
    """Whether .venv was made to its end and can install something."""
    return not unfinished(venv).exists() and can_find(venv, "pip")


def can_find(venv: Path, module: str) -> bool:
    """Whether the Python in .venv runs and sees `module`; it may be gone or newer than its packages."""
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    try:
        return subprocess.run([str(python_of(venv)), "-I", "-c", code], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def python_of(venv: Path) -> Path:
    """The Python inside an environment."""
    return venv / "bin" / "python"


def make_venv(venv: Path) -> None:
    """Make the environment anew; what was left of an earlier one goes."""
    print(f"Making {venv.name}; the first time takes some minutes.", flush=True)
    if venv.exists():
        shutil.rmtree(str(venv))
    venv.mkdir()
    # Set before anything else, so that a run cut short at any point leaves it behind.
    unfinished(venv).touch()
    command = [sys.executable, "-m", "venv", str(venv)]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        hint = "see that the temporary folder has room, or name another Python: make PYTHON=..."
        raise Problem(f"{sys.executable} cannot make {venv.name} ({last_line(made.stdout)}): {hint}")


def last_line(output: str) -> str:
    """The last thing that a program said."""
    lines = output.strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"


def install(venv: Path, extras: List[str]) -> None:
    """Install hookviz with its extras, in the versions of constraints.txt."""
    print("Installing hookviz with the packages it needs.", flush=True)
    wanted = ["-c", "constraints.txt", "-e", f".[{','.join(extras)}]"]
    command = [str(python_of(venv)), "-m", "pip", "install", "--no-compile", "--retries", "2", *wanted]
    log = venv / "install.log"
    if run_pip(command, venv.parent, log):
        raise Problem(explain(log))
    compile_all(venv)


def compile_all(venv: Path) -> None:
    """Compile what was installed on all cores: pip takes a minute for it, on one.

    Some packages have templates that are no Python. What is not compiled here Python compiles where it is imported.
    """
    subprocess.run([str(python_of(venv)), "-m", "compileall", "-qq", "-j", "0", str(venv / "lib")])


def quieten(venv: Path) -> None:
    """Keep JupyterLab from asking about news, over the lesson; a person's own settings still win."""
    settings = venv / "share" / "jupyter" / "lab" / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    shutil.copy(str(venv.parent / OVERRIDES), str(settings / "overrides.json"))


def run_pip(command: List[str], root: Path, log: Path) -> int:
    """Run pip with its words in `log`, and show those of them that tell a person how far it is."""
    with log.open("w", encoding="utf-8") as file, subprocess.Popen(
        command, cwd=str(root), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        for raw in process.stdout or []:
            line = raw.decode("utf-8", "replace")
            file.write(line)
            show(line.strip())
    return process.returncode


def show(line: str) -> None:
    """Print a line of pip's when it tells of progress."""
    if line.startswith("Downloading "):
        print("  " + line, flush=True)
    elif line.startswith("Installing collected packages"):
        print("  Putting them in place", flush=True)


def explain(log: Path) -> str:
    """What a person can do about a pip that failed, and where its own words are."""
    said = log.read_text(encoding="utf-8")
    package, conflict = missing_package(said), conflicting(said)
    if "No space left on device" in said:
        advice = "The disk is full: make room, or point TMPDIR to a larger disk, then run make again"
    elif conflict:
        hint = "try another Python or loosen constraints.txt, then run make again"
        advice = f"pip finds no versions that fit together ({conflict}): {hint}"
    elif any(sign in said for sign in NO_NETWORK):
        advice = "pip cannot reach its package index: check the network and proxy, then run make again"
    elif package:
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        advice = f"pip finds no {package} for Python {python}: check pip's index settings, or try another Python"
    else:
        errors = "\n".join(line for line in said.splitlines() if re.search(r"(Error|ERROR): ", line))
        advice = f"pip could not install the packages ({last_line(errors or said)}): mend that, then run make again"
    return f"{advice} ({log.parent.name}/{log.name} has pip's own words)."


def missing_package(said: str) -> Optional[str]:
    """The package that pip looked for in vain."""
    found = re.search(r"No matching distribution found for ([^\s(;]+)", said)
    return found.group(1) if found else None


def conflicting(said: str) -> str:
    """What pip says of versions that exclude each other, as far as a person reads it."""
    found = re.search(r"^The conflict is caused by:\n((?:[ \t]+\S.*\n)+)", said, re.MULTILINE)
    lines = [line.strip() for line in found.group(1).splitlines()] if found else []
    return "; ".join(lines[:FEW] + ["..."] * (len(lines) > FEW))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
