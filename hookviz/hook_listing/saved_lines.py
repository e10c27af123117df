"""What the nodes of a graph saved for their backward, as lines for the boxes of a picture."""

from collections.abc import Mapping

import torch

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.packed_tensors import SavedTensor, saved_tensors
from hookviz.picture.primitives import MAX_LABEL, Saved, fit_name, fit_on_line
from hookviz.support.messages import N_, _
from hookviz.support.source_code import describe_function
from hookviz.trace import NodeOutput

MAX_TEXT = 40
"""Characters of a line about a saved tensor."""
_PROBLEMS = {
    "hidden": N_("not read: its class is yours"),
    "freed": N_("freed"),
    "changed": N_("changed in place since: backward raises"),
}


class SavedLines:
    """Says of each tensor that nodes saved which one of the user's tensors it is.

    Args:
        snapshot: the graph, with the rows of its tensors.
        names: name → tensor; the tensors need no history.
    """

    def __init__(self, snapshot: GraphSnapshot, names: Mapping[str, torch.Tensor]) -> None:
        self._snapshot = snapshot
        self._by_id: dict[int, str] = {}
        for name, tensor in names.items():
            self._by_id.setdefault(id(tensor), name)
        rows = snapshot.trace.tensors[snapshot.tensors.first_row :]
        self._by_place: dict[NodeOutput, str] = {(row.node, row.output): row.name for row in rows if row.name}

    def read(self) -> dict[int, list[Saved]]:
        """Return the lines of each node that saved something: number of the node → its lines."""
        numbers = self._snapshot.numbers
        lines = {
            numbers[id(node)]: [self._write(saved, numbers[id(node)]) for saved in saved_tensors(node)]
            for node in self._snapshot.nodes
        }
        return {number: written for number, written in lines.items() if written}

    def _write(self, saved: SavedTensor, node: int) -> Saved:
        if saved.unpack_hook is not None:
            hook = fit_on_line(describe_function(saved.unpack_hook).label, MAX_LABEL)
            return Saved(saved.name, _("packed: {hook} unpacks it").format(hook=hook))
        if saved.tensor is None:
            return Saved(saved.name, _(_PROBLEMS[saved.problem]))
        place = self._snapshot.place_of_tensor(saved.tensor)
        text = fit_name(self._identify(saved.tensor, place), MAX_TEXT)
        if not text and place == (node, saved.tensor.output_nr):
            text = _("its own result")
        maker = None if text or place is None or saved.tensor.is_leaf else place[0]
        return Saved(saved.name, text, maker, self._snapshot.tensors.value_or_shape(saved.tensor))

    def _identify(self, tensor: torch.Tensor, place: NodeOutput | None) -> str:
        """Return the name of a tensor, or of the one that it is a view of; empty without a name."""
        name = self._by_id.get(id(tensor)) or (place and self._by_place.get(place))
        base = tensor._base
        if not name and base is not None and id(base) in self._by_id:
            return _("view of {name}").format(name=self._by_id[id(base)])
        return name or ""
