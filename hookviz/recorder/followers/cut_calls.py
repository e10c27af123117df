"""Which module calls returned what ops cut off."""

from collections.abc import Sequence

import torch

from hookviz.recorder.modules.tensor_flow import TensorFlow


class CutCalls:
    """Remembers for each cut, by its index, the call whose output it cut last."""

    def __init__(self, flow: TensorFlow) -> None:
        self._flow = flow
        self._calls: dict[int, int | None] = {}

    def note(self, index: int, sources: Sequence[torch.Tensor]) -> None:
        """Note what a cut has just cut off: the output of one call, or something else."""
        calls = {self._flow.find_graph_call(source) for source in sources}
        self._calls[index] = calls.pop() if len(calls) == 1 else None

    def find(self, cuts: int) -> dict[int, int]:
        """Return call → the last of some cuts, given as the bits of a number, that cut off its output."""
        found = ((call, index) for index, call in sorted(self._calls.items()) if cuts >> index & 1)
        return {call: index for call, index in found if call is not None}

    def clear(self) -> None:
        """Forget everything: the numbers of calls are about to change."""
        self._calls.clear()
