"""The description of an OpenCL device, the choice of the default device, and its queue.

A device is described by the properties that its driver reports and by the results of probes (`capabilities`), never by its
vendor's name.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterable
from typing import TypeVar

import pyopencl as cl

from clsparse_py._build import refusals
from clsparse_py._build.plain import are_plain, plainly
from clsparse_py._device import runtimes, trial
from clsparse_py._device.capabilities import Portability, probe, query, type_of
from clsparse_py._device.ranking import find_standing
from clsparse_py._ground.errors import NoDeviceError
from clsparse_py._ground.fork_guard import use_device
from clsparse_py._ground.records import dataclass

__all__ = [
    "RESERVED",
    "Device",
    "Portability",
    "choose_device",
    "default_queue",
    "describe",
    "devices",
    "first_usable",
    "preference",
    "unusable",
]

_log = logging.getLogger(__name__)

#: Most work-items of a work-group on any device: few GPUs allow more, and CPU runtimes run out of memory beyond (quirk 11).
_MAX_GROUP = 1024
#: Bytes of a device's local memory that kernels leave to drivers and compilers.
RESERVED = 1024

_Sized = TypeVar("_Sized")

#: Names of the types of devices in the order in which a default device is chosen.
_TYPE_ORDER = ("gpu", "accelerator", "cpu", "custom")


@dataclass(frozen=True)
class Device:
    """The description of an OpenCL device by its capabilities.

    Attributes
    ----------
    name, platform, driver_version, vendor : str
        Names and version, as the driver reports them.
    type : str
        "gpu", "accelerator", "cpu" or "custom".
    compute_units : int
        Number of compute units.
    max_work_group : int
        Most work-items of a work-group: the device's own limit, but never more than 1024.
    local_memory, max_allocation, global_memory : int
        Bytes of local memory, of the largest buffer, and of global memory.
    preferred_multiple : int
        The multiple of work-items that the device prefers for a work-group of a small kernel.
    sub_group_sizes : tuple of int
        The sub-group sizes that the driver names; empty if it names none.
    fp64, fp16, int64_atomics, float_atomics : bool
        Double and half precision; atomics on 64-bit integers; atomics on floating-point values by extension.
    unified_memory : bool
        Whether device and host share memory, as the driver reports.
    aliases_host : bool
        Whether a buffer made on host memory was seen to be that memory.
    forward_progress : bool
        Whether work-groups that have begun were seen to run on while others wait for them, and to see what these store; the probe
        stores words of 32 bits, and only a device with ``int64_atomics`` promises as much of words of 64 bits.
    svm : tuple of str
        Kinds of shared virtual memory.
    portability : Portability
        How lanes exchange values, how far, and how loads are hinted.
    cache_bytes : int
        Bytes of the global memory's cache, as the driver reports; 0 if it does not.
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
    forward_progress: bool
    svm: tuple[str, ...]
    portability: Portability
    vendor: str = ""
    cache_bytes: int = 0

    @property
    def fingerprint(self) -> tuple[str, str]:
        """The device's name and driver version, to which profiles and measurements belong."""
        return self.name, self.driver_version

    @property
    def resident(self) -> int:
        """The assumed number of work-items that a compute unit holds: two of the largest work-groups, or 1 if lanes are loops."""
        return 1 if self.lanes_are_loops else 2 * self.max_work_group

    @property
    def is_plain(self) -> bool:
        """Whether operations take plain kernels alone (`plain`), as work-groups have one work-item."""
        return self.max_work_group == 1

    @property
    def lanes_are_loops(self) -> bool:
        """Whether work-items are iterations of a loop on a core (CPUs, plain kernels): few with a chunk each are fastest."""
        return self.is_plain or self.type == "cpu"

    @property
    def waits_cost(self) -> bool:
        """Whether waiting for a read costs as much as many launches, as on all but CPUs: reads should overlap other commands."""
        return self.type != "cpu"

    def fitting(self, candidates: Iterable[_Sized], n_bytes: Callable[[_Sized], int], spare: int = 0) -> _Sized:
        """Return the first candidate, a record or size, whose work-groups fit the device's local memory; else the last.

        Parameters
        ----------
        candidates : iterable
            At least one candidate, best first. If none fits, the last one is returned: its kernel is refused and replaced.
        n_bytes : callable
            Returns the bytes of local memory that a work-group of a candidate takes.
        spare : int
            Bytes of local memory to leave free, such as `RESERVED`.
        """
        for candidate in candidates:
            if n_bytes(candidate) + spare <= self.local_memory:
                break
        return candidate


def describe(device: cl.Device) -> Device:
    """Return the description of a device by its capabilities.

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
    return plainly(_describe(device)) if are_plain() else _describe(device)


@functools.cache
def _describe(device: cl.Device) -> Device:
    """Return the description of a device with all of its capabilities, also where the thread takes plain kernels alone."""
    if not isinstance(device, cl.Device):
        raise TypeError(f"device: must be a pyopencl.Device, is {type(device).__name__}")
    try:
        probed = probe(device)
    except trial.UnfitError as verdict:
        retry = "clsparse warmup --retry has it tried again"
        raise NoDeviceError(f"{device.name.strip()} cannot be used: {verdict}; {retry}") from None
    svm = int(query(device, "svm_capabilities", 0))
    kinds = cl.device_svm_capabilities
    extensions = device.extensions.split()
    int64_atomics = "cl_khr_int64_base_atomics" in extensions
    return Device(
        name=device.name.strip(),
        platform=device.platform.name.strip(),
        driver_version=device.driver_version.strip(),
        type=type_of(device),
        compute_units=device.max_compute_units,
        max_work_group=min(device.max_work_group_size, _MAX_GROUP),
        local_memory=device.local_mem_size,
        max_allocation=device.max_mem_alloc_size,
        global_memory=device.global_mem_size,
        preferred_multiple=probed.preferred_multiple,
        sub_group_sizes=tuple(int(size) for size in query(device, "sub_group_sizes_intel", ())),
        fp64=bool(query(device, "double_fp_config", 0)),
        fp16="cl_khr_fp16" in extensions,
        int64_atomics=int64_atomics,
        float_atomics="cl_ext_float_atomics" in extensions,
        unified_memory=bool(query(device, "host_unified_memory", False)),
        aliases_host=probed.aliases_host,
        forward_progress=probed.forward_progress and int64_atomics,
        svm=tuple(
            name.lower().replace("_", "-")
            for name in ("COARSE_GRAIN_BUFFER", "FINE_GRAIN_BUFFER", "FINE_GRAIN_SYSTEM", "ATOMICS")
            if svm & getattr(kinds, name)
        ),
        portability=probed.portability,
        vendor=device.vendor.strip(),
        cache_bytes=int(query(device, "global_mem_cache_size", 0)),
    )


def devices() -> list[cl.Device]:
    """List the devices present, the one chosen by default first.

    GPUs come before accelerators before CPUs; among equals, those with memory of their own before those that share the host's,
    then by `preference`, then in the order of the platforms. A platform without devices is skipped, and one that an OpenCL loader
    shows twice is listed once.

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
    except cl.Error:  # the loader's error without any platform
        return []
    usable: list[cl.Device] = []
    listed: set[tuple[str, ...]] = set()
    for platform in platforms:
        try:
            present = platform.get_devices()
        except cl.Error as error:  # quirk 30
            _log.debug("platform %s has no devices: %s", platform.name, error)
            continue
        shown = (platform.name, platform.version, *(device.name for device in present))
        if shown not in listed:
            listed.add(shown)
            usable.extend(device for device in present if device.available)

    return sorted(usable, key=lambda device: (*_kind(device), *preference(device, usable)))


def _kind(device: cl.Device) -> tuple[int, bool]:
    """Return the first part of a device's sort key: its type, and whether it shares the host's memory."""
    return _TYPE_ORDER.index(type_of(device)), bool(query(device, "host_unified_memory", False))


def preference(device: cl.Device, others: Iterable[cl.Device]) -> tuple[bool, float, int]:
    """Return the sort key of a device among devices of the same `_kind` (type and memory); the smallest key comes first.

    The key is whether the device was not tuned on this machine; the negative rank, if profiles rank all of these devices; and the
    negative product of compute units, width of float vectors, and clock rate, if all drivers report one, as some report 0.
    """
    rivals = [rival for rival in others if _kind(rival) == _kind(device)]
    if len(rivals) < 2:
        return False, 0, 0
    standings = [find_standing(rival.name.strip(), rival.platform.name.strip(), type_of(rival)) for rival in rivals]
    tuned, rank = standings[rivals.index(device)]
    lanes = device.max_compute_units * max(query(device, "native_vector_width_float", 1), 1)
    clock = device.max_clock_frequency if all(rival.max_clock_frequency for rival in rivals) else 1
    return (
        not tuned,
        -rank if rank is not None and all(rank_of_rival is not None for _, rank_of_rival in standings) else 0,
        -int(lanes * clock),
    )


def choose_device() -> cl.Device:
    """Return the device for calls without a queue: the one that ``PYOPENCL_CTX`` names, else the first usable of `devices`.

    A name that several platforms have means the first of them with a device that can be used.

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
            named_device: cl.Device = cl.choose_devices(interactive=False)[0]
        except (cl.Error, ValueError, IndexError) as error:
            names = "; ".join(f"{device.name.strip()} of platform {device.platform.name.strip()}" for device in present)
            said = f"PYOPENCL_CTX: {named!r} names no device ({error}). There are: {names}. {runtimes.explain_unseen()}"
            raise NoDeviceError(said.rstrip()) from error
        platform, _, name = named.lower().partition(":")
        # Two installed releases of a runtime are platforms of one name: the name may mean a device of either.
        same_platform = [
            candidate
            for candidate in present
            if candidate.platform.name == named_device.platform.name and name in candidate.name.lower()
        ]
        return named_device if platform.isdigit() else first_usable([named_device, *same_platform]) or named_device
    refused: list[str] = []
    for device in present:
        reason = _refusing.get(device) or unusable(device)
        if reason is None:
            return device
        refused.append(f"{device.name.strip()} of platform {device.platform.name.strip()}: {reason}")
        _log.info("%s is passed over: %s", device.name.strip(), reason)
    raise NoDeviceError(f"no OpenCL device can be used ({'; '.join(refused)}). {runtimes.advice()}")


def first_usable(alternatives: Iterable[cl.Device]) -> cl.Device | None:
    """Return the first of some devices whose compiler can be used; None if no compiler can."""
    return next((device for device in alternatives if unusable(device) is None), None)


@functools.cache
def unusable(device: cl.Device) -> str | None:
    """Return the reason why a device's compiler cannot be used; None for almost all devices.

    Some compilers build nothing on newer processors (quirk 1). Others end or hang the process that uses them (quirk 2): `trial`
    tries them.
    """
    try:
        probe(device)
    except trial.UnfitError as verdict:
        return str(verdict)
    except cl.Error as error:
        return f"its compiler builds nothing: {refusals.summarise(refusals.extract_log(error)) or error}"
    return None


#: Devices whose driver refused a context in this process, with the reason.
_refusing: dict[cl.Device, str] = {}


@functools.cache
def _choose(named: str | None) -> tuple[cl.Context, cl.CommandQueue]:
    """Return a context (quirk 9) and queue of the default device; ``named``, PYOPENCL_CTX's value, is the cache's key."""
    while True:
        device = choose_device()
        if device in _refusing:
            raise NoDeviceError(f"{device.name.strip()} cannot be used: {_refusing[device]}")
        try:
            context = cl.Context([device])
        except cl.Error as error:
            _refusing[device] = f"its driver refuses a context: {error}"
            continue
        _log.debug("chose %s, PYOPENCL_CTX is %s", device.name, named)
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
    return _choose(os.environ.get("PYOPENCL_CTX"))[1]
