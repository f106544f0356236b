"""Capabilities that drivers do not report, found out by probes: small kernels whose results are checked.

The results of probes are kept on disk under the device's fingerprint, so that a later process builds no probe.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py._build import programs, sources
from clsparse_py._device import trial
from clsparse_py._ground import cache
from clsparse_py._ground.records import dataclass

__all__ = ["Portability", "Probed", "probe", "query", "type_of"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Portability:
    """The capabilities of a device that the files of ``cl/`` depend on: part of every kernel's parameter record.

    Attributes
    ----------
    lanes : str
        How lanes exchange values: "sub_group" (the shuffle built-ins), "bpermute" (AMD's instruction), "ptx" (inline PTX), or
        "local" (local memory alone).
    lane_width : int
        Number of consecutive work-items that exchange values without local memory, a power of two; 1 for "local".
    load_once : str
        How loads of data that is read once bypass the first-level cache: "ptx", or "plain" for ordinary loads.
    match : str
        How lanes find equal values among them: "ptx" over 32 lanes, or "local", through local memory.
    fp64 : bool
        Whether the device has double precision.
    """

    lanes: str = "local"
    lane_width: int = 1
    load_once: str = "plain"
    fp64: bool = True
    match: str = "local"

    @property
    def defines(self) -> str:
        """The macros by which ``cl/lanes.cl`` and ``cl/load_once.cl`` choose instructions."""
        lines = [f"#define LANES_BY_{self.lanes.upper()}", f"#define LANE_WIDTH {self.lane_width}"]
        lines.append(f"#define LOAD_ONCE_BY_{self.load_once.upper()}")
        return "\n".join(lines)

    def at_most(self, lane_width: int) -> Portability:
        """Return the capabilities with at most ``lane_width`` lanes to exchange values; a width of 1 means local memory alone."""
        if lane_width >= self.lane_width:
            return self
        width = 1 << max(lane_width, 1).bit_length() - 1
        return replace(self, lanes=self.lanes if width > 1 else "local", lane_width=width)


#: Ways of lanes to exchange values: name, needed extension of OpenCL (quirk 28), and lane widths to probe, widest first.
_LANE_PROBES: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("sub_group", "cl_khr_subgroup_shuffle", (64, 32, 16, 8, 4, 2)),
    ("ptx", "cl_nv_compiler_options", (32,)),
    ("bpermute", "cl_amd_media_ops", (64, 32)),
)

#: OpenCL C of the probe of lane exchange: each work-item counts its wrong values.
_LANES_PROBE = """
#include "lanes.cl"
kernel __attribute__((reqd_work_group_size(PROBE_GROUP, 1, 1)))
void probe_lanes(global uint *out)
{
    const uint me = get_local_id(0);
    uint wrong = 0;
    for (uint step = 1; step < LANE_WIDTH; step *= 2)
        wrong += lanes_xor_u32(me * 7 + 3, step) != (me ^ step) * 7 + 3;
    out[me] = wrong;
}
"""

#: OpenCL C of the probe of loads past the first-level cache: each work-item adds what it loads.
_LOAD_ONCE_PROBE = """
#include "load_once.cl"
kernel void probe_load_once(global const uint *a, global const ulong *b, global const ulong2 *c, global ulong *out)
{
    const uint i = get_global_id(0);
    out[i] = load_once_32(a + i) + load_once_64(b + i) + load_once_128(c + i).x + load_once_128(c + i).y;
}
"""

#: OpenCL C of the probe of finding equal values among lanes: each work-item counts its wrong answers.
_MATCH_PROBE = """
#define WORK_GROUP 64
#define MATCH_WIDTH 32
#define MATCH_BITS 3
#define MATCH_BY_PTX
#include "match.cl"
kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void probe_match(global uint *out)
{
    local uint box[64], counts[2][5];
    const uint me = get_local_id(0), lane = me % 32, team = me / 32, x = me * me % 5;
    if (lane < 5)
        counts[team][lane] = 0;
    const uint same = lanes_match(box, x), before = popcount(same & ((1u << lane) - 1));
    if (before == 0)
        counts[team][x] = popcount(same);
    lanes_fence();
    uint wrong = 0, others = 0;
    for (uint other = 0; other < 32; ++other)
        others += (other + team * 32) * (other + team * 32) % 5 == x;
    for (uint other = 0; other < lane; ++other)
        wrong += ((other + team * 32) * (other + team * 32) % 5 == x) != (same >> other & 1);
    out[me] = wrong + (others != counts[team][x]);
}
"""

#: Work-groups of the probe of forward progress.
_PROGRESS_GROUPS = 16
#: OpenCL C of the probe of forward progress: each work-item waits, for some turns at most, until the one before it has stored its
#: number; the first work-item of a work-group waits for another work-group, the others wait in local memory.
_PROGRESS_PROBE = """
#define TURNS (1u << 22)
kernel __attribute__((reqd_work_group_size(PROBE_GROUP, 1, 1)))
void probe_progress(volatile global uint *tickets, volatile global uint *out)
{
    volatile local uint here[PROBE_GROUP];
    local uint ticket;
    const uint me = get_local_id(0);
    here[me] = UINT_MAX;
    if (me == 0)
        ticket = atomic_inc(tickets);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint i = ticket * PROBE_GROUP + me;
    for (uint turn = 0; here[me] == UINT_MAX && turn < TURNS; ++turn) {
        const uint before = i == 0 ? 0 : me == 0 ? out[i - 1] : here[me - 1];
        if (before != UINT_MAX) {
            out[i] = before + 1;
            here[me] = before + 1;
        }
    }
}
"""

#: OpenCL C of the probe of host memory: a kernel that copies a buffer made on host memory.
_ALIAS_PROBE = """
kernel void probe_alias(global const uint *a, global uint *out)
{
    out[get_global_id(0)] = a[get_global_id(0)];
}
"""

#: Names of the types of devices by OpenCL's numbers of types.
_TYPES = {
    cl.device_type.GPU: "gpu",
    cl.device_type.ACCELERATOR: "accelerator",
    cl.device_type.CPU: "cpu",
}


def type_of(device: cl.Device) -> str:
    """Return the type of a device: "gpu", "accelerator", "cpu" or "custom"."""
    return next((name for bit, name in _TYPES.items() if device.type & bit), "custom")


def query(device: cl.Device, name: str, default: Any) -> Any:
    """Return a property of a device, or a default if the driver does not know the property."""
    try:
        return getattr(device, name)
    except (cl.Error, AttributeError):
        return default


def _lanes_probe_source(portability: Portability, group: int) -> str:
    """Return the OpenCL C of the probe of lane exchange, for a portability and a work-group size."""
    return sources.expand(f"#define PROBE_GROUP {group}\n{portability.defines}\n{_LANES_PROBE}")


def _writes(
    queue: cl.CommandQueue, source: str, name: str, expected: np.ndarray[Any, Any], *inputs: np.ndarray[Any, Any]
) -> bool:
    """Return whether the kernel of a probe builds, and writes the expected numbers: one for each work-item of a work-group."""
    context, device, flags = queue.context, queue.device, cl.mem_flags
    values = ~expected
    try:
        kernel = cl.Kernel(programs.compile_source(context, device, source), name)
        buffers = [cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=numbers) for numbers in inputs]
        out = cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=values)
        kernel(queue, expected.shape, expected.shape, *buffers, out)
        cl.enqueue_copy(queue, values, out)
    except cl.Error as error:
        _log.debug("%s: %s does not run: %s", device.name, name, error)
        return False
    return np.array_equal(values, expected)


def _exchanges(queue: cl.CommandQueue, portability: Portability) -> bool:
    """Return whether lanes of a device exchange values rightly by the instructions and lane width of ``portability``."""
    group = max(64, portability.lane_width)
    if group > queue.device.max_work_group_size:
        return False
    return _writes(queue, _lanes_probe_source(portability, group), "probe_lanes", np.zeros(group, np.uint32))


def _makes_progress(queue: cl.CommandQueue) -> bool:
    """Return whether work-groups that have begun run on while others wait for them, and see what these store."""
    context, device, flags = queue.context, queue.device, cl.mem_flags
    group = min(64, device.max_work_group_size)
    values = np.full(_PROGRESS_GROUPS * group, 0xFFFFFFFF, np.uint32)
    try:
        source = f"#define PROBE_GROUP {group}\n{_PROGRESS_PROBE}"
        kernel = cl.Kernel(programs.compile_source(context, device, source), "probe_progress")
        tickets, out = (
            cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=numbers)
            for numbers in (np.zeros(1, np.uint32), values)
        )
        kernel(queue, values.shape, (group,), tickets, out)
        cl.enqueue_copy(queue, values, out)
    except cl.Error as error:
        _log.debug("%s: the probe of forward progress does not run: %s", device.name, error)
        return False
    return np.array_equal(values, np.arange(1, values.size + 1))


def _loads_once(queue: cl.CommandQueue) -> bool:
    """Return whether inline PTX loads the right data past a device's first-level cache."""
    numbers = np.arange(64, dtype=np.uint64) + 11
    source = sources.expand(f"#define LOAD_ONCE_BY_PTX\n{_LOAD_ONCE_PROBE}")
    inputs = (numbers.astype(np.uint32), numbers * 3, np.repeat(numbers * 5, 2))
    return _writes(queue, source, "probe_load_once", numbers * 14, *inputs)


def _aliases_host(context: cl.Context, device: cl.Device, queue: cl.CommandQueue) -> tuple[bool, int]:
    """Return whether a buffer made on host memory needs no copy, and the preferred multiple of work-group sizes."""
    kernel = cl.Kernel(programs.compile_source(context, device, _ALIAS_PROBE), "probe_alias")
    multiple = kernel.get_work_group_info(cl.kernel_work_group_info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
    if not query(device, "host_unified_memory", False):
        return False, int(multiple)
    host, values = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    flags = cl.mem_flags
    aliased = cl.Buffer(context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=host)
    out = cl.Buffer(context, flags.WRITE_ONLY, values.nbytes)
    for shift in (0, 1000):
        host += np.uint32(shift)
        kernel(queue, (64,), None, aliased, out)
        cl.enqueue_copy(queue, values, out)
        if not np.array_equal(values, host):
            return False, int(multiple)
    return True, int(multiple)


@dataclass(frozen=True)
class Probed:
    """The results of all probes of a device: fields of `Device` that only a kernel can find out."""

    portability: Portability
    aliases_host: bool
    preferred_multiple: int
    forward_progress: bool


def _parse(entry: bytes) -> Probed:
    """Return the results of a device's probes from the cache entry that an earlier process wrote.

    Raises
    ------
    ValueError, AttributeError
        The entry has another form, as another version wrote it.
    """
    content = json.loads(entry)
    if _value_types(content) != _value_types(
        asdict(Probed(Portability(), aliases_host=False, preferred_multiple=1, forward_progress=False))
    ):
        raise ValueError("its fields are others")
    return Probed(**{**content, "portability": Portability(**content["portability"])})


def _value_types(content: dict[str, Any]) -> dict[str, Any]:
    """Return the Python types of the values of a device's probe results, by the same nested keys."""
    return {name: _value_types(value) if isinstance(value, dict) else type(value) for name, value in content.items()}


def probe(device: cl.Device) -> Probed:
    """Return the results of all probes of a device, from disk if an earlier process ran them."""
    identity = (device.platform.name, device.platform.version, device.name, device.version, device.driver_version)
    probes = (
        sources.expand(_LANES_PROBE),
        sources.expand(_LOAD_ONCE_PROBE),
        sources.expand(_MATCH_PROBE),
        _PROGRESS_PROBE,
        _ALIAS_PROBE,
    )
    key = cache.key_of("probe", trial.TRIED, *probes, *identity, device.extensions)
    cached = cache.load(key, _parse)
    if cached is not None:
        return cached
    if type_of(device) == "cpu":
        # The compiler of a CPU runs in this process, and could end or stop it: a child process tries the compiler first.
        trial.examine(programs.identity(device))
    context = cl.Context([device])
    queue = cl.CommandQueue(context, device)
    extensions = device.extensions.split()
    fp64 = bool(query(device, "double_fp_config", 0))
    candidates = (
        Portability(lanes, width, fp64=fp64)
        for lanes, extension, widths in _LANE_PROBES
        if extension in extensions
        for width in widths
    )
    portability = next((candidate for candidate in candidates if _exchanges(queue, candidate)), Portability(fp64=fp64))
    aliases, multiple = _aliases_host(context, device, queue)
    if "cl_nv_compiler_options" in extensions:
        zeros = np.zeros(64, np.uint32)
        match = "ptx" if _writes(queue, sources.expand(_MATCH_PROBE), "probe_match", zeros) else "local"
        portability = replace(portability, load_once="ptx" if _loads_once(queue) else "plain", match=match)
    probed = Probed(portability, aliases, multiple, _makes_progress(queue))
    cache.write(key, json.dumps(asdict(probed)).encode())
    return probed
