"""List the hooks that are registered now, and draw a graph with them."""

from hookviz.hook_listing.census import Census, Change, hooks, hooks_in_dicts
from hookviz.hook_listing.graph_hooks import capture_with_hooks, node_dict

__all__ = ["Census", "Change", "capture_with_hooks", "hooks", "hooks_in_dicts", "node_dict"]
