"""The nets of the generated programs: layers in a row, each called in one line of the forward."""

from typing import NamedTuple


class Net(NamedTuple):
    """One kind of net."""

    name: str
    layers: tuple[str, ...]
    """The expression that makes each layer; the last one makes what the loss is computed from."""
    batch: str
    """The expression that makes the input of a step."""
    apply: str = "h = torch.tanh({call})"
    """The line of the forward that calls a layer: ``{call}`` is the call."""
    classes: str = ""
    """Source of classes that the layers use."""


ATTENTION = """
class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, x):
        weights = (self.q(x) @ self.k(x).transpose(-1, -2)).softmax(-1)
        return weights @ self.v(x)
"""
RECURRENT = """
class Recurrent(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.cell = nn.GRU(size, size, batch_first=True)

    def forward(self, x):
        output, _ = self.cell(x)
        return output
"""
NETS = (
    Net("MLP", ("nn.Linear(6, 8)", "nn.Linear(8, 8)", "nn.Linear(8, 8)", "nn.Linear(8, 3)"), "torch.randn(5, 6)"),
    Net(
        "CNN",
        ("nn.Conv2d(1, 4, 3, padding=1)", "nn.Conv2d(4, 4, 3, padding=1)", "nn.Conv2d(4, 4, 1)", "nn.Conv2d(4, 2, 1)"),
        "torch.randn(3, 1, 6, 6)",
    ),
    Net(
        "residual net",
        ("nn.Linear(6, 8)", "nn.Linear(8, 8)", "nn.Linear(8, 8)", "nn.Linear(8, 8)"),
        "torch.randn(5, 6)",
        "h = {call} + 0.5 * F.pad(h, (0, 8 - h.shape[-1]))",
    ),
    Net(
        "attention",
        ("nn.Linear(6, 8)", "Attention(8)", "Attention(8)", "nn.Linear(8, 3)"),
        "torch.randn(2, 5, 6)",
        "h = torch.sigmoid({call}) * 2 - 1",
        ATTENTION,
    ),
    Net(
        "recurrent net",
        ("nn.Linear(6, 8)", "Recurrent(8)", "Recurrent(8)", "nn.Linear(8, 3)"),
        "torch.randn(2, 5, 6)",
        "h = {call} * 1.0",
        RECURRENT,
    ),
    Net(
        "tagger",
        ("nn.Embedding(9, 8)", "nn.Linear(8, 8)", "nn.Linear(8, 8)", "nn.Linear(8, 3)"),
        "torch.randint(0, 9, (4, 5))",
    ),
)
