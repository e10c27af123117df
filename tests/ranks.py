"""Train as one of two processes over gloo; ``python -m tests.ranks RANK FOLDER`` writes what it recorded as JSON."""

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from hookviz.storage.files import encode_trace
from hookviz.storage.integrity import find_fault

RecordFunction = Callable[..., Any]


def make_net() -> nn.Module:
    """Return two layers with the same weights on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))


class CheckpointedNet(nn.Module):
    """Recomputes its first layer during backward, in a nested pass."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = make_net()

    def forward(self, x: torch.Tensor) -> Any:
        """Apply the layers, the first one with reentrant checkpointing."""
        x = checkpoint(self.inner[0], x.requires_grad_(), use_reentrant=True)
        return self.inner[2](self.inner[1](x))


def make_ddp(model: nn.Module, **options: Any) -> nn.Module:
    return DistributedDataParallel(model, **options)


def make_fsdp2() -> nn.Module:
    # Import it late: it takes a second, and collecting the tests only needs the names in MODELS.
    from torch.distributed.fsdp import fully_shard

    model: Any = make_net()
    for layer in (model[0], model[2]):
        fully_shard(layer)
    return fully_shard(model)


def make_fsdp1() -> nn.Module:
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(make_net(), device_id=torch.device("cpu"))


def make_ddp_with_communication_hook() -> nn.Module:
    """Return a model in DDP with a communication hook that sums instead of averaging."""
    model: Any = make_ddp(make_net())

    def add(_: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        future: Any = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0])

    model.register_comm_hook(None, add)
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "ddp": lambda: make_ddp(make_net()),
    "bucket views": lambda: make_ddp(make_net(), gradient_as_bucket_view=True),
    "communication hook": make_ddp_with_communication_hook,
    "checkpoint": lambda: make_ddp(CheckpointedNet(), static_graph=True),
    "fsdp2": make_fsdp2,
    "fsdp1": make_fsdp1,
}
if torch.__version__ < "2.8":
    del MODELS["fsdp2"]  # 2.6 cannot run it without a GPU; 2.7 was not tried


def train(model: nn.Module, rank: int, record: RecordFunction, *, accumulate: bool) -> tuple[list[Any], Any]:
    """Train two steps and return the parameters and gradients after each step, and the trace.

    With ``accumulate``, the second step adds to the gradients of the first, and the optimizer does not run.
    """
    opt, state = torch.optim.SGD(model.parameters(), lr=0.1), []
    with record() as trace:
        for number in range(2):
            model(torch.ones(3, 2) * (rank + 1) * (number + 1)).sum().backward()
            state += [local_part(p).tolist() for p in model.parameters()]
            state += [None if p.grad is None else local_part(p.grad).tolist() for p in model.parameters()]
            if not accumulate:
                opt.step()
                opt.zero_grad()
    return state, trace


def local_part(tensor: Any) -> Any:
    """Return the part of ``tensor`` that this rank holds."""
    return (tensor.to_local() if hasattr(tensor, "to_local") else tensor).detach()


def summarize_trace(trace: hv.Trace) -> dict[str, Any]:
    """Return the parts of ``trace`` that the tests check."""
    return {
        "rank": [trace.rank, trace.ranks],
        "notes": trace.notes,
        "faults": find_fault(trace._data),
        "same": None,
        "steps": [[step.kind, step.on, step.pass_id, step.sentence] for step in trace.steps],
        "file": encode_trace(trace._data),
    }


def run_all(rank: int) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name, make in MODELS.items():
        for accumulate in (False, True):
            plain_state, _ = train(make(), rank, nullcontext, accumulate=accumulate)
            model = make()
            recorded_state, trace = train(model, rank, lambda m=model: hv.record(m), accumulate=accumulate)
            results[f"{name}{' accumulated' * accumulate}"] = {
                **summarize_trace(trace),
                "same": recorded_state == plain_state,
            }
    results["no_sync"] = summarize_trace(record_without_sync(rank))
    results["inner module"] = summarize_trace(record_inner_module(rank))
    results["part of inner module"] = summarize_trace(record_inner_module(rank, part=True))
    return results


def record_without_sync(rank: int) -> hv.Trace:
    """Record a pass under ``no_sync``, whose gradients stay on this rank."""
    model: Any = MODELS["ddp"]()
    with hv.record(model) as trace, model.no_sync():
        model(torch.ones(3, 2) * (rank + 1)).sum().backward()
    return trace


def record_inner_module(rank: int, *, part: bool = False) -> hv.Trace:
    model: Any = MODELS["ddp"]()
    with hv.record(model.module[2] if part else model.module) as trace:
        model(torch.ones(3, 2) * (rank + 1)).sum().backward()
    return trace


def main(rank: int, folder: Path) -> None:
    """Join the process group through a file, and write the results."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    (folder / f"{rank}.json").write_text(json.dumps(run_all(rank)), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
