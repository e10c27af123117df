"""Check a model or a hook function by rules that need no pass."""

from hookviz.static_checks.doctor_entry import doctor
from hookviz.static_checks.static_finding import StaticFinding

__all__ = ["StaticFinding", "doctor"]
