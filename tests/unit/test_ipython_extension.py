"""``%%hookviz`` records a cell, which runs as it would without this line."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from tests.waiting import PATIENCE

SETUP = """
import inspect, torch, hookviz as hv
a, b = (torch.tensor(x, requires_grad=True) for x in (2.0, 3.0))
stacks = []
def look(grad):
    stacks.append([(frame.function, frame.lineno) for frame in inspect.stack()])
    return grad + 2
"""
PASS = "c = a * b\nhandle = c.register_hook(look)\nc.backward()\nb.grad.item()"

RunCell = Callable[[str], Any]


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}), colors="nocolor")
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def run(shell: InteractiveShell) -> Iterator[RunCell]:
    """Runs a cell, and returns its value, its output and its error."""

    def run_cell(text: str) -> Any:
        with capture_output() as captured:
            result = shell.run_cell(text)
        shown = captured.stdout + captured.stderr + "".join(output.data["text/plain"] for output in captured.outputs)
        return result.result, shown, result.error_before_exec or result.error_in_exec

    run_cell("%load_ext hookviz")
    run_cell(SETUP)
    yield run_cell
    run_cell("%unload_ext hookviz")
    shell.reset()


def test_a_cell_is_recorded_with_its_names_and_keeps_its_value(run: RunCell, shell: InteractiveShell) -> None:
    value, shown, error = run(f"%%hookviz\n{PASS}")
    assert (value, error) == (6, None) and "Trace: 7 steps, 1 of them a hook" in shown
    trace = shell.user_ns["trace"]
    assert trace.firings[0].sentence == "look on c replaced the gradient: 1 → 3."
    assert [step.on for step in trace.steps if step.kind == "accumulate"] == ["a", "b"]


def test_no_frame_is_between_the_cell_and_its_hooks(run: RunCell, shell: InteractiveShell) -> None:
    for line in ("%%hookviz", "# no line"):
        run(f"{line}\n{PASS}")
    recorded, plain = shell.user_ns["stacks"]
    assert recorded == plain


def test_name_and_options_stand_behind_the_line_and_other_magics_below_it(run: RunCell, shell: Any) -> None:
    run(f"%%hookviz first --keep 1 --until nan --cuts\n%%capture\n{PASS}\n(a * b).backward()")
    assert "trace" not in shell.user_ns and shell.user_ns["first"].dropped == 1
    assert any("cuts=True" in note for note in shell.user_ns["first"].notes)


def test_what_ran_before_an_error_is_kept_and_its_traceback_has_no_frame_of_hookviz(run: RunCell, shell: Any) -> None:
    _, shown, error = run("%%hookviz\n(a * b).backward()\n1 / 0")
    assert isinstance(error, ZeroDivisionError)
    assert "line 3" in shown and "ipython_extension" not in shown
    assert [step.kind for step in shell.user_ns["trace"].steps][-2:] == ["accumulate", "exception"]


def test_off_runs_such_cells_as_if_the_line_were_not_there(run: RunCell, shell: Any) -> None:
    run("%hookviz off")
    value, shown, _ = run(f"%%hookviz\n{PASS}")
    assert value == 6 and "Trace" not in shown and "trace" not in shell.user_ns
    run("%hookviz on")
    assert isinstance(run("%%hookviz\nx = (")[2], SyntaxError) and "trace" not in shell.user_ns
    run(f"%%hookviz\n{PASS}")
    assert "trace" in shell.user_ns, "the cell with wrong syntax left no recording open"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%%hookviz --keep 0", "at least 1, not 0"),
        ("%%hookviz --faster", "unrecognized arguments: --faster"),
        ("%%capture kept\n%%hookviz", "first line of a cell"),
    ],
    ids=["count", "option", "below another magic"],
)
def test_a_line_that_cannot_be_followed_is_explained_and_the_cell_does_not_run(
    run: RunCell, shell: Any, line: str, said: str
) -> None:
    _, shown, _ = run(f"{line}\nran = True")
    assert said in shown or said in getattr(shell.user_ns.get("kept"), "stderr", "")
    assert "ran" not in shell.user_ns


def test_a_cell_that_records_itself_keeps_its_own_trace(run: RunCell, shell: Any) -> None:
    _, shown, error = run("%%hookviz\nwith hv.record() as own:\n    (a * b).backward()")
    assert error is None and "records itself" in shown
    assert "trace" not in shell.user_ns and len(shell.user_ns["own"].steps) == 6


@pytest.mark.slow
def test_a_kernel_shows_the_player_below_the_value_and_below_an_error() -> None:
    # Importing these takes seconds, which the quick tests should not wait for.
    import nbformat
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell, new_notebook

    cells = [f"%load_ext hookviz\n{SETUP}", f"%%hookviz\n{PASS}", "%%hookviz\n(a * b).backward()\n1 / 0"]
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=int(PATIENCE), allow_errors=True).execute()
    nbformat.validate(notebook)
    for cell, first in zip(notebook.cells[1:], ("execute_result", "error"), strict=True):
        outputs = {output.output_type: output for output in cell.outputs}
        assert sorted(outputs) == sorted(["display_data", first])
        assert 'class="hv-output' in outputs["display_data"].data["text/html"]
    assert not any("hookviz" in line for line in outputs["error"].traceback if "%%hookviz" not in line)
