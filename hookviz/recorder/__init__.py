"""``record`` and the observers behind it. Recording a pass does not change it."""

from hookviz.recorder.record_entry import record

__all__ = ["record"]
