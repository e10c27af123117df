"""Extreme graphs that crash other tools are recorded, explained and drawn in a Jupyter kernel."""

import re

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from tools.notebook_runs import ROOT, run_cells

SETUP_CODE = """
import torch, hookviz as hv
from hookviz.course import quiz
from torch import nn

def record_and_show(loss, *models):
    "Record a backward pass and make every view of its trace."
    with hv.record(*models) as trace:
        (loss() if models else loss).backward()
    bundle = trace._repr_mimebundle_()
    pictures = [trace.figure(step)._repr_mimebundle_() for step in (0, len(trace.steps) - 1)]
    views = [trace.findings.values, trace.firings, trace.player(), quiz(trace), hv.hooks(*(models or [loss]))]
    print(len(trace.steps), sorted(bundle), all(map(repr, views)))
    return trace
"""
CASES = {
    "a chain of 1,500 ops with a hook on each": """
y = x = torch.tensor(1.0, requires_grad=True)
for _ in range(1_500):
    y = y * 1.0001
    y.register_hook(lambda grad: grad)
trace = record_and_show(y)""",
    "a fan of 1,500 inputs": """
xs = [torch.tensor(1.0, requires_grad=True) for _ in range(1_500)]
trace = record_and_show(torch.stack(xs).sum())""",
    "modules nested 180 deep": """
class Deep(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.inner = Deep(depth - 1) if depth else nn.Linear(1, 1)
    def forward(self, x):
        return self.inner(x)
model = Deep(180)
trace = record_and_show(lambda: model(torch.ones(1)).sum(), model)""",
    "2,000 modules": """
model = nn.Sequential(*(nn.Identity() for _ in range(2_000)), nn.Linear(1, 1))
trace = record_and_show(lambda: model(torch.ones(1)).sum(), model)""",
}


def test_extreme_graphs_are_recorded_explained_and_shown() -> None:
    cells = [new_code_cell(SETUP_CODE), *map(new_code_cell, CASES.values())]
    notebook = run_cells(nbformat.from_dict(new_notebook(cells=cells)), ROOT)
    for case, cell in zip(CASES, notebook.cells[1:], strict=True):
        printed = "".join(output.get("text", "") for output in cell.outputs)
        found = re.search(r"^(\d+) \['image/svg\+xml', 'text/html', 'text/plain'\] True$", printed, re.MULTILINE)
        assert found and int(found[1]) > 100, (case, printed)
