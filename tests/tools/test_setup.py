"""The set-up says plainly what is missing, mends what was left half made, and names the same packages everywhere."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools import payload_types

ROOT = Path(__file__).resolve().parents[2]
CONDA_NAMES = {"torch": "pytorch-cpu", "graphviz": "python-graphviz", "matplotlib": "matplotlib-base"}


def load(name: str) -> ModuleType:
    """A helper script as a module."""
    spec = importlib.util.spec_from_file_location(f"hookviz_tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup = load("setup")
suite = load("suite")
javascript = load("javascript")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements(*extras: str) -> list[Requirement]:
    """What a person gets with these extras."""
    optional = project()["optional-dependencies"]
    lines = project()["dependencies"] + [line for extra in extras for line in optional[extra]]
    return [Requirement(line) for line in lines]


def executable(path: Path, text: str) -> Path:
    """A script that stands in for a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def make(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run make as a person does, also when make itself runs these tests."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "MFLAGS"}
    return subprocess.run(["make", *arguments], cwd=folder, env=clean, capture_output=True, text=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder to set up."""
    (tmp_path / "pyproject.toml").write_text("one")
    (tmp_path / "constraints.txt").write_text("two")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "overrides.json").write_text("{}")
    return tmp_path


# Asked to make an environment, it puts itself there; asked whether a module is there (-I), it says yes.
FAKE_PYTHON = """#!/bin/sh
if [ "$1" = -I ]; then exit 0; fi
echo "$@" >> "{root}/calls"
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; exit 0; fi
cat "{root}/words"
exit $(cat "{root}/status")
"""


@pytest.fixture
def pip(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace Python and its pip by a script; what is returned sets what pip says and its exit status."""

    def answer(words: str = "done", status: int = 0) -> None:
        (root / "words").write_text(words)
        (root / "status").write_text(str(status))

    answer()
    python = executable(root / "fake-python", FAKE_PYTHON.format(root=root))
    monkeypatch.setattr(sys, "executable", str(python))
    return answer


# As pip 23 to 25 end where versions exclude each other.
CONFLICT = """WARNING: Retrying (Retry(total=1)) after connection broken by 'ReadTimeoutError("once")': /simple/torch/
ERROR: Cannot install hookviz[lab]==0.1 because these package versions have conflicting dependencies.

The conflict is caused by:
{lines}

To fix this you could try to:
1. loosen the range of package versions you've specified
2. remove package versions to allow pip to attempt to solve the dependency conflict

ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/dependency-resolution/
"""


def calls(root: Path) -> list[str]:
    log = root / "calls"
    return log.read_text().splitlines() if log.exists() else []


def modules_run(root: Path) -> list[str]:
    """The modules that Python was asked to run, in their order."""
    return [line.split()[1] for line in calls(root)]


def run(root: Path) -> int:
    status = setup.main(["lab", "test"], root)
    assert isinstance(status, int)
    return status


# -- what make says when something is missing


def test_make_without_a_target_lists_the_targets() -> None:
    said = make().stdout
    assert all(
        f"make {target} " in said
        for target in ("lab", "check", "test", "lint", "site", "slides", "images", "bench", "peers", "clean")
    )


@pytest.mark.parametrize("target", ["lab", "check", "test", "lint", "site", "slides", "images", "bench", "peers"])
def test_make_says_when_there_is_no_python(target: str) -> None:
    done = make(target, "PYTHON=no-such-python")
    assert done.returncode != 0
    assert done.stderr.startswith("Python 3.11 or newer is needed, and 'no-such-python' is not one: install it, or")
    assert "Traceback" not in done.stderr


# Runs the script it is given as Python 3.8 would, except for its -c, which only asks whether it is a Python 3.
OLD_PYTHON = f"""#!/bin/sh
if [ "$1" = -c ]; then exit 0; fi
exec "{sys.executable}" -c "
import runpy, sys
sys.version_info = (3, 8, 18)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name='__main__')" "$@"
"""


def test_make_says_that_a_python_is_too_old(tmp_path: Path) -> None:
    done = make("lab", f"PYTHON={executable(tmp_path / 'old python', OLD_PYTHON)}")
    assert done.returncode != 0
    assert done.stderr.startswith("Python 3.11 or newer is needed; this is 3.8: run make PYTHON=python3.11\n")


def test_python_3_6_could_read_the_setup_script() -> None:
    text = (ROOT / "tools" / "setup.py").read_text()
    ast.parse(text, feature_version=(3, 6))
    assert "from __future__" not in text
    imported = {alias.name for node in ast.parse(text).body if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= {"hashlib", "importlib.util", "re", "shutil", "subprocess", "sys"}


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_virtual_environments_is_refused(
    module: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else real(name))
    assert run(root) == 1
    assert capsys.readouterr().err.startswith(f"This Python lacks its module {module}: install python3-venv")
    assert not (root / ".venv").exists()


def test_a_disk_that_is_too_small_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "free_gb", lambda folder: 0.4)
    assert run(root) == 1
    assert capsys.readouterr().err == (
        "About 3 GB of free disk space are needed and 0.4 GB are left here: make room, then run make again.\n"
    )
    assert not (root / ".venv").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "WARNING: Retrying: NewConnectionError\nERROR: No matching distribution found for hatchling",
            "cannot reach its",
        ),
        ("ERROR: No matching distribution found for torch==2.13.0 (from hookviz)", "pip finds no torch==2.13.0 for"),
        (
            CONFLICT.format(
                lines="    torchvision 0.20 depends on torch==2.5\n    The user requested (constraint) torch==2.13.0"
            ),
            "together (torchvision 0.20 depends on torch==2.5; The user requested (constraint) torch==2.13.0): try",
        ),
        (CONFLICT.format(lines="\n".join(f"    a {i} depends on b" for i in range(9))), "; a 3 depends on b; ...): "),
        ("ERROR: Could not install: [Errno 28] No space left on device", "The disk is full: make room, or"),
        ("OSError: Readme file\nhint: See above", "pip could not install the packages (OSError: Readme file): mend"),
        ("", "pip could not install the packages (it said nothing): mend"),
    ],
)
def test_a_pip_that_fails_ends_in_one_sentence(
    words: str, sentence: str, root: Path, pip: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    pip(words, 1)
    assert run(root) == 1
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1
    assert (root / ".venv" / "install.log").read_text() == words


def test_a_folder_that_cannot_be_written_ends_in_one_sentence(
    root: Path, pip: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".venv").write_text("a file where the folder should be")
    assert run(root) == 1
    said = capsys.readouterr().err
    assert said.startswith("The set-up cannot work in this folder") and said.count("\n") == 1


# -- when something is installed, and when not


def test_a_second_run_installs_nothing(root: Path, pip: Callable[..., None]) -> None:
    assert run(root) == 0
    before = calls(root)
    assert before[0].startswith("-m venv ")
    assert before[1].endswith("-c constraints.txt -e .[lab,test]")
    assert "--no-compile" in before[1] and before[2] == f"-m compileall -qq -j 0 {root / '.venv' / 'lib'}"
    assert run(root) == 0
    assert calls(root) == before


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_list_of_packages_is_installed_into_the_same_environment(
    name: str, root: Path, pip: Callable[..., None]
) -> None:
    run(root)
    (root / name).write_text("changed")
    assert run(root) == 0
    assert modules_run(root) == ["venv", "pip", "compileall", "pip", "compileall"]


def test_jupyterlab_is_kept_from_asking_for_news(root: Path, pip: Callable[..., None]) -> None:
    run(root)
    settings = root / ".venv" / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    assert settings.read_text() == (root / setup.OVERRIDES).read_text()


def test_new_settings_for_jupyterlab_reach_an_environment_that_is_there(root: Path, pip: Callable[..., None]) -> None:
    run(root)
    (root / setup.OVERRIDES).write_text('{"new": {}}')
    run(root)
    settings = root / ".venv" / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    assert settings.read_text() == '{"new": {}}'


def test_other_extras_are_installed_on_top(root: Path, pip: Callable[..., None]) -> None:
    run(root)
    setup.main(["lab", "test", "site"], root)
    assert calls(root)[-2].endswith(".[lab,test,site]")
    before = calls(root)
    run(root)
    assert calls(root) == before


def test_the_peers_get_an_environment_of_their_own(
    root: Path, pip: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup.main(["peers"], root) == 0
    assert calls(root)[0].endswith(".venv-peers") and calls(root)[1].endswith(".[peers]")
    assert not (root / ".venv").exists()
    (root / "pyproject.toml").write_text("changed")
    pip("ERROR: none", 1)
    assert setup.main(["peers"], root) == 1
    assert capsys.readouterr().err.endswith("(.venv-peers/install.log has pip's own words).\n")


def test_an_environment_that_was_cut_short_is_made_anew(root: Path, pip: Callable[..., None]) -> None:
    pip("no network", 1)
    run(root)
    (root / ".venv" / "left over").touch()
    pip()
    assert run(root) == 0
    assert not (root / ".venv" / "left over").exists()
    assert not setup.unfinished_mark(root / ".venv").exists()


def test_an_environment_without_a_working_python_is_made_anew(root: Path, pip: Callable[..., None]) -> None:
    run(root)
    (root / ".venv" / "bin" / "python").unlink()
    (root / ".venv" / "left over").touch()
    assert run(root) == 0
    assert not (root / ".venv" / "left over").exists()
    assert modules_run(root) == ["venv", "pip", "compileall"] * 2


def test_an_environment_that_was_moved_is_installed_again(root: Path, tmp_path: Path) -> None:
    before = setup.fingerprint(root)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "tools").mkdir(parents=True)
    for name in ("pyproject.toml", "constraints.txt", setup.OVERRIDES):
        (elsewhere / name).write_bytes((root / name).read_bytes())
    assert setup.fingerprint(elsewhere) != before


# -- what make check reports


# Stands for the environment's Python: each of its tools prints its name and ends as the test wants it.
TOOLS = """#!/bin/sh
case "$*" in
*pytest*) echo tests; exit {tests};;
*"ruff check"*) echo style; exit {style};;
*"ruff format"*) echo format; exit 0;;
*mypy*) echo types; exit {types};;
*javascript.py*) echo JavaScript; exit 0;;
esac
"""


@pytest.mark.parametrize(("tests", "style", "types"), [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)])
def test_make_check_reports_every_fault_and_the_tests_first(tmp_path: Path, tests: int, style: int, types: int) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "setup.py").write_text("")
    executable(tmp_path / ".venv" / "bin" / "python", TOOLS.format(tests=tests, style=style, types=types))
    executable(tmp_path / ".venv" / "bin" / "lint-imports", "#!/bin/sh\necho imports\n")
    done = make("check", f"PYTHON={sys.executable}", folder=tmp_path)
    assert (done.returncode != 0) == any((tests, style, types))
    told = [line for line in done.stdout.splitlines() if not line.startswith("make")]
    assert told == ["tests", "style", "format", "types", "imports", "JavaScript"]


# -- the player's JavaScript


def test_missing_node_is_said_and_is_a_failure_only_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(javascript.shutil, "which", lambda name: None)
    monkeypatch.delenv("HOOKVIZ_REQUIRE", raising=False)
    assert javascript.main(["lint", "test"]) == 0
    assert capsys.readouterr().out == (
        "Left out, for the player's JavaScript: lint, test. Node is not installed; 20.19 or newer is needed.\n"
    )
    monkeypatch.setenv("HOOKVIZ_REQUIRE", "browser,node")
    assert javascript.main(["test"]) == 1


def test_an_old_node_is_said(tmp_path: Path) -> None:
    node = executable(tmp_path / "node", "#!/bin/sh\necho v16.20.0\n")
    assert javascript.node_problem(str(node)) == "Node is v16.20.0 and 20.19 or newer is needed"


def test_where_npm_reaches_nothing_its_own_words_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package-lock.json").touch()
    npm = executable(tmp_path / "npm", "#!/bin/sh\necho 'npm error network' >&2\nexit 1\n")
    monkeypatch.setattr(javascript, "ROOT", tmp_path)
    monkeypatch.setattr(javascript.shutil, "which", lambda name: str(npm))
    assert javascript.tools_problem() == "npm could not install its tools (npm error network)"


def test_tools_are_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package-lock.json").touch()
    npm = executable(tmp_path / "npm", "#!/bin/sh\nmkdir node_modules && touch node_modules/.package-lock.json\n")
    monkeypatch.setattr(javascript, "ROOT", tmp_path)
    monkeypatch.setattr(javascript.shutil, "which", lambda name: str(npm))
    assert [javascript.tools_problem(), javascript.tools_problem()] == [None, None]  # mkdir would fail the second time


def test_the_lockfile_names_no_registry() -> None:
    lock = (ROOT / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock and '"integrity"' in lock


def test_the_types_of_the_javascript_are_made_from_those_of_the_python() -> None:
    assert payload_types.TARGET.read_text(encoding="utf-8") == payload_types.write_types()


@pytest.mark.parametrize(("node", "tests", "ended"), [(0, 0, 0), (1, 0, 1), (0, 2, 2), (1, 2, 2)])
def test_both_parts_of_the_suite_run_and_each_may_fail(
    node: int, tests: int, ended: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    ran: list[tuple[str, ...]] = []

    def command(*arguments: str) -> list[str]:
        ran.append(arguments)
        return [sys.executable, "-c", f"raise SystemExit({tests})"]

    monkeypatch.setattr(suite, "JAVASCRIPT", [sys.executable, "-c", f"raise SystemExit({node})"])
    monkeypatch.setattr(suite, "pytest_command", command)
    assert suite.main([]) == ended
    assert suite.main(["-k", "trace"]) == ended
    assert ran == [tuple(suite.whole_suite_arguments()), ("-k", "trace")]


# -- the same packages everywhere


def pinned() -> dict[str, str]:
    """Package → the one version that ``make`` installs."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_every_requirement_has_an_exact_version_that_fits() -> None:
    pins = pinned()
    assert all(pins.values()) and pins["torch"] == "2.13.0"
    for needed in requirements("lab", "test", "site", "peers"):
        assert Version(pins[canonicalize_name(needed.name)]) in needed.specifier, needed


def test_each_pin_accepts_the_first_python_that_the_readme_promises() -> None:
    """Debian's is 3.11.2, and there are packages that want 3.11.5."""
    refused = []
    for name, version in pinned().items():
        with suppress(PackageNotFoundError):  # of a pin that only another set-up needs
            there = metadata(name)
            needed = there["Requires-Python"] if there["Version"] == version else ""
            if needed and "3.11.0" not in SpecifierSet(needed):
                refused.append((name, version, needed))
    assert refused == []


def test_binder_gets_what_pip_would_install() -> None:
    conda = conda_packages()
    for needed in requirements("lab"):
        name = CONDA_NAMES.get(needed.name, needed.name)
        assert conda[name] == needed.specifier, name
    assert "pytorch" not in conda and "pip" in conda


def test_binder_gets_a_python_that_hookviz_takes() -> None:
    python = str(conda_packages()["python"])
    assert re.fullmatch(r"==3\.\d+", python), "python is to be pinned"
    assert python.removeprefix("==") in SpecifierSet(project()["requires-python"])


def conda_packages() -> dict[str, SpecifierSet]:
    """The packages of environment.yml, those of its pip section too, with their bounds."""
    entries: list[Any] = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    lines = [line for entry in entries for line in ([entry] if isinstance(entry, str) else entry["pip"])]
    # conda's single = pins as == does.
    needed = [Requirement(re.sub(r"(?<![=<>!~])=(?!=)", "==", line)) for line in lines]
    return {one.name: one.specifier for one in needed}


def test_binder_builds_without_fetching_anything_twice() -> None:
    script = ROOT / "postBuild"
    assert script.read_text().startswith("#!/bin/bash\nset -e\n")
    assert "pip install --no-deps -e .\n" in script.read_text()
    assert 'cp tools/overrides.json "$settings/overrides.json"\n' in script.read_text()
    assert os.access(script, os.X_OK) and os.access(ROOT / ".ci" / "run", os.X_OK)
    assert not (ROOT / ".binder").exists() and not (ROOT / "binder").exists()


def test_the_version_is_the_same_wherever_it_is_written() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == project()["version"]
    assert citation["license"] == project()["license"]


def test_the_wheel_carries_everything_that_is_in_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hatchling import build

    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build.build_wheel(str(tmp_path))) as wheel:
        there = {name for name in wheel.namelist() if name.startswith("hookviz/")}
        extra = {name.split("/")[0] for name in wheel.namelist()} - {"hookviz"}
    files = {path.relative_to(ROOT) for path in (ROOT / "hookviz").rglob("*") if path.is_file()}
    installed = {path for path in files if not {"__pycache__", "browser"} & {*path.parts} and path.suffix != ".pyc"}
    assert there == {path.as_posix() for path in installed}
    assert {Path(name).suffix for name in there} >= {".py", ".js", ".css", ".json"}
    assert "hookviz/py.typed" in there
    assert extra == {f"hookviz-{project()['version']}.dist-info"}
