"""Template + parameter record -> source -> built kernel, cached in the process and on disk.

This is the only module that builds programs. It knows nothing about operations or devices' capabilities: a template's record
holds all that the template needs. A built kernel is kept per context, device and record; across processes the driver's own cache
is used if PyOpenCL knows it to be sound, else `clsparse_py._ground.cache`. `clsparse_py._build.refusals` keeps the refusals of
compilers.
"""

from __future__ import annotations

import functools
import itertools
import logging
import os
import re
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
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
#: Cached kernels by the handles of context and device, and the record. When a context dies its entries go, as a later context
#: may have the same handle.
_built: dict[tuple[int, int, Parameters], Built] = {}
#: All built kernels of the process: cached ones, and kernels that only plans hold; keys as of `_built`.
_alive: weakref.WeakValueDictionary[tuple[int, int, Parameters], Built] = weakref.WeakValueDictionary()
#: The lists that `recording` fills, one for each open ``with`` block.
_recorders: list[list[Built]] = []
#: Groups of kernels that `build_together` has built, by the handles of context and device, and the group.
_together: dict[tuple[int, int, Hashable], bool] = {}
#: Results of `worked_out`, by the handles of context and device and the caller's key, each with `_clock` at its last use.
_worked_out: dict[tuple[int, int, Hashable], list[Any]] = {}
#: Count of requests for kernels, by which the least recently used one is found.
_clock = itertools.count()
#: Errors of the kernels that were refused in this process; keys as of `_built`.
_refused: dict[tuple[int, int, Parameters], BuildError] = {}
#: Results of `_understates_limit`, by the device's handle and the number of work-items of a work-group.
_understated: dict[tuple[int, int], bool] = {}
#: Compiler option that makes a source new to the driver's own cache, so that the driver compiles the kernel again.
_ANEW = "-DBUILT_ANEW=1"
#: Compiler option that makes a kernel's work-group size a hint: the compiler does not fit registers to the size (quirk 20).
_SIZE_AS_HINT = "-Dreqd_work_group_size=work_group_size_hint"
#: Most kernels that are built at the same time: each run of a compiler takes some 100 MB of memory.
_AT_A_TIME = 8


@dataclass(frozen=True)
class _Kept:
    """Limits of the kernels that a process keeps.

    Drivers report no memory of kernels: a kernel that has run was seen to take 1.8 MB of Intel's runtime and 1.1 MB of PoCL, many
    times its binary (`docs/kept_programs.py`).

    Attributes
    ----------
    kinds : int
        Most results of `worked_out`.
    kernels : int
        Most kernels, beside those that plans hold.
    """

    kinds: int = 1024
    kernels: int = 512


#: The limits of the numbers of kernels and of results of `worked_out` that this process keeps; tests replace this record.
_KEPT = _Kept()
#: Pattern of the declaration of a kernel with its name, which begins a line in all rendered sources.
_KERNEL = re.compile(r"^kernel\b[^;{]*?\bvoid\s+(\w+)\(", flags=re.MULTILINE)
#: First line of every kernel's source: products are rounded before they are added, so that no compiler changes a sum's bits.
_HEAD = "#pragma OPENCL FP_CONTRACT OFF"


def render(parameters: Parameters) -> str:
    """Return the OpenCL C of the kernel of a parameter record, with included files expanded."""
    body = sources.fill(parameters.file, {"name": parameters.name, **parameters.arguments()})
    text = sources.expand(f"{_HEAD}\n#define WORK_GROUP {parameters.work_group}\n{parameters.prelude}\n{body.strip()}\n")
    return re.sub(r"\n{3,}", "\n\n", text)


def identity(device: cl.Device) -> str:
    """Return the identity of a device, to which built kernels belong: platform, device and driver, with their versions."""
    platform = device.platform
    return "\n".join((platform.name, platform.version, device.name, device.version, device.driver_version))


def compile_source(context: cl.Context, device: cl.Device, source: str, options: tuple[str, ...] = ()) -> cl.Program:
    """Compile OpenCL C for a device, or load the binary that an earlier process compiled from the same source.

    Raises
    ------
    pyopencl.RuntimeError
        The device's compiler refuses the source; the error holds the compiler's log.
    """
    with warnings.catch_warnings():
        # Warnings of compilers are ignored, as some drivers remark on every build; the log of a failure is in the error.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        if has_src_build_cache(device):
            driver_cache.remove_truncated()
            return _build_program(_create_uncached(context, source), device, options)
        key = cache.key_of("program", source, *options, identity(device), cl.VERSION_TEXT)
        loaded = cache.load(key, lambda binary: _load(context, device, binary, source, options))
        if loaded is not None:
            return loaded
        program = _build_program(_create_uncached(context, source), device, options)
        # The order of `binaries` is that of the program's own list of devices.
        binaries = dict(zip((d.int_ptr for d in program.devices), program.binaries, strict=True))
        cache.write(key, binaries[device.int_ptr])
        return program


def _build_program(program: cl.Program, device: cl.Device, options: tuple[str, ...]) -> cl.Program:
    """Build an OpenCL program for a device, and return the program."""
    compiled: cl.Program = program.build(list(options), devices=[device])
    return compiled


def _load(context: cl.Context, device: cl.Device, binary: bytes, source: str, options: tuple[str, ...]) -> cl.Program:
    """Return the program of a binary that an earlier process kept.

    Raises
    ------
    ValueError
        The binary lacks a kernel of the source.
    pyopencl.Error
        The driver refuses the binary.
    """
    # The program is made as in `_create_uncached`: any other way keeps the Python object of its context alive.
    program = _build_program(cl.Program(cl._cl._Program(context, [device], [binary])), device, options)
    lacking = set(_KERNEL.findall(source)) - set(program.kernel_names.split(";"))
    if lacking:
        raise ValueError(f"it has no kernel {', '.join(sorted(lacking))}")
    return program


def _create_uncached(context: cl.Context, source: str) -> cl.Program:
    """Return a program of a source, not yet built, whose build passes by PyOpenCL's own cache of binaries (quirk 35)."""
    return cl.Program(cl._cl._Program(context, source))


def _work_group_limit(kernel: cl.Kernel, device: cl.Device) -> int:
    """Return the most work-items of a work-group that the driver allows for a kernel."""
    return int(kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device))


class _Life:
    """The life of a context, an attribute of all its Python objects: after the last of them its built kernels are dropped."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __del__(self) -> None:
        # No lock is taken, as the garbage collector may run this method at any time; until it ends the context has its handle.
        of_contexts: tuple[dict[Any, Any], ...] = (_built, _refused, _together, _worked_out)
        for store in of_contexts:
            for key in [key for key in tuple(store) if key[0] == self.handle]:
                store.pop(key, None)


#: Lives of the contexts that have Python objects, by handle.
_lives: weakref.WeakValueDictionary[int, _Life] = weakref.WeakValueDictionary()


def _handle_of(context: cl.Context) -> int:
    """Return the handle of a context, whose cached kernels from now on die with the context."""
    keeper: Any = context  # typed as Any to have an attribute of ours
    try:
        life: _Life = keeper._clsparse_py
    except AttributeError:
        handle = context.int_ptr
        life = keeper._clsparse_py = _lives.get(handle) or _lives.setdefault(handle, _Life(handle))
    return life.handle


def _understates_limit(context: cl.Context, device: cl.Device, work_group: int) -> bool:
    """Return whether the driver's limit of work-group sizes is too low (quirk 21): a kernel of ``work_group`` work-items runs."""
    key = device.int_ptr, work_group
    if key not in _understated:
        _understated[key] = _runs_empty(context, device, work_group)
    return _understated[key]


def _runs_empty(context: cl.Context, device: cl.Device, work_group: int) -> bool:
    """Return whether an empty kernel that requires a work-group size runs, although the driver reports a lower limit for it."""
    source = f"kernel __attribute__((reqd_work_group_size({work_group}, 1, 1))) void empty(global int *out) {{ }}\n"
    try:
        # The caller's context is used, as a new context takes a GPU's driver a fifth of a second.
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
    """Return the sub-group size of a built kernel for a work-group size; 0 if the driver does not report it."""
    query = cl.kernel_sub_group_info.MAX_SUB_GROUP_SIZE_FOR_NDRANGE
    try:
        lanes: Any = kernel.get_sub_group_info(device, query, [work_group])
    except cl.Error:
        return 0
    return int(lanes)


def build(context: cl.Context, device: cl.Device, parameters: Parameters) -> Built:
    """Return the built kernel of a parameter record, with a smaller work-group or lane width if the driver allows no more.

    A refused kernel is not built again by this process, nor by other processes after two of them saw the refusal.

    Parameters
    ----------
    context, device
        The context and the device to build for.
    parameters : Parameters
        The record, which names the template and holds all of its arguments.

    Raises
    ------
    BuildError
        The device's compiler refuses the kernel; the error holds the log, the record and the rendered source.
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
    """Cache a built kernel; beyond the limit the least recently used kernels and results of `worked_out` are dropped.

    Plans hold kernels, too, which cannot be dropped: half of the limit stays cached, however many kernels plans hold.
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
    """Return whether the process holds no more built kernels than the limit `_KEPT.kernels`."""
    return len(_alive) <= _KEPT.kernels


def let_go(context: cl.Context | None = None) -> None:
    """Drop all cached kernels, or those of a context; later calls load them from disk, and plans keep their kernels."""
    handle = None if context is None else context.int_ptr
    of_contexts: tuple[dict[Any, Any], ...] = (_built, _together, _worked_out)
    with _lock:
        for store in of_contexts:
            for key in [key for key in tuple(store) if handle in (None, key[0])]:
                store.pop(key, None)


also_let_go.append(let_go)


def _note_refused(key: tuple[int, int, Parameters], device: cl.Device, error: BuildError) -> None:
    """Remember a kernel's refusal in this process, and log it: as a warning if neither known here nor on disk, else as info."""
    # The keys of refused kernels are copied, as a dying context may take out entries in between.
    is_known = any(key[1] == device_pointer and key[2].name == record.name for _, device_pointer, record in tuple(_refused))
    # A copy of the error is kept, as a raised error holds the local variables of its callers.
    _refused[key] = error.again()
    _log.log(
        logging.INFO if is_known or error.remembered else logging.WARNING,
        "kernel %s is refused by the compiler of %s, and done without where there is another way: %s",
        key[2].name, device.name.strip(), error.reason,
    )  # fmt: skip


def build_together(context: cl.Context, device: cl.Device, group: Hashable, make: Callable[[], Iterable[Parameters]]) -> None:
    """Build a group of kernels, several at a time, before `build` asks for them.

    A compiler that builds one kernel at a time is no slower for this. `build` raises the refusals.

    Parameters
    ----------
    context, device
        The context and the device to build for.
    group : hashable
        The key of the group, which is built at the first call with the key.
    make : callable
        Returns the records of the kernels.
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

        # The module of thread pools is imported here, as few processes build kernels: most find their kernels on disk.
        from concurrent.futures import ThreadPoolExecutor

        attempt = functools.partial(_attempt, context, device)
        # Kernels for a CPU are built one by one, as it computes on the same cores, and a simulator allows one thread (quirk 25).
        n_threads = 1 if device.type & cl.device_type.CPU else min(len(missing), os.cpu_count() or 1, _AT_A_TIME)
        # Filters of warnings are set outside of the threads, which would restore each other's filters.
        with warnings.catch_warnings(), ThreadPoolExecutor(n_threads) as pool:
            warnings.simplefilter("ignore", cl.CompilerWarning)
            for (key, _), outcome in zip(missing, pool.map(attempt, [record for _, record in missing]), strict=True):
                if isinstance(outcome, BuildError):
                    _note_refused(key, device, outcome)
                elif outcome is not None:
                    _keep(key, outcome)


def _attempt(context: cl.Context, device: cl.Device, parameters: Parameters) -> Built | BuildError | None:
    """Return the built kernel of a parameter record, the error of a refused kernel, or None if memory is lacking."""
    try:
        return _build(context, device, parameters)
    except BuildError as error:
        return error
    except MemoryError:
        return None  # `build` tries the kernel again, alone


def worked_out(context: cl.Context, device: cl.Device, key: Hashable, work_out: Callable[[], _Made]) -> _Made:
    """Return the result of ``work_out`` (built kernels, recordings): called once for a context, device and ``key``, then cached.

    Parameters
    ----------
    context, device
        The context and the device of the kernels.
    key : hashable
        The key of the result; the result for plain kernels is another one.
    work_out : callable
        Returns the result at the first call with the key.
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
    """Return the result, such as a recording, that `worked_out` keeps for a context, device and ``key``; None without one."""
    entry = _worked_out.get((_handle_of(context), device.int_ptr, key))
    if entry is None:
        return None
    entry[1] = next(_clock)
    return entry[0]


def note_asked(kernels: Iterable[Built]) -> None:
    """Add kernels that were built earlier and are used again to the list of each open `recording` block, if there are any."""
    if _recorders:
        with _lock:
            for recorder in _recorders:
                recorder.extend(kernels)


def _build(context: cl.Context, device: cl.Device, parameters: Parameters) -> Built:
    """Build the kernel of a record, or of the nearest record that the driver allows; raise the first error if none builds."""
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
                program, kernel = _build_kernel(context, device, parameters, source)
                limit = _work_group_limit(kernel, device)
                if limit < parameters.work_group and _understates_limit(context, device, parameters.work_group):
                    limit = parameters.work_group
            except cl.MemoryError as error:
                raise MemoryError(f"{device.name.strip()}: no memory to build the kernel {parameters.name}: {error}") from error
            except cl.Error as error:
                log, code = refusals.extract_log(error), _code_name(error)
                if refusals.is_verdict(error):
                    verdicts.append((digest, parameters.name, refusals.summarise(log) or code))
                first_error = first_error or _build_error(device, parameters, source, log, code)
            else:
                # Without a reported sub-group size the lane width is the one that the device's probe has verified.
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


def _build_kernel(context: cl.Context, device: cl.Device, parameters: Parameters, source: str) -> tuple[cl.Program, cl.Kernel]:
    """Return the built program of a source and its kernel; compile anew if the driver's own cache holds a damaged entry.

    Such an entry shows as a program without its kernel, or as a failure without a compiler's message (quirk 7).
    """
    try:
        program = compile_source(context, device, source, parameters.options)
        return program, cl.Kernel(program, parameters.name)
    except cl.MemoryError:
        raise
    except cl.Error as error:
        if refusals.extract_log(error):
            raise
        _log.warning("%s: what a cache has of it is broken (%s): built anew", parameters.name, _code_name(error))
        driver_cache.keep_mark()
        program = compile_source(context, device, source, (*parameters.options, _ANEW))
        return program, cl.Kernel(program, parameters.name)


def _measure_spill(kernel: cl.Kernel, device: cl.Device) -> int:
    """Return the bytes of memory that a work-item of a kernel has in place of registers on a GPU; 0 on other devices."""
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
    """Return the program, the kernel and the options of a second build if it spills fewer registers, else of ``first_build``."""
    options = (*parameters.options, _SIZE_AS_HINT)
    try:
        program = compile_source(context, device, source, options)
        kernel = cl.Kernel(program, parameters.name)
        runs = _work_group_limit(kernel, device) >= parameters.work_group
        lanes = [_sub_group_size(candidate, device, parameters.work_group) for candidate in (first_build[1], kernel)]
        if runs and lanes[0] == lanes[1] and _measure_spill(kernel, device) < spilled:
            return program, kernel, options
    except cl.Error as error:
        _log.debug("%s: not built without the demand of a work-group size: %s", parameters.name, _code_name(error))
    return *first_build, parameters.options


def _compiler_works(context: cl.Context, device: cl.Device) -> bool:
    """Return whether a device's compiler builds a new trivial kernel; if not, its refusals are no verdicts on sources."""
    name = f"works_{os.urandom(8).hex()}"
    try:
        program = compile_source(context, device, f"kernel void {name}(global int *out) {{ out[get_global_id(0)] = 1; }}\n")
        cl.Kernel(program, name)
    except cl.Error as error:
        _log.warning("the compiler of %s builds nothing now: %s", device.name.strip(), _code_name(error))
        return False
    return True


def _code_name(error: cl.Error) -> str:
    """Return the name of the code of an OpenCL error."""
    code = getattr(error, "code", None)
    # In PyOpenCL's annotations `status_code.to_string` is a property.
    return str(cl.status_code.to_string(code)) if isinstance(code, int) else type(error).__name__  # type: ignore[operator]


def _build_error(
    device: cl.Device, parameters: Parameters, source: str | None, log: str, code: str, *, remembered: bool = False
) -> BuildError:
    """Return the error of a kernel that does not build, and write the rendered source, if given, to a temporary file."""
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
    reason = f"{code}: {refusals.summarise(log)}" if log else code
    detail = f"The compiler says:\n{log}" if log else f"The compiler says nothing but {code}."
    head = f"kernel {parameters.name} does not build on {device.name.strip()} ({reason}){where}."
    return BuildError(
        f"{head}\nRendered from {parameters}. {detail}",
        log=log,
        parameters=parameters,
        source=path,
        reason=reason,
        remembered=remembered,
    )


@contextmanager
def recording() -> Iterator[list[Built]]:
    """Yield a list in which the kernels that are asked for inside the ``with`` block are collected, for tests."""
    kernels: list[Built] = []
    with _lock:
        _recorders.append(kernels)
    try:
        yield kernels
    finally:
        with _lock:
            # Lists of recorded kernels are compared by identity, as two empty lists are equal.
            _recorders[:] = [recorder for recorder in _recorders if recorder is not kernels]


def clear() -> None:
    """Forget all built and refused kernels of this process; binaries and refusals on disk stay, and later calls load them."""
    let_go()
    with _lock:
        _alive.clear()
    forget_refused()


def built() -> Iterator[Built]:
    """Iterate over the built kernels of this process that are still used or cached."""
    with _lock:
        return iter(tuple(_alive.values()))


def forget_refused() -> None:
    """Forget all refusals of kernels in this process; refusals on disk stay, and later calls load them."""
    with _lock:
        _refused.clear()
        _worked_out.clear()
        refusals.clear()


def list_refusals() -> Iterator[BuildError]:
    """Iterate over the errors of the kernels that were refused in this process."""
    with _lock:
        return iter(tuple(_refused.values()))
