"""Where PyTorch keeps each kind of hook, and the census of those registered now."""

from hookviz.hook_listing.census import Census, Change, hooks
from hookviz.hook_listing.graph_hooks import node_dict, survey

__all__ = ["Census", "Change", "hooks", "node_dict", "survey"]
