"""Capabilities that drivers do not report, found by small kernels whose answers are checked.

They are kept on disk under the device's fingerprint, so that a later process builds no probe.
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
        How many consecutive work-items exchange values that way, a power of two; 1 for "local".
    load_once : str
        How loads of data that is read once bypass the first-level cache: "ptx", or "plain" for ordinary loads.
    match : str
        How lanes find equal values among them: "ptx" over 32 lanes, or "local", through local memory.
    fp64 : bool
        Whether there is double precision.
    """

    lanes: str = "local"
    lane_width: int = 1
    load_once: str = "plain"
    fp64: bool = True
    match: str = "local"

    @property
    def defines(self) -> str:
        """The macros that ``cl/lanes.cl`` and ``cl/load_once.cl`` choose by."""
        lines = [f"#define LANES_BY_{self.lanes.upper()}", f"#define LANE_WIDTH {self.lane_width}"]
        lines.append(f"#define LOAD_ONCE_BY_{self.load_once.upper()}")
        return "\n".join(lines)

    def at_most(self, lane_width: int) -> Portability:
        """Return these capabilities with at most ``lane_width`` lanes; a lane width of 1 exchanges through local memory."""
        if lane_width >= self.lane_width:
            return self
        width = 1 << max(lane_width, 1).bit_length() - 1
        return replace(self, lanes=self.lanes if width > 1 else "local", lane_width=width)


# Ways by which lanes exchange values: name, extension without which it isn't tried (quirk 28), and lane widths, widest first.
_LANE_PROBES: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("sub_group", "cl_khr_subgroup_shuffle", (64, 32, 16, 8, 4, 2)),
    ("ptx", "cl_nv_compiler_options", (32,)),
    ("bpermute", "cl_amd_media_ops", (64, 32)),
)

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

_LOAD_ONCE_PROBE = """
#include "load_once.cl"
kernel void probe_load_once(global const uint *a, global const ulong *b, global const ulong2 *c, global ulong *out)
{
    const uint i = get_global_id(0);
    out[i] = load_once_32(a + i) + load_once_64(b + i) + load_once_128(c + i).x + load_once_128(c + i).y;
}
"""

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

# A kernel that copies a buffer made on host memory.
_ALIAS_PROBE = """
kernel void probe_alias(global const uint *a, global uint *out)
{
    out[get_global_id(0)] = a[get_global_id(0)];
}
"""

# Names of OpenCL's types of devices.
_TYPES = {
    cl.device_type.GPU: "gpu",
    cl.device_type.ACCELERATOR: "accelerator",
    cl.device_type.CPU: "cpu",
}


def type_of(device: cl.Device) -> str:
    """Return the kind of a device: "gpu", "accelerator", "cpu" or "custom"."""
    return next((name for bit, name in _TYPES.items() if device.type & bit), "custom")


def query(device: cl.Device, name: str, default: Any) -> Any:
    """Return a property of a device, or a default if its driver does not know the property."""
    try:
        return getattr(device, name)
    except (cl.Error, AttributeError):
        return default


def _lanes_probe_source(portability: Portability, group: int) -> str:
    return sources.expand(f"#define PROBE_GROUP {group}\n{portability.defines}\n{_LANES_PROBE}")


def _exchanges(context: cl.Context, device: cl.Device, queue: cl.CommandQueue, portability: Portability) -> bool:
    """Return whether lanes exchange values as described: the probe builds and gives the right answer."""
    group = max(64, portability.lane_width)
    if group > device.max_work_group_size:
        return False
    try:
        program = programs.compile_source(context, device, _lanes_probe_source(portability, group))
        kernel = cl.Kernel(program, "probe_lanes")
        wrong = np.ones(group, np.uint32)
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=wrong)
        kernel(queue, (group,), (group,), buffer)
        cl.enqueue_copy(queue, wrong, buffer)
    except cl.Error as error:
        _log.debug("%s: lanes do not exchange by %s over %d: %s", device.name, portability.lanes, portability.lane_width, error)
        return False
    return not wrong.any()


def _loads_once(context: cl.Context, device: cl.Device, queue: cl.CommandQueue) -> str:
    """Return the way past the first-level cache that builds and reads the right values."""
    if "cl_nv_compiler_options" not in device.extensions.split():
        return "plain"
    n = 64
    numbers = np.arange(n, dtype=np.uint64) + 11
    try:
        source = sources.expand(f"#define LOAD_ONCE_BY_PTX\n{_LOAD_ONCE_PROBE}")
        kernel = cl.Kernel(programs.compile_source(context, device, source), "probe_load_once")
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        inputs = (numbers.astype(np.uint32), numbers * 3, np.repeat(numbers * 5, 2))
        buffers = [cl.Buffer(context, flags, hostbuf=part) for part in inputs]
        values = np.zeros(n, np.uint64)
        out = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, values.nbytes)
        kernel(queue, (n,), None, *buffers, out)
        cl.enqueue_copy(queue, values, out)
    except cl.Error as error:
        _log.debug("%s: no hinted loads: %s", device.name, error)
        return "plain"
    return "ptx" if np.array_equal(values, numbers * 14) else "plain"


def _matches(context: cl.Context, device: cl.Device, queue: cl.CommandQueue) -> str:
    """Return the way to find equal values among lanes that builds and gives the right answer."""
    if "cl_nv_compiler_options" not in device.extensions.split():
        return "local"
    try:
        kernel = cl.Kernel(programs.compile_source(context, device, sources.expand(_MATCH_PROBE)), "probe_match")
        wrong = np.ones(64, np.uint32)
        out = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, wrong.nbytes)
        kernel(queue, (64,), (64,), out)
        cl.enqueue_copy(queue, wrong, out)
    except cl.Error as error:
        _log.debug("%s: lanes have no instruction that finds equal values: %s", device.name, error)
        return "local"
    return "local" if wrong.any() else "ptx"


def _aliases_host(context: cl.Context, device: cl.Device, queue: cl.CommandQueue) -> tuple[bool, int]:
    """Return whether a buffer made on host memory aliases it, and the device's preferred multiple of work-group sizes."""
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
    """Fields of `Device` that only a kernel can find out."""

    portability: Portability
    aliases_host: bool
    preferred_multiple: int


def _probe(content_kept: bytes) -> Probed:
    """Return the results of probes that an earlier process kept.

    Raises
    ------
    ValueError, AttributeError
        The entry has another form, as another version wrote it.
    """
    content = json.loads(content_kept)
    if _types(content) != _types(asdict(Probed(Portability(), aliases_host=False, preferred_multiple=1))):
        raise ValueError("its fields are others")
    return Probed(**{**content, "portability": Portability(**content["portability"])})


def _types(content: dict[str, Any]) -> dict[str, Any]:
    return {name: _types(value) if isinstance(value, dict) else type(value) for name, value in content.items()}


def probe(device: cl.Device) -> Probed:
    """Return the results of probes: from disk if an earlier process ran them, else by running them now."""
    identity = (device.platform.name, device.platform.version, device.name, device.version, device.driver_version)
    probes = (sources.expand(_LANES_PROBE), sources.expand(_LOAD_ONCE_PROBE), sources.expand(_MATCH_PROBE), _ALIAS_PROBE)
    key = cache.key_of("probe", trial.TRIED, *probes, *identity, device.extensions)
    cached = cache.load(key, _probe)
    if cached is not None:
        return cached
    if type_of(device) == "cpu":
        # Its compiler runs in this process, which it could end or stop: a child tries it first.
        trial.examine(programs.identity(device))
    context = cl.Context([device])
    queue = cl.CommandQueue(context, device)
    extensions = device.extensions.split()
    fp64 = bool(query(device, "double_fp_config", 0))
    lanes = Portability(fp64=fp64)
    for method, extension, widths in _LANE_PROBES:
        if extension not in extensions:
            continue
        candidates = (Portability(method, width, fp64=fp64) for width in widths)
        works = next((candidate for candidate in candidates if _exchanges(context, device, queue, candidate)), None)
        if works is not None:
            lanes = works
            break
    aliases, multiple = _aliases_host(context, device, queue)
    matches = _matches(context, device, queue)
    portability = Portability(lanes.lanes, lanes.lane_width, _loads_once(context, device, queue), fp64, matches)
    probed = Probed(portability, aliases, multiple)
    cache.write(key, json.dumps(asdict(probed)).encode())
    return probed
