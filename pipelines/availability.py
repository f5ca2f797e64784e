"""What torch can use on this machine (devices, a compiler), and why it cannot use the others.

torch takes seconds to import and stalls a window while it does, so that `probe` asks a process of its own (`python -m
pipelines.availability`), once. The names are those of the settings `device` and `search.device`.
"""

import functools
import json
import subprocess
import sys
from dataclasses import asdict, dataclass

from profiler.process import children

KEYS = ("device", "search.device")  # settings with choices that not every machine can make
PATIENCE_S = 120.0  # importing torch from a cold disk takes up to a minute
SEARCH_OBSTACLES = {
    # In torch, min and max of scatter_reduce are not there for int64 on MPS.
    "mps": "torch has no 64-bit scatter-minimum on MPS, which the device search needs"
}


@dataclass(frozen=True)
class Availability:
    """Whether a device can be used here; `reason`: its name, or a phrase for why it cannot."""

    name: str
    available: bool
    reason: str


def availability() -> list[Availability]:
    """Return the devices that torch can use here, the processor first. Imports torch."""
    import torch

    version = f"torch {torch.__version__}"
    found = [
        Availability("cpu", True, "compiled code on the processor"),
        Availability("torch-cpu", True, f"{version} on the processor"),
    ]
    cuda, xpu = torch.cuda, getattr(torch, "xpu", None)
    names = ", ".join(cuda.get_device_name(i) for i in range(cuda.device_count())) if cuda.is_available() else ""
    without = torch.version.cuda is None and getattr(torch.version, "hip", None) is None
    for name, here, title, lacking in (
        ("cuda", cuda.is_available(), names, "is a build without CUDA or ROCm" if without else "finds no CUDA device"),
        ("mps", torch.backends.mps.is_available(), "Apple GPU", "finds no Apple GPU (MPS)"),
        ("xpu", xpu is not None and xpu.is_available(), "Intel GPU", "finds no Intel GPU (XPU)"),
    ):
        tried = _tried(name, f"{title} ({version})") if here else Availability(name, False, f"{version} {lacking}")
        found.append(tried)
    return found


def _tried(name: str, title: str) -> Availability:
    """Whether a kernel runs there: a build without kernels for the device is found by nothing else."""
    import torch

    try:
        torch.ones(2, device=name).add_(1.0).cpu()
    except (RuntimeError, AssertionError) as problem:
        said = (str(problem).strip().splitlines() or ["no reason given"])[0].rstrip(".")
        return Availability(name, False, f"{title} is here, but runs no kernel: {said}")
    return Availability(name, True, title)


@functools.cache
def probe() -> tuple[Availability, ...]:
    """The same without importing torch here: a child process probes, once in the life of this process."""
    try:
        done = subprocess.run(
            children.python("-m", "pipelines.availability"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
            env=children.environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return _without_torch(f"torch could not be asked ({problem})")
    try:
        rows = json.loads(done.stdout)["devices"]
        return tuple(Availability(r["name"], r["available"], r["reason"]) for r in rows)
    except (ValueError, KeyError, TypeError):
        reason = children.last_words(done.stderr, done.returncode)
        return _without_torch(f"torch does not start: {reason}")


def unavailable_choices(key: str, devices: tuple[Availability, ...] | None = None) -> dict[str, str]:
    """Return the choices of setting `key` that are unavailable on this machine, with reasons; {} if not in `KEYS`.

    `devices`: the result of `probe`, if there already is one.
    """
    if key not in KEYS:
        return {}
    reasons = {f.name: f.reason for f in devices or probe() if not f.available}
    if key == "search.device":
        reasons = SEARCH_OBSTACLES | reasons
    return reasons


def _without_torch(reason: str) -> tuple[Availability, ...]:
    """The compiled code needs no torch; everything else does."""
    from pipelines.config.conditions import DEVICES

    others = (Availability(name, False, reason) for name in DEVICES)
    return Availability("cpu", True, "compiled code on the processor"), *others


def main() -> None:
    """Print what there is as {"devices": […], "obstacles": {key: {choice: reason}}}."""
    found = tuple(availability())
    obstacles = {key: unavailable_choices(key, found) for key in KEYS}
    reported = {"devices": [asdict(each) for each in found], "obstacles": obstacles}
    sys.stdout.write(json.dumps(reported) + "\n")


if __name__ == "__main__":
    children.read_arguments("pipelines.availability", __doc__)
    main()
