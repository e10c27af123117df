"""The environments in which hookviz is tried: ``make`` calls these sessions, and ``nox -l`` lists them.

Each session makes an environment from nothing. Those that install a torch, which takes gigabytes, remove it afterwards.
"""

import re
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import nox

nox.options.envdir = "build/nox"
nox.options.default_venv_backend = "venv"
nox.options.sessions = []

ROOT = Path(__file__).parent
LESSON = ROOT / "notebooks" / "solutions" / "01_the_graph.ipynb"
PINNED = ("-c", str(ROOT / "constraints.txt"))
RELEASES = {"2.6": "7.7.1", "2.8": "7.7.1", "2.11": "7.7.1", "2.13": "8.*", "newest": "8.*"}
"""Release of PyTorch → the ipywidgets beside which hookviz is tried.

Colab has had ipywidgets 7.7.1 since 2022, and so whoever has an older torch may well have it, too.
"""
CLASSIC = (
    "ipywidgets==7.7.1",
    "widgetsnbextension==3.6.10",
    "nbclassic==1.3.3",
    "ipython-genutils==0.2.0",
    "nest-asyncio==1.6.0",
)
"""The classic notebook with the ipywidgets of Colab: these versions were run together."""
VERSIONS = "from importlib.metadata import version; print(version('torch'), version('ipywidgets'))"
IS_INSTALLED = "import hookviz, sys; assert hookviz.__file__.startswith(sys.prefix), hookviz.__file__"


@nox.session
@nox.parametrize("release", [*RELEASES], ids=[*RELEASES])
def matrix(session: nox.Session, release: str) -> None:
    """Try hookviz with a release of PyTorch: the README's example, lesson 01, the unit tests and the proofs."""
    with new_folder(session) as folder:
        session.install(torch_of(release), f"ipywidgets=={RELEASES[release]}")
        before = session.run("python", "-c", VERSIONS, silent=True)
        session.install(".[unit,lessons]")
        if session.run("python", "-c", VERSIONS, silent=True) != before:
            session.error("the installation of hookviz changed torch or ipywidgets")
        with session.chdir(folder):
            run_example(session)
            run_lesson(session)
            # What this torch lacks and what a user loses, which the table on the site's page on installing names.
            session.run("python", "-m", "hookviz", "check", success_codes=[0, 1])
        for suite in ("unit", "proof"):
            run_tests(session, f"tests/{suite}")


@nox.session
def build(session: nox.Session) -> None:
    """Build the sdist, and from it the wheel; check what both say, and what the wheel holds."""
    session.install(*PINNED, "build>=1.2", "twine>=6.1", "readme_renderer[md]>=44", "check-wheel-contents>=0.6.3")
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    session.run("python", "-m", "build")
    session.run("twine", "check", "--strict", *map(str, ROOT.glob("dist/*")))
    session.run("check-wheel-contents", "dist")


@nox.session
@nox.parametrize("kind", ["whl", "tar.gz"], ids=["wheel", "sdist"])
def dist(session: nox.Session, kind: str) -> None:
    """Install the wheel or the sdist in dist/, and run the README's example, lesson 01 and the unit tests there."""
    with new_folder(session) as folder, session.chdir(folder):
        (file,), (sdist,) = ROOT.glob(f"dist/*.{kind}"), ROOT.glob("dist/*.tar.gz")
        session.install(*PINNED, str(file))
        session.run("python", "-c", IS_INSTALLED)
        run_example(session)
        session.install(*PINNED, f"{file}[lab,unit]")
        run_lesson(session)
        # The tests of the sdist, without its sources, so that they import what is installed.
        shutil.unpack_archive(sdist, folder)
        shutil.rmtree(next(folder.glob("hookviz-*/hookviz")))
        session.chdir(next(folder.glob("hookviz-*")))
        run_tests(session, "tests/unit", *session.posargs)


@nox.session
def classic(session: nox.Session) -> None:
    """Test the players in the classic notebook with ipywidgets 7.7.1, the version on Colab."""
    # It sees the packages of the environment that runs nox, and gets those that differ.
    (packages,) = session.env_dir.glob("lib/python*/site-packages")
    line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (packages / "outer_environment.pth").write_text(line, encoding="utf-8")
    # The notebook finds scripts of widgets in its own environment alone, so anywidget is installed once more.
    session.install("--no-deps", "--ignore-installed", f"anywidget=={version('anywidget')}", *CLASSIC)
    run_tests(session, "tests/browser/test_classic_notebook.py", workers="0")


@nox.session(reuse_venv=True)
def peers(session: nox.Session) -> None:
    """Compare hookviz with other tools."""
    session.install(*PINNED, "-e", ".[peers]")
    session.run("python", "-m", "benchmarks.peers", *session.posargs)


@nox.session
@nox.parametrize("release", [*RELEASES], ids=[*RELEASES])
def atlas(session: nox.Session, release: str) -> None:
    """Run the programs of the atlas of hooks with a release of PyTorch."""
    with new_folder(session):
        session.install(torch_of(release))
        session.run("python", "atlas/observer.py", f"build/atlas/{release}.json", env={"OMP_NUM_THREADS": "1"})


def torch_of(release: str) -> str:
    """Return what pip is asked for: the last version of a release, or the newest of all."""
    return "torch" if release == "newest" else f"torch=={release}.*"


@contextmanager
def new_folder(session: nox.Session) -> Iterator[Path]:
    """Make a folder without sources of hookviz; at the end, remove it and the environment, which may take 7 GB."""
    session.env["PYTHONPATH"] = None
    folder = session.env_dir.absolute() / "elsewhere"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder.parent, ignore_errors=True)


def run_example(session: nox.Session) -> None:
    """Run the ten lines of the README, which print what stands there."""
    example = re.search(r"## Ten lines\n+```python\n(.+?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    if example is None:
        session.error("the README has no section Ten lines")
    Path("ten_lines.txt").write_text(example[1], encoding="utf-8")
    session.run("python", "-m", "doctest", "ten_lines.txt")


def run_lesson(session: nox.Session) -> None:
    """Run lesson 01 from its first cell to its last, with all exercises solved."""
    shutil.copy(LESSON, ".")
    session.run("jupyter-execute", LESSON.name)


def run_tests(session: nox.Session, *arguments: str, workers: str = "auto") -> None:
    """Run tests in so many processes."""
    options = ("-q", "-p", "no:cacheprovider", "--numprocesses", workers, "--dist", "worksteal")
    session.run("python", "-m", "pytest", *options, *arguments, env={"OMP_NUM_THREADS": "1"})
