"""The gradients of a pass that hooks edited in place, and which others changed with them."""

from collections.abc import Mapping, Sequence

from hookviz.recorder.fingerprint import Fingerprint, SentGradient
from hookviz.trace import NodeOutput


class InPlaceEdits:
    """Notes what hooks have written to, so that a change of another gradient has a cause."""

    def __init__(self) -> None:
        self._edits: list[tuple[int, int]] = []
        """(storage that a hook wrote to in place, the step of that hook)."""
        self._parts: dict[NodeOutput, tuple[int, int]] = {}
        """Place at which one gradient waits for others → the step of a hook that wrote to it, and its value then."""

    def __bool__(self) -> bool:
        return bool(self._edits)

    def find_cause(self, storage: int) -> int | None:
        """Return the step of the last hook that wrote to a storage."""
        return next((step for edited, step in reversed(self._edits) if edited == storage), None)

    def note(
        self,
        place: NodeOutput | None,
        edited: Sequence[Fingerprint | None],
        step: int,
        sent: Mapping[NodeOutput, list[SentGradient]],
    ) -> None:
        """Note that the hook of a step has written to gradients at ``place``, and which others have the same memory.

        The engine keeps the first gradient that is sent to a place as it is, until a second one is added to it.
        """
        for now in edited:
            if now is None or not now.storage:
                continue
            self._edits.append((now.storage, step))
            for other, gradients in sent.items():
                is_alone = other != place and len(gradients) == 1
                if is_alone and now.value is not None and gradients[0][2].is_at_address_of(now):
                    self._parts[other] = step, now.value

    def take_part(self, place: NodeOutput) -> tuple[int, int] | None:
        """Return the step that changed the first gradient sent to a place while it waited, and its value, once."""
        return self._parts.pop(place, None)
