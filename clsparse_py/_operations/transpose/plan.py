"""Choose a method, transpose by it, and keep the permutation for new values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.plain import door
from clsparse_py._build.programs import note_asked
from clsparse_py._decisions import profiles
from clsparse_py._device.device import describe
from clsparse_py._ground.records import SetOnce, dataclass
from clsparse_py._ground.tables import Shown, Table, plan_as_html
from clsparse_py._matrix.matrix import Matrix, MatrixT, Origin, Structure
from clsparse_py._matrix.operands import values_of_result
from clsparse_py._matrix.placement import place_part, value_dtype
from clsparse_py._matrix.structure import Facts
from clsparse_py._memory.memory import allocate, form_of
from clsparse_py._memory.overlap import require_inside
from clsparse_py._operations.transpose.choose import Strategy, features_of, parse
from clsparse_py._operations.transpose.methods import METHODS, LongRowsError, NotSymmetricError, Pattern, empty
from clsparse_py._operations.transpose.single_launch import transpose_in_one_launch
from clsparse_py._primitives.permute import enqueue_permute, record_permute
from clsparse_py._run.launch import Chain
from clsparse_py._run.transfer import contexts_match

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import Values

__all__ = [
    "Explanation",
    "Permutation",
    "TransposePlan",
    "Verdict",
    "attempt",
    "permutation",
    "run",
    "transposed",
]

#: Why each method was not taken, unless it found out itself.
_WHY_NOT = {
    "gather": "takes symmetric patterns, whose mirror images it has to search",
    "binned": "takes any matrix, but moves each entry twice",
    "atomics": "takes any matrix, but its writes are scattered, and entries of a column wait for each other",
}

# CPU devices choose `gather` by themselves if the first guess finds the mirror of this many of 1024 sampled entries.
_AT_FIRST = 900


@dataclass(frozen=True)
class Verdict:
    """The decision about one method: a line of an `Explanation`."""

    method: str
    taken: bool
    why: str


@dataclass(frozen=True)
class Explanation(Shown):
    """Which method transposes, and why. Prints as a table.

    Attributes
    ----------
    verdicts : tuple of Verdict
        Of each method.
    launches : int
        Commands of the first transposition, those included that only looked.
    rule : str
        The reason why these methods were tried; "" if there was nothing to move.
    """

    verdicts: tuple[Verdict, ...]
    launches: int
    rule: str = ""

    @property
    def method(self) -> str:
        """The method taken; "" where there was nothing to move."""
        return next((verdict.method for verdict in self.verdicts if verdict.taken), "")

    __repr__ = Shown.__repr__

    @property
    @override
    def table(self) -> Table:
        title = f"SpTRANS: {self.method or 'no entries'}. Launches: {self.launches}"
        rows = [(verdict.method, "yes" if verdict.taken else "no", verdict.why) for verdict in self.verdicts]
        return Table(title, ("method", "taken", "why"), rows, self.rule)


def run(A: Matrix, valued: bool, to_values: cl_array.Array, method: str) -> tuple[Pattern, Callable[[], Explanation]]:
    """Transpose by the method asked for or, with "auto", by the strategy that the device's profile has.

    Returns the pattern, and a function that tells which method was taken and why: most callers do not ask.

    See `methods` for what is moved: A's values, if it is ``valued``, or positions.

    Raises
    ------
    ValueError
        The method asked for does not take this matrix.
    """
    chain = Chain(A.queue, A.indptr, A.indices, *((A.data,) if valued else ()))
    if not A.nnz:
        index = A.indptr.dtype
        indptr, indices = empty(A, "indptr", A.shape[1] + 1, index), empty(A, "indices", 0, index)
        chain.fill(indptr, 0, indptr.size)
        chain.finish(indptr)
        return Pattern(indptr, indices, ""), lambda: Explanation((), len(chain.events))
    features = features_of(A, A.data.dtype.itemsize if valued else 0)
    ruling = profiles.decide(chain.device, "transpose", "any", "method", features, parse)
    why_not: dict[str, str] = {}
    pattern, method_taken = attempt(chain, A, valued, to_values, ruling.value, why_not, method)
    if pattern.indices is A.indices:
        # A result that shares A's structure need not wait for these arrays.
        chain.finish(to_values)
    else:
        chain.finish(to_values, pattern.indptr, pattern.indices)
    launches, why = len(chain.events), pattern.why

    def explanation() -> Explanation:
        """Return which method transposed, and why the others did not."""
        rule = f"{ruling.label}, by {ruling.why}" if method == "auto" else "the method was named"
        whys = {**_WHY_NOT, **why_not, method_taken: why}
        return Explanation(tuple(Verdict(name, name == method_taken, whys[name]) for name in METHODS), launches, rule)

    return pattern, explanation


def attempt(
    chain: Chain,
    A: Matrix,
    valued: bool,
    to_values: cl_array.Array,
    strategy: Strategy,
    why_not: dict[str, str],
    requested: str = "auto",
) -> tuple[Pattern, str]:
    """Try the methods of a strategy one after another. Each finds out on the device, while it works, whether it takes the matrix.

    One that was named comes before them; the last takes any matrix, and is the plain one.

    Returns the pattern and the method that made it; those before it are put into ``why_not``.

    Raises
    ------
    ValueError
        The method that was named does not take it.
    """
    steps: tuple[tuple[str, int | None], ...] = strategy.limits
    if chain.device.is_plain:
        steps = ()
    elif requested != "auto":
        steps = ((requested, None), *steps)
    elif _asks_again(A, strategy):
        steps = (("gather", _AT_FIRST if chain.device.lanes_are_loops else 0), *steps)
    A.structure.transposed |= requested == "auto"
    for method, limit in steps:
        try:
            return METHODS[method](chain, A, valued, to_values, limit), method
        except (NotSymmetricError, LongRowsError) as error:  # noqa: PERF203 - each try takes far longer
            if method == requested:
                raise ValueError(f"method: {method} does not take this matrix: {error}") from None
            why_not[method] = str(error)
    return METHODS["binned"](chain, A, valued, to_values, None), "binned"


def _asks_again(A: Matrix, strategy: Strategy) -> bool:
    """Return whether `gather` comes first, although the strategy leaves it out.

    That is for transpositions of a structure after its first: they pay back the time in which the host waits to know whether the
    pattern is symmetric, which is never asked twice.
    """
    symmetry = A.structure.symmetry
    if "gather" in dict(strategy.limits) or A.shape[0] != A.shape[1]:
        return False
    return A.structure.transposed if symmetry is None else symmetry.verified


@functools.lru_cache(maxsize=256)
def _facts(nnz: int, canonical: bool) -> Facts:
    """Return the facts of a transposed structure, whose rows are sorted."""
    return Facts(nnz, sorted=True, canonical=canonical)


def _structure(A: Matrix, indptr: cl_array.Array, indices: cl_array.Array) -> Structure:
    """Return the structure of the transposed: A's own if the pattern is symmetric."""
    own = A.structure
    if indices is own.indices:
        return own
    facts_of_own, (n_rows, n_columns) = own.facts, own.shape
    # If A's rows are not sorted, whether they hold duplicates is not known.
    facts = _facts(indices.size, facts_of_own.canonical) if facts_of_own is not None and facts_of_own.sorted else None
    return Structure(own.queue, (n_columns, n_rows), indices, indptr, facts)


def transposed(A: MatrixT, method: str) -> MatrixT:
    """Return the transposed matrix, with no permutation kept."""
    arrays = transpose_in_one_launch(A, valued=True) if method == "auto" else None
    if arrays is not None:
        return A.assembled(_structure(A, arrays.indptr, arrays.indices), arrays.moved)
    data = empty(A, "values", A.nnz, A.data.dtype)
    pattern, _ = run(A, True, data, method)
    return A.assembled(_structure(A, pattern.indptr, pattern.indices), data)


@dataclass(frozen=True)
class Permutation:
    """The permutation that transposes any values of a structure; all its matrices share it.

    Attributes
    ----------
    positions : pyopencl.array.Array
        Where in A's values each value of the transposed stands.
    transposed : Structure or None
        None if the pattern is symmetric: then it is A's own, which keeps the permutation and is not to be kept by it.
    explanation : Explanation
    """

    positions: cl_array.Array
    transposed: Structure | None
    explanation: Explanation


def permutation(A: Matrix, method: str) -> Permutation:
    """Find the permutation of a structure's transposition."""
    small = transpose_in_one_launch(A, valued=False) if method == "auto" else None
    if small is not None:
        whys = {"at once": "rows, columns and entries fit one work-group", **dict.fromkeys(METHODS, "takes several launches")}
        verdicts = tuple(Verdict(name, name == "at once", why) for name, why in whys.items())
        explanation = Explanation(verdicts, 1, "small matrices are transposed by one work-group")
        return Permutation(small.moved, _structure(A, small.indptr, small.indices), explanation)
    positions = empty(A, "permutation", A.nnz, A.indptr.dtype)
    pattern, explain = run(A, False, positions, method)
    structure = _structure(A, pattern.indptr, pattern.indices)
    return Permutation(positions, None if structure is A.structure else structure, explain())


class TransposePlan(SetOnce, Generic[MatrixT]):
    """The transposition of one structure, for any values: each new set of them takes one gather. Made by `transpose_plan`.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        A's.
    shape : tuple of int
        Of the transposed.
    indptr, indices : pyopencl.array.Array
        The structure of the transposed, which all results share: A's own if its pattern is symmetric.
    positions : pyopencl.array.Array
        The permutation: where in A's values each value of the transposed stands.
    """

    def __init__(self, A: MatrixT, permutation: Permutation) -> None:
        self.queue = A.queue
        self.shape = A.shape[::-1]
        self.positions = permutation.positions
        self._explanation = permutation.explanation
        self._assembled = type(A).assembled
        self._data = A.data
        self._of, self._origin = A.structure, Origin(A)
        self._structure = permutation.transposed or A.structure
        self.indptr, self.indices = self._structure.indptr, self._structure.indices

    def matches(self, A: Matrix) -> bool:
        """Return whether this plan was made for A's present structure."""
        return A.structure is self._of

    _repr_html_ = plan_as_html

    def explain(self) -> Explanation:
        """Return which method found the permutation, and why."""
        return self._explanation

    def __str__(self) -> str:
        return self._explanation.method or "no entries"

    def __repr__(self) -> str:
        columns, rows = self.shape
        device = describe(self.queue.device).name
        return f"<TransposePlan of a {rows} x {columns} matrix with {self.positions.size} entries on {device}: {self}>"

    @door()
    def __call__(self, data: Values | None = None, out: MatrixT | None = None) -> MatrixT:
        """Return the transposed matrix with other values, which are not waited for.

        Parameters
        ----------
        data : pyopencl.array.Array or array_like, shape (nnz,), optional
            In the order of A's entries, of any supported dtype; by default the array of values that A had when the plan was made.
        out : csr_array, optional
            A result of this plan for other values of that dtype: its values are overwritten.

        Raises
        ------
        ValueError, TypeError
            A wrong shape, dtype or context, values of another structure, or an ``out`` that is none of this plan's results; the
            message names the argument.
        """
        self._origin.check("data", data)
        values = self._to_device(self._data if data is None else data)
        queue, n, dtype = values.queue or self.queue, values.size, values.dtype
        purpose, index, allocator = "values of the transposed", self.positions.dtype, self._data.allocator
        if out is None and n and queue is self.queue and not values.offset:
            recording = self._of.get_plan((TransposePlan, dtype), lambda: record_permute(Chain(queue), index, dtype, n))
            note_asked(recording.kernels)
            form = form_of(self._of.context, n, dtype)
            (target,) = recording.make(queue, purpose, (self.positions, values), (form,), allocator)
            return self._assembled(self._structure, target)
        if out is None:
            chain = Chain(queue, self.positions, values)
            target = allocate(queue, purpose, n, dtype, allocator)
        else:
            target = self._target(out, values)
            chain = Chain(queue, self.positions, values, writes=(target,))
        if n:
            enqueue_permute(chain, self.positions, values, target, n)
            chain.finish(target)
        if out is None:
            return self._assembled(self._structure, target)
        out.data = target  # says that the values are others
        return out

    def _to_device(self, data: Any) -> cl_array.Array:
        """Return values on the device, contiguous."""
        values = data if isinstance(data, cl_array.Array) else np.asarray(data)
        dtype = value_dtype("data", values.dtype)
        if values.shape != self.positions.shape:
            raise ValueError(f"data: must have the {self.positions.size} entries of A, has shape {values.shape}")
        if dtype.name in ("float64", "complex128") and not describe(self.queue.device).fp64:
            raise TypeError(f"data: {dtype} needs double precision, which {self.queue.device.name} lacks; use single precision")
        if (
            isinstance(values, cl_array.Array)
            and contexts_match(values, self.queue.context)
            and (values.dtype == dtype and values.strides == (dtype.itemsize,) and values.offset % dtype.itemsize == 0)
        ):
            require_inside("data", values)
            return values  # kernels count from where it begins in its buffer
        return place_part(self.queue, "data", values, dtype, copy=False)

    def _target(self, out: Any, values: cl_array.Array) -> cl_array.Array:
        """Return where a result's values go."""
        inputs = {"data": values, "plan.positions": self.positions}
        return values_of_result(out, self.shape, self.indptr, self.indices, values.dtype, "data", inputs)
