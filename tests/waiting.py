"""Timeouts of tests, set in one place for quiet and for busy machines."""

import os

PATIENCE = float(os.environ.get("HOOKVIZ_PATIENCE", 300))
"""Seconds that a test waits before it fails.

An event that takes a moment on a free core can take many seconds on a busy machine. A passing test continues as soon
as the event happens, so only a failing test waits this long.
"""
MILLISECONDS = PATIENCE * 1000
"""The same timeout in milliseconds, the unit of Playwright."""
