"""Choose a method, transpose by it, and keep the permutation for new values; small matrices take one launch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._build.built import Built
from clsparse_py._build.plain import door, explain_plain
from clsparse_py._build.programs import note_asked
from clsparse_py._decisions import profiles
from clsparse_py._device.device import describe
from clsparse_py._ground.records import SetOnce, dataclass
from clsparse_py._ground.tables import Shown, Table, plan_as_html
from clsparse_py._matrix.matrix import Matrix, MatrixT, Origin, Structure
from clsparse_py._matrix.operands import values_of_result
from clsparse_py._matrix.placement import place_values
from clsparse_py._matrix.structure import Facts
from clsparse_py._memory.memory import allocate, make_form
from clsparse_py._operations.transpose.choose import Strategy, Thresholds, features_of, parse
from clsparse_py._operations.transpose.kernels import AtOnce
from clsparse_py._operations.transpose.methods import METHODS, LongRowsError, NotSymmetricError, Pattern, allocate_result
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives.permute import enqueue_permute, record_permute
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import Recording, record

if TYPE_CHECKING:
    from clsparse_py._matrix.annotations import Values

__all__ = [
    "Explanation",
    "Permutation",
    "TransposePlan",
    "TransposedArrays",
    "Verdict",
    "attempt",
    "find_permutation",
    "run",
    "transpose_in_one_launch",
    "transpose_once",
]

#: Reasons why a method of transposition was not taken, by the method's name, if the method itself gave none.
_WHY_NOT = {
    "gather": "takes symmetric patterns, whose mirror images it has to search",
    "binned": "takes any matrix, but moves each entry twice",
    "atomics": "takes any matrix, but its writes are scattered, and entries of a column wait for each other",
}

#: Limit of `gather` where CPU devices try it although the strategy leaves it out: the least number of 1024 sampled entries whose
#: mirror images stand where first guessed.
_MIN_GUESSED = 900


@dataclass(frozen=True)
class Verdict:
    """The decision about one method of SpTRANS: a line of an `Explanation`."""

    method: str
    taken: bool
    why: str


@dataclass(frozen=True)
class Explanation(Shown):
    """Which method of SpTRANS transposes a matrix, and why. Prints as a table.

    Attributes
    ----------
    verdicts : tuple of Verdict
        Of each method.
    launches : int
        Commands of the first transposition, including commands that only inspected the matrix.
    rule : str
        The reason why these methods were tried; "" if there was nothing to move.
    """

    verdicts: tuple[Verdict, ...]
    launches: int
    rule: str = ""

    @property
    def method(self) -> str:
        """The name of the method that transposed the matrix, such as "gather", or "at once"; "" if it has no entries."""
        return next((verdict.method for verdict in self.verdicts if verdict.taken), "")

    __repr__ = Shown.__repr__

    @property
    @override
    def table(self) -> Table:
        """The explanation as a table: for each method its name, whether it was taken, and why; below, the rule that chose."""
        title = f"SpTRANS: {self.method or 'no entries'}. Launches: {self.launches}"
        rows = [(verdict.method, "yes" if verdict.taken else "no", verdict.why) for verdict in self.verdicts]
        return Table(title, ("method", "taken", "why"), rows, self.rule)


def run(A: Matrix, valued: bool, to_values: cl_array.Array, method: str) -> tuple[Pattern, Callable[[], Explanation]]:
    """Transpose a matrix by the named method or, with "auto", by the strategy of the device's profile.

    Returns the pattern, and a function that explains which method was taken: most callers do not call it.

    A's values are moved to ``to_values`` if ``valued``, else the positions of entries; see `methods`.

    Raises
    ------
    ValueError
        The named method does not take this matrix.
    """
    chain = Chain(A.queue, A.indptr, A.indices, *((A.data,) if valued else ()))
    if not A.nnz:
        index = A.indptr.dtype
        indptr, indices = allocate_result(A, "indptr", A.shape[1] + 1, index), allocate_result(A, "indices", 0, index)
        chain.fill(indptr, 0, indptr.size)
        chain.finish(indptr)
        return Pattern(indptr, indices, ""), lambda: Explanation((), len(chain.events))
    features = features_of(A, A.data.dtype.itemsize if valued else 0)
    ruling = profiles.decide(chain.device, "transpose", "any", "method", features, parse)
    why_not: dict[str, str] = {}
    pattern, method_taken = attempt(chain, A, valued, to_values, ruling.value, why_not, method)
    if pattern.indices is A.indices:
        # The transposed shares A's indptr and indices: values alone were written, and users of A's arrays need not wait for them.
        chain.finish(to_values)
    else:
        chain.finish(to_values, pattern.indptr, pattern.indices)
    launches, why = len(chain.events), pattern.why

    def explanation() -> Explanation:
        """Return which method of transposition was taken for the matrix, and why other methods were not."""
        rule = "the method was named"
        if chain.device.is_plain:
            rule = explain_plain("auto" if method == method_taken else method)
        elif method == "auto":
            rule = f"{ruling.label}, by {ruling.why}{profiles.remark_older('transpose', (ruling.rules.profile,))}"
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
    """Transpose by the first method of a strategy that takes the matrix; a method may find out on the device that it does not.

    A named method is tried first; the last method, `binned`, takes any matrix, and is the only one of plain devices.

    Returns the pattern and the method that made it; ``why_not`` gets the reasons of methods that were tried before.

    Raises
    ------
    ValueError
        The named method does not take the matrix.
    """
    steps: tuple[tuple[str, int | None], ...] = strategy.limits
    if chain.device.is_plain:
        steps = ()
    elif requested != "auto":
        steps = ((requested, None), *steps)
    elif _tries_gather_first(A, strategy):
        steps = (("gather", _MIN_GUESSED if chain.device.lanes_are_loops else 0), *steps)
    A.structure.transposed |= requested == "auto"
    for method, limit in steps:
        try:
            return METHODS[method](chain, A, valued, to_values, limit), method
        except (NotSymmetricError, LongRowsError) as error:  # noqa: PERF203 - each try takes far longer
            if method == requested:
                raise ValueError(f"method: {method} does not take this matrix: {error}") from None
            why_not[method] = str(error)
    return METHODS["binned"](chain, A, valued, to_values, None), "binned"


def _tries_gather_first(A: Matrix, strategy: Strategy) -> bool:
    """Return whether the transposition's method `gather` is tried first, although the strategy leaves it out.

    That is so from the second transposition of a structure on: later ones pay back the host's wait for the answer whether the
    pattern is symmetric, which the structure keeps.
    """
    symmetry = A.structure.symmetry
    if "gather" in dict(strategy.limits) or A.shape[0] != A.shape[1]:
        return False
    return A.structure.transposed if symmetry is None else symmetry.verified


class TransposedArrays(NamedTuple):
    """The arrays of a transposed matrix: `moved` has values, or positions of entries."""

    indptr: cl_array.Array
    indices: cl_array.Array
    moved: cl_array.Array


def transpose_in_one_launch(A: Matrix, *, valued: bool) -> TransposedArrays | None:
    """Return the transposed of a small matrix, by one launch of one work-group; None if it is not small, or has no entries.

    Parameters
    ----------
    A : Matrix
        Valid.
    valued : bool
        Whether values of A are moved; else positions of entries are moved: the permutation that a plan keeps.
    """
    structure = A.structure
    data = A.data
    value_dtype = data.dtype if valued else structure.indptr.dtype
    call = structure.get_plan((AtOnce, value_dtype, valued), lambda: _record_small(structure, value_dtype, valued))
    if call is None:
        return None
    recording, forms = call
    note_asked(recording.kernels)
    inputs = (structure.indptr, structure.indices, data) if valued else (structure.indptr, structure.indices)
    return TransposedArrays(*recording.make(structure.queue, "the transposed", inputs, forms, data.allocator))


def _record_small(
    structure: Structure, value_dtype: np.dtype[Any], valued: bool
) -> tuple[Recording, tuple[tuple[Any, ...], ...]] | None:
    """Return the recording of a one-launch transposition, and its results' sizes and dtypes; None if it can't take A."""
    sizes, index = (*structure.shape, structure.indices.size), structure.indptr.dtype
    chain = Chain(structure.queue)
    if not sizes[2] or sum(sizes) > Thresholds.of(chain.device).max_at_once:
        return None

    def work_out() -> Recording | None:
        """Return the recording of the launch that transposes; None if the matrix is too large, or work-groups have one item."""
        if chain.device.is_plain:
            return None
        built, kernel = chain.build(AtOnce.legal(chain.device, name_of(index), value_dtype.itemsize if valued else 0))
        if sum(sizes) > kernel.places:
            return None
        input_dtypes = index, index, *((value_dtype,) * valued)
        return record(chain, functools.partial(_enqueue_small, built, *sizes), (*input_dtypes, index, index, value_dtype))

    recording = chain.worked_out((AtOnce, index, value_dtype, valued, *sizes), work_out)
    sizes_and_dtypes = (sizes[1] + 1, index), (sizes[2], index), (sizes[2], value_dtype)
    return (
        None if recording is None else (recording, tuple(make_form(structure.context, n, dtype) for n, dtype in sizes_and_dtypes))
    )


def _enqueue_small(built: Built, n_rows: int, n_columns: int, nnz: int, chain: Chain, *arrays: cl_array.Array) -> None:
    """Enqueue the launch of the one work-group that transposes a small matrix."""
    chain.launch(built, 1, np.uint32(n_rows), np.uint32(n_columns), np.uint32(nnz), *arrays)


def _transposed_structure(A: Matrix, indptr: cl_array.Array, indices: cl_array.Array) -> Structure:
    """Return the structure of the transposed of A from its arrays: A's own structure if ``indices`` are A's."""
    own = A.structure
    if indices is own.indices:
        return own
    # The facts known of a structure with unsorted rows do not say whether rows hold duplicates.
    own_facts = own.facts
    facts = Facts(indices.size, True, own_facts.canonical) if own_facts is not None and own_facts.sorted else None
    return Structure(own.queue, own.shape[::-1], indices, indptr, facts)


def transpose_once(A: MatrixT, method: str) -> MatrixT:
    """Return the transposed of A without finding, or keeping, the permutation of its values."""
    arrays = transpose_in_one_launch(A, valued=True) if method == "auto" else None
    if arrays is not None:
        return A.assembled(_transposed_structure(A, arrays.indptr, arrays.indices), arrays.moved)
    data = allocate_result(A, "values", A.nnz, A.data.dtype)
    pattern, _ = run(A, True, data, method)
    return A.assembled(_transposed_structure(A, pattern.indptr, pattern.indices), data)


@dataclass(frozen=True)
class Permutation:
    """The permutation that transposes any values of a structure; all matrices of the structure share it.

    Attributes
    ----------
    positions : pyopencl.array.Array
        Where in A's values each value of the transposed stands.
    transposed : Structure or None
        The structure of the transposed; None if the pattern is symmetric: A's own structure, which keeps the permutation.
    explanation : Explanation
    """

    positions: cl_array.Array
    transposed: Structure | None
    explanation: Explanation


def find_permutation(A: Matrix, method: str) -> Permutation:
    """Find and return the permutation that takes values of A's structure to values of the transposed."""
    small = transpose_in_one_launch(A, valued=False) if method == "auto" else None
    if small is not None:
        whys = {"at once": "rows, columns and entries fit one work-group", **dict.fromkeys(METHODS, "takes several launches")}
        verdicts = tuple(Verdict(name, name == "at once", why) for name, why in whys.items())
        explanation = Explanation(verdicts, 1, "small matrices are transposed by one work-group")
        return Permutation(small.moved, _transposed_structure(A, small.indptr, small.indices), explanation)
    positions = allocate_result(A, "permutation", A.nnz, A.indptr.dtype)
    pattern, explain = run(A, False, positions, method)
    structure = _transposed_structure(A, pattern.indptr, pattern.indices)
    return Permutation(positions, None if structure is A.structure else structure, explain())


class TransposePlan(SetOnce, Generic[MatrixT]):
    """The transposition of one structure, for any values: a new set of values takes one gather. Made by `transpose_plan`.

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
        """Return whether this plan of transpositions was made for A's present structure."""
        return A.structure is self._of

    _repr_html_ = plan_as_html

    def explain(self) -> Explanation:
        """Return which method of transposition found the permutation of A's values, and why."""
        return self._explanation

    def __str__(self) -> str:
        return self._explanation.method or "no entries"

    def __repr__(self) -> str:
        columns, rows = self.shape
        device = describe(self.queue.device).name
        return f"<TransposePlan of a {rows} x {columns} matrix with {self.positions.size} entries on {device}: {self}>"

    @door()
    def __call__(self, data: Values | None = None, out: MatrixT | None = None) -> MatrixT:
        """Return the transposed matrix with ``data``, by default A's values when the plan was made; the host does not wait.

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
        values = place_values(self.queue, self._data if data is None else data, self.positions.size)
        queue, n, dtype = values.queue or self.queue, values.size, values.dtype
        purpose, index, allocator = "values of the transposed", self.positions.dtype, self._data.allocator
        if out is None and n and queue is self.queue and not values.offset:
            recording = self._of.get_plan((TransposePlan, dtype), lambda: record_permute(Chain(queue), index, dtype, n))
            note_asked(recording.kernels)
            form = make_form(self._of.context, n, dtype)
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
        out.data = target  # notes that the values changed
        return out

    def _target(self, out: Any, values: cl_array.Array) -> cl_array.Array:
        """Return the array of ``out``'s values, which the values of the transposed are to overwrite."""
        inputs = {"data": values, "plan.positions": self.positions}
        return values_of_result(out, self.shape, self.indptr, self.indices, values.dtype, "data", inputs)
