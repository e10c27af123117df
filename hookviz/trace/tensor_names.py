"""The names of the tensors of a trace, and the ops of several nodes, updated while its tables grow."""

from collections.abc import Sequence

from hookviz.trace.rows import NodeOutput, TensorRow


class TensorNames:
    """Finds names in the tables of a trace.

    It reads each row only once, since each of thousands of hook firings asks for names during a recording. Two threads
    may use it at the same time: reading a row twice changes nothing.
    """

    def __init__(self, ops: Sequence[str], tensors: Sequence[TensorRow]) -> None:
        self._ops, self._tensors = ops, tensors
        self._read_counts = 0, 0
        """How many ops and tensors were read."""
        self._first_nodes: dict[str, int] = {}
        """Op → the first node of that op."""
        self.repeated: set[str] = set()
        """The ops of more than one node."""
        self.tensors: dict[NodeOutput, str] = {}
        """(node, output) → the first name that was found for the tensor."""
        self._read()

    def update(self, ops: Sequence[str], tensors: Sequence[TensorRow]) -> bool:
        """Read the new rows of these tables; return False if they are other tables, or have lost rows."""
        counts = len(ops), len(tensors)
        if self._ops is not ops or self._tensors is not tensors:
            return False
        if counts[0] < self._read_counts[0] or counts[1] < self._read_counts[1]:
            return False
        if counts != self._read_counts:
            self._read()
        return True

    def _read(self) -> None:
        start, end = self._read_counts, (len(self._ops), len(self._tensors))
        for node in range(start[0], end[0]):
            op = self._ops[node]
            if op not in self.repeated and self._first_nodes.setdefault(op, node) != node:
                self.repeated.add(op)
        for row in self._tensors[start[1] : end[1]]:
            if row.name:
                self.tensors.setdefault((row.node, row.output), row.name)
        self._read_counts = end
