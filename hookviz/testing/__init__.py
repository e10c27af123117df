"""Assertions about hooks and gradients for tests. ``hookviz.pytest_plugin`` has the check for hooks left behind."""

from hookviz.testing.assertions import assert_gradients_reach, assert_hooks_fire

__all__ = ["assert_gradients_reach", "assert_hooks_fire"]
