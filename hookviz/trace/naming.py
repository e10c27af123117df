"""What the tensors of a trace are called, and which ops it has once, kept up to date while its tables grow."""

from collections.abc import Sequence

from hookviz.trace.rows import NodeOutput, TensorRow


class Naming:
    """Reads each row once: a hook asks for names at each of its firings, and a recording may have thousands.

    Two threads may read at the same time: to read a row twice changes nothing.
    """

    def __init__(self, ops: Sequence[str], tensors: Sequence[TensorRow]) -> None:
        self._ops, self._tensors = ops, tensors
        self._ends = 0, 0
        """So many rows of each were read."""
        self._first: dict[str, int] = {}
        """Op → the first node of that op."""
        self.repeated: set[str] = set()
        """The ops that several nodes have."""
        self.tensors: dict[NodeOutput, str] = {}
        """Place → the first name that was found for the tensor there."""
        self._read()

    def follows(self, ops: Sequence[str], tensors: Sequence[TensorRow]) -> bool:
        """Read what these tables have got since; False if they are others, or have lost what was read."""
        ends = len(ops), len(tensors)
        if self._ops is not ops or self._tensors is not tensors or ends[0] < self._ends[0] or ends[1] < self._ends[1]:
            return False
        if ends != self._ends:
            self._read()
        return True

    def _read(self) -> None:
        start, end = self._ends, (len(self._ops), len(self._tensors))
        for node in range(start[0], end[0]):
            op = self._ops[node]
            if op not in self.repeated and self._first.setdefault(op, node) != node:
                self.repeated.add(op)
        for row in self._tensors[start[1] : end[1]]:
            if row.name:
                self.tensors.setdefault((row.node, row.output), row.name)
        self._ends = end
