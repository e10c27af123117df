"""Ask questions about a trace, and judge the answers."""
