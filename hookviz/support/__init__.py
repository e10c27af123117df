"""Helpers for all parts: messages, tables, progress, atomic file writes, interrupts, source code."""
