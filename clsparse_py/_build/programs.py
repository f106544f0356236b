"""Template + parameter record -> source -> built kernel, cached in the process and on disk.

This is the only module that builds programs. It knows nothing about operations or devices' capabilities: what a template needs
to know comes in its parameter record. A built kernel is kept per context, device and record; across processes the driver's own
cache is used where PyOpenCL knows it to be sound, and `clsparse_py._ground.cache` elsewhere. Refusals by a compiler are kept by
`clsparse_py._build.refusals`.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pyopencl as cl
from pyopencl.characterize import has_src_build_cache

from clsparse_py._ground import cache
from clsparse_py._build import driver_cache, refusals, sources
from clsparse_py._build.built import Built, enqueue_kernel
from clsparse_py._build.declaration import Parameters
from clsparse_py._ground.errors import BuildError
from clsparse_py._ground.records import dataclass
from clsparse_py._memory.memory import also_let_go
from clsparse_py._build.plain import are_plain

__all__ = [
    "Parameters",
    "build",
    "build_together",
    "built",
    "clear",
    "compile_source",
    "forget_refused",
    "identity",
    "find_known",
    "let_go",
    "note_asked",
    "recording",
    "list_refusals",
    "render",
    "worked_out",
]

_log = logging.getLogger(__name__)
_lock = threading.RLock()
_Made = TypeVar("_Made")
# Built kernels by the handles of context and device. Entries of a context go with it: its handle may then be another's.
_built: dict[tuple[int, int, Parameters], Built] = {}
# All built kernels: in the cache, or held by plans alone.
_alive: weakref.WeakValueDictionary[tuple[int, int, Parameters], Built] = weakref.WeakValueDictionary()
# The lists that `recording` fills, one for each ``with`` block that is open.
_recorders: list[list[Built]] = []
# Whether a group of kernels was built by `build_together`.
_together: dict[tuple[int, int, Hashable], bool] = {}
# Results of `worked_out`, each with the count of requests at its last use.
_worked_out: dict[tuple[int, int, Hashable], list[Any]] = {}
# Count of requests for kernels, by which the least recently used is found.
_clock = itertools.count()
# Errors of kernels that this process was refused.
_refused: dict[tuple[int, int, Parameters], BuildError] = {}
#: Results of `_understates_limit` by device and work-group.
_understated: dict[tuple[int, int], bool] = {}
#: With this option a driver takes a source for another one than before, and finds nothing of it in its own cache.
_ANEW = "-DBUILT_ANEW=1"
#: With this option the size of a work-group is a hint, to which no registers are fitted (quirk 20).
_SIZE_AS_HINT = "-Dreqd_work_group_size=work_group_size_hint"
#: Kernels that are built at the same time, at most: a compiler takes some 100 MB of memory each.
_AT_A_TIME = 8


@dataclass(frozen=True)
class _Kept:
    """Limits of the kernels that a process keeps.

    Drivers tell no bytes of kernels: one that has run was seen to take 1.8 MB of Intel's runtime and 1.1 MB of PoCL, many times
    its binary, and binaries grow by what a kernel does (`docs/kept_programs.py`).

    Attributes
    ----------
    kinds : int
        Results of `worked_out`.
    kernels : int
        Kernels, beside those of plans.
    """

    kinds: int = 1024
    kernels: int = 512


_KEPT = _Kept()
# The head of a kernel, with its name: it begins a line in all rendered sources.
_KERNEL = re.compile(r"^kernel\b[^;{]*?\bvoid\s+(\w+)\(", flags=re.MULTILINE)


# Products are rounded before they are added, so that bits depend on the source and the order of sums, on no compiler.
_HEAD = "#pragma OPENCL FP_CONTRACT OFF"


def render(parameters: Parameters) -> str:
    """Return the OpenCL C of a kernel, includes expanded.

    Parameters
    ----------
    parameters : Parameters
        Names the template and holds all that it may use.
    """
    body = sources.fill(parameters.file, {"name": parameters.name, **parameters.arguments()})
    text = sources.expand(f"{_HEAD}\n#define WORK_GROUP {parameters.work_group}\n{parameters.prelude}\n{body.strip()}\n")
    return re.sub(r"\n{3,}", "\n\n", text)


def identity(device: cl.Device) -> str:
    """Return what a device's kernels belong to: platform, device and driver, with their versions."""
    platform = device.platform
    return "\n".join((platform.name, platform.version, device.name, device.version, device.driver_version))


def compile_source(context: cl.Context, device: cl.Device, source: str, options: tuple[str, ...] = ()) -> cl.Program:
    """Compile OpenCL C for one device, or take what an earlier process compiled from the same.

    Raises
    ------
    pyopencl.RuntimeError
        With the compiler's log, where the device's compiler refuses the source.
    """
    with warnings.catch_warnings():
        # Drivers remark on every build ("optimised for 8 lanes"); the log reaches the caller where a build fails.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        if has_src_build_cache(device):
            driver_cache.look_through()
            return _build_program(_create_uncached(context, source), device, options)
        key = cache.key_of("program", source, *options, identity(device), cl.VERSION_TEXT)
        loaded = cache.load(key, lambda binary: _load(context, device, binary, source, options))
        if loaded is not None:
            return loaded
        program = _build_program(_create_uncached(context, source), device, options)
        # Indexed by device, as `binaries` follows the program's own list.
        binaries = dict(zip((d.int_ptr for d in program.devices), program.binaries, strict=True))
        cache.write(key, binaries[device.int_ptr])
        return program


def _build_program(program: cl.Program, device: cl.Device, options: tuple[str, ...]) -> cl.Program:
    compiled: cl.Program = program.build(list(options), devices=[device])
    return compiled


def _load(context: cl.Context, device: cl.Device, binary: bytes, source: str, options: tuple[str, ...]) -> cl.Program:
    """Return the program of a binary that an earlier process kept.

    Raises
    ------
    ValueError
        It lacks a kernel of the source.
    pyopencl.Error
        The driver does not take it.
    """
    # As in `_create_uncached`: a program that is made otherwise keeps the Python object of its context.
    program = _build_program(cl.Program(cl._cl._Program(context, [device], [binary])), device, options)
    lacking = set(_KERNEL.findall(source)) - set(program.kernel_names.split(";"))
    if lacking:
        raise ValueError(f"it has no kernel {', '.join(sorted(lacking))}")
    return program


def _create_uncached(context: cl.Context, source: str) -> cl.Program:
    """Return a program past PyOpenCL's own binary cache (quirk 35)."""
    return cl.Program(cl._cl._Program(context, source))


def _work_group_limit(kernel: cl.Kernel, device: cl.Device) -> int:
    return int(kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device))


class _Life:
    """Kept by all Python objects of a context that were seen: when the last of them goes, so does what was built in it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __del__(self) -> None:
        # No lock: this runs whenever the garbage collector does. The handle is the context's until this has ended.
        of_contexts: tuple[dict[Any, Any], ...] = (_built, _refused, _together, _worked_out)
        for store in of_contexts:
            for key in [key for key in tuple(store) if key[0] == self.handle]:
                store.pop(key, None)


_lives: weakref.WeakValueDictionary[int, _Life] = weakref.WeakValueDictionary()


def _handle_of(context: cl.Context) -> int:
    """Return the handle of a context, and see to it that what is kept by it goes with the context."""
    keeper: Any = context  # as it keeps what PyOpenCL knows of it
    try:
        life: _Life = keeper._clsparse_py
    except AttributeError:
        handle = context.int_ptr
        life = keeper._clsparse_py = _lives.get(handle) or _lives.setdefault(handle, _Life(handle))
    return life.handle


def _understates_limit(context: cl.Context, device: cl.Device, work_group: int) -> bool:
    """Return whether a driver tells too small a limit (quirk 21): it takes an empty kernel that demands this size."""
    key = device.int_ptr, work_group
    if key not in _understated:
        _understated[key] = _runs_empty(context, device, work_group)
    return _understated[key]


def _runs_empty(context: cl.Context, device: cl.Device, work_group: int) -> bool:
    """Return whether a kernel that requires a work-group size runs, although the driver tells a lower limit for that kernel, too."""
    source = f"kernel __attribute__((reqd_work_group_size({work_group}, 1, 1))) void empty(global int *out) {{ }}\n"
    try:
        # In the caller's context: to make another one takes a GPU's driver a fifth of a second.
        kernel = cl.Kernel(compile_source(context, device, source), "empty")
        if int(kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device)) >= work_group:
            return False
        queue = cl.CommandQueue(context, device)
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
        kernel.set_args(buffer)
        enqueue_kernel(queue, kernel, ((work_group,), (work_group,)))
        queue.finish()
    except cl.Error:
        return False
    _log.debug("%s: work-groups of %d run although the driver tells a lower limit", device.name, work_group)
    return True


def _sub_group_size(kernel: cl.Kernel, device: cl.Device, work_group: int) -> int:
    """Return how many lanes the driver made a sub-group of this kernel, 0 where it does not say."""
    query = cl.kernel_sub_group_info.MAX_SUB_GROUP_SIZE_FOR_NDRANGE
    try:
        lanes: Any = kernel.get_sub_group_info(device, query, [work_group])
    except cl.Error:
        return 0
    return int(lanes)


def build(context: cl.Context, device: cl.Device, parameters: Parameters) -> Built:
    """Return the built kernel for a record, with a smaller work-group or lane width where the driver allows no more.

    What was refused once is not tried again: not by this process, nor by others after two of them saw it.

    Parameters
    ----------
    context, device
        Where it is to run.
    parameters : Parameters
        Names the template and holds all that it may use.

    Raises
    ------
    BuildError
        The device's compiler refuses it; the error holds the log, the record and the rendered source.
    MemoryError
        The compiler ran out of memory.
    """
    key = (_handle_of(context), device.int_ptr, parameters)
    with _lock:
        built = _built.get(key)
        if built is None:
            if key in _refused:
                raise _refused[key].again()
            try:
                built = _alive.get(key) or _build(context, device, parameters)
            except BuildError as error:
                _note_refused(key, device, error)
                raise
            _keep(key, built)
        built._used[0] = next(_clock)
        for recorder in _recorders:
            recorder.append(built)
        return built


def _keep(key: tuple[int, int, Parameters], built: Built) -> None:
    """Keep a kernel; what was used least recently goes for it, if there are too many.

    Plans hold theirs, and so may what was worked out: of the latter and of kernels a number stay, however many plans hold.
    """
    built._used[0] = next(_clock)
    _built[key] = _alive[key] = built
    if _are_few():
        return
    of_all: list[tuple[int, dict[Any, Any], Any]] = [(entry._used[0], _built, entry_key) for entry_key, entry in _built.items()]
    of_all += [(entry[1], _worked_out, entry_key) for entry_key, entry in tuple(_worked_out.items())]
    of_all.sort(key=lambda entry: entry[0])
    for _, store, entry_key in of_all[: -max(_KEPT.kernels // 2, 1)]:
        store.pop(entry_key, None)
        if _are_few():
            return


def _are_few() -> bool:
    """Return whether the process holds no more kernels than it keeps."""
    return len(_alive) <= _KEPT.kernels


def let_go(context: cl.Context | None = None) -> None:
    """Let go of all kernels, or a context's, but for those that plans hold: they come back from where they are kept on disk."""
    handle = None if context is None else context.int_ptr
    of_contexts: tuple[dict[Any, Any], ...] = (_built, _together, _worked_out)
    with _lock:
        for store in of_contexts:
            for key in [key for key in tuple(store) if handle in (None, key[0])]:
                store.pop(key, None)


also_let_go.append(let_go)


def _note_refused(key: tuple[int, int, Parameters], device: cl.Device, error: BuildError) -> None:
    # A copy: contexts that die take their kernels out, and may do so in between.
    is_new = not any(key[1] == device_pointer and key[2].name == record.name for _, device_pointer, record in tuple(_refused)) and not error.remembered
    # A copy: an error that was raised holds what its callers had in hands.
    _refused[key] = error.again()
    _log.log(
        logging.WARNING if is_new else logging.INFO,
        "kernel %s is refused by the compiler of %s, and done without where there is another way: %s",
        key[2].name, device.name.strip(), error.reason,
    )  # fmt: skip


def build_together(context: cl.Context, device: cl.Device, group: Hashable, make: Callable[[], Iterable[Parameters]]) -> None:
    """Build kernels that will be asked for, several at a time, and wait for them.

    A compiler that takes one at a time is no slower for it. Refusals are raised by `build`.

    Parameters
    ----------
    context, device
        Where they are to run.
    group : hashable
        Tells which they are: they are built when it is given for the first time.
    make : callable
        Returns their records.
    """
    handle = _handle_of(context)
    group_key = handle, device.int_ptr, group
    if group_key in _together:
        return
    records = make()
    with _lock:
        _together[group_key] = True
        keys = {(handle, device.int_ptr, record): record for record in records}
        missing = [(key, record) for key, record in keys.items() if key not in _alive and key not in _refused]
        if len(missing) < 2:
            return

        # Here, as it is imported by few processes: most find what they need built.
        from concurrent.futures import ThreadPoolExecutor

        def attempt(record: Parameters) -> Built | BuildError | None:
            try:
                return _build(context, device, record)
            except BuildError as error:
                return error
            except MemoryError:
                return None  # one at a time there may be enough

        # A device that computes on the host's cores needs them; a simulator's compiler takes no second thread (quirk 25).
        n_threads = 1 if device.type & cl.device_type.CPU else min(len(missing), os.cpu_count() or 1, _AT_A_TIME)
        # Outside of the threads, as those within restore each other's filters.
        with warnings.catch_warnings(), ThreadPoolExecutor(n_threads) as pool:
            warnings.simplefilter("ignore", cl.CompilerWarning)
            for (key, _), outcome in zip(missing, pool.map(attempt, [record for _, record in missing]), strict=True):
                if isinstance(outcome, BuildError):
                    _note_refused(key, device, outcome)
                elif outcome is not None:
                    _keep(key, outcome)


def worked_out(context: cl.Context, device: cl.Device, key: Hashable, work_out: Callable[[], _Made]) -> _Made:
    """Return what ``work_out`` makes of built kernels, or for them; made once, and kept as they are.

    Parameters
    ----------
    context, device
        Where the kernels run.
    key : hashable
        Tells what it is; what is made of plain kernels is another.
    work_out : callable
    """
    full_key = _handle_of(context), device.int_ptr, (key, "plain") if are_plain() else key
    entry = _worked_out.get(full_key)
    if entry is None:
        entry = [work_out(), 0]
        with _lock:
            while len(_worked_out) >= _KEPT.kinds:
                _worked_out.pop(next(iter(_worked_out)), None)
            _worked_out[full_key] = entry
    entry[1] = next(_clock)
    result: _Made = entry[0]
    return result


def find_known(context: cl.Context, device: cl.Device, key: Hashable) -> Any:
    """Return what `worked_out` keeps under ``key``; None if there is nothing."""
    entry = _worked_out.get((_handle_of(context), device.int_ptr, key))
    if entry is None:
        return None
    entry[1] = next(_clock)
    return entry[0]


def note_asked(kernels: Iterable[Built]) -> None:
    """Tell those who record that kernels are asked for which were built before."""
    if _recorders:
        with _lock:
            for recorder in _recorders:
                recorder.extend(kernels)


def _build(context: cl.Context, device: cl.Device, requested: Parameters) -> Built:
    parameters = requested
    first_error: BuildError | None = None
    verdicts: list[tuple[str, str, str]] = []
    while True:
        source, lanes, limit = render(parameters), parameters.lane_width, parameters.work_group // 2
        digest = refusals.digest_of(source, parameters.options)
        refusal = refusals.find(identity(device), digest)
        if refusal is not None:
            first_error = first_error or _build_error(device, parameters, None, refusal.reason, "refused before", remembered=True)
        else:
            try:
                program, kernel = _kernel(context, device, parameters, source)
                limit = _work_group_limit(kernel, device)
                if limit < parameters.work_group and _understates_limit(context, device, parameters.work_group):
                    limit = parameters.work_group
            except cl.MemoryError as error:
                raise MemoryError(f"{device.name.strip()}: no memory to build the kernel {parameters.name}: {error}") from error
            except cl.Error as error:
                said, code = refusals.said_by(error), _name_of(error)
                if refusals.is_verdict(error):
                    verdicts.append((digest, parameters.name, refusals.summary(said) or code))
                first_error = first_error or _build_error(device, parameters, source, said, code)
            else:
                # A driver that does not tell its sub-group size was verified by the probe of its device.
                lanes = _sub_group_size(kernel, device, parameters.work_group) or parameters.lane_width
                if limit >= parameters.work_group and lanes >= parameters.lane_width:
                    options = parameters.options
                    if spilled := _measure_spill(kernel, device):
                        program, kernel, options = _avoid_spills(
                            context, device, parameters, source, (program, kernel), spilled
                        )
                    multiple = kernel.get_work_group_info(cl.kernel_work_group_info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
                    refusals.note(identity(device), verdicts)
                    return Built(program, parameters, int(multiple), options)
        smaller = parameters.within(min(limit, parameters.work_group), min(lanes, parameters.lane_width)) if limit > 0 else None
        if smaller is None or smaller == parameters:
            if verdicts and _compiler_works(context, device):
                refusals.note(identity(device), verdicts)
            allowed = f"the driver allows {limit} work-items in a work-group, {lanes} in a sub-group"
            raise first_error or _build_error(device, parameters, source, allowed, "too large")
        _log.info("%s: the driver allows less, trying %s", parameters.name, smaller)
        parameters = smaller


def _kernel(context: cl.Context, device: cl.Device, parameters: Parameters, source: str) -> tuple[cl.Program, cl.Kernel]:
    """Return the program and its kernel, built past what a cache has if that is broken.

    A program without its kernel, or a failure of which the compiler says nothing, is what a damaged entry of a driver's own cache
    looks like (quirk 7).
    """
    try:
        program = compile_source(context, device, source, parameters.options)
        return program, cl.Kernel(program, parameters.name)
    except cl.MemoryError:
        raise
    except cl.Error as error:
        if refusals.said_by(error):
            raise
        _log.warning("%s: what a cache has of it is broken (%s): built anew", parameters.name, _name_of(error))
        driver_cache.suspect()
        program = compile_source(context, device, source, (*parameters.options, _ANEW))
        return program, cl.Kernel(program, parameters.name)


def _measure_spill(kernel: cl.Kernel, device: cl.Device) -> int:
    """Return the memory that a work-item has in place of registers; on CPU devices that is no matter, 0."""
    if not device.type & cl.device_type.GPU:
        return 0
    return int(kernel.get_work_group_info(cl.kernel_work_group_info.PRIVATE_MEM_SIZE, device))


def _avoid_spills(
    context: cl.Context,
    device: cl.Device,
    parameters: Parameters,
    source: str,
    first_build: tuple[cl.Program, cl.Kernel],
    spilled: int,
) -> tuple[cl.Program, cl.Kernel, tuple[str, ...]]:
    """Return a program, its kernel and the options of its build: one that spills less if there is one, else ``first_build``."""
    options = (*parameters.options, _SIZE_AS_HINT)
    try:
        program = compile_source(context, device, source, options)
        kernel = cl.Kernel(program, parameters.name)
        runs = _work_group_limit(kernel, device) >= parameters.work_group
        lanes = [_sub_group_size(candidate, device, parameters.work_group) for candidate in (first_build[1], kernel)]
        if runs and lanes[0] == lanes[1] and _measure_spill(kernel, device) < spilled:
            return program, kernel, options
    except cl.Error as error:
        _log.debug("%s: not built without the demand of a work-group size: %s", parameters.name, _name_of(error))
    return *first_build, parameters.options


def _compiler_works(context: cl.Context, device: cl.Device) -> bool:
    """Return whether a device's compiler builds a kernel that no cache can have: if not, a refusal says nothing of a source."""
    name = f"works_{os.urandom(8).hex()}"
    try:
        program = compile_source(context, device, f"kernel void {name}(global int *out) {{ out[get_global_id(0)] = 1; }}\n")
        cl.Kernel(program, name)
    except cl.Error as error:
        _log.warning("the compiler of %s builds nothing now: %s", device.name.strip(), _name_of(error))
        return False
    return True


def _name_of(error: cl.Error) -> str:
    """Return the name of an error's code."""
    code = getattr(error, "code", None)
    # PyOpenCL's types have the function as a property.
    return str(cl.status_code.to_string(code)) if isinstance(code, int) else type(error).__name__  # type: ignore[operator]


def _build_error(
    device: cl.Device, parameters: Parameters, source: str | None, said: str, code: str, *, remembered: bool = False
) -> BuildError:
    path: Path | None = None
    try:
        if source is not None:
            with tempfile.NamedTemporaryFile(
                "w", prefix=f"{parameters.name}-", suffix=".cl", delete=False, encoding="utf-8"
            ) as file:
                file.write(source)
                path = Path(file.name)
    except OSError as error:
        _log.warning("the source of %s cannot be kept: %s", parameters.name, error)
    where = f"; its source is in {path}" if path else ""
    reason = f"{code}: {refusals.summary(said)}" if said else code
    detail = f"The compiler says:\n{said}" if said else f"The compiler says nothing but {code}."
    head = f"kernel {parameters.name} does not build on {device.name.strip()} ({reason}){where}."
    return BuildError(
        f"{head}\nRendered from {parameters}. {detail}",
        log=said,
        parameters=parameters,
        source=path,
        reason=reason,
        remembered=remembered,
    )


class recording:  # noqa: N801 - used as a with statement, where lower case is the custom
    """Collect the kernels that are asked for inside a ``with`` block, as `clsparse_py.explain` and the tests do."""

    def __enter__(self) -> list[Built]:
        self._record: list[Built] = []
        with _lock:
            _recorders.append(self._record)
        return self._record

    def __exit__(self, *exception: object) -> None:
        with _lock:
            # By identity: two empty lists are equal.
            _recorders[:] = [recorder for recorder in _recorders if recorder is not self._record]


def clear() -> None:
    """Forget all built and refused kernels of this process, so that they are built again."""
    let_go()
    with _lock:
        _alive.clear()
    forget_refused()


def built() -> Iterator[Built]:
    """Iterate over the kernels that this process has built, but for those that were let go."""
    with _lock:
        return iter(tuple(_alive.values()))


def forget_refused() -> None:
    """Forget what this process knows of refused kernels, so that it tries them again; refusals on disk stay."""
    with _lock:
        _refused.clear()
        _worked_out.clear()
        refusals.clear()


def list_refusals() -> Iterator[BuildError]:
    """Iterate over the refusals of kernels that this process met so far."""
    with _lock:
        return iter(tuple(_refused.values()))
