"""How long tests wait for what takes a moment: one setting for quiet machines and for busy ones."""

import os

PATIENCE = float(os.environ.get("HOOKVIZ_PATIENCE", 120))
"""Seconds that a test waits before it gives up.

What comes at once where a core is free comes after many seconds where other programs share the cores. A test that
passes goes on as soon as it can, so that only one that fails ever waits so long.
"""
MILLISECONDS = PATIENCE * 1000
"""The same, as Playwright counts."""
