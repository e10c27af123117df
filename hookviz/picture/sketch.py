"""A stand-in for ``graphviz.Digraph`` that collects what is drawn, without the cost of writing DOT."""

from collections.abc import Iterator
from contextlib import contextmanager

import graphviz

_SEPARATOR, _END = "\x1f", "\x1e"
"""Characters that no label has: between the words of a statement, and after it."""


class Sketch:
    """Collects nodes, edges and attributes as text. Two sketches with equal texts are the same picture.

    >>> sketch = Sketch()
    >>> with sketch.subgraph(name="cluster_m1") as inner:
    ...     inner.node("n4", "<a>", id="n4")
    >>> sketch.text.split("\\x1e")
    ['subgraph\\x1fcluster_m1', 'node\\x1fn4\\x1f<a>\\x1fid\\x1fn4', 'end', '']
    """

    def __init__(self) -> None:
        self._statements: list[str] = []

    @property
    def text(self) -> str:
        """All statements, in order."""
        return "".join(self._statements)

    def attr(self, kind: str | None = None, **attributes: str) -> None:
        """Set attributes of the graph, of all nodes or of all edges."""
        self._add("attr", kind or "", attributes)

    def node(self, name: str, label: str | None = None, **attributes: str) -> None:
        """Draw a node."""
        self._add("node", name + _SEPARATOR + (label or ""), attributes)

    def edge(self, start: str, end: str, **attributes: str) -> None:
        """Draw an edge."""
        self._add("edge", start + _SEPARATOR + end, attributes)

    @contextmanager
    def subgraph(self, *, name: str) -> Iterator["Sketch"]:
        """Draw a part of the graph within a ``with`` block."""
        self._add("subgraph", name, {})
        yield self
        self._statements.append("end" + _END)

    def _add(self, kind: str, name: str, attributes: dict[str, str]) -> None:
        words = [kind, name, *(word for item in attributes.items() for word in item)]
        self._statements.append(_SEPARATOR.join(words) + _END)


Canvas = graphviz.Digraph | Sketch
"""Where the boxes and arrows of a picture are drawn."""
