"""What is registered while a recording is open: hooks, and tensors that keep their gradients."""

import weakref
from typing import TYPE_CHECKING, Any

import torch

from hookviz.survey import KEY, Survey, metadata_of
from hookviz.whole import Uninterrupted

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording


class Meanwhile:
    """Remembers where hooks were put, since by the time of the pass their tensors may be gone."""

    def __init__(self, recording: "Recording") -> None:
        self.recording = recording
        self._metadata: list[dict[str, Any]] = []
        self._retaining: list[weakref.ref[torch.Tensor]] = []

    @property
    def marked(self) -> bool:
        """Whether there are nodes whose metadata is worth looking at."""
        return bool(self._metadata)

    def on_tensor(self, tensor: torch.Tensor, kind: str, hooks: Any) -> None:
        """A hook was added to ``tensor``; remember where, since the tensor itself may soon be gone."""
        if self.recording.lays_in(hooks):
            self.on_dict(hooks)
            return
        with Uninterrupted():
            self._remember(tensor, hooks)
        for watched in self.recording.running:
            place = watched.survey.find(tensor)
            if place is not None:
                self.recording.observe(watched, kind, hooks, *place)

    def on_dict(self, hooks: Any) -> None:
        """A hook was added to a dict that has observers: lay them anew. Stages already running are unaffected."""
        if self.recording.lays_in(hooks):
            self.recording.lay_anew(hooks)

    def retains(self, tensor: torch.Tensor) -> None:
        """``tensor`` keeps its gradient from now on; nobody else may know of it by the time that it does."""
        self._retaining.append(weakref.ref(tensor))
        for watched in self.recording.running:
            watched.survey.retains(tensor)

    def tell(self, survey: Survey) -> None:
        """Tell a pass that begins which tensors are known to keep their gradients."""
        self._retaining = [reference for reference in self._retaining if reference() is not None]
        for reference in self._retaining:
            survey.retains(reference())

    def _remember(self, tensor: torch.Tensor, hooks: Any) -> None:
        if tensor.grad_fn is None:
            return
        metadata = metadata_of(tensor.grad_fn)
        known = metadata.setdefault(KEY, [])
        if all(reference() is not hooks for _, reference in known):
            known.append((tensor.output_nr, weakref.ref(hooks)))
            self._metadata.append(metadata)

    def forget(self) -> None:
        """Passes were let go of: hooks that are gone with their tensors need no mark any more."""
        gone = [data for data in self._metadata if all(hooks() is None for _, hooks in data.get(KEY, ()))]
        for data in gone:
            data.pop(KEY, None)
        self._metadata = [data for data in self._metadata if KEY in data]

    def close(self) -> None:
        """Leave no mark on any node."""
        for metadata in self._metadata:
            metadata.pop(KEY, None)
        self._metadata.clear()
