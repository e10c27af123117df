"""One of two processes that train together over gloo: ``python -m tests.ranks RANK FOLDER`` tells what it recorded."""

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

Watch = Callable[..., Any]


def net() -> nn.Module:
    """Two layers, the same on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))


class Again(nn.Module):
    """Computes its first layer again in backward, in a pass inside the pass."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, x: torch.Tensor) -> Any:
        """What the layers make of ``x``."""
        x = checkpoint(self.inner[0], x.requires_grad_(), use_reentrant=True)
        return self.inner[2](self.inner[1](x))


def shared(model: nn.Module, **options: Any) -> nn.Module:
    """DDP around ``model``."""
    return DistributedDataParallel(model, **options)


def sharded() -> nn.Module:
    """The newer FSDP."""
    # Loading it takes a second, which a test that only reads the names of MODELS should not wait for.
    from torch.distributed.fsdp import fully_shard

    model: Any = net()
    for layer in (model[0], model[2]):
        fully_shard(layer)
    return fully_shard(model)


def flat() -> nn.Module:
    """The older FSDP."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(net(), device_id=torch.device("cpu"))


def with_hook() -> nn.Module:
    """DDP with a communication hook of its own, which sums instead of averaging."""
    model: Any = shared(net())

    def add(_: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        future: Any = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0])

    model.register_comm_hook(None, add)
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "ddp": lambda: shared(net()),
    "views": lambda: shared(net(), gradient_as_bucket_view=True),
    "hook": with_hook,
    "again": lambda: shared(Again(), static_graph=True),
    "fsdp": sharded,
    "flat": flat,
}


def train(model: nn.Module, rank: int, watch: Watch, *, accumulate: bool) -> tuple[list[Any], Any]:
    """Two steps; the second on top of the first one's gradients. What is left behind, and what was recorded."""
    opt, left = torch.optim.SGD(model.parameters(), lr=0.1), []
    with watch() as trace:
        for number in range(2):
            model(torch.ones(3, 2) * (rank + 1) * (number + 1)).sum().backward()
            left += [local(p).tolist() for p in model.parameters()]
            left += [None if p.grad is None else local(p.grad).tolist() for p in model.parameters()]
            if not accumulate:
                opt.step()
                opt.zero_grad()
    return left, trace


def local(tensor: Any) -> Any:
    """What of ``tensor`` lies on this rank."""
    return (tensor.to_local() if hasattr(tensor, "to_local") else tensor).detach()


def told(trace: hv.Trace) -> dict[str, Any]:
    """What the tests look at."""
    return {
        "rank": [trace.rank, trace.ranks],
        "notes": trace.notes,
        "faults": find_fault(trace),
        "same": None,
        "steps": [[step.kind, step.on, step.pass_id, step.sentence] for step in trace.steps],
        "file": encode_trace(trace),
    }


def work(rank: int) -> dict[str, Any]:
    """Every model, plain and recorded."""
    found: dict[str, Any] = {}
    for name, make in MODELS.items():
        for accumulate in (False, True):
            plain, _ = train(make(), rank, nullcontext, accumulate=accumulate)
            model = make()
            left, trace = train(model, rank, lambda m=model: hv.record(m), accumulate=accumulate)
            found[f"{name}{' accumulated' * accumulate}"] = {**told(trace), "same": left == plain}
    found["apart"] = told(apart(rank))
    found["inside"] = told(inside(rank))
    found["part"] = told(inside(rank, only="2"))
    return found


def apart(rank: int) -> hv.Trace:
    """A pass whose gradients stay on this rank."""
    model: Any = MODELS["ddp"]()
    with hv.record(model) as trace, model.no_sync():
        model(torch.ones(3, 2) * (rank + 1)).sum().backward()
    return trace


def inside(rank: int, **options: Any) -> hv.Trace:
    """The model inside DDP is the one that is followed."""
    model: Any = MODELS["ddp"]()
    with hv.record(model.module, **options) as trace:
        model(torch.ones(3, 2) * (rank + 1)).sum().backward()
    return trace


def main(rank: int, folder: Path) -> None:
    """Meet the other one through a file, and write down what was recorded."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    (folder / f"{rank}.json").write_text(json.dumps(work(rank)), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
