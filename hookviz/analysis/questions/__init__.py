"""Questions about a trace, and which answers are right."""
