"""SDDMM: the product of two dense matrices at the places of a sparse matrix's entries."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._build.plain import door
from clsparse_py._build.programs import note_asked
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix, MatrixT
from clsparse_py._matrix.operands import check_matrix
from clsparse_py._matrix.product import ProductKernel
from clsparse_py._memory.memory import allocate
from clsparse_py._memory.order import note_written
from clsparse_py._memory.overlap import require_inside
from clsparse_py._operations.elementwise.values import dense_values, require_results
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, name_of, unsupported_dtype
from clsparse_py._precision.semiring import plus_times
from clsparse_py._run.dense_product import DenseProduct, Repeating, list_arguments, make_recorder
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import contexts_match, from_host

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Sampled", "SampledByTeams", "Thresholds", "sddmm", "vector_items"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The thresholds that the shape of SDDMM's kernel is chosen by. A team is the lanes (work-items) that share entries."""

    operation = "sddmm"

    #: Work-group size, on GPUs, of SDDMM's kernels whose teams of lanes take equal numbers of entries, not rows.
    work_group: int = number(128, "work-items", least=1)
    #: Most lanes that share an entry's product of a row of X and a column of Y; more where a lane would have over `max_vectors`.
    max_lanes: int = number(8, "lanes", least=1, power=True)
    #: Fewest vectors of a row of X to a lane, where several lanes share a row whose length the kernel does not know.
    min_vectors: int = number(2, "vectors", least=1)
    #: Entries of the sparse matrix that a team of lanes takes at a time.
    entries: int = number(4, "entries", least=1)
    #: Most vectors of a row of X to a lane for a kernel that knows the row's length; longer rows take another kernel.
    max_vectors: int = number(4, "vectors", least=1)
    #: Approximate number of entries whose rows and columns a work-group notes in local memory at a time.
    noted: int = number(512, "entries", least=1)
    #: Most entries of the longest row of a sparse matrix for its rows to count as alike; teams of lanes then take rows.
    max_alike: int = number(512, "entries")
    #: Greatest ratio of the longest to the mean row of a sparse matrix for its rows to count as alike.
    max_alike_by_mean: float = number(2.0, "mean rows")
    #: Work-group size, on GPUs, of SDDMM's kernel whose teams of lanes take rows.
    rows_group: int = number(256, "work-items", least=1)
    #: Bytes of a row of X that a work-item loads at a time.
    vector_bytes: int = number(16, "bytes", on_cores=32, least=1, most=32, power=True)
    #: Most turns of a work-group, in each of which each of its teams of lanes takes `entries` entries.
    max_turns: int = number(8, "turns", on_cores=1024, least=1)
    #: Least number of work-groups left to a compute unit where work-groups take several turns, instead of one.
    groups_per_unit: int = number(32, "work-groups", least=1)
    #: Most kinds of sampled products (shapes, dtypes, strides) whose launches a structure keeps; the oldest go first.
    max_kinds: int = number(64, "kinds", least=1)


@kernel
@dataclass(frozen=True)
class Sampled(ProductKernel):
    """Parameters of ``templates/spmm/sddmm.mako``.

    Attributes
    ----------
    lanes : int
        Work-items to an entry: a power of two, at most the lane width.
    items : int
        Adjacent values that a work-item takes at a time.
    entries : int
        Entries that a team of lanes takes at a time.
    loads : str
        "aligned": values are loaded as vectors, at multiples of which rows begin; "vectors": from any address; "single".
    """

    template = "spmm/sddmm"
    kind = "sddmm"
    scalable = False

    lanes: int
    items: int
    entries: int
    loads: str

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, n_inner: int, loads: str = "single") -> Self:
        """Return SDDMM's kernel for rows of X of ``n_inner`` values; complex and boolean values are loaded one by one."""
        limits = Thresholds.of(device)
        group = 1 if device.lanes_are_loops else 1 << min(limits.work_group, device.max_work_group).bit_length() - 1
        items = vector_items(device, arithmetic.result)
        max_lanes = min(group, device.portability.lane_width, limits.max_lanes)
        lanes = 1
        while 2 * lanes <= max_lanes and 2 * lanes * limits.min_vectors * items <= n_inner:
            lanes *= 2
        dtypes = (np.dtype(dtype) for dtype in (arithmetic.a, arithmetic.x))
        if items == 1 or any(dtype.kind not in "iuf" for dtype in dtypes):
            loads = "single"
        portability = replace(device.portability.at_most(lanes), load_once="plain")
        return cls(group, arithmetic, portability, False, lanes, items, limits.entries, loads)

    @property
    @override
    def shape_name(self) -> str:
        """The part of the kernel's name for lanes, items, entries, loads and work-group, such as ``x4_n4_e4_aligned_wg128``."""
        return f"x{self.lanes}_n{self.items}_e{self.entries}_{self.loads}_wg{self.work_group}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: lanes to an entry, values and entries at a time, kind of loads, types."""
        shape = {"lanes": self.lanes, "items": self.items, "entries": self.entries, "loads": self.loads}
        dtypes = {"a_value": self.arithmetic.a, "x_value": self.arithmetic.x, "t_value": self.arithmetic.result.name}
        types = {name: OPENCL_TYPES[dtype] for name, dtype in dtypes.items()}
        return {**self._common(), **shape, **types}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the parameters of SDDMM's kernel for a smaller work-group and lane width; None if the work-group is 0."""
        lanes = min(self.lanes, 1 << max(min(work_group, lane_width), 1).bit_length() - 1)
        group = work_group // lanes * lanes
        return replace(self, work_group=group, lanes=lanes, portability=self.portability.at_most(lanes)) if group else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records by how values are loaded: "" (singly), "aligned" and "vectors"."""
        for loads in ("single", "aligned", "vectors"):
            yield loads.replace("single", ""), cls.legal(device, arithmetic, 64, loads)


@kernel
@dataclass(frozen=True)
class SampledByTeams(Sampled):
    """Parameters of ``templates/spmm/sddmm_teams.mako``.

    Attributes
    ----------
    inner : int
        Values to a row of X, a multiple of ``items``.
    by_rows : bool
        Whether a team takes a row of the structure; else a work-group takes adjacent entries.
    noted : int
        Entries that a work-group notes in local memory at a time, about.
    """

    template = "spmm/sddmm_teams"
    kind = "sddmm_teams"

    inner: int
    by_rows: bool
    noted: int

    @classmethod
    def of(cls, device: Device, arithmetic: Arithmetic, n_inner: int, *, by_rows: bool) -> Self | None:
        """Return SDDMM's kernel for rows of X of exactly ``n_inner`` values; None if teams of lanes do not take such rows.

        Teams take rows of whole vectors, at most ``max_vectors`` to a lane, of values that can be loaded as vectors.
        """
        usual = Sampled.legal(device, arithmetic, n_inner, "aligned")
        if usual.loads == "single" or n_inner % usual.items or not n_inner:
            return None
        limits = Thresholds.of(device)
        group = usual.work_group if device.lanes_are_loops or not by_rows else min(limits.rows_group, device.max_work_group)
        lanes, max_lanes, vectors = 1, min(group, device.portability.lane_width), n_inner // usual.items
        while lanes < max_lanes and (vectors > limits.max_vectors * lanes or lanes < min(limits.max_lanes, vectors)):
            lanes *= 2
        if vectors > limits.max_vectors * lanes:
            return None
        # Teams of lanes (work-items) that take rows agree on the turns, passes over a row's entries, of a whole sub-group.
        width = device.portability.lane_width if by_rows and lanes > 1 else lanes
        portability = replace(device.portability.at_most(width), load_once="plain")
        return cls(
            group, arithmetic, portability, False, lanes, usual.items, limits.entries, "aligned", n_inner, by_rows, limits.noted
        )

    @property
    @override
    def shape_name(self) -> str:
        """`Sampled`'s part of the kernel's name, and the length of X's rows, with "rows" if teams of lanes take rows."""
        return f"{super().shape_name}_k{self.inner}{'_rows' * self.by_rows}"

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's arguments: those of `Sampled`, X's row length, whether teams take rows, entries noted at once."""
        turn = self.work_group // self.lanes * self.entries
        room = max(self.noted // turn, 1) * turn
        return {**super().arguments(), "inner": self.inner, "by_rows": self.by_rows, "room": room}

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the parameters of SDDMM's kernel by teams for a smaller work-group; None if a team of lanes does not fit."""
        group = work_group // self.lanes * self.lanes
        portability = self.portability.at_most(lane_width)
        return replace(self, work_group=group, portability=portability) if group and self.lanes <= lane_width else None

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield example records for the arithmetic, if vectors suit it, and for float32: teams take entries ("") or "rows"."""
        # SDDMM's kernel by teams of lanes loads vectors, which complex numbers have none of: float32 stands for them.
        for types in (arithmetic, Arithmetic("float32", "float32", arithmetic.index)):
            for variant, by_rows in (("", False), ("rows", True)):
                record = cls.of(device, types, 4 * vector_items(device, types.result), by_rows=by_rows)
                if record is not None:
                    yield variant, record


def vector_items(device: Device, result: np.dtype[Any]) -> int:
    """Return the number of adjacent values of a row of X that a work-item of SDDMM's kernel takes at a time."""
    return min(max(Thresholds.of(device).vector_bytes // result.itemsize, 1), 16)


def _are_aligned(device: Device, X: cl_array.Array, Y: cl_array.Array) -> bool:
    """Return whether X's rows and Y's columns begin at multiples of the vector that a GPU's work-item loads; False on CPUs."""
    if device.lanes_are_loops:
        return False
    items = vector_items(device, np.result_type(X.dtype, Y.dtype))
    return all(_is_aligned(operand, axis, items * operand.dtype.itemsize) for axis, operand in enumerate((X, Y)))


def _is_aligned(X: cl_array.Array, axis: int, vector: int) -> bool:
    """Return whether a dense matrix's rows or columns begin at multiples of ``vector`` bytes; False in the host's memory."""
    is_multiple = X.offset % vector == 0 and (X.strides[axis] % vector == 0 or X.shape[axis] < 2)
    memory = X.base_data
    return is_multiple and isinstance(memory, cl.MemoryObjectHolder) and not memory.flags & cl.mem_flags.USE_HOST_PTR


@door()
def sddmm(M: MatrixT, X: cl_array.Array | npt.ArrayLike, Y: cl_array.Array | npt.ArrayLike) -> MatrixT:
    """Compute ``X @ Y`` at the places of a sparse matrix's entries: the sampled product of dense matrices.

    Parameters
    ----------
    M : csr_array
        m x n: the places. The values of M are not read: ``M * sddmm(M, X, Y)`` is the product that is scaled by these values.
    X : pyopencl.array.Array or array_like, shape (m, k)
    Y : pyopencl.array.Array or array_like, shape (k, n)
        Fastest with adjacent columns, such as ``Z.T`` of a C-contiguous Z; others are copied into that order.

    Returns
    -------
    csr_array, m x n
        With M's structure, which it shares, and values of the dtype that NumPy gives the product. Nothing waits.

    Raises
    ------
    ValueError, TypeError
        Shapes, dtypes or contexts that do not go together; the message names the argument.

    See Also
    --------
    spmm : Its gradient with respect to A's values is ``sddmm(A, G, X.T)``, that with respect to X is ``A.T @ G``.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> M = sp.csr_array([[1, 0], [1, 1]])
    >>> sp.sddmm(M, np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2)).toarray()
    array([[1., 0.],
           [3., 4.]])
    """
    if isinstance(M, Matrix) and isinstance(X, cl_array.Array) and isinstance(Y, cl_array.Array):
        sampling: _Sampling | None = M.structure.find_plan(_Sampling)
        if sampling is not None and (repeated := sampling.again(X, Y)) is not None:
            return M.with_values(repeated)
    check_matrix(M)
    m, n = M.shape
    x, y = _to_device(M, "X", X), _to_device(M, "Y", Y)
    if x.shape[0] != m:
        raise ValueError(f"X: must have {m} rows, as M is {m} x {n}, has shape {x.shape} (dimension mismatch)")
    if y.shape[1] != n:
        raise ValueError(f"Y: must have {n} columns, as M is {m} x {n}, has shape {y.shape} (dimension mismatch)")
    if x.shape[1] != y.shape[0]:
        raise ValueError(f"Y: must have {x.shape[1]} rows, as X has columns, has shape {y.shape} (dimension mismatch)")
    sampling = M.structure.get_plan(_Sampling, _Sampling)
    return M.with_values(sampling.sample(M, _make_adjacent(M.queue, x, 1), _make_adjacent(M.queue, y, 0)))


def _to_device(M: Matrix, name: str, operand: Any) -> cl_array.Array:
    """Return a dense operand of SDDMM as a device array, after checks of its dtype, dimensions and context."""
    on_device = isinstance(operand, cl_array.Array)
    values: Any = operand if on_device else np.asarray(operand)
    if name_of(values.dtype) not in OPENCL_TYPES:
        raise unsupported_dtype(name, values.dtype)
    if values.ndim != 2:
        raise ValueError(f"{name}: must have 2 dimensions, has {values.ndim} (shape {values.shape})")
    if not on_device:
        require_results(M.queue, name, values.dtype)
        return from_host(M.queue, values if values.flags.forc else np.ascontiguousarray(values), copy=False)
    if not contexts_match(values, M.context):
        raise ValueError(f"{name}: lives in another context than M")
    require_inside(name, values)
    return cast("cl_array.Array", values)


def _make_adjacent(queue: cl.CommandQueue, X: cl_array.Array, axis: int) -> cl_array.Array:
    """Return a dense matrix with adjacent values along an axis, by rows (1) or columns (0): the same array, or a copy."""
    item, step = X.dtype.itemsize, X.strides[1 - axis]
    suits = (X.strides[axis] == item or X.shape[axis] < 2) and step >= 0
    if suits and step % item == 0 and X.offset % item == 0:
        return X
    return dense_values(queue, X, "positive", X.dtype) if axis else dense_values(queue, X.T, "positive", X.dtype).T


class _Sampling(Repeating):
    """The sampled products of a structure: the launches of the latest kinds of product, and the latest product."""

    def __init__(self) -> None:
        self._launches: dict[Hashable, tuple[DenseProduct, np.dtype[Any]]] = {}
        self._changing = threading.Lock()  # several threads multiply by one structure

    def sample(self, M: Matrix, X: cl_array.Array, Y: cl_array.Array) -> cl_array.Array:
        """Return ``X @ Y`` at the places of M's entries; values must be adjacent in each row of X and in each column of Y."""
        queue = M.queue
        kind = X.shape, X.dtype, X.offset, X.strides, Y.dtype, Y.strides, _are_aligned(describe(queue.device), X, Y)
        product, dtype = self._launches.get(kind) or self._prepare(M, X, Y, kind)
        values = allocate(queue, "values of the sampled product", M.indices.size, dtype)
        if product.recording.n_commands:
            note_asked(product.recording.kernels)
            note_written(values, product.run(queue, (X, Y, values), ())[-1])
            self._call = product.make_call(queue, (X, Y, values), (), None, None, plus_times, is_new=True)
        return values

    def _prepare(self, M: Matrix, X: cl_array.Array, Y: cl_array.Array, kind: Hashable) -> tuple[DenseProduct, np.dtype[Any]]:
        """Record and keep SDDMM's launch for a kind of operands (shapes, dtypes, strides); return it and the result's dtype."""
        queue, n, n_rows, n_inner = M.queue, M.nnz, *X.shape
        arithmetic, chain = Arithmetic(X.dtype.name, Y.dtype.name, M.indptr.dtype.name), Chain(queue)
        require_results(queue, f"{X.dtype} times {Y.dtype}", arithmetic.result)
        device = chain.device
        limits = Thresholds.of(device)
        longest = None if M.facts is None else M.facts.longest
        are_alike = longest is not None and longest <= min(limits.max_alike, limits.max_alike_by_mean * n / max(n_rows, 1))
        loads = "vectors" if device.lanes_are_loops else "aligned" if _are_aligned(device, X, Y) else "single"
        teams = None if loads != "aligned" else SampledByTeams.of(device, arithmetic, n_inner, by_rows=are_alike)
        built, record = chain.build(Sampled.legal(device, arithmetic, n_inner, loads) if teams is None else teams)
        n_teams = record.work_group // record.lanes
        turn = n_teams * record.entries
        span = turn * min(max(n // (turn * device.compute_units * limits.groups_per_unit), 1), limits.max_turns)
        by_rows = isinstance(record, SampledByTeams) and record.by_rows
        groups = -(-n_rows // n_teams) if by_rows else -(-n // span)
        steps = X.offset, X.strides[0], Y.strides[1]
        dense = (np.uint64(step // dtype.itemsize) for step, dtype in zip(steps, (X.dtype, X.dtype, Y.dtype), strict=True))
        sizes = np.uint64(n), M.indptr.dtype.type(n_rows), np.uint64(n_inner), np.uint64(span)
        recorder = make_recorder(chain, (X.dtype, Y.dtype, arithmetic.result), scaled=False)
        recorder.launch(built, groups if n else 0, *list_arguments(recorder), *sizes, *dense, M.indptr, M.indices)
        launch = DenseProduct(recorder.recording(), queue), arithmetic.result
        with self._changing:
            while len(self._launches) >= limits.max_kinds:
                del self._launches[next(iter(self._launches))]
            self._launches[kind] = launch
        return launch
