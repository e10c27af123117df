"""Where torch is not installed, traces are loaded, shown and saved: tried with the packages that the README names."""

import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sysconfig
import tomllib
import venv
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from packaging.requirements import Requirement
from scenes import hook_everything, scene

import hookviz as hv
from tests.proof.mutants import KINDS_OF_TRACE
from tests.tools.every_view import every_view

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "README.md").read_text(encoding="utf-8").partition("### Without PyTorch")[2].partition("\n## ")[0]
(COMMAND,) = re.findall(r"^pip install (?!--)(.+)$", SECTION, re.MULTILINE)
NEEDED = shlex.split(COMMAND)
FOR_THE_WIDGET = re.findall(r'`"([^"]+)"`', SECTION)
OLD = sorted(path for path in (ROOT / "tests/data/version_1").glob("*.json") if not path.stem.endswith(".told"))


def closure(requirements: Iterable[str]) -> set[str]:
    """The distributions that pip would install."""
    found: set[str] = set()
    queue = [Requirement(text) for text in requirements]
    while queue:
        requirement = queue.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name.lower() not in found:
            found.add(requirement.name.lower())
            queue += map(Requirement, importlib.metadata.requires(requirement.name) or ())
    return found


def files_of(distribution: str) -> Iterator[Path]:
    """The files and folders that a distribution has put beside those of others."""
    found = importlib.metadata.distribution(distribution)
    names = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
    yield from (Path(str(found.locate_file(name))) for name in names)


def environment(folder: Path, requirements: Iterable[str]) -> Path:
    """The Python of a new environment that has what pip would install, and hookviz: links to what is installed here."""
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    for file in (ROOT / "hookviz", *(file for name in closure(requirements) for file in files_of(name))):
        if not (packages / file.name).exists():  # several distributions may share a folder
            (packages / file.name).symlink_to(file)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("bare"), NEEDED)


def run(python: Path, *arguments: str | Path) -> str:
    """What a Python prints that takes nothing from this process: no path, no variable but where commands are."""
    command = [python, "-I", "-B", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    return done.stdout


def views(python: Path, folder: Path, paths: list[Path]) -> dict[str, dict[str, Any]]:
    """What another Python shows of the traces in files."""
    run(python, ROOT / "tests/tools/every_view.py", folder / "views.json", *paths)
    found: dict[str, dict[str, Any]] = json.loads((folder / "views.json").read_text(encoding="utf-8"))
    return found


def with_nan() -> hv.Trace:
    """A model in which NaN begins, seen by what its ops saved."""
    x = torch.tensor([[-1.0, 2.0], [0.0, -torch.inf]], requires_grad=True)

    class Logarithm(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.log() - x).softmax(1) / torch.tensor([1.0, 0.0])

    net = torch.nn.Sequential(Logarithm())
    with hv.record(net) as trace:
        net(x).sum().backward()
    return trace


def lesson(*, hooks: bool = True) -> hv.Trace:
    """The a to e of the lessons with every kind of hook, or without."""
    tensors = scene()
    if hooks:
        hook_everything(tensors)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    return trace


FRESH = {**KINDS_OF_TRACE, "with NaN": with_nan, "lesson": lesson}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files that were just saved, of traces of each kind."""
    folder = tmp_path_factory.mktemp("fresh")
    torch.manual_seed(0)
    for name, make in FRESH.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # a legacy hook is among them
            make().save(folder / f"{name}.json")
    lesson(hooks=False).save(folder / "lesson.json.other")
    return [folder / f"{name}.json" for name in FRESH]


def test_the_readme_names_what_hookviz_depends_on_but_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sorted([*NEEDED, *FOR_THE_WIDGET, "torch>=2.10"]) == sorted(project["dependencies"])


def test_neither_torch_nor_numpy_is_there(python: Path) -> None:
    code = (
        "import importlib.util as u; print([u.find_spec(name) for name in ('torch', 'torchgen', 'numpy', 'IPython')])"
    )
    assert run(python, "-c", code) == "[None, None, None, None]\n"


def test_the_command_of_the_readers_works(python: Path, fresh: list[Path], tmp_path: Path) -> None:
    code = "import sys, hookviz; hookviz.load(sys.argv[1]).to_html(sys.argv[2])"
    run(python, "-c", code, fresh[0], tmp_path / "p.html")
    assert "hv-state" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_every_view_of_a_saved_trace_is_what_it_is_with_torch(python: Path, fresh: list[Path], tmp_path: Path) -> None:
    found = views(python, tmp_path, fresh)
    assert len(found) == len(FRESH)
    for path in fresh:
        expected, shown = json.loads(json.dumps(every_view(path))), found[str(path)]
        assert [name for name in expected if shown[name] != expected[name]] == []
        assert shown["saved"] == shown["saved twice"] == path.read_text(encoding="utf-8")
    verdicts = {reason[6] for shown in found.values() for reasons in shown["why"] for reason in reasons}
    assert verdicts == {"explained", "symbols only", "not explained"}


def test_a_file_of_the_first_release_is_shown_with_its_formulas_in_symbols(python: Path, tmp_path: Path) -> None:
    found = views(python, tmp_path, OLD)
    notes = set()
    for path in OLD:
        expected, shown = json.loads(json.dumps(every_view(path))), found[str(path)]
        told_without = {"why", "page", "page by the command line", "output", "comparison", "saved", "saved twice"}
        assert {name for name in expected if shown[name] != expected[name]} <= told_without
        assert shown["saved"] == shown["saved twice"]
        notes |= {reason[7] for reasons in shown["why"] for reason in reasons if reason[6] == "symbols only"}
    assert len(notes) == 1 and "install PyTorch to check" in notes.pop()


def test_a_file_that_was_saved_without_torch_is_explained_with_it(python: Path, tmp_path: Path) -> None:
    shown = views(python, tmp_path, OLD[:1])[str(OLD[0])]
    (tmp_path / "again.json").write_text(shown["saved"], encoding="utf-8")
    assert every_view(tmp_path / "again.json")["why"] == every_view(OLD[0])["why"]


@pytest.mark.parametrize("name", ["record", "hooks", "draw", "whatif", "check", "WhatIf"])
def test_what_needs_torch_says_so(python: Path, name: str) -> None:
    code = f"import hookviz\ntry: hookviz.{name}()\nexcept ImportError as error: print(error)"
    told = f'hookviz.{name} needs PyTorch, which is not installed: install it with "pip install torch".\n'
    assert run(python, "-c", code) == told


def test_a_torch_that_cannot_be_imported_is_like_none_for_a_trace(python: Path, tmp_path: Path) -> None:
    """As where one of its libraries is missing; whoever records is told what torch says."""
    (tmp_path / "torch.py").write_text("raise OSError('libtorch_cpu.so: cannot open')")
    start = "import sys; sys.path.insert(0, sys.argv[1]); import hookviz\n"
    code = "trace = hookviz.load(sys.argv[2])\nprint(sum(len(trace.why(step)) for step in range(len(trace.rows))) > 0)"
    assert run(python, "-c", start + code, tmp_path, OLD[0]) == "True\n"
    code = "try: hookviz.record\nexcept OSError as error: print(error)"
    assert run(python, "-c", start + code, tmp_path) == "libtorch_cpu.so: cannot open\n"


def test_everything_can_be_imported_at_once(python: Path) -> None:
    code = "from hookviz import *; import hookviz; print(sorted(set(hookviz.__all__) - set(globals())))"
    assert run(python, "-c", code) == "[]\n"


def test_the_widget_needs_ipywidgets_and_anywidget_and_no_torch(fresh: list[Path], tmp_path: Path) -> None:
    python = environment(tmp_path, [*NEEDED, *FOR_THE_WIDGET])
    code = "import sys, hookviz; print(*(hookviz.load(path).player().steps for path in sys.argv[1:]))"
    expected = [str(hv.load(path).player().steps) for path in fresh]
    assert run(python, "-c", code, *fresh).split() == expected
    assert run(python, "-c", "import importlib.util as u; print(u.find_spec('torch'))") == "None\n"
