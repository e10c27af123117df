"""The objects of the public API: ``Trace``, ``Comparison``, and ``load``, which reads a trace from a file."""
