"""Fused vector passes: updates and sums in one kernel, with scalars on the device.

A method declares its scalars, its sums and its passes as data; one template makes a kernel of each pass. A sum has two stages: a
pass writes a partial sum for each of its work-groups, and the pass that needs the sum adds all partial sums up, in every
work-group. So there are no atomics and no launch between, and results are the same at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.built import Built
from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._build.plain import are_plain, door, plainly
from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._memory.memory import allocate, submit
from clsparse_py._precision.arithmetic import Arithmetic, define_numbers
from clsparse_py._run.launch import Chain, enqueue_fill
from clsparse_py._run.recording import Bound
from clsparse_py._solvers.krylov.thresholds import Thresholds

__all__ = ["AllSum", "BoundPass", "Layout", "Pass", "Passes", "SharedPass", "Sweep", "Sweeps", "declare_passes"]

#: A function that adds up arrays of numbers over all ranks that share vectors; all ranks get the same sums.
AllSum: TypeAlias = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]

#: Number of scalars reserved after those for the host, where the kernel of `krylov.one_group` writes powers of two and sums.
_MORE = 8
#: Index of the argument ``part``, the number of the set of scalars and sums, among the arguments of a vector pass's kernel.
_PART = 2


@dataclass(frozen=True)
class Pass:
    """A pass over vectors, as OpenCL C that uses names.

    In ``lines``, which are run for each entry, the name of a vector is its entry. ``times``, ``quotient``, ``conjugate``,
    ``real_part``, ``of_real``, ``magnitude``, its ``square`` and ``times_power`` (of two) serve real and complex numbers T; real
    ones have type R.

    Attributes
    ----------
    name : str
        Part of the kernel's name.
    reads, updates, writes : tuple of str
        Vectors that are read only, read and written, and written only.
    takes : tuple of str
        Scalars that are read.
    totals : tuple of str
        Sums that an earlier pass began, and that are scalars here.
    first, lines : tuple of str
        Statements before the first entry, and for each entry.
    sums : tuple of (str, str)
        Sums that are begun: name, and expression for an entry. None of ``totals``.
    keeps : tuple of (str, str)
        Scalars that are written: name, and expression. None of ``takes``.
    tells : tuple of (str, str)
        Scalars that are written for the host.
    guarded : bool
        Vectors are written only if ``active``, which ``first`` declares, is true.
    numbered : bool
        ``number`` in lines is the place of the entry.
    largest : bool
        Sums are the largest of numbers that are not negative, of complex ones part by part. None of ``totals``.
    """

    name: str
    reads: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    sums: tuple[tuple[str, str], ...] = ()
    keeps: tuple[tuple[str, str], ...] = ()
    tells: tuple[tuple[str, str], ...] = ()
    guarded: bool = False
    numbered: bool = False
    largest: bool = False

    @property
    def vectors(self) -> tuple[str, ...]:
        """The names of all vectors of a vector pass, in the order of the kernel's arguments."""
        return (*self.reads, *self.updates, *self.writes)


@dataclass(frozen=True)
class Layout:
    """The names of a method's scalars and sums, and of the scalars for the host, in the order in which they lie in memory."""

    scalars: tuple[str, ...]
    sums: tuple[str, ...]
    told: tuple[str, ...] = ()


#: All vector passes, each with its method's layout, for the catalogue of kernels.
_declared: list[tuple[Pass, Layout]] = []


def declare_passes(layout: Layout, *passes: Pass) -> None:
    """Register the vector passes of a method for the catalogue of kernels."""
    _declared.extend((step, layout) for step in passes)


@kernel
@dataclass(frozen=True)
class Sweep(Parameters):
    """Parameters of ``templates/vectors/sweep.mako``. ``work_group`` is a power of two.

    Attributes
    ----------
    dtype : str
        NumPy's name of the dtype of vectors and scalars: float32, float64, complex64 or complex128.
    portability : Portability
    unroll : int
        Entries that a work-item has in flight.
    vector_pass : Pass
    layout : Layout
    """

    template = "vectors/sweep"

    dtype: str
    portability: Portability
    unroll: int
    vector_pass: Pass
    layout: Layout

    @classmethod
    def legal(cls, device: Device, dtype: str, vector_pass: Pass, layout: Layout) -> Sweep:
        """Return the parameters, suited to a device, of the kernel of a vector pass."""
        limits = Thresholds.of(device)
        if device.lanes_are_loops:
            return cls(1, dtype, device.portability.at_most(1), limits.unroll, vector_pass, layout)
        group = 1 << min(limits.work_group, device.max_work_group).bit_length() - 1
        words = (len(vector_pass.reads) + len(vector_pass.updates)) * np.dtype(dtype).itemsize // 4
        unroll = min(limits.unroll, 1 << max(limits.registers // max(words, 1), 1).bit_length() - 1)
        return cls(group, dtype, device.portability, unroll, vector_pass, layout)

    @property
    @override
    def name(self) -> str:
        """The kernel's name: vector pass, dtype, work-group size, and entries that a work-item has in flight."""
        return f"sweep_{self.vector_pass.name}_{self.dtype}_wg{self.work_group}_u{self.unroll}"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the kernel: macros for the device's exchange between work-items, and the dtype's arithmetic."""
        addition = ("fmax(a, b)",) if self.vector_pass.largest else ()
        return "\n".join([self.portability.defines, *define_numbers(np.dtype(self.dtype), *addition)])

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments by name: the pass, positions of scalars and sums, whether sums need local memory."""
        vector_pass, scalars, sums = self.vector_pass, self.layout.scalars.index, self.layout.sums.index
        return {
            "work_group": self.work_group,
            "n_scalars": len(self.layout.scalars),
            "n_sums": len(self.layout.sums),
            "needs_box": self.work_group > self.portability.lane_width,
            "unroll": self.unroll,
            "vector_pass": vector_pass,
            "takes": tuple((name, scalars(name)) for name in vector_pass.takes),
            "totals": tuple((name, sums(name)) for name in vector_pass.totals),
            "sums": tuple((name, sums(name), expression) for name, expression in vector_pass.sums),
            "keeps": tuple((name, scalars(name), expression) for name, expression in vector_pass.keeps),
            "tells": tuple((self.layout.told.index(name), expression) for name, expression in vector_pass.tells),
        }

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the vector pass's nearest parameters for a work-group size and a lane width; None if the size is 0."""
        if work_group < 1:
            return None
        return replace(self, work_group=1 << work_group.bit_length() - 1, portability=self.portability.at_most(lane_width))

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield an example record for each declared vector pass; the variant is the pass's name."""
        for vector_pass, layout in _declared:
            yield vector_pass.name, cls.legal(device, arithmetic.floating, vector_pass, layout)


def _round_up(n: int, step: int) -> int:
    """Return n rounded up to a multiple of a step."""
    return -(-n // step) * step


class BoundPass(Bound):
    """A pass bound to its vectors."""

    def use(self, part: int) -> None:
        """Switch a bound vector pass to another set of scalars and sums, numbered ``part``."""
        self.set(_PART, np.uint64(part))


class SharedPass(BoundPass):
    """A pass over this rank's part of vectors: the sums that it needs are added up over all ranks before it, which waits."""

    def __init__(self, sweeps: Sweeps, step: Pass, part: int, built: Built, arguments: Sequence[Any]) -> None:
        super().__init__(sweeps.chain.queue, (built, sweeps.groups, arguments))
        self._sweeps, self._part, self._ends_sums, self._begins = sweeps, part, bool(step.totals), {name for name, _ in step.sums}

    @override
    def __call__(self) -> cl.Event:
        """Add the sums that the pass needs up over all ranks, which waits; enqueue the pass, and return its event."""
        if self._ends_sums and self._sweeps.begun[self._part]:
            self._sweeps.add_up(self._part)
        self._sweeps.begun[self._part] |= self._begins
        return super().__call__()

    @override
    def use(self, part: int) -> None:
        """Switch a vector pass that ranks share to another set of scalars and sums, numbered ``part``."""
        super().use(part)
        self._part = part


class Sweeps:
    """The passes of a method over vectors of one length, with the scalars and sums that they share.

    Parameters
    ----------
    chain : Chain
        Of a queue in order; passes and its commands run in the order in which they are enqueued.
    n : int
        Entries of the longest vector; those of a pass have as many as each other.
    dtype : dtype
        Of vectors and scalars.
    layout : Layout
    parts : int
        How many sets of scalars and sums there are; a pass uses one of them.
    all_sum : callable, optional
        If vectors are shared by ranks, of which each has a part: adds numbers up over them.

    Attributes
    ----------
    scalars, sums : pyopencl.array.Array
    shared : bool
        Whether ranks share vectors.
    begun : list of set
        The sums of each part that passes began, and that are not added up over all ranks yet.
    """

    def __init__(
        self, chain: Chain, n: int, dtype: np.dtype[Any], layout: Layout, parts: int = 1, all_sum: AllSum | None = None
    ) -> None:
        self.chain, self.n, self.dtype, self.layout, self.parts = chain, n, dtype, layout, parts
        self._all_sum, self.shared = all_sum, all_sum is not None
        self.begun: list[set[str]] = [set() for _ in range(parts)]
        device, limits = chain.device, Thresholds.of(chain.device)
        max_groups = device.compute_units * limits.groups_per_unit
        at_once = 1 if device.lanes_are_loops else limits.work_group * limits.unroll
        self.groups = -(-max(n, 1) // _round_up(-(-max(n, 1) // max_groups), at_once))
        # The scalars for the host lie after a method's other scalars, twice: one copy is read while the other copy is written.
        self.told_at = parts * len(layout.scalars)
        self.scalars = allocate(chain.queue, "scalars", self.told_at + 2 * len(layout.told) + _MORE, dtype)
        self.sums = allocate(chain.queue, "sums", parts * max(len(layout.sums), 1) * self.groups, dtype)

    def vector(self, n: int | None = None) -> cl_array.Array:
        """Return a new vector whose entries are not set, of n entries or by default of the longest vector's length."""
        return allocate(self.chain.queue, "a vector of a solver", self.n if n is None else n, self.dtype)

    def fill(self, vector: cl_array.Array, value: Any = 0) -> None:
        """Enqueue setting all entries of a vector to a value."""
        if vector.size:
            enqueue_fill(self.chain.queue, vector.base_data, np.array(value, self.dtype), vector.nbytes, None)

    def copy(self, target: cl_array.Array, source: cl_array.Array) -> None:
        """Enqueue the copy of a vector to another vector."""
        if source.size:
            submit("a copy", cl.enqueue_copy, self.chain.queue, target.base_data, source.base_data, byte_count=source.nbytes)

    @door()
    def bind(self, step: Pass, part: int = 0, turn: int = 0, **vectors: cl_array.Array) -> BoundPass:
        """Return a vector pass bound to its vectors, which are keyword arguments.

        ``part`` numbers its set of scalars and sums; ``turn``, 0 or 1, numbers the copy of the host's scalars that it writes.

        Raises
        ------
        BuildError
            The device's compiler refuses its kernel.
        """
        device = plainly(self.chain.device) if are_plain() else self.chain.device
        built, record = self.chain.build(Sweep.legal(device, self.dtype.name, step, self.layout))
        n = vectors[step.vectors[0]].size
        sizes = n, _round_up(-(-n // self.groups), record.work_group), part, self.told_at + turn * len(self.layout.told)
        arrays = (self.scalars, self.sums, *(vectors[name] for name in step.vectors))
        arguments = [*map(np.uint64, sizes), *(array.base_data for array in arrays)]
        if self._all_sum is None:
            return BoundPass(self.chain.queue, (built, self.groups, arguments))
        return SharedPass(self, step, part, built, arguments)

    def add_up(self, part: int) -> np.ndarray[Any, Any]:
        """Add up, over all ranks, the sums of a set, numbered ``part``, that vector passes have begun; waits for the device once.

        The first work-group's partial sum is then the whole sum, and the other partial sums are 0, as in the returned array of
        partial sums by sum and work-group.
        """
        assert self._all_sum is not None
        names, self.begun[part] = self.begun[part], set()
        n_sums = len(self.layout.sums)
        parts = self.chain.read(self.sums, n_sums * self.groups, part * n_sums * self.groups).reshape(n_sums, -1)
        slots = [slot for slot, name in enumerate(self.layout.sums) if name in names]
        if slots:
            with np.errstate(all="ignore"):
                totals = self._all_sum(parts[slots].sum(axis=1))
            parts[slots] = 0
            parts[slots, 0] = totals
            # The event is stored for the reason that `set_all` names.
            self._adding = submit(
                "sums", cl.enqueue_copy, self.chain.queue, self.sums.base_data, parts, dst_offset=part * parts.nbytes,
                is_blocking=False,
            )  # fmt: skip
        return parts

    def set(self, **values: Any) -> None:
        """Enqueue setting a method's scalars on the device, in the first set: named scalars to their values, all others to 0."""
        self.set_all(np.array([values.get(name, 0) for name in self.layout.scalars], self.dtype))

    def set_all(self, values: np.ndarray[Any, Any]) -> None:
        """Enqueue setting scalars of a method on the device, from the first set on, to values, which are copied."""
        # The event of the command that writes scalars is stored, as the event's destructor would wait for the command.
        self._setting = submit(
            "scalars", cl.enqueue_copy, self.chain.queue, self.scalars.base_data, values.copy(), is_blocking=False
        )  # fmt: skip

    def totals(self) -> dict[str, Any]:
        """Return all sums of a method's first set, by name; waits. A sum that no vector pass has begun yet is undefined."""
        n_sums = len(self.layout.sums)
        parts = self.add_up(0) if self.shared else self.chain.read(self.sums, n_sums * self.groups).reshape(n_sums, -1)
        with np.errstate(all="ignore"):
            return dict(zip(self.layout.sums, parts.sum(axis=1), strict=True))


class Passes:
    """Passes that are bound once for their vectors, and enqueued again and again."""

    def __init__(self, sweeps: Sweeps) -> None:
        self._sweeps = sweeps
        self._bound: dict[tuple[Any, ...], tuple[BoundPass, tuple[cl_array.Array, ...]]] = {}

    def enqueue(self, step: Pass, part: int = 0, **vectors: cl_array.Array) -> cl.Event:
        """Enqueue a pass over vectors, bound at the first call, and return the event of the launch."""
        key = step.name, part, *map(id, vectors.values())
        if key not in self._bound:
            self._bound[key] = self._sweeps.bind(step, part, 0, **vectors), tuple(vectors.values())
        return self._bound[key][0]()
