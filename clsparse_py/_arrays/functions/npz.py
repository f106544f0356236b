"""Sparse arrays in NumPy's ``.npz`` files."""

from __future__ import annotations

from typing import Any

import pyopencl as cl
import scipy.sparse

from clsparse_py._arrays.base import ON_DEVICE, class_of_format
from clsparse_py._arrays.hosted import on_host
from clsparse_py._ground.errors import runs_on_host

__all__ = ["load_npz", "save_npz"]


@runs_on_host("save_npz")
def save_npz(file: Any, matrix: Any, compressed: bool = True) -> None:
    """Write a sparse array to a ``.npz`` file. Runs on the host, by `scipy.sparse.save_npz`.

    Parameters
    ----------
    file : path-like or file
    matrix : sparse array
        Of this package, or of SciPy.
    compressed : bool

    Raises
    ------
    OSError
        The file cannot be written.

    Examples
    --------
    >>> import io
    >>> import clsparse_py as sp
    >>> file = io.BytesIO()
    >>> sp.save_npz(file, sp.csc_array([[1, 0], [0, 2]]))
    >>> sp.load_npz(io.BytesIO(file.getvalue())).format
    'csc'
    """
    scipy.sparse.save_npz(file, on_host(matrix), compressed)


@runs_on_host("load_npz")
def load_npz(file: Any, *, queue: cl.CommandQueue | None = None) -> Any:
    """Read a sparse array from a ``.npz`` file. Runs on the host, by `scipy.sparse.load_npz`.

    Parameters
    ----------
    file : path-like or file
        Written by `save_npz`, or by SciPy's.
    queue : pyopencl.CommandQueue, optional
        Where the array lives; `clsparse_py.default_queue` by default.

    Returns
    -------
    csr_array, csc_array, coo_array, bsr_array, or SciPy's own
        Of the format that was written; "dia" lives on the host.

    Raises
    ------
    OSError, ValueError
        The file is not there, or holds no sparse array.

    Examples
    --------
    >>> import io
    >>> import clsparse_py as sp
    >>> file = io.BytesIO()
    >>> sp.save_npz(file, sp.coo_array([[1, 0], [0, 2]]))
    >>> sp.load_npz(io.BytesIO(file.getvalue())).nnz
    2
    """
    host = scipy.sparse.load_npz(file)
    if host.format not in ON_DEVICE:
        return getattr(scipy.sparse, f"{host.format}_array")(host)
    return class_of_format(host.format, one_dimensional=host.ndim == 1)(host, queue=queue)
