"""One rank of several: which it is, and what its gradients become when DDP or FSDP joins them with the others'."""

import sys
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hookviz.autograd.tensor_statistics import measure_or_defer
from hookviz.autograd.torch_internals import FSDP, FSDP_PARAM_GROUPS, FULLY_SHARD, UNSHARDED_PARAMETER
from hookviz.recorder.call_tracker import CallTracker
from hookviz.recorder.pass_sampler import outermost
from hookviz.recorder.running_pass import RunningPass
from hookviz.recorder.session import Session
from hookviz.trace import StepRow
from hookviz.trace.rows import Synchroniser


class JoinedGradient(NamedTuple):
    """A gradient that several ranks have joined."""

    leaf: torch.Tensor
    """The leaf at which the local gradient arrived."""
    after: Any
    """What the ranks have made of all their gradients; of a sharded one the part that this rank keeps."""
    synchroniser: Synchroniser
    ranks: int
    name: str | None = None
    """What a person calls a leaf that torch made for the pass only."""
    holder: Any = None
    """The module whose parameter such a leaf stands for."""


class RankTracker:
    """Tells the gradients of this rank from those that all ranks share, in the passes of a recording."""

    def __init__(self, session: Session, calls: CallTracker) -> None:
        self.session, self.trace, self.calls = session, session.trace, calls
        self._around: list[weakref.ref[DistributedDataParallel]] = []
        """The DDP modules whose insides were called; they themselves may not be followed."""
        self._leaves: dict[int, int] = {}
        """``id`` of a leaf → its node, in the pass that is running and in those inside it."""
        self._first = 0
        """The first step of that pass."""

    @staticmethod
    def several() -> bool:
        """Whether this process is one of several that compute together."""
        return dist.is_available() and dist.is_initialized()

    def module_called(self) -> None:
        """A module is called, maybe in the forward of a DDP module."""
        around = DistributedDataParallel._active_ddp_module
        if around is not None and all(known() is not around for known in self._around):
            self._around.append(weakref.ref(around))

    def names(self) -> dict[str, torch.Tensor]:
        """Name → leaf, of leaves that hold no name of their own: what FSDP has gathered for a pass."""
        found = {}
        for one in self._joined() if self.several() else ():
            if one.name:
                found[one.name] = one.leaf
                self.calls.owners.add_stand_in(one.holder, one.leaf)
        return found

    def pass_begins(self, running_pass: RunningPass) -> None:
        """A pass begins; in one that checkpointing begins inside another gradients arrive, and are joined later."""
        if not self.several():
            return
        self.trace.rank, self.trace.ranks = dist.get_rank(), dist.get_world_size()
        if outermost():
            self._leaves.clear()
            self._first = len(self.trace.rows)
        self._leaves |= running_pass.snapshot.leaf_numbers
        # Into these torch writes, in a thread of its own, as soon as a gradient is added to them: it is not read then.
        views = (p for ddp in self._ddps() if ddp.gradient_as_bucket_view for p in ddp.module.parameters())
        running_pass.observer.written = {self._leaves[id(p)] for p in views if id(p) in self._leaves}

    def pass_ended(self) -> None:
        """A pass has run to its end: what its gradients have become by then is a step for each of them."""
        if not (self._leaves and outermost() and self.several()):
            return
        rows = [row for row in self.trace.rows[self._first :] if row.after is not None]
        local = {row.node: row.after for row in rows if row.kind in ("arrive", "accumulate")}
        written = {row.node for row in self.trace.rows[self._first :] if row.kind == "accumulate"}
        for one in self._joined():
            node = self._leaves.get(id(one.leaf))
            if node in local and node in written and one.after is not None:
                self._log(one, node, local[node])
        self._leaves.clear()

    def _log(self, one: JoinedGradient, node: int, local: Any) -> None:
        values, last = self.trace.values, self.trace.rows[-1].pass_id
        values.append(measure_or_defer(one.after, self.trace.statistics))
        joined = StepRow(last, "synchronise", node, 0, before=local, after=len(values) - 1)
        self.trace.rows.append(joined._replace(synchroniser=one.synchroniser, ranks=one.ranks))

    def add_note(self) -> None:
        """Say which rank this is."""
        if self.trace.rank is not None:
            self.session.notes.say("note.rank", rank=self.trace.rank, ranks=self.trace.ranks)

    # -- who joins gradients

    def _ddps(self) -> Iterator[DistributedDataParallel]:
        known = (reference() for reference in self._around)
        called = (module for _, module in self.calls.modules.alive())
        found = {id(module): module for module in (*called, *known) if isinstance(module, DistributedDataParallel)}
        yield from found.values()

    def _joined(self) -> Iterator[JoinedGradient]:
        for ddp in self._ddps():
            yield from _of_ddp(ddp) if ddp.require_backward_grad_sync else ()
        sharding: Any = sys.modules.get(FULLY_SHARD)
        flat: Any = sys.modules.get(FSDP)
        for name, module in self.calls.modules.alive() if flat is not None else ():
            if isinstance(module, flat.FullyShardedDataParallel):
                yield from _of_flat(module)
            elif sharding is not None and isinstance(module, sharding.FSDPModule):
                yield from _of_shards(name, module)


def _of_ddp(ddp: DistributedDataParallel) -> Iterator[JoinedGradient]:
    synchroniser: Synchroniser = "hook" if ddp._comm_hooks else "ddp"
    ranks = dist.get_world_size(ddp.process_group)
    for parameter in ddp.module.parameters():
        yield JoinedGradient(parameter, parameter.grad, synchroniser, ranks)


def _of_shards(name: str, module: Any) -> Iterator[JoinedGradient]:
    """Of ``fully_shard``: the gradient arrives at the gathered parameter, and goes on to the shard of it."""
    paths = {id(inner): path for path, inner in module.named_modules()}
    state = module._get_fsdp_state()
    groups = getattr(state, FSDP_PARAM_GROUPS, None)
    if groups is None:  # torch 2.10 knows one group, or none where the module has no parameters of its own
        groups = filter(None, [state._fsdp_param_group])
    for group in groups:
        synchroniser: Synchroniser = "fsdp" if group.gradient_divide_factor is None else "factor"
        for one in group.fsdp_params:
            leaf, grad = getattr(one, UNSHARDED_PARAMETER, None), one.sharded_param.grad
            info = one._module_info
            path = ".".join(filter(None, (name, paths.get(id(info.module)), info.param_name)))
            if leaf is not None:
                after = grad._local_tensor if group.reduce_grads and grad is not None else None
                yield JoinedGradient(leaf, after, synchroniser, group.mesh_info.mesh.size(), path, info.module)


def _of_flat(module: Any) -> Iterator[JoinedGradient]:
    """Of ``FullyShardedDataParallel``: one flat parameter, whose gradient is cut to this rank's part."""
    handle = module._handle
    if handle is not None and module._sync_gradients:
        yield JoinedGradient(
            handle.flat_param, handle.flat_param.grad, "fsdp", dist.get_world_size(module.process_group)
        )
