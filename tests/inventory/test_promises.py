"""Promises that no test of the public API keeps on its own."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import torch
import hookviz as hv
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        return self.out((self.query(x) @ self.key(x).mT).softmax(-1) @ self.value(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm, self.drop = Attention(), nn.LayerNorm(16), nn.Dropout(0.0)
        self.mlp = nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 16))

    def forward(self, x):
        h = self.norm(x)
        return self.drop(self.attention(h)) + self.drop(self.mlp(h)) + x


net = nn.Sequential(nn.Embedding(99, 16), Layer(), nn.LayerNorm(16))
with hv.record() as trace:
    net(torch.randint(0, 99, (2, 7))).sum().backward()
trace.to_html(sys.argv[1])
print("alive")
"""
"""Records a block on which Graphviz's usual layout has crashed."""


def test_program_lives_on_where_graphviz_crashes(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, page], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
    assert "net.1.attention" in page.read_text(encoding="utf-8")
