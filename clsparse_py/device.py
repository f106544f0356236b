"""The description of an OpenCL device, how one is chosen, and its queue.

A device is described by the properties that it reports and by the results of small probe kernels, never by its vendor's name.
Results of probes are kept on disk under the device's fingerprint, so that a later process builds no probe.
"""

from __future__ import annotations

import functools
import json
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np
import pyopencl as cl

from clsparse_py import cache, programs, refusals, runtimes, sources, trial
from clsparse_py.errors import NoDeviceError
from clsparse_py.forked import use_device
from clsparse_py.pool import side_queue
from clsparse_py.records import dataclass

__all__ = ["RESERVED", "Device", "Portability", "choose_device", "default_queue", "describe", "devices", "in_order", "unusable"]

_log = logging.getLogger(__name__)

# Few GPUs have larger work-groups. CPU runtimes do, but not the memory for them (quirk 11).
_MAX_GROUP = 1024
#: Bytes of local memory that are left to drivers and compilers, which take some for themselves.
RESERVED = 1024

_Sized = TypeVar("_Sized")


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
        """Return the same with a lane width of at most ``lane_width``, through local memory where that is 1."""
        if lane_width >= self.lane_width:
            return self
        width = 1 << max(lane_width, 1).bit_length() - 1
        return replace(self, lanes=self.lanes if width > 1 else "local", lane_width=width)


@dataclass(frozen=True)
class Device:
    """A device's capabilities.

    Attributes
    ----------
    name, platform, driver_version, vendor : str
        As the driver reports them.
    type : str
        "gpu", "accelerator", "cpu" or "custom".
    compute_units : int
        Compute units.
    max_work_group : int
        Most work-items in a work-group: the device's own limit, but never more than 1024.
    local_memory, max_allocation, global_memory : int
        Bytes.
    preferred_multiple : int
        The multiple of work-items that the device prefers for a work-group, as asked of a small kernel.
    sub_group_sizes : tuple of int
        The sub-group sizes that the driver names; empty if it names none.
    fp64, fp16, int64_atomics, float_atomics : bool
        Double and half precision; atomics on 64-bit integers; on floating-point values by extension.
    unified_memory : bool
        Whether device and host share memory, by the driver's own word.
    aliases_host : bool
        Whether a buffer made on host memory was seen to be that memory.
    svm : tuple of str
        Kinds of shared virtual memory.
    portability : Portability
        How lanes exchange values, how far, and how loads are hinted.
    vendor : str
    cache_bytes : int
        Of the global memory's cache, as the driver tells; 0 if it does not.
    """

    name: str
    platform: str
    driver_version: str
    type: str
    compute_units: int
    max_work_group: int
    local_memory: int
    max_allocation: int
    global_memory: int
    preferred_multiple: int
    sub_group_sizes: tuple[int, ...]
    fp64: bool
    fp16: bool
    int64_atomics: bool
    float_atomics: bool
    unified_memory: bool
    aliases_host: bool
    svm: tuple[str, ...]
    portability: Portability
    vendor: str = ""
    cache_bytes: int = 0

    @property
    def fingerprint(self) -> tuple[str, str]:
        """Name and driver version: profiles and measurements belong to these."""
        return self.name, self.driver_version

    @property
    def resident(self) -> int:
        """Work-items that a compute unit is taken to hold: one on CPU devices, else two of the largest work-groups."""
        return 1 if self.is_cpu else 2 * self.max_work_group

    @property
    def is_cpu(self) -> bool:
        """Whether work-items are iterations of a loop on a core, so that kernels written for CPUs are best."""
        return self.type == "cpu"

    def fitting(self, candidates: Iterable[_Sized], n_bytes: Callable[[_Sized], int], spare: int = 0) -> _Sized:
        """Return the first of some records, sizes or the like whose work-groups' local memory the device has.

        Parameters
        ----------
        candidates : iterable
            At least one, best first. If none fits, the last one is returned: its kernel is refused, and another takes its place.
        n_bytes : callable
            Returns the bytes of local memory that a work-group of a candidate takes.
        spare : int
            Bytes that are to be left, such as `RESERVED`.
        """
        for candidate in candidates:
            if n_bytes(candidate) + spare <= self.local_memory:
                break
        return candidate


# One way of lane exchange a row: the extension without which it isn't tried (quirk 28), and the widths to try, widest first.
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

_ALIAS_PROBE = """
kernel void probe_alias(global const uint *a, global uint *out)
{
    out[get_global_id(0)] = a[get_global_id(0)];
}
"""

_TYPES = {
    cl.device_type.GPU: "gpu",
    cl.device_type.ACCELERATOR: "accelerator",
    cl.device_type.CPU: "cpu",
}
_TYPE_ORDER = ("gpu", "accelerator", "cpu", "custom")


def _type_of(device: cl.Device) -> str:
    return next((name for bit, name in _TYPES.items() if device.type & bit), "custom")


def _query(device: cl.Device, name: str, default: Any) -> Any:
    """Ask a driver that may not know the question."""
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
        found = np.zeros(n, np.uint64)
        out = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, found.nbytes)
        kernel(queue, (n,), None, *buffers, out)
        cl.enqueue_copy(queue, found, out)
    except cl.Error as error:
        _log.debug("%s: no hinted loads: %s", device.name, error)
        return "plain"
    return "ptx" if np.array_equal(found, numbers * 14) else "plain"


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
    """Return whether a buffer on host memory is that memory, and the multiple that the device prefers for a work-group."""
    kernel = cl.Kernel(programs.compile_source(context, device, _ALIAS_PROBE), "probe_alias")
    multiple = kernel.get_work_group_info(cl.kernel_work_group_info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
    if not _query(device, "host_unified_memory", False):
        return False, int(multiple)
    host, found = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    flags = cl.mem_flags
    aliased = cl.Buffer(context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=host)
    out = cl.Buffer(context, flags.WRITE_ONLY, found.nbytes)
    for shift in (0, 1000):
        host += np.uint32(shift)
        kernel(queue, (64,), None, aliased, out)
        cl.enqueue_copy(queue, found, out)
        if not np.array_equal(found, host):
            return False, int(multiple)
    return True, int(multiple)


@dataclass(frozen=True)
class _Probed:
    """Fields of `Device` that only a kernel can find out."""

    portability: Portability
    aliases_host: bool
    preferred_multiple: int


def _probed(kept: bytes) -> _Probed:
    """Return the results of probes that an earlier process kept.

    Raises
    ------
    ValueError, AttributeError
        The entry has another form, as another version wrote it.
    """
    content = json.loads(kept)
    if _types(content) != _types(asdict(_Probed(Portability(), aliases_host=False, preferred_multiple=1))):
        raise ValueError("its fields are others")
    return _Probed(**{**content, "portability": Portability(**content["portability"])})


def _types(content: dict[str, Any]) -> dict[str, Any]:
    return {name: _types(value) if isinstance(value, dict) else type(value) for name, value in content.items()}


def _probe(device: cl.Device) -> _Probed:
    """Return the results of probes: from disk if an earlier process ran them, else by running them now."""
    identity = (device.platform.name, device.platform.version, device.name, device.version, device.driver_version)
    probes = (sources.expand(_LANES_PROBE), sources.expand(_LOAD_ONCE_PROBE), sources.expand(_MATCH_PROBE), _ALIAS_PROBE)
    key = cache.key_of("probe", trial.TRIED, *probes, *identity, device.extensions)
    kept = cache.load(key, _probed)
    if kept is not None:
        return kept
    if _type_of(device) == "cpu":
        # Its compiler runs in this process, which it could end or stop: a child tries it first.
        trial.examine(programs.identity(device))
    context = cl.Context([device])
    queue = cl.CommandQueue(context, device)
    extensions = device.extensions.split()
    fp64 = bool(_query(device, "double_fp_config", 0))
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
    found = _Probed(portability, aliases, multiple)
    cache.write(key, json.dumps(asdict(found)).encode())
    return found


def describe(device: cl.Device) -> Device:
    """Describe a device by its capabilities.

    Parameters
    ----------
    device : pyopencl.Device
        Any device. Capabilities that only a kernel can find out are probed once and kept on disk.

    Raises
    ------
    RuntimeError
        This process was forked from one that had used a device.
    NoDeviceError
        The device's compiler was seen to end or stop the process that uses it, or to be wrong.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> device = sp.describe(sp.default_queue().device)
    >>> device.type in ("cpu", "gpu", "accelerator", "custom")
    True
    """
    use_device()
    return _described(device)


@functools.cache
def _described(device: cl.Device) -> Device:
    if not isinstance(device, cl.Device):
        raise TypeError(f"device: must be a pyopencl.Device, is {type(device).__name__}")
    try:
        found = _probe(device)
    except trial.UnfitError as verdict:
        retry = "clsparse warmup --retry has it tried again"
        raise NoDeviceError(f"{device.name.strip()} cannot be used: {verdict}; {retry}") from None
    svm = int(_query(device, "svm_capabilities", 0))
    kinds = cl.device_svm_capabilities
    extensions = device.extensions.split()
    return Device(
        name=device.name.strip(),
        platform=device.platform.name.strip(),
        driver_version=device.driver_version.strip(),
        type=_type_of(device),
        compute_units=device.max_compute_units,
        max_work_group=min(device.max_work_group_size, _MAX_GROUP),
        local_memory=device.local_mem_size,
        max_allocation=device.max_mem_alloc_size,
        global_memory=device.global_mem_size,
        preferred_multiple=found.preferred_multiple,
        sub_group_sizes=tuple(int(size) for size in _query(device, "sub_group_sizes_intel", ())),
        fp64=bool(_query(device, "double_fp_config", 0)),
        fp16="cl_khr_fp16" in extensions,
        int64_atomics="cl_khr_int64_base_atomics" in extensions,
        float_atomics="cl_ext_float_atomics" in extensions,
        unified_memory=bool(_query(device, "host_unified_memory", False)),
        aliases_host=found.aliases_host,
        svm=tuple(
            name.lower().replace("_", "-")
            for name in ("COARSE_GRAIN_BUFFER", "FINE_GRAIN_BUFFER", "FINE_GRAIN_SYSTEM", "ATOMICS")
            if svm & getattr(kinds, name)
        ),
        portability=found.portability,
        vendor=device.vendor.strip(),
        cache_bytes=int(_query(device, "global_mem_cache_size", 0)),
    )


def devices() -> list[cl.Device]:
    """List the devices present, the one chosen by default first.

    GPUs come before accelerators before CPUs; among equals, those with memory of their own before those that share the host's,
    then the one with more compute units times clock rate, then in the order of the platforms. A platform without devices is
    skipped, and one that an OpenCL loader shows twice is listed once.

    Raises
    ------
    RuntimeError
        As for `describe`.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.devices()[0] == sp.default_queue().device or len(sp.devices()) > 1
    True
    """
    use_device()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the loader's way to say that there is none
        return []
    found: list[cl.Device] = []
    seen: set[tuple[str, ...]] = set()
    for platform in platforms:
        try:
            present = platform.get_devices()
        except cl.Error as error:  # quirk 30
            _log.debug("platform %s has no devices: %s", platform.name, error)
            continue
        shown = (platform.name, platform.version, *(device.name for device in present))
        if shown not in seen:
            seen.add(shown)
            found.extend(device for device in present if device.available)

    def rank(device: cl.Device) -> tuple[int, bool, int]:
        shares = bool(_query(device, "host_unified_memory", False))
        return _TYPE_ORDER.index(_type_of(device)), shares, -device.max_compute_units * device.max_clock_frequency

    return sorted(found, key=rank)


def choose_device() -> cl.Device:
    """Return the device for calls without a queue: the one that ``PYOPENCL_CTX`` names, else the first usable of `devices`.

    Raises
    ------
    NoDeviceError
        There is no OpenCL platform with a device, or the compilers of all of them cannot be used, and the message says what to
        install; or ``PYOPENCL_CTX`` names none of them.
    """
    present = devices()
    if not present:
        raise NoDeviceError(f"no OpenCL device was found. {runtimes.advice()}")
    if named := os.environ.get("PYOPENCL_CTX"):
        try:
            chosen: cl.Device = cl.create_some_context(interactive=False).devices[0]
        except (cl.Error, ValueError, IndexError) as error:
            there = "; ".join(f"{device.name.strip()} of platform {device.platform.name.strip()}" for device in present)
            said = f"PYOPENCL_CTX: {named!r} names no device ({error}). There are: {there}. {runtimes.unseen()}"
            raise NoDeviceError(said.rstrip()) from error
        return chosen
    refused: list[str] = []
    for device in present:
        reason = unusable(device)
        if reason is None:
            return device
        refused.append(f"{device.name.strip()} of platform {device.platform.name.strip()}: {reason}")
        _log.warning("%s is passed over: %s", device.name.strip(), reason)
    said = f"no OpenCL device can be used ({'; '.join(refused)})"
    raise NoDeviceError(f"{said}. {runtimes.advice()}")


@functools.cache
def unusable(device: cl.Device) -> str | None:
    """Return why a device's compiler cannot be used; None if it can, as almost all can.

    Some compilers build nothing on newer processors (quirk 1). Others end or hang the process that uses them (quirk 2): `trial`
    finds these out.
    """
    try:
        _probe(device)
    except trial.UnfitError as verdict:
        return str(verdict)
    except cl.Error as error:
        return f"its compiler builds nothing: {refusals.summary(refusals.said_by(error)) or error}"
    return None


@functools.cache
def _chosen(named: str | None) -> tuple[cl.Context, cl.CommandQueue]:
    """Return the queue, and the context beside it (quirk 9)."""
    device = choose_device()
    _log.debug("chose %s, PYOPENCL_CTX is %s", device.name, named)
    context = cl.Context([device])
    return context, cl.CommandQueue(context, device)


def default_queue() -> cl.CommandQueue:
    """Return this process's queue on the device that `choose_device` names; the same one at each call.

    Raises
    ------
    NoDeviceError
        As for `choose_device`.
    RuntimeError
        As for `describe`.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.csr_array([[1, 2]]).queue is sp.default_queue()
    True
    """
    use_device()
    return _chosen(os.environ.get("PYOPENCL_CTX"))[1]


def in_order(queue: cl.CommandQueue) -> cl.CommandQueue:
    """Return ``queue`` if it is in order, else its side queue, which is.

    Inspection and planning wait for the device anyway; on a queue in order their steps need no events.
    """
    if queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE:
        return side_queue(queue)
    return queue
