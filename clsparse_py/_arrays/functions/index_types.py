"""The dtypes of index arrays: functions that choose one, and that convert to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from pyopencl import array as cl_array

from clsparse_py._arrays.base import SparseArray
from clsparse_py._build.plain import door
from clsparse_py._matrix.convert import convert
from clsparse_py._run.transfer import copy_to_host

__all__ = ["get_index_dtype", "safely_cast_index_arrays"]


@door()
def get_index_dtype(arrays: Any = (), maxval: Any = None, check_contents: bool = False) -> Any:
    """Return the dtype of indices for the given index arrays and the number ``maxval``: int32 if that is wide enough, else int64.

    Parameters
    ----------
    arrays : array or tuple of arrays
        NumPy arrays or `pyopencl.array.Array`.
    maxval : int, optional
        A number that indices may reach.
    check_contents : bool
        True: the values of wide arrays are looked at, those of the device are copied to the host for it.

    Returns
    -------
    type
        `numpy.int32` or `numpy.int64`.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.get_index_dtype(sp.csr_array([[1, 0]]).indices, maxval=2**40)
    <class 'numpy.int64'>
    """
    sequence = arrays if isinstance(arrays, (tuple, list)) else (arrays,)
    hosts = tuple(_copy_for_scipy(array, with_values=check_contents) for array in sequence)
    return scipy.sparse.get_index_dtype(hosts, maxval, check_contents)


def _copy_for_scipy(array: Any, *, with_values: bool) -> Any:
    """Return a device array as NumPy's: a copy or, without ``with_values``, an empty one of its dtype; other arrays unchanged."""
    if not isinstance(array, cl_array.Array):
        return array
    return copy_to_host(array) if with_values else np.empty(0, array.dtype)


@door()
def safely_cast_index_arrays(A: Any, idx_dtype: Any = np.int32, msg: str = "") -> Any:
    """Return the index arrays of a sparse array in the dtype ``idx_dtype``, uncopied if they have it; values must fit.

    Parameters
    ----------
    A : sparse array
        Of this package, or of SciPy.
    idx_dtype : dtype
        An integer type.
    msg : str
        How the error names the type.

    Returns
    -------
    tuple of pyopencl.array.Array
        ``(indices, indptr)`` of csr and csc arrays, the coordinates of coo arrays. Of an array of SciPy NumPy's.

    Raises
    ------
    ValueError
        An index does not fit the type. For this the host looks at arrays whose values, by the shape, might not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> indices, indptr = sp.safely_cast_index_arrays(sp.csr_array([[1, 0]]), np.int64)
    >>> indptr.get()
    array([0, 1])
    """
    if not isinstance(A, SparseArray):
        return scipy.sparse.safely_cast_index_arrays(A, idx_dtype, msg)
    of_any: Any = A
    if A.format == "coo":
        parts = {
            f"coords[{axis}]": (coordinate, n) for axis, (coordinate, n) in enumerate(zip(of_any.coords, A.shape, strict=True))
        }
    else:
        parts = {"indices": (of_any.indices, max(A.shape)), "indptr": (of_any.indptr, A.nnz)}
    target = np.dtype(idx_dtype)
    for name, (part, bound) in parts.items():
        if bound > np.iinfo(target).max and part.size and copy_to_host(part, A.queue).max() > np.iinfo(target).max:
            raise ValueError(f"{name}: values too large for {msg or f'dtype {target}'}")
    return tuple(part if part.dtype == target else convert(A.queue, name, part, target) for name, (part, _) in parts.items())
