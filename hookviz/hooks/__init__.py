"""Where PyTorch keeps each kind of hook, and the census of those registered now."""

from hookviz.hooks.census import Census, Change, hooks
from hookviz.hooks.graphs import node_dict, survey

__all__ = ["Census", "Change", "hooks", "node_dict", "survey"]
