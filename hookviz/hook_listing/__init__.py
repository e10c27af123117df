"""List the hooks that are registered now, and draw a graph with them."""

from hookviz.hook_listing.census import Census, Change, hooks, hooks_in_dicts
from hookviz.hook_listing.unreachable_hooks import list_live

__all__ = ["Census", "Change", "hooks", "hooks_in_dicts", "list_live"]
