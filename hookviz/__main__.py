"""``python -m hookviz`` runs the command ``hookviz``; ``hookviz.command_line`` has its commands."""

import sys

from hookviz.command_line.entry_point import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
