"""What the tensors of a trace are called, and which ops it has once, kept up to date while its tables grow."""

from collections.abc import Sequence

from hookviz.trace.rows import Place, TensorRow


class Naming:
    """Reads each row once: a hook asks for names at each of its firings, and a recording may have thousands.

    Two threads may read at the same time: to read a row twice changes nothing.
    """

    def __init__(self, ops: Sequence[str], tensors: Sequence[TensorRow]) -> None:
        self._ops, self._tensors = ops, tensors
        self._read_ops = self._read_tensors = 0
        self._first: dict[str, int] = {}
        """Op → the first node of that op."""
        self._repeated: set[str] = set()
        self._names: dict[Place, str] = {}

    def is_of(self, ops: Sequence[str], tensors: Sequence[TensorRow]) -> bool:
        """Whether it reads these tables, and they still hold all that it has read."""
        same = self._ops is ops and self._tensors is tensors
        return same and self._read_ops <= len(ops) and self._read_tensors <= len(tensors)

    def tensor(self, place: Place) -> str | None:
        """The first name that was found for the tensor at ``place``."""
        start, end = self._read_tensors, len(self._tensors)
        for row in self._tensors[start:end]:
            if row.name:
                self._names.setdefault((row.node, row.output), row.name)
        self._read_tensors = end
        return self._names.get(place)

    def is_repeated(self, op: str) -> bool:
        """Whether several nodes have this op."""
        start, end = self._read_ops, len(self._ops)
        for node in range(start, end):
            if self._first.setdefault(self._ops[node], node) != node:
                self._repeated.add(self._ops[node])
        self._read_ops = end
        return op in self._repeated
