"""Trace files: encode, write, read, check and decode them."""
