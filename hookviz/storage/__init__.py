"""Traces as files: how they are written, read, checked and refused."""
