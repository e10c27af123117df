"""PyTorch's fast path for transformers, switched off while a recording asks for it."""

import threading

from torch.backends import mha


class Slow:
    """The switch is one for all threads: the first recording that takes it turns it off, the last one turns it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._takers: set[object] = set()
        self._before = True

    def take(self, taker: object) -> None:
        """Have every module of a transformer run, until ``taker`` leaves."""
        with self._lock:
            if not self._takers:
                self._before = mha.get_fastpath_enabled()
                mha.set_fastpath_enabled(False)
            self._takers.add(taker)

    def leave(self, taker: object) -> None:
        """``taker`` is done with it, if it ever took it."""
        with self._lock:
            if taker in self._takers:
                self._takers.remove(taker)
                if not self._takers:
                    mha.set_fastpath_enabled(self._before)


slow = Slow()
