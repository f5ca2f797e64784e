"""A worker, started by torchrun: `torchrun … -m pipelines.training.parallel [JOB RESULTS]`.

The first worker reads the job and the data and hands both to the others, so that on other machines nothing but the
program is needed: `torchrun --nnodes=M --node-rank=I --master-addr=HOST --master-port=PORT --nproc-per-node=N
-m pipelines.training.parallel`, with the numbers that the first machine says.
"""

import os
import stat
import sys
import threading
from datetime import timedelta
from pathlib import Path

import msgspec
import torch
import torch.distributed as dist

from pipelines.training.parallel import lessons, worker
from pipelines.training.parallel.job import Job, Piece
from pipelines.training.parallel.peers import Diary, Peers
from profiler.errors import BadInput
from profiler.process.children import read_arguments

PATIENCE = timedelta(hours=1)
"""For another worker's answer: a machine may sleep meanwhile. One that died ends the others through torchrun."""


def main(arguments: list[str]) -> int:
    """Take part; 2 with one sentence for what a person can change."""
    _end_with_launcher()
    local, here = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    on_gpus = torch.cuda.device_count() >= here
    device = torch.device("cuda", local) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpus else "gloo", timeout=PATIENCE)
    try:
        return _work(arguments, device)
    except BadInput as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    finally:
        dist.destroy_process_group()


def _work(arguments: list[str], device: torch.device) -> int:
    diary = Diary(torch.cuda.synchronize if device.type == "cuda" else None)
    everybody = dist.group.WORLD
    assert everybody is not None
    world = Peers(everybody, diary)
    first = world.rank == 0
    job = msgspec.json.decode(world.share(Path(arguments[0]).read_bytes() if first else b""), type=Job)
    if world.size < worker.widest(job.tasks):
        raise BadInput(f"{worker.widest(job.tasks)} workers are wanted, and torchrun started {world.size}.")
    own = lessons.read(Path(job.data), job.outputs, job.context, job.seed) if first else None
    taught = lessons.shared(world, own)

    def group(size: int, diary: Diary) -> Peers | None:
        made = dist.new_group(list(range(size)))
        return Peers(made, diary) if world.rank < size else None

    def deliver(piece: Piece) -> None:
        with Path(arguments[1]).open("ab") as file:
            file.write(msgspec.json.encode(piece) + b"\n")

    worker.run(job, taught, world, group, device, deliver)
    world.barrier()
    return 0


def _end_with_launcher() -> None:
    """End when the launcher does, however it does: its end of the pipe that we inherited closes."""
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return

    def watch() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="launcher", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(read_arguments("pipelines.training.parallel", __doc__, "JOB?", "RESULTS?")))
