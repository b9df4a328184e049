"""Two processes on this machine, for what must not depend on how many there are."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def _child(rank: int, worker: Callable[..., Any], world: int, folder: str, args: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    os.environ |= {"GLOO_SOCKET_IFNAME": "lo", "TP_SOCKET_IFNAME": "lo"}
    os.environ |= dict.fromkeys(("RANK", "LOCAL_RANK"), f"{rank}")  # as a launcher sets them
    os.environ |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), f"{world}")
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}  # not used: the group is there
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world)
    try:
        torch.save(worker(*args), Path(folder) / f"{rank}.pt")
    finally:
        dist.destroy_process_group()


def run(worker: Callable[..., Any], *args: Any, world: int = 2) -> list[Any]:
    """What ``worker(*args)`` returns in each process of a gloo group, in rank order. A module-level function only."""
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(_child, (worker, world, folder, args), nprocs=world, start_method="spawn")
        return [torch.load(Path(folder) / f"{rank}.pt", weights_only=False) for rank in range(world)]
