"""C<M> = C accum A @ B: products under a mask, and writes of products into an existing matrix."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._formats.canonical import Parts, without_zeros
from clsparse_py._formats.parts import matrix_of
from clsparse_py._ground.errors import class_of, require_name
from clsparse_py._ground.index_types import INT32_MAX
from clsparse_py._matrix.convert import with_index
from clsparse_py._matrix.matrix import Matrix, MatrixT, Structure, is_sparse
from clsparse_py._memory.memory import allocate
from clsparse_py._operations.spgemm.arguments import require_at_most, types_of
from clsparse_py._operations.spgemm.canonical_values import CanonicalOperand
from clsparse_py._operations.spgemm.mask_writes import accumulate, apply_mask, find_marked, marked_pointers, take_marked
from clsparse_py._operations.spgemm.masked_rows import Masked, choose_masked_record, enqueue_masked
from clsparse_py._operations.spgemm.pipeline import multiply
from clsparse_py._operations.spgemm.request import Request
from clsparse_py._operations.spgemm.timer import Timer
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import Semiring
from clsparse_py._run.launch import Chain

__all__ = [
    "Accumulation",
    "Write",
    "check_write",
    "counting_entries",
    "cut",
    "masked_product",
    "multiply_under_mask",
    "prepare_masked_product",
    "require_accumulation",
    "require_beside",
    "require_mask",
    "require_no_method",
    "sum_at_mask",
    "sums_at",
    "write_product",
]

#: Names of operations that accumulate a product into C: values of the argument `accum`.
Accumulation = Literal["plus", "minus", "times", "min", "max", "any", "or", "and", "xor", "first", "second", "pair"]


class Write(NamedTuple):
    """The write of a product into C: GraphBLAS's keyword arguments of `spgemm`.

    Attributes
    ----------
    mask : Matrix or None
        Of C's shape; every stored entry counts.
    complement : bool
    accum : str or None
    out : Matrix or None
    replace : bool
    """

    mask: Matrix | None
    complement: bool
    accum: str | None
    out: Any
    replace: bool


def require_mask(A: Matrix, mask: Any, shape: tuple[int, int]) -> CanonicalOperand:
    """Return a mask as an operand in canonical format, after checks of the mask's class, shape and OpenCL context.

    Raises
    ------
    ValueError, TypeError
        The mask is no sparse matrix of that shape in A's context.
    """
    if not is_sparse(mask):
        raise TypeError(f"mask: must be a csr_array or a SciPy sparse array, is {class_of(mask)}")
    if tuple(mask.shape) != shape:
        raise ValueError(f"mask: must have shape {shape}, has {tuple(mask.shape)} (dimension mismatch)")
    M = matrix_of(A.queue, mask)
    if M.context is not A.context and M.context != A.context:
        raise ValueError("mask: lives in another context than A")
    M.require_valid()
    return CanonicalOperand(M)


def counting_entries(M: Matrix, *, structural: bool) -> Matrix:
    """Return a mask with the entries of M that let a product through: all if ``structural``, else those that are not zero."""
    if structural:
        return M
    data, indices, indptr = without_zeros(M.queue, M.parts)
    return M if indices is M.indices else Matrix.assembled(Structure.canonical(M.queue, M.shape, indices, indptr), data)


def require_no_method(method: str, *, complement: bool) -> None:
    """Raise a ValueError if a method is named for a product under a mask, which has its own unless ``complement`` is true."""
    if method != "auto" and not complement:
        raise ValueError(f"method: a product under a mask has one of its own; must be auto, is {method}")


def require_beside(name: str, owner: object, **arguments: bool) -> None:
    """Raise a ValueError if a keyword argument is true (was given), but ``owner``, the value of argument ``name``, is None."""
    for argument, is_given in arguments.items():
        if is_given and owner is None:
            raise ValueError(f"{argument}: belongs to {name}, which is missing")


def check_write(
    A: Matrix, B: Matrix, mask: Any, complement: bool, structural: bool, accum: Any, out: Any, replace: bool
) -> Write:
    """Return the `Write` of a product (where its entries go: under a mask, into a matrix, or both) after checking arguments.

    Raises
    ------
    ValueError, TypeError
        The arguments do not go together; the message names one.
    """
    require_beside("a mask", mask, complement=complement, structural=not structural)
    require_beside("out", out, accum=accum is not None, replace=replace)
    require_beside("a mask", mask, replace=replace)
    if accum is not None:
        require_name("accum", accum, get_args(Accumulation))
    shape = A.shape[0], B.shape[1]
    M = None if mask is None else counting_entries(require_mask(A, mask, shape).matrix, structural=structural)
    if out is not None:
        _require_out(A, out, shape)
    return Write(M, bool(complement), accum, out, bool(replace))


def _require_out(A: Matrix, out: Any, shape: tuple[int, int]) -> None:
    """Raise an error if ``out``, which is to take a product, is no matrix of the product's shape in A's OpenCL context."""
    if not isinstance(out, Matrix):
        raise TypeError(f"out: must be a csr_array, is {class_of(out)}")
    if tuple(out.shape) != shape:
        raise ValueError(f"out: must have shape {shape}, has {tuple(out.shape)} (dimension mismatch)")
    if out.context is not A.context and out.context != A.context:
        raise ValueError("out: lives in another context than A")
    out.require_valid()


def require_accumulation(accum: str | None, c: np.dtype[Any], t: np.dtype[Any]) -> None:
    """Raise a TypeError if NumPy's "same_kind" casts no dtype ``t`` to ``c``, or if ``accum`` takes no values of these dtypes."""
    common = c if accum is None else np.result_type(c, t)
    if not np.can_cast(common, c, "same_kind") or not np.can_cast(t, c, "same_kind"):
        raise TypeError(f"out: has dtype {c}, to which the product's {t} is not cast")
    if accum in ("or", "and", "xor") and common.kind == "c":
        raise TypeError(f"accum: {accum} is not for complex values")


def prepare_masked_product(A: Matrix, B: Matrix, mask: Matrix, semiring: Semiring) -> Masked:
    """Return the operands of a product under a mask as its kernels take them: in canonical format, with indices of one dtype."""
    a = CanonicalOperand(A)
    return masked_product(a, a if B is A else CanonicalOperand(B), mask, semiring)


def masked_product(a: CanonicalOperand, b: CanonicalOperand, mask: Matrix, semiring: Semiring) -> Masked:
    """Return the canonical operands of a product under a mask as its kernels take them: with indices of one dtype."""
    types_of(a.matrix, b.matrix, semiring)  # raises a TypeError if the semiring has no such product
    wide = any(matrix.indptr.dtype.itemsize == 8 for matrix in (a, b, mask))
    index = np.dtype(np.int64 if wide else np.int32)
    arithmetic = Arithmetic(a.data.dtype.name, b.data.dtype.name, index.name, semiring.name)
    _, m_indices, m_indptr = with_index(a.matrix.queue, mask.parts, index)
    return Masked(b.matrix.shape[1], a.arrays(index), b.arrays(index), (m_indptr, m_indices), arithmetic)


def sum_at_mask(
    queue: cl.CommandQueue, product: Masked, allocator: Any = None, *, by_rows: bool = False
) -> tuple[cl_array.Array, cl_array.Array]:
    """Return the sums of A @ B at the entries of a mask, and a byte for each: 1 if the place has a product, else 0. Never waits.

    ``by_rows`` is as of `choose_masked_record`.
    """
    chain = Chain(queue, *product.a, *product.b, *product.mask)
    n = product.mask[1].size
    sums = allocate(queue, "values of the masked product", n, product.arithmetic.result, allocator)
    marks = allocate(queue, "marks of the masked product", n, np.uint8)
    enqueue_masked(chain, product, choose_masked_record(chain.device, product, by_rows=by_rows), sums, marks)
    chain.finish(sums, marks)
    return sums, marks


def sums_at(A: Matrix, B: Matrix, mask: Matrix, semiring: Semiring, *, by_rows: bool = False) -> cl_array.Array:
    """Return the values of A @ B at the entries of a mask in canonical format, 0 without a product. Never waits.

    ``by_rows`` is as of `choose_masked_record`.
    """
    return sum_at_mask(A.queue, prepare_masked_product(A, B, mask, semiring), A.data.allocator, by_rows=by_rows)[0]


def _multiply_at_mask(A: Matrix, B: Matrix, mask: Matrix, request: Request, timer: Timer) -> Parts:
    """Return the arrays of A @ B at those places of a mask's entries that have products: values, columns and row pointers."""
    product = prepare_masked_product(A, B, mask, request.semiring)
    queue, (indptr, indices), allocator = A.queue, product.mask, A.data.allocator
    sums, marks = sum_at_mask(queue, product, allocator)
    timer.end_phase("products")
    marked = find_marked(queue, marks, indptr.dtype)
    if marked.n == indices.size:
        return sums, indices, indptr
    # Marks and sums at mask M's places are freed early: a product uses no more memory than A, B, M and a C with all places of M.
    del marks
    sums = take_marked(queue, sums, marked, allocator, indices.nbytes + indptr.nbytes - marked.positions.nbytes)
    return sums, take_marked(queue, indices, marked, allocator), marked_pointers(queue, indptr, marked, allocator)


def multiply_under_mask(A: Matrix, B: Matrix, mask: Matrix, request: Request, timer: Timer, *, complement: bool) -> Parts:
    """Return the arrays of the entries of A @ B that a mask lets through: values, columns and row pointers."""
    if not complement:
        return _multiply_at_mask(A, B, mask, request, timer)
    C = multiply(A, B, request, timer)
    return cut(A.queue, C.parts, mask, at_mask=False)


def cut(queue: cl.CommandQueue, parts: Parts, mask: Matrix, *, at_mask: bool) -> Parts:
    """Return the arrays of a matrix's entries at the places of a mask, or at all others, with the wider of both index types."""
    index = np.promote_types(parts[2].dtype, mask.indptr.dtype)
    _, indices, indptr = with_index(queue, mask.parts, index)
    return apply_mask(queue, with_index(queue, parts, index), (indptr, indices), at_mask)


def _select_remaining(queue: cl.CommandQueue, C: Matrix, write: Write) -> Parts:
    """Return the arrays of C's old entries that stay when a product is written into C."""
    parts, mask = C.parts, write.mask
    if write.accum is not None and not write.replace:
        return parts
    if mask is None or (write.accum is None and write.replace):
        chain = Chain(queue)
        indptr = allocate(queue, "indptr", C.shape[0] + 1, C.indptr.dtype)
        chain.fill(indptr, 0, indptr.size)
        chain.finish(indptr)
        return allocate(queue, "data", 0, C.dtype, C.data.allocator), allocate(queue, "indices", 0, indptr.dtype), indptr
    # With an accumulation, C's old entries at the mask's places stay; without one, C's old entries at all other places.
    at_mask = write.complement != (write.accum is not None)
    return cut(queue, parts, mask, at_mask=at_mask)


def write_product(A: MatrixT, B: Matrix, request: Request, write: Write, timer: Timer) -> MatrixT:
    """Return the matrix that a product is written into: a new one, or ``write.out``, whose arrays are replaced by the result's.

    Waits for the device.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As for `spgemm`.
    """
    queue, shape, out = A.queue, (A.shape[0], B.shape[1]), write.out
    if out is not None:
        result = Arithmetic(A.data.dtype.name, B.data.dtype.name, "int32", request.semiring.name).result
        require_accumulation(write.accum, out.dtype, result)
    if write.mask is None:
        C = multiply(A, B, request, timer)
        parts: Parts = C.parts
    else:
        parts = multiply_under_mask(A, B, write.mask, request, timer, complement=write.complement)
    require_at_most(parts[1].size, request.max_nnz)
    if out is None:
        timer.end_phase("entries")
        return A.assembled(Structure.canonical(queue, shape, parts[1], parts[2]), parts[0])
    old = _select_remaining(queue, CanonicalOperand(out).matrix, write)
    wide = old[1].size + parts[1].size > INT32_MAX or 8 in (old[2].dtype.itemsize, parts[2].dtype.itemsize)
    index = np.dtype(np.int64 if wide else np.int32)
    old, parts = with_index(queue, old, index), with_index(queue, parts, index)
    data, indices, indptr = accumulate(queue, old, parts, write.accum or "second")
    timer.end_phase("entries")
    out._become(Structure.canonical(queue, shape, indices, indptr), data)
    return out  # type: ignore[no-any-return] # of the class that the caller gave
