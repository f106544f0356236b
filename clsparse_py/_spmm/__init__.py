"""SpMM, ``Y = A @ X`` for a dense X of several columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py.arithmetic import Arithmetic
from clsparse_py.device import Device
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain
from clsparse_py.matrix import Matrix
from clsparse_py.operands import check_matrix, check_scale, dense_operand, result_for
from clsparse_py.product import ProductKernel
from clsparse_py.records import dataclass
from clsparse_py.semiring import Semiring, plus_times

if TYPE_CHECKING:
    import numpy.typing as npt

    from clsparse_py.annotations import Scalar

__all__ = ["spmm"]


@dataclass(frozen=True)
class Rows(ProductKernel):
    """Parameters of ``templates/spmm/rows.mako``.

    Attributes
    ----------
    columns : int
        C: columns whose sums a work-item keeps.
    """

    template = "spmm/rows"
    kind = "spmm_rows"

    columns: int

    @classmethod
    def legal(cls, device: Device, arithmetic: Arithmetic, scaled: bool, work_group: int, columns: int) -> Rows:
        """Return the legal record nearest to the one asked for: it exchanges no lanes."""
        work_group = max(1, min(work_group, device.max_work_group))
        return cls(work_group, arithmetic, device.portability.at_most(1), scaled, columns)

    @property
    @override
    def shape_name(self) -> str:
        return f"c{self.columns}_wg{self.work_group}"

    @override
    def arguments(self) -> Mapping[str, object]:
        return {"work_group": self.work_group, "columns": self.columns}


@overload
def spmm(
    A: Matrix,
    X: cl_array.Array,
    *,
    alpha: Scalar | None = ...,
    beta: Scalar | None = ...,
    out: cl_array.Array | None = ...,
    semiring: Semiring = ...,
    work_group: int = ...,
) -> cl_array.Array: ...


@overload
def spmm(
    A: Matrix,
    X: npt.ArrayLike,
    *,
    alpha: Scalar | None = ...,
    beta: Scalar | None = ...,
    out: npt.NDArray[Any] | None = ...,
    semiring: Semiring = ...,
    work_group: int = ...,
) -> npt.NDArray[Any]: ...


def spmm(
    A: Matrix,
    X: Any,
    *,
    alpha: Any = None,
    beta: Any = None,
    out: Any = None,
    semiring: Semiring = plus_times,
    work_group: int = 64,
) -> Any:
    """Multiply a sparse matrix with a dense one: ``Y = alpha * A @ X + beta * Y``.

    Parameters
    ----------
    A : csr_array
        m x n. Rows may be unsorted, empty, and hold duplicates.
    X : pyopencl.array.Array or array_like, shape (n, k)
        In C or Fortran order or any other strides. With a device array nothing waits, and the product is enqueued on its queue.
    alpha, beta, out, semiring
        As for `clsparse_py.spmv`; ``out`` has shape (m, k) and is C-contiguous.
    work_group : int
        Work-items in a work-group; one that the device does not take becomes the nearest that it does.

    Returns
    -------
    pyopencl.array.Array or numpy.ndarray, shape (m, k)
        C-contiguous.

    Raises
    ------
    ValueError, TypeError
        A wrong shape, dtype or context; the message names the argument.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> sp.spmm(sp.csr_array([[1, 2], [0, 3]]), np.array([[1, 0], [1, 1]]))
    array([[3, 2],
           [3, 3]])
    """
    check_matrix(A)
    if not isinstance(work_group, (int, np.integer)):
        raise TypeError(f"work_group: must be an integer, is {type(work_group).__name__}")
    operand, on_device = dense_operand(A, "X", X, ndim=2)
    dtype = check_scale(A, operand, alpha, beta, out, semiring)
    shape = (A.shape[0], int(operand.shape[1]))
    result = result_for(A, "X", operand, X, out, dtype, shape, on_device=on_device)
    y = result.array
    if y.size:
        item = y.dtype.itemsize
        enqueue_spmm(A, operand, y, (shape[1] * item, item), shape[1], alpha, beta, semiring, work_group)
    return result.deliver()


def enqueue_spmm(
    A: Matrix,
    x: cl_array.Array,
    y: cl_array.Array,
    y_strides: tuple[int, int],
    n_columns: int,
    alpha: Any,
    beta: Any,
    semiring: Semiring,
    work_group: int = 64,
) -> None:
    """Enqueue a product with checked operands of any strides; a vector counts as one column."""
    chain = Chain(x.queue or A.queue, A.data, A.indices, A.indptr, x, writes=(y,))
    scaled = alpha is not None or beta is not None
    arithmetic = Arithmetic(A.dtype.name, x.dtype.name, A.indptr.dtype.name, semiring.name)
    # Four columns a work-item read each entry of A a quarter as often; more would spill on small devices.
    columns = min(4, 1 << n_columns.bit_length() - 1)
    while True:
        try:
            built, record = chain.build(Rows.legal(chain.device, arithmetic, scaled, work_group, columns))
            break
        except BuildError:
            if columns == 1:
                raise
            columns //= 2
    x_item, y_item = x.dtype.itemsize, y.dtype.itemsize
    x_strides = (*x.strides, 0)[:2]
    index = A.indptr.dtype.type
    scale = [np.array(given if given is not None else default, y.dtype)[()] for given, default in ((alpha, 1), (beta, 0))]
    work_items = A.shape[0] * -(-n_columns // columns)
    chain.launch(
        built, -(-work_items // record.work_group), A.data, x, np.uint64(x.offset // x_item), y, np.uint64(y.offset // y_item),
        *(scale if scaled else ()),
        np.int64(x_strides[0] // x_item), np.int64(x_strides[1] // x_item),
        np.int64(y_strides[0] // y_item), np.int64(y_strides[1] // y_item),
        index(A.shape[0]), np.int64(n_columns), A.indptr, A.indices,
    )  # fmt: skip
    chain.finish(y)
