"""A small transformer whose parts are all modules, so that hooks reach each of them, and rows to train it on.

A row is twelve different letters, and then two pieces of four letters that are copied from them. The network reads
a row and says at each place which letter comes next. In a piece, only looking back at the first part tells it.
"""

import math

import torch
from torch import nn
from torch.nn import functional

Tensor = torch.Tensor
LETTERS = "abcdefghijklmnop"
FIRST, PIECE, PIECES = 12, 4, 2
LENGTH = FIRST + PIECES * PIECE
ASKED = torch.tensor([FIRST + PIECE * piece + place for piece in range(PIECES) for place in range(PIECE - 1)])
"""The places in a row where the next letter can be known."""


class Pattern(nn.Module):
    """Says how much each place looks at each place up to itself; the numbers of a row add up to 1."""

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Make (batch, head, place, place looked at) of two tensors of the shape (batch, head, place, feature)."""
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -math.inf).softmax(-1)


class Attention(nn.Module):
    """Several heads: each fetches, for each place, something from the places that it looks at."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.shape = (heads, width // heads)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.pattern = Pattern()
        self.heads = nn.Identity()
        """Passes on what each head fetched, (batch, head, place, feature): a place for hooks."""
        self.output = nn.Linear(width, width)

    def forward(self, stream: Tensor) -> Tensor:
        """Return what the heads add to the stream, (batch, place, feature)."""
        queries, keys, values = (  # each head gets its part of the features
            layer(stream).unflatten(2, self.shape).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        fetched = self.heads(self.pattern(queries, keys) @ values)
        return self.output(fetched.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention, and then two layers that work on each place alone; both add to the stream that passes by."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, stream: Tensor) -> Tensor:
        """Return the stream with what the block adds; its output is the residual stream behind the block."""
        stream = stream + self.attention(self.attention_norm(stream))
        return stream + self.mlp(self.mlp_norm(stream))


class SmallTransformer(nn.Module):
    """Reads rows of letters, and gives each place scores for the letter that comes next.

    >>> net = SmallTransformer()
    >>> net(as_row("abcab")).shape
    torch.Size([1, 5, 16])
    """

    def __init__(self, width: int = 64, heads: int = 2, blocks: int = 2, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.letter = nn.Embedding(len(LETTERS), width)
            self.place = nn.Embedding(LENGTH, width)
            self.blocks = nn.ModuleList([Block(width, heads) for _ in range(blocks)])
            self.norm = nn.LayerNorm(width)
            self.scores = nn.Linear(width, len(LETTERS))

    def forward(self, rows: Tensor) -> Tensor:
        """Make scores (batch, place, letter) of the numbers of letters (batch, place)."""
        stream = self.letter(rows) + self.place(torch.arange(rows.shape[1]))
        for block in self.blocks:
            stream = block(stream)
        return self.scores(self.norm(stream))


def make_tiny_attention() -> Attention:
    """Make one head for letters of one feature: they are its keys and values, and its queries are 1000 times them."""
    attention = Attention(1, 1)
    for name, parameter in attention.named_parameters():
        nn.init.constant_(parameter, 0 if "bias" in name else 1000 if "query" in name else 1)
    return attention


def make_rows(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Make rows of letters as numbers, and for each letter of the pieces the place that it was copied from.

    >>> rows, sources = make_rows(1, seed=1)
    >>> as_text(rows[0]), sources[0].tolist()
    ('ebngcjpolikmgcjppoli', [3, 4, 5, 6, 6, 7, 8, 9])
    """
    random = torch.Generator().manual_seed(seed)
    first = torch.rand(count, len(LETTERS), generator=random).argsort(1)[:, :FIRST]
    starts = torch.randint(FIRST - PIECE + 1, (count, PIECES, 1), generator=random)
    sources = (starts + torch.arange(PIECE)).flatten(1)
    return torch.cat([first, first.gather(1, sources)], 1), sources


def as_text(row: Tensor) -> str:
    """Write a row as letters."""
    return "".join(LETTERS[number] for number in row.tolist())


def as_row(text: str) -> Tensor:
    """Make a batch of one row of letters."""
    return torch.tensor([[LETTERS.index(letter) for letter in text]])


def measure(net: nn.Module, rows: Tensor) -> tuple[float, float]:
    """Return the loss at the places where the next letter can be known, and the share that is right."""
    with torch.no_grad():
        scores = net(rows)
    return find_loss(scores, rows).item(), (scores[:, ASKED].argmax(-1) == rows[:, ASKED + 1]).float().mean().item()


def find_loss(scores: Tensor, rows: Tensor) -> Tensor:
    """Return the loss of these scores at the places where the next letter can be known."""
    return functional.cross_entropy(scores[:, ASKED].flatten(0, 1), rows[:, ASKED + 1].flatten())


def train_to_copy(net: nn.Module, steps: int = 200, rate: float = 0.003) -> list[float]:
    """Train a network on rows that are new in each step, and return the loss of each step."""
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    losses = []
    for step in range(steps):
        rows, _ = make_rows(64, seed=step)
        loss = find_loss(net(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
