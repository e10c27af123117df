"""Run the command line without its script: ``python -m hookviz run train.py``; ``hookviz.command_line`` has the commands."""

import sys

from hookviz.command_line.entry_point import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
