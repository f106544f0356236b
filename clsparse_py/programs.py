"""Template + parameter record -> source -> built kernel, cached in the process and on disk.

This is the only module that builds programs. It knows nothing about operations or devices' capabilities: what a template needs
to know comes in its parameter record. A built kernel is kept per context, device and record; across processes the driver's own
cache is used where PyOpenCL knows it to be sound, and `clsparse_py.cache` elsewhere.
"""

from __future__ import annotations

import abc
import functools
import logging
import re
import tempfile
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyopencl as cl
from mako.lookup import TemplateCollection
from mako.template import Template
from pyopencl.characterize import has_src_build_cache
from typing_extensions import Self

from clsparse_py import cache
from clsparse_py.errors import BuildError

__all__ = ["INCLUDES", "TEMPLATES", "Built", "Parameters", "build", "clear", "compile_source", "expand", "recording", "render"]

_log = logging.getLogger(__name__)
_lock = threading.RLock()


def _folder(name: str) -> Path:
    """Return a folder of sources: within the package once that is installed, beside it in a checkout."""
    package = Path(__file__).parent
    return package / name if (package / name).is_dir() else package.parent / name


#: The folders of templates and of what they include.
TEMPLATES, INCLUDES = _folder("templates"), _folder("cl")

# The contexts are kept too: a key holds a context's handle, which must not be given to another context.
_built: dict[tuple[int, int, Parameters], tuple[cl.Context, Built]] = {}
_recorders: list[list[Built]] = []
# The head of a kernel, which begins a line in all that is rendered.
_KERNEL = re.compile(r"^kernel\b[^;{]*?\bvoid\s+(\w+)\(", flags=re.MULTILINE)


@dataclass(frozen=True)
class Parameters(abc.ABC):
    """What a template may use, and the key under which the built kernel is kept.

    A subclass is a frozen dataclass that names its template and adds its fields. `prelude` is OpenCL C that goes before the
    template's text (types, semiring, portability), `arguments` what the template is rendered with.

    Attributes
    ----------
    work_group : int
        Work-items in a work-group.
    """

    template: ClassVar[str]

    work_group: int

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The kernel's name, readable and an OpenCL C identifier."""

    @property
    def prelude(self) -> str:
        """OpenCL C before the template's own text."""
        return ""

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options."""
        return ()

    @property
    def lane_width(self) -> int:
        """How far the kernel exchanges values across lanes; 1 where it doesn't."""
        return 1

    @abc.abstractmethod
    def arguments(self) -> Mapping[str, object]:
        """Return what the template is rendered with: numbers, strings, booleans and tuples of them."""

    @abc.abstractmethod
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest legal record with at most these, or None where there is none."""


@dataclass(frozen=True)
class Built:
    """A kernel that a device took: the program, and the record that it was built from after any adaptation.

    Attributes
    ----------
    program : pyopencl.Program
    parameters : Parameters
        May have a smaller work-group or lane width than was asked for.
    preferred_multiple : int
        The multiple of work-items that the device prefers for this kernel.
    """

    program: cl.Program
    parameters: Parameters
    preferred_multiple: int
    _idle: deque[cl.Kernel] = field(default_factory=deque, init=False, repr=False, compare=False)

    def enqueue(self, queue: cl.CommandQueue, groups: int, *arguments: Any, wait_for: Any = None) -> cl.Event:
        """Enqueue ``groups`` work-groups of the kernel with these arguments.

        Kernel objects are kept: making one costs NVIDIA's driver more than a launch. Two threads never share one.
        """
        try:
            kernel = self._idle.pop()
        except IndexError:
            kernel = cl.Kernel(self.program, self.parameters.name)
            # Without types PyOpenCL tries each argument's: six microseconds a number.
            kernel.set_arg_types([each.dtype if isinstance(each, np.generic) else None for each in arguments])
        kernel.set_args(*arguments)
        group = self.parameters.work_group
        event: cl.Event = cl.enqueue_nd_range_kernel(queue, kernel, (groups * group,), (group,), wait_for=wait_for)
        self._idle.append(kernel)
        return event

    def kernel(self, *arguments: Any) -> cl.Kernel:
        """Return a kernel object of its own, with all its arguments or none set: those set on it are seen by no one else."""
        kernel = cl.Kernel(self.program, self.parameters.name)
        if arguments:
            kernel.set_args(*arguments)
        return kernel


class _Templates(TemplateCollection):  # type: ignore[misc]  # Mako has no types
    """Where a template finds others whose defs it uses, by their names."""

    def get_template(self, uri: str, relativeto: str | None = None) -> Template:  # noqa: ARG002
        return _template(uri)

    def adjust_uri(self, uri: str, filename: str) -> str:  # noqa: ARG002
        return uri


@functools.cache
def _template(name: str) -> Template:
    text = (TEMPLATES / f"{name}.mako").read_text(encoding="utf-8")
    return Template(text=text, strict_undefined=True, uri=name, lookup=_Templates())


@functools.cache
def _included(name: str) -> str:
    return (INCLUDES / name).read_text(encoding="utf-8")


def expand(text: str) -> str:
    """Return OpenCL C with the files of ``cl/`` that it includes put in place, each once."""
    seen: set[str] = set()

    def put(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return ""
        seen.add(name)
        return f"// ---- cl/{name}\n{pattern.sub(put, _included(name))}\n// ---- end of cl/{name}"

    pattern = re.compile(r'^#include "([\w.]+)"$', flags=re.MULTILINE)
    return pattern.sub(put, text)


def render(parameters: Parameters) -> str:
    """Return the OpenCL C of a kernel, includes expanded.

    Parameters
    ----------
    parameters : Parameters
        Names the template and holds all that it may use.
    """
    body = _template(parameters.template).render(name=parameters.name, **parameters.arguments())
    text = expand(f"#define WORK_GROUP {parameters.work_group}\n{parameters.prelude}\n{body.strip()}\n")
    return re.sub(r"\n{3,}", "\n\n", text)


def _device_key(device: cl.Device) -> str:
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
            return _compiled(_uncached(context, source), device, options)
        key = cache.key_of("program", source, *options, _device_key(device), cl.VERSION_TEXT)
        kept = cache.load(key, lambda binary: _loaded(context, device, binary, source, options))
        if kept is not None:
            return kept
        program = _compiled(_uncached(context, source), device, options)
        # Indexed by device, as `binaries` follows the program's own list.
        binaries = dict(zip((d.int_ptr for d in program.devices), program.binaries, strict=True))
        cache.write(key, binaries[device.int_ptr])
        return program


def _compiled(program: cl.Program, device: cl.Device, options: tuple[str, ...]) -> cl.Program:
    compiled: cl.Program = program.build(list(options), devices=[device])
    return compiled


def _loaded(context: cl.Context, device: cl.Device, binary: bytes, source: str, options: tuple[str, ...]) -> cl.Program:
    """Return the program of a binary that an earlier process kept.

    Raises
    ------
    ValueError
        It lacks a kernel of the source.
    pyopencl.Error
        The driver does not take it.
    """
    program = _compiled(cl.Program(context, [device], [binary]), device, options)
    lacking = set(_KERNEL.findall(source)) - set(program.kernel_names.split(";"))
    if lacking:
        raise ValueError(f"it has no kernel {', '.join(sorted(lacking))}")
    return program


def _uncached(context: cl.Context, source: str) -> cl.Program:
    """Return a program past PyOpenCL's own binary cache, which raises on damaged files and waits for stale locks."""
    return cl.Program(cl._cl._Program(context, source))


def _work_group_limit(kernel: cl.Kernel, device: cl.Device) -> int:
    return int(kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device))


@functools.cache
def _understates_limit(context: cl.Context, device: cl.Device, work_group: int) -> bool:
    """Return whether a driver tells too small a limit for kernels that demand a size: it takes an empty one of that size."""
    source = f"kernel __attribute__((reqd_work_group_size({work_group}, 1, 1))) void empty(global int *out) {{ }}\n"
    try:
        kernel = cl.Kernel(compile_source(context, device, source), "empty")
        if int(kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device)) >= work_group:
            return False
        queue = cl.CommandQueue(context, device)
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
        kernel.set_args(buffer)
        cl.enqueue_nd_range_kernel(queue, kernel, (work_group,), (work_group,))
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
    """
    key = (context.int_ptr, device.int_ptr, parameters)
    with _lock:
        kept = _built.get(key)
        if kept is None:
            kept = _built[key] = (context, _build(context, device, parameters))
        for recorder in _recorders:
            recorder.append(kept[1])
        return kept[1]


def _build(context: cl.Context, device: cl.Device, asked: Parameters) -> Built:
    parameters = asked
    first_error: BuildError | None = None
    while True:
        source = render(parameters)
        try:
            program = compile_source(context, device, source, parameters.options)
            kernel = cl.Kernel(program, parameters.name)
            limit = _work_group_limit(kernel, device)
            if limit < parameters.work_group and _understates_limit(context, device, parameters.work_group):
                limit = parameters.work_group
        except cl.Error as error:
            first_error = first_error or _build_error(parameters, source, str(error))
            limit, lanes = parameters.work_group // 2, parameters.lane_width
        else:
            # A driver that does not tell its sub-group size was verified by the probe of its device.
            lanes = _sub_group_size(kernel, device, parameters.work_group) or parameters.lane_width
            if limit >= parameters.work_group and lanes >= parameters.lane_width:
                multiple = kernel.get_work_group_info(cl.kernel_work_group_info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
                return Built(program, parameters, int(multiple))
        smaller = parameters.within(min(limit, parameters.work_group), min(lanes, parameters.lane_width)) if limit > 0 else None
        if smaller is None or smaller == parameters:
            raise first_error or _build_error(parameters, source, f"the driver allows {limit} work-items in a work-group")
        _log.info("%s: the driver allows less, trying %s", parameters.name, smaller)
        parameters = smaller


def _build_error(parameters: Parameters, source: str, log: str) -> BuildError:
    path: Path | None = None
    try:
        with tempfile.NamedTemporaryFile("w", prefix=f"{parameters.name}-", suffix=".cl", delete=False, encoding="utf-8") as file:
            file.write(source)
            path = Path(file.name)
    except OSError as error:
        _log.warning("the source of %s cannot be kept: %s", parameters.name, error)
    where = f"; its source is in {path}" if path else ""
    return BuildError(
        f"kernel {parameters.name} does not build from {parameters}{where}. The compiler says:\n{log}",
        log=log,
        parameters=parameters,
        source=path,
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
            _recorders[:] = [kept for kept in _recorders if kept is not self._record]


def clear() -> None:
    """Forget all built kernels of this process, and with them the contexts that they were built in."""
    with _lock:
        _built.clear()


def built() -> Iterator[Built]:
    """Iterate over the kernels that this process has built so far."""
    with _lock:
        return iter([kept for _, kept in _built.values()])
