"""Each step stands at a line of the user's code: of a hook, an assignment, a module call or the call of backward."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from shown import all_words

import hookviz as hv
from hookviz.recorder.followers.user_code import MAX_LINES
from hookviz.trace.redaction import redact

SCRIPT = """\
import torch
import hookviz as hv

def c_hook(grad):
    return grad + 2

a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
c = a * b
c.register_hook(c_hook)
d = (c * 2 + a).exp()
with hv.record() as trace:
    d.backward()
"""
NET = """\
import torch
import hookviz as hv

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(2, 3)
        self.second = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(3, 1))

    def forward(self, x):
        h = self.first(x)
        return self.second(h)

def run():
    net = Net()
    with hv.record(net) as trace:
        net(torch.ones(1, 2)).sum().backward()
    return trace

trace = run()
"""


def run_script(folder: Path, text: str, name: str = "program.py") -> dict[str, Any]:
    """Run a program that is in a file, and return its variables."""
    path = folder / name
    path.write_text(text)
    variables: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, str(path), "exec"), variables)
    return variables


def lines_by_step(trace: hv.Trace) -> dict[str, set[str]]:
    """Return kind and subject of the steps → the code that the player shows for them, with the note of its line."""
    content = trace.content()
    found: dict[str, set[str]] = {}
    for step, words in zip(trace.steps, all_words(content), strict=True):
        index, running, note, made = words.get("code", (0, None, None, None))
        line = running if made is None or step.hook is not None else made
        shown = ""
        if line is not None and note:
            source = content["sources"][index]
            shown = f"{source['text'].splitlines()[line - source['first_line']].strip()} | {note}"
        found.setdefault(f"{step.kind} {step.on}", set()).add(shown)
    return found


def test_every_kind_of_step_of_a_script_has_its_line(tmp_path: Path) -> None:
    lines = lines_by_step(run_script(tmp_path, SCRIPT)["trace"])

    assert lines["seed d"] == {"d.backward() | Line 13 started this backward pass."}
    assert lines["tensor_hook c"] == {"return grad + 2 | Line 5: the hook c_hook."}
    assert lines["arrive c"] == {"c = a * b | Line 9 assigned c."} == lines["compute MulBackward0 (c)"]
    assert lines["accumulate a"] == {"a = torch.tensor(2.0, requires_grad=True) | Line 7 assigned a."}
    assert lines["compute AddBackward0"] == {""}  # no variable holds it


def test_the_nodes_of_a_module_stand_at_the_call_in_the_users_code(tmp_path: Path) -> None:
    lines = lines_by_step(run_script(tmp_path, NET)["trace"])

    assert lines["call net"] == {"net(torch.ones(1, 2)).sum().backward() | Line 17 called net."}
    assert lines["forward net.first"] == {"h = self.first(x) | Line 11 called net.first."}
    # Torch's own Sequential calls the layers inside it, so the line is that of the call of Sequential.
    assert lines["call net.second.1"] == {"return self.second(h) | Line 12 called net.second."}
    assert lines["accumulate net.first.weight"] == {"h = self.first(x) | Line 11 called net.first."}
    assert lines["compute TanhBackward0"] == {
        "return self.second(h) | Line 12 called net.second, which made this node."
    }


def test_of_a_long_file_the_function_is_kept(tmp_path: Path) -> None:
    padding = "# padding\n" * MAX_LINES
    trace = run_script(tmp_path, padding + NET)["trace"]

    assert [(source.line - MAX_LINES, source.whole) for source in trace._data.sources] == [(14, False), (10, False)]
    assert trace._data.sources[0].text.startswith("def run():")
    assert lines_by_step(trace)["forward net.first"] == {f"h = self.first(x) | Line {MAX_LINES + 11} called net.first."}


def test_a_hook_from_elsewhere_brings_its_own_text(tmp_path: Path) -> None:
    run_script(tmp_path, "def c_hook(grad):\n    return grad * 7\n", "elsewhere.py")
    text = SCRIPT.replace("def c_hook(grad):\n    return grad + 2\n", "from elsewhere import c_hook\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        trace = run_script(tmp_path, text)["trace"]

    titles = [source["title"] for source in trace.content()["sources"]]
    assert titles == ["program.py", "elsewhere.py, lines 1–2"]
    assert lines_by_step(trace)["tensor_hook c"] == {"return grad * 7 | Line 2: the hook c_hook."}


# -- notebooks


class Notebook:
    """Runs cells as IPython does: each has a file name of its own, and the shell numbers them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.variables = folder, dict[str, Any](__name__="__main__")
        self.cells: dict[str, int] = {}
        self.failed: dict[int, Any] = {}
        shell = SimpleNamespace(
            compile=SimpleNamespace(_filename_map=self.cells),
            history_manager=SimpleNamespace(exceptions=self.failed),
        )
        module = ModuleType("IPython")
        module.get_ipython = lambda: shell  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", module)

    def run(self, text: str) -> None:
        """Run a cell; the same text gets the same file again."""
        path = self.folder / f"{abs(hash(text))}.py"
        path.write_text(text)
        self.cells[str(path)] = max(self.cells.values(), default=0) + 1
        try:
            exec(compile(text, str(path), "exec"), self.variables)
        except ZeroDivisionError as error:
            self.failed[self.cells[str(path)]] = error

    def lines(self) -> dict[str, set[str]]:
        """Return the lines of the last trace."""
        return lines_by_step(self.variables["trace"])


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    started = Notebook(tmp_path, monkeypatch)
    started.run("import torch\nimport hookviz as hv\na = torch.tensor(2.0, requires_grad=True)")
    return started


PASS = "with hv.record() as trace:\n    c.backward()"


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["x = 1\nc = a * 3"], "c = a * 3 | Line 2 assigned c."),
        (["c = a * 3", "c = a * 4", "c = a * 3"], "c = a * 3 | Line 1 assigned c."),
        (["c = a * 3", "1 / 0\nc = a * 4"], ""),
        (["c = a * 3", "if a < 0:\n    c = a * 4"], ""),
    ],
    ids=["in an earlier cell", "the cell that ran last", "a cell that failed", "a cell that may have skipped it"],
)
def test_an_assignment_in_another_cell_is_found_if_it_is_sure(cells: list[str], shown: str, notebook: Notebook) -> None:
    for text in (*cells, PASS):
        notebook.run(text)
    assert notebook.lines()["compute MulBackward0 (c)"] == {shown}
    files = [source.file for source in notebook.variables["trace"]._data.sources]
    assert files[0] == f"In [{len(cells) + 2}]" and "In [1]" in files


def test_a_function_in_a_cell_sees_its_own_variables_and_those_of_the_cells(notebook: Notebook) -> None:
    notebook.run("def run():\n    c = a * 3\n    with hv.record() as trace:\n        c.backward()\n    return trace")
    notebook.run("c = a * 5\ntrace = run()")
    lines = notebook.lines()

    assert lines["compute MulBackward0 (c)"] == {"c = a * 3 | Line 2 assigned c."}
    assert lines["accumulate a"] == {"a = torch.tensor(2.0, requires_grad=True) | Line 3 assigned a."}


# -- files, redaction


def test_a_file_keeps_the_lines_and_redaction_leaves_them_out(tmp_path: Path) -> None:
    trace = run_script(tmp_path, NET)["trace"]
    trace.save(tmp_path / "trace.json")
    loaded = hv.load(tmp_path / "trace.json")
    assert (loaded._data.sources, loaded._data.lines) == (trace._data.sources, trace._data.lines)
    assert lines_by_step(loaded) == lines_by_step(trace)
    for left_out in ("source", "values"):
        redacted = redact(trace._data, **{left_out: False})
        assert redacted.sources == [] == redacted.lines
    assert trace._data.sources and trace._data.lines
