"""Set-up reports what is missing, repairs incomplete environments, and lists the same packages in all files."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
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

from tools import payload_types, trace_schema

ROOT = Path(__file__).resolve().parents[2]
CONDA_NAMES = {"torch": "pytorch-cpu", "graphviz": "python-graphviz", "matplotlib": "matplotlib-base"}


def load_script(name: str) -> ModuleType:
    """A helper script as a module."""
    spec = importlib.util.spec_from_file_location(f"hookviz_tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup = load_script("setup")
suite = load_script("suite")
javascript = load_script("javascript")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements(*extras: str) -> list[Requirement]:
    """The requirements of the project with these extras, and with the extras that they include."""
    optional = project()["optional-dependencies"]
    found = [Requirement(line) for line in project()["dependencies"]]
    for extra in extras:
        for requirement in map(Requirement, optional[extra]):
            found += requirements(*requirement.extras) if requirement.name == "hookviz" else [requirement]
    return found


def write_executable(path: Path, text: str) -> Path:
    """Write an executable script that replaces a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def run_make(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run make with a clean environment, even if make runs these tests."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "MFLAGS"}
    return subprocess.run(["make", *arguments], cwd=folder, env=clean, capture_output=True, text=True)


@pytest.fixture
def project_folder(tmp_path: Path) -> Path:
    """A project folder without an environment."""
    (tmp_path / "pyproject.toml").write_text("one")
    (tmp_path / "constraints.txt").write_text("two")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "overrides.json").write_text("{}")
    return tmp_path


# With "-m venv" it copies itself into the new environment; with -I, a check for a module, it succeeds.
FAKE_PYTHON = """#!/bin/sh
if [ "$1" = -I ]; then exit 0; fi
echo "$@" >> "{root}/calls"
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; exit 0; fi
cat "{root}/pip_output"
exit $(cat "{root}/status")
"""


@pytest.fixture
def set_pip_result(project_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace Python and its pip by a script; return a function that sets the output and exit status of pip."""

    def answer(pip_output: str = "done", status: int = 0) -> None:
        (project_folder / "pip_output").write_text(pip_output)
        (project_folder / "status").write_text(str(status))

    answer()
    python = write_executable(project_folder / "fake-python", FAKE_PYTHON.format(root=project_folder))
    monkeypatch.setattr(sys, "executable", str(python))
    return answer


# The output of pip 23 to 25 if versions conflict.
CONFLICT = """WARNING: Retrying (Retry(total=1)) after connection broken by 'ReadTimeoutError("once")': /simple/torch/
ERROR: Cannot install hookviz[lab]==0.1 because these package versions have conflicting dependencies.

The conflict is caused by:
{lines}

To fix this you could try to:
1. loosen the range of package versions you've specified
2. remove package versions to allow pip to attempt to solve the dependency conflict

ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/dependency-resolution/
"""


def calls(project_folder: Path) -> list[str]:
    log = project_folder / "calls"
    return log.read_text().splitlines() if log.exists() else []


def modules_run(project_folder: Path) -> list[str]:
    """The modules that Python was asked to run, in order."""
    return [line.split()[1] for line in calls(project_folder)]


def run_setup(project_folder: Path) -> int:
    status = setup.main(["lab", "test"], project_folder)
    assert isinstance(status, int)
    return status


# -- messages of make about missing requirements


def test_make_without_a_target_lists_the_targets() -> None:
    message = run_make().stdout
    assert all(
        f"make {target} " in message
        for target in ("lab", "check", "test", "lint", "site", "slides", "images", "bench", "peers", "clean")
    )


@pytest.mark.parametrize("target", ["lab", "check", "test", "lint", "site", "slides", "images", "bench", "peers"])
def test_make_reports_a_missing_python(target: str) -> None:
    done = run_make(target, "PYTHON=no-such-python")
    assert done.returncode != 0
    assert done.stderr.startswith("Python 3.11 or newer is needed, and 'no-such-python' is not one: install it, or")
    assert "Traceback" not in done.stderr


# Runs its script as Python 3.8 would; with -c, a check for Python 3, it succeeds.
OLD_PYTHON = f"""#!/bin/sh
if [ "$1" = -c ]; then exit 0; fi
exec "{sys.executable}" -c "
import runpy, sys
sys.version_info = (3, 8, 18)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name='__main__')" "$@"
"""


def test_make_reports_an_old_python(tmp_path: Path) -> None:
    done = run_make("lab", f"PYTHON={write_executable(tmp_path / 'old python', OLD_PYTHON)}")
    assert done.returncode != 0
    assert done.stderr.startswith("Python 3.11 or newer is needed; this is 3.8: run make PYTHON=python3.11\n")


def test_setup_script_has_python_3_6_syntax() -> None:
    text = (ROOT / "tools" / "setup.py").read_text()
    ast.parse(text, feature_version=(3, 6))
    assert "from __future__" not in text
    imported = {alias.name for node in ast.parse(text).body if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= {"hashlib", "importlib.util", "re", "shutil", "subprocess", "sys"}


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_setup_refuses_a_python_without_venv(
    module: str, project_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else real(name))
    assert run_setup(project_folder) == 1
    assert capsys.readouterr().err.startswith(f"This Python lacks its module {module}: install python3-venv")
    assert not (project_folder / ".venv").exists()


def test_setup_refuses_a_full_disk(
    project_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "free_gb", lambda folder: 0.4)
    assert run_setup(project_folder) == 1
    assert capsys.readouterr().err == (
        "About 3 GB of free disk space are needed and 0.4 GB are left here: make room, then run make again.\n"
    )
    assert not (project_folder / ".venv").exists()


@pytest.mark.parametrize(
    ("pip_output", "sentence"),
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
def test_pip_failure_is_reported_in_one_line(
    pip_output: str,
    sentence: str,
    project_folder: Path,
    set_pip_result: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_pip_result(pip_output, 1)
    assert run_setup(project_folder) == 1
    message = capsys.readouterr().err
    assert sentence in message and message.count("\n") == 1
    assert (project_folder / ".venv" / "install.log").read_text() == pip_output


def test_unwritable_folder_is_reported_in_one_line(
    project_folder: Path, set_pip_result: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    (project_folder / ".venv").write_text("a file where the folder should be")
    assert run_setup(project_folder) == 1
    message = capsys.readouterr().err
    assert message.startswith("The set-up cannot work in this folder") and message.count("\n") == 1


# -- repeated set-up


def test_second_setup_installs_nothing(project_folder: Path, set_pip_result: Callable[..., None]) -> None:
    assert run_setup(project_folder) == 0
    before = calls(project_folder)
    assert before[0].startswith("-m venv ")
    assert before[1].endswith("-c constraints.txt -e .[lab,test]")
    assert "--no-compile" in before[1] and before[2] == f"-m compileall -qq -j 0 {project_folder / '.venv' / 'lib'}"
    assert run_setup(project_folder) == 0
    assert calls(project_folder) == before


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_requirements_are_installed_into_the_same_environment(
    name: str, project_folder: Path, set_pip_result: Callable[..., None]
) -> None:
    run_setup(project_folder)
    (project_folder / name).write_text("changed")
    assert run_setup(project_folder) == 0
    assert modules_run(project_folder) == ["venv", "pip", "compileall", "pip", "compileall"]


def test_setup_copies_the_settings_of_jupyterlab(project_folder: Path, set_pip_result: Callable[..., None]) -> None:
    run_setup(project_folder)
    settings = project_folder / ".venv" / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    assert settings.read_text() == (project_folder / setup.OVERRIDES).read_text()


def test_changed_settings_of_jupyterlab_reach_an_existing_environment(
    project_folder: Path, set_pip_result: Callable[..., None]
) -> None:
    run_setup(project_folder)
    (project_folder / setup.OVERRIDES).write_text('{"new": {}}')
    run_setup(project_folder)
    settings = project_folder / ".venv" / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    assert settings.read_text() == '{"new": {}}'


def test_further_extras_are_added_to_the_environment(project_folder: Path, set_pip_result: Callable[..., None]) -> None:
    run_setup(project_folder)
    setup.main(["lab", "test", "site"], project_folder)
    assert calls(project_folder)[-2].endswith(".[lab,test,site]")
    before = calls(project_folder)
    run_setup(project_folder)
    assert calls(project_folder) == before


def test_peers_are_installed_into_a_separate_environment(
    project_folder: Path, set_pip_result: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup.main(["peers"], project_folder) == 0
    assert calls(project_folder)[0].endswith(".venv-peers") and calls(project_folder)[1].endswith(".[peers]")
    assert not (project_folder / ".venv").exists()
    (project_folder / "pyproject.toml").write_text("changed")
    set_pip_result("ERROR: none", 1)
    assert setup.main(["peers"], project_folder) == 1
    assert capsys.readouterr().err.endswith("(.venv-peers/install.log has pip's own words).\n")


def test_incomplete_environment_is_recreated(project_folder: Path, set_pip_result: Callable[..., None]) -> None:
    set_pip_result("no network", 1)
    run_setup(project_folder)
    (project_folder / ".venv" / "left over").touch()
    set_pip_result()
    assert run_setup(project_folder) == 0
    assert not (project_folder / ".venv" / "left over").exists()
    assert not setup.unfinished_mark(project_folder / ".venv").exists()


def test_environment_without_a_working_python_is_recreated(
    project_folder: Path, set_pip_result: Callable[..., None]
) -> None:
    run_setup(project_folder)
    (project_folder / ".venv" / "bin" / "python").unlink()
    (project_folder / ".venv" / "left over").touch()
    assert run_setup(project_folder) == 0
    assert not (project_folder / ".venv" / "left over").exists()
    assert modules_run(project_folder) == ["venv", "pip", "compileall"] * 2


def test_fingerprint_changes_if_the_project_is_moved(project_folder: Path, tmp_path: Path) -> None:
    before = setup.fingerprint(project_folder)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "tools").mkdir(parents=True)
    for name in ("pyproject.toml", "constraints.txt", setup.OVERRIDES):
        (elsewhere / name).write_bytes((project_folder / name).read_bytes())
    assert setup.fingerprint(elsewhere) != before


# -- what make check reports


# Replaces the environment's Python: each tool prints its name and exits with the status set by the test.
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
def test_make_check_runs_all_tools_despite_failures(tmp_path: Path, tests: int, style: int, types: int) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "setup.py").write_text("")
    write_executable(tmp_path / ".venv" / "bin" / "python", TOOLS.format(tests=tests, style=style, types=types))
    write_executable(tmp_path / ".venv" / "bin" / "lint-imports", "#!/bin/sh\necho imports\n")
    done = run_make("check", f"PYTHON={sys.executable}", folder=tmp_path)
    assert (done.returncode != 0) == any((tests, style, types))
    lines = [line for line in done.stdout.splitlines() if not line.startswith("make")]
    assert lines == ["tests", "style", "format", "types", "imports", "JavaScript"]


# -- the player's JavaScript


def test_missing_node_is_reported_and_fails_only_if_required(
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


def test_old_node_is_reported(tmp_path: Path) -> None:
    node = write_executable(tmp_path / "node", "#!/bin/sh\necho v16.20.0\n")
    assert javascript.node_problem(str(node)) == "Node is v16.20.0 and 20.19 or newer is needed"


def test_npm_failure_is_reported_with_the_message_of_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package-lock.json").touch()
    npm = write_executable(tmp_path / "npm", "#!/bin/sh\necho 'npm error network' >&2\nexit 1\n")
    monkeypatch.setattr(javascript, "ROOT", tmp_path)
    monkeypatch.setattr(javascript.shutil, "which", lambda name: str(npm))
    assert javascript.tools_problem() == "npm could not install its tools (npm error network)"


def test_npm_tools_are_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package-lock.json").touch()
    npm = write_executable(tmp_path / "npm", "#!/bin/sh\nmkdir node_modules && touch node_modules/.package-lock.json\n")
    monkeypatch.setattr(javascript, "ROOT", tmp_path)
    monkeypatch.setattr(javascript.shutil, "which", lambda name: str(npm))
    assert [javascript.tools_problem(), javascript.tools_problem()] == [None, None]  # mkdir would fail the second time


def test_lockfile_names_no_registry() -> None:
    lock = (ROOT / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock and '"integrity"' in lock


def test_committed_javascript_types_match_the_python_types() -> None:
    assert payload_types.TARGET.read_text(encoding="utf-8") == payload_types.write_types()


def test_committed_trace_schema_matches_the_types() -> None:
    assert trace_schema.TARGET.read_text(encoding="utf-8") == trace_schema.write_schema()


@pytest.mark.parametrize(("node", "tests", "status"), [(0, 0, 0), (1, 0, 1), (0, 2, 2), (1, 2, 2)])
def test_suite_runs_javascript_and_python_tests_and_reports_either_failure(
    node: int, tests: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    pytest_arguments: list[tuple[str, ...]] = []

    def command(*arguments: str) -> list[str]:
        pytest_arguments.append(arguments)
        return [sys.executable, "-c", f"raise SystemExit({tests})"]

    monkeypatch.setattr(suite, "JAVASCRIPT", [sys.executable, "-c", f"raise SystemExit({node})"])
    monkeypatch.setattr(suite, "pytest_command", command)
    assert suite.main([]) == status
    assert suite.main(["-k", "trace"]) == status
    assert pytest_arguments == [tuple(suite.whole_suite_arguments()), ("-k", "trace")]


# -- the same packages everywhere


def pinned_versions() -> dict[str, str]:
    """Package → the one version that ``make`` installs."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_every_requirement_is_pinned_to_an_allowed_version() -> None:
    pins = pinned_versions()
    assert all(pins.values()) and pins["torch"] == "2.13.0"
    for requirement in requirements("lab", "test", "site", "peers"):
        assert Version(pins[canonicalize_name(requirement.name)]) in requirement.specifier, requirement


def test_pinned_packages_accept_python_3_11_0() -> None:
    """Debian has 3.11.2, and some packages require 3.11.5."""
    refused = []
    for name, version in pinned_versions().items():
        with suppress(PackageNotFoundError):  # a pin for another environment
            distribution = metadata(name)
            requirement = distribution["Requires-Python"] if distribution["Version"] == version else ""
            if requirement and "3.11.0" not in SpecifierSet(requirement):
                refused.append((name, version, requirement))
    assert refused == []


def test_binder_environment_has_the_requirements_of_the_lab_extra() -> None:
    conda = conda_packages()
    for requirement in requirements("lab"):
        name = CONDA_NAMES.get(requirement.name, requirement.name)
        assert conda[name] == requirement.specifier, name
    assert "pytorch" not in conda and "pip" in conda


def test_binder_python_is_pinned_and_supported() -> None:
    python = str(conda_packages()["python"])
    assert re.fullmatch(r"==3\.\d+", python), "python is to be pinned"
    assert python.removeprefix("==") in SpecifierSet(project()["requires-python"])


def conda_packages() -> dict[str, SpecifierSet]:
    """The packages of environment.yml and of its pip section → their version specifiers."""
    entries: list[Any] = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    lines = [line for entry in entries for line in ([entry] if isinstance(entry, str) else entry["pip"])]
    # conda's single = pins as == does.
    parsed = [Requirement(re.sub(r"(?<![=<>!~])=(?!=)", "==", line)) for line in lines]
    return {package.name: package.specifier for package in parsed}


def test_binder_post_build_installs_without_dependencies() -> None:
    script = ROOT / "postBuild"
    assert script.read_text().startswith("#!/bin/bash\nset -e\n")
    assert "pip install --no-deps -e .\n" in script.read_text()
    assert 'cp tools/overrides.json "$settings/overrides.json"\n' in script.read_text()
    assert os.access(script, os.X_OK) and os.access(ROOT / ".ci" / "run", os.X_OK)
    assert not (ROOT / ".binder").exists() and not (ROOT / "binder").exists()
