"""The pytest plugin fails the tests that leave hooks behind, and does nothing unless it is asked for."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from _pytest.pytester import Pytester

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def find_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes that the tests start import hookviz from here."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


SUITE = """
import unittest
import pytest, torch
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

shared = torch.nn.Linear(2, 2)

@pytest.fixture(scope="module")
def model():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    handle = model.register_forward_hook(save_output)
    yield model
    handle.remove()

def save_output(module, args, output): pass
def look(grad): pass
def on_step(*args): pass

@pytest.fixture
def own_model():
    return torch.nn.Linear(2, 2)

@pytest.fixture
def tidy(model):
    handle = model[1].register_forward_hook(save_output)
    yield
    handle.remove()
"""
LEAKS = """
def test_on_a_module_of_a_fixture(model):
    model[0].register_forward_hook(save_output)

def test_on_all_modules_and_optimizers():
    register_module_forward_hook(save_output)
    register_optimizer_step_post_hook(on_step)
"""
NO_LEAKS = """
def test_is_clean(model, tidy):
    with model[0].register_forward_hook(save_output):
        model(torch.ones(2))
    torch.nn.Linear(1, 1).register_forward_hook(save_output)

def test_on_a_model_of_the_fixture_of_one_test(own_model):
    own_model.register_forward_hook(save_output)

class TestInstance:
    def setup_method(self):
        self.model = torch.nn.Linear(2, 2)
    def test_on_what_the_instance_holds(self):
        self.model.register_forward_hook(save_output)

class TestUnit(unittest.TestCase):
    def setUp(self):
        self.model = torch.nn.Linear(2, 2)
    def test_on_what_the_case_holds(self):
        self.model.weight.register_hook(look)

def test_that_fails():
    made_here = torch.nn.Linear(2, 2)
    made_here.register_forward_hook(save_output)
    assert False
"""
LAST = """
def test_last_on_a_global_parameter():
    shared.weight.register_hook(look)
"""


def run(pytester: Pytester, tests: str, *options: str) -> pytest.RunResult:
    """Run a test file of its own in a new process."""
    pytester.makepyfile(tests)
    # Where hookviz is installed, its entry point would load the plugin a second time.
    plugin = ("-p", "hookviz.pytest_plugin", "-p", "no:hookviz", "-p", "no:cacheprovider")
    return pytester.run(sys.executable, "-m", "pytest", *plugin, "--strict-markers", *options)


@pytest.mark.slow
def test_three_leaks_fail_and_are_named_and_the_clean_test_passes(pytester: Pytester) -> None:
    """Hooks that end with their test or belong to a fixture do not count; the last test is checked, too."""
    result = run(pytester, SUITE + LEAKS + NO_LEAKS + LAST, "--hookviz-leaks")
    result.assert_outcomes(passed=7, failed=1, errors=3)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_on_a_module_of_a_fixture*",
            "This test left a hook behind:",
            "  forward hook save_output on model.0 (defined at test_three_leaks*.py, line *)",
            "*ERROR at teardown of test_on_all_modules_and_optimizers*",
            "This test left 2 hooks behind:",
            "  forward hook save_output on all modules (*",
            "  step post-hook on_step on all optimizers (*",
            "*ERROR at teardown of test_last_on_a_global_parameter*",
            "  tensor hook look on shared.weight (*",
        ]
    )


MARKED = """
import pytest

def leave_a_hook():
    from torch.nn.modules.module import register_module_forward_hook  # the first test to call this loads torch
    register_module_forward_hook(print)

@pytest.mark.hookviz_leaks
def test_marked():
    leave_a_hook()

def test_with_the_fixture(hookviz_leaks):
    leave_a_hook()

def test_unmarked():
    leave_a_hook()

class Case:
    @pytest.mark.parametrize("n", [0, pytest.param(1, marks=pytest.mark.hookviz_leaks(False))])
    def test_parametrized(self, n):
        leave_a_hook()
class TestCase(Case): pass
"""


@pytest.mark.slow
def test_a_mark_or_the_fixture_asks_for_the_check_of_one_test(pytester: Pytester) -> None:
    """A test that loads torch itself is checked, too."""
    result = run(pytester, MARKED)
    result.assert_outcomes(passed=5, errors=2)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_marked*", "  forward hook print on all modules"])


@pytest.mark.slow
def test_a_mark_leaves_one_test_out_where_the_ini_file_checks_all(pytester: Pytester) -> None:
    pytester.makeini("[pytest]\nhookviz_leaks = true")
    result = run(pytester, MARKED)
    result.assert_outcomes(passed=5, errors=4)
    assert "test_parametrized[1]" not in result.stdout.str()


@pytest.mark.slow
def test_the_plugin_imports_nothing_but_pytest_and_the_empty_package() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import hookviz.pytest_plugin;"
        "print(*sorted(set(sys.modules) - before))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["hookviz", "hookviz.pytest_plugin", "hookviz.support", "hookviz.support.version"]


def test_the_entry_point_names_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"hookviz": "hookviz.pytest_plugin"}
