"""A product that two devices share, beside each of them alone: ``python -m bench.sharing`` prints ratios of times.

The devices are two parts of a CPU device, or those that ``--devices`` names. The second one is also feigned to be slower: each of
its launches is repeated. Times are of whole calls with NumPy vectors, the waits included: medians of turns of changing order.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

import clsparse_py as sp
from bench import gallery
from clsparse_py._command.cli import find_device
from clsparse_py._ground import cache
from clsparse_py._operations.spmv import speed

__all__ = ["parts_of", "queue_of", "slow_down"]

Call = Callable[[], object]
#: Measuring time of a call, in seconds.
_SECONDS = 0.25
#: Minimum number of rounds.
_ROUNDS = 5


def times_in_turns(calls: Sequence[Call], seconds: float) -> list[list[float]]:
    """Return the seconds of calls that take turns, in an order that changes, after a round that may build kernels."""
    order, result = list(range(len(calls))), [list[float]() for _ in calls]
    shuffle = random.Random(0).shuffle
    for call in calls:
        call()
    end = time.monotonic() + seconds
    while len(result[0]) < _ROUNDS or time.monotonic() < end:
        shuffle(order)
        for at in order:
            begin = time.perf_counter()
            calls[at]()
            result[at].append(time.perf_counter() - begin)
    return result


@contextmanager
def slow_down(queue: cl.CommandQueue, times: int) -> Iterator[None]:
    """Make a device seem slower: each launch on its queue is repeated, and its speed is that of another device."""
    enqueue, key, device = cl.enqueue_nd_range_kernel, speed._cache_key, queue.device

    def repeated(on: cl.CommandQueue, *arguments: Any, **named: Any) -> cl.Event:
        for _ in range(times - 1 if on == queue else 0):
            enqueue(on, *arguments, **named)
        return enqueue(on, *arguments, **named)

    cl.enqueue_nd_range_kernel = repeated
    speed._cache_key = lambda of: cache.key_of(key(of), f"{times if of == device else 1}")
    try:
        yield
    finally:
        cl.enqueue_nd_range_kernel, speed._cache_key = enqueue, key


def queue_of(device: cl.Device, kept: list[cl.Context]) -> cl.CommandQueue:
    """Return a queue on a device, in a context of its own that is ``kept`` (quirk 9)."""
    kept.append(cl.Context([device]))
    # The device by name: of a part, a context may tell the whole (quirk 39).
    return cl.CommandQueue(kept[-1], device)


def parts_of(device: cl.Device, n: int) -> list[cl.Device]:
    """Return equal parts of a CPU device, as many as are asked for."""
    return device.create_sub_devices([cl.device_partition_property.EQUALLY, max(device.max_compute_units // n, 1)])[:n]


def product(S: Any, queue: cl.CommandQueue, x: Any, queues: Sequence[cl.CommandQueue] = ()) -> tuple[Call, str]:
    """Return a product of NumPy vectors, checked once, and which share of A's bytes each device has."""
    A = sp.csr_array(S, queue=queue, zero_copy=sp.describe(queue.device).aliases_host)
    plan, out = (sp.spmv_plan(A, queues=queues) if queues else sp.spmv_plan(A)), np.empty(S.shape[0], x.dtype)
    sp.spmv(A, x, plan=plan, out=out)
    np.testing.assert_allclose(out, S @ x, rtol=1e-3 if x.dtype == np.float32 else 1e-9)
    shares = " ".join(part[3] for part in plan.explain().parts) if queues else ""
    return lambda: sp.spmv(A, x, plan=plan, out=out), shares


@functools.cache
def require_speeds(queues: tuple[cl.CommandQueue, ...], times: int) -> tuple[str, ...]:
    """Measure the speeds of devices anew, the second one feigned to be slower, and return them as text."""
    del times  # what `slow_down` was told: another number is another measurement
    return tuple(f"{queue.device.name.strip()}: {speed.measure(queue) / 1e9:.3g} GB/s" for queue in queues)


def measure(
    name: str, queues: Sequence[cl.CommandQueue], whole: cl.CommandQueue | None, repeats: Sequence[int]
) -> dict[str, Any]:
    """Return times and shares for a matrix: of the whole device, of each part alone, and shared, for each number of repeats."""
    S = gallery.load(name)
    x = np.random.default_rng(0).random(S.shape[1])
    results: dict[str, Any] = {"matrix": name, "nnz": int(S.nnz)}
    for times in repeats:
        with slow_down(queues[1], times):
            require_speeds(tuple(queues), times)
            shared, shares = product(S, queues[0], x, queues)
            calls = {"first": product(S, queues[0], x)[0], "second": product(S, queues[1], x)[0], "shared": shared}
            if whole is not None and times == 1:
                calls["whole"] = product(S, whole, x)[0]
            seconds = map(statistics.median, times_in_turns(list(calls.values()), _SECONDS * len(calls)))
            results[str(times)] = {**dict(zip(calls, seconds, strict=True)), "shares": shares}
    return results


def line(result: dict[str, Any]) -> str:
    """Return a matrix's ratios as a line."""
    said = f"{result['matrix']:<16}{result['nnz']:>11,}"
    for times, of in result.items():
        if isinstance(of, dict):
            whole = f" whole/shared {of['whole'] / of['shared']:.2f}," if "whole" in of else ""
            said += f" | x{times}{whole} shared/best {of['shared'] / min(of['first'], of['second']):.3f} ({of['shares']})"
    return said


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--devices", nargs="+", default=[None], help="one, whose two halves share, or two, as for clsparse --device"
    )
    parser.add_argument("--suite", default="paper-spmv", choices=gallery.SUITES)
    parser.add_argument("--matrices", nargs="*", help="in place of a suite")
    parser.add_argument("--repeats", default="1,2,4,8", help="launches of the second device for one")
    parser.add_argument("--seconds", type=float, default=150, help="no other matrix is begun after so many")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    begin, kept = time.monotonic(), []
    devices = [find_device(name) for name in options.devices]
    halves = parts_of(devices[0], 2) if len(devices) == 1 else devices
    queues = [queue_of(device, kept) for device in halves]
    whole = queue_of(devices[0], kept) if len(devices) == 1 else None
    with slow_down(queues[1], 1):
        speeds = require_speeds(tuple(queues), 1)
    print(*speeds, sep="\n")
    rows = []
    for name in options.matrices or gallery.suite(options.suite, cpu=True):
        if time.monotonic() - begin > options.seconds:
            print(f"no time for {name} and what follows")
            break
        rows.append(measure(name, queues, whole, [int(times) for times in options.repeats.split(",")]))
        print(line(rows[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps({"speeds": speeds, "rows": rows}))


if __name__ == "__main__":
    main()
