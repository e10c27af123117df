"""Records the rank of this process, and the gradients that DDP or FSDP synchronise between ranks."""

import sys
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hookviz.autograd.tensor_statistics import append_value
from hookviz.autograd.torch_internals import FSDP, FSDP_PARAM_GROUPS, FULLY_SHARD, UNSHARDED_PARAMETER, read_grad
from hookviz.recorder.follower import Follower, PassStart
from hookviz.recorder.modules.call_tracker import CallTracker
from hookviz.recorder.session import Session, is_outermost
from hookviz.support.user_objects import is_of
from hookviz.trace import StepRow
from hookviz.trace.rows import Synchroniser


class JoinedGradient(NamedTuple):
    """A gradient that several ranks have synchronised."""

    leaf: torch.Tensor
    """The leaf at which the local gradient arrived."""
    after: Any
    """The synchronised gradient; for a sharded parameter, the part that this rank keeps."""
    synchroniser: Synchroniser
    ranks: int
    name: str | None = None
    """The name of a leaf that torch made for this pass only, as a person would write it."""
    holder: Any = None
    """The module that owns the parameter for which such a leaf stands."""


class RankTracker(Follower):
    """Distinguishes the local gradients of this rank from synchronised ones, in the passes of a recording."""

    def __init__(self, session: Session, calls: CallTracker) -> None:
        self.session, self.trace, self.calls = session, session.trace, calls
        self._enclosing_ddps: list[weakref.ref[DistributedDataParallel]] = []
        """The DDP modules during whose forward a module was called; they may not be followed themselves."""
        self._leaves: dict[int, int] = {}
        """``id`` of a leaf → its node, in the running pass and the passes inside it."""
        self._first_row = 0
        """The first step of that pass."""

    @staticmethod
    def is_distributed() -> bool:
        """Return whether this process is one of several that compute together."""
        return dist.is_available() and dist.is_initialized()

    def call_begins(self) -> None:
        """Remember the DDP module, if any, in whose forward a module is called."""
        active_ddp = DistributedDataParallel._active_ddp_module
        if active_ddp is not None and all(reference() is not active_ddp for reference in self._enclosing_ddps):
            self._enclosing_ddps.append(weakref.ref(active_ddp))

    def gathered_parameters(self) -> dict[str, torch.Tensor]:
        """Map names to the leaves that FSDP has gathered for a pass, which have no names of their own."""
        leaves = {}
        for joined in self._joined_gradients() if self.is_distributed() else ():
            if joined.name:
                leaves[joined.name] = joined.leaf
                self.calls.owners.add_stand_in(joined.holder, joined.leaf)
        return leaves

    def pass_begins(self, start: PassStart) -> None:
        """Note the rank and the leaves of a pass that begins.

        Gradients that arrive in a pass which checkpointing starts inside another one are synchronised at the end of the
        outer pass.
        """
        if not self.is_distributed():
            return
        self.trace.rank, self.trace.ranks = dist.get_rank(), dist.get_world_size()
        if is_outermost():
            self._leaves.clear()
            self._first_row = len(self.trace.rows)
        self._leaves |= start.snapshot.leaf_numbers
        # A thread of torch's own writes to these as soon as a gradient was accumulated, so they are not read then.
        views = (p for ddp in self._ddp_modules() if ddp.gradient_as_bucket_view for p in ddp.module.parameters())
        start.running.observer.unreadable_grads = {self._leaves[id(p)] for p in views if id(p) in self._leaves}

    def pass_returned(self) -> None:
        """Add a step for each gradient that was synchronised in a pass that has ended without an exception."""
        if not (self._leaves and is_outermost() and self.is_distributed()):
            return
        rows = [row for row in self.trace.rows[self._first_row :] if row.after is not None]
        local = {row.node: row.after for row in rows if row.kind in ("arrive", "accumulate")}
        accumulated = {row.own_node for row in self.trace.rows[self._first_row :] if row.kind == "accumulate"}
        for joined in self._joined_gradients():
            node = self._leaves.get(id(joined.leaf))
            if node in local and node in accumulated and joined.after is not None:
                self._log(joined, node, local[node])
        self._leaves.clear()

    def _log(self, joined: JoinedGradient, node: int, local: Any) -> None:
        after = append_value(self.trace.values, joined.after, self.trace.statistics)
        row = StepRow(self.trace.rows[-1].pass_id, "synchronise", node, 0, before=local, after=after)
        self.trace.rows.append(row._replace(synchroniser=joined.synchroniser, ranks=joined.ranks))

    def close(self) -> None:
        """Add a note with the number of this rank."""
        if self.trace.rank is not None:
            self.session.notes.say("rank", rank=self.trace.rank, ranks=self.trace.ranks)

    # -- the modules that synchronise gradients

    def _ddp_modules(self) -> Iterator[DistributedDataParallel]:
        enclosing = (reference() for reference in self._enclosing_ddps)
        called = (module for _, module in self.calls.modules.alive_modules())
        ddps = {id(module): module for module in (*called, *enclosing) if is_of(module, DistributedDataParallel)}
        yield from ddps.values()

    def _joined_gradients(self) -> Iterator[JoinedGradient]:
        for ddp in self._ddp_modules():
            yield from _ddp_gradients(ddp) if ddp.require_backward_grad_sync else ()
        sharding: Any = sys.modules.get(FULLY_SHARD)
        flat: Any = sys.modules.get(FSDP)
        for name, module in self.calls.modules.alive_modules() if flat is not None else ():
            if is_of(module, flat.FullyShardedDataParallel):
                yield from _flat_gradients(module)
            elif sharding is not None and is_of(module, sharding.FSDPModule):
                yield from _sharded_gradients(name, module)


def _ddp_gradients(ddp: DistributedDataParallel) -> Iterator[JoinedGradient]:
    ranks = dist.get_world_size(ddp.process_group)
    for parameter in ddp.module.parameters():
        yield JoinedGradient(parameter, read_grad(parameter), "ddp", ranks)


def _sharded_gradients(name: str, module: Any) -> Iterator[JoinedGradient]:
    """Yield the gradients of ``fully_shard``: each arrives at the gathered parameter and moves on to its shard."""
    paths = {id(inner): path for path, inner in module.named_modules()}
    state = module._get_fsdp_state()
    groups = getattr(state, FSDP_PARAM_GROUPS, None)
    if groups is None:  # torch 2.10 has one group, or none if the module has no parameters of its own
        groups = filter(None, [state._fsdp_param_group])
    for group in groups:
        for fsdp_param in group.fsdp_params:
            leaf, grad = getattr(fsdp_param, UNSHARDED_PARAMETER, None), read_grad(fsdp_param.sharded_param)
            info = fsdp_param._module_info
            path = ".".join(filter(None, (name, paths.get(id(info.module)), info.param_name)))
            if leaf is not None:
                after = grad._local_tensor if group.reduce_grads and grad is not None else None
                yield JoinedGradient(leaf, after, "fsdp", group.mesh_info.mesh.size(), path, info.module)


def _flat_gradients(module: Any) -> Iterator[JoinedGradient]:
    """Yield the gradient of ``FullyShardedDataParallel``'s one flat parameter, cut to this rank's part."""
    handle = module._handle
    if handle is not None and module._sync_gradients:
        yield JoinedGradient(
            handle.flat_param, read_grad(handle.flat_param), "fsdp", dist.get_world_size(module.process_group)
        )
