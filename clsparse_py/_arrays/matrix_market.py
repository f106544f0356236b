"""Files of sparse arrays, under the names of `scipy.io`: read and written on the host, by SciPy.

Examples
--------
>>> import pathlib, tempfile
>>> import clsparse_py as sp
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder) / "a.mtx"
...     sp.io.mmwrite(path, sp.csr_array([[1, 0], [0, 2]]))
...     sp.io.mmread(path).toarray()
array([[1, 0],
       [0, 2]])
"""

from __future__ import annotations

from typing import Any

import pyopencl as cl
import scipy.io
import scipy.sparse

from clsparse_py._arrays.coo import coo_array
from clsparse_py._arrays.hosted import on_host
from clsparse_py._ground.errors import runs_on_host

__all__ = ["mminfo", "mmread", "mmwrite"]


def mminfo(source: Any) -> tuple[int, int, int, str, str, str]:
    r"""Return the fields of a Matrix Market file's header.

    Parameters
    ----------
    source : path-like or file
        The file, as for `mmread`.

    Returns
    -------
    tuple
        Rows, columns, entries, "coordinate" or "array", the field and the symmetry.

    Examples
    --------
    >>> import io
    >>> import clsparse_py as sp
    >>> sp.io.mminfo(io.StringIO("%%MatrixMarket matrix coordinate integer general\n2 2 1\n2 1 5\n"))
    (2, 2, 1, 'coordinate', 'integer', 'general')
    """
    rows, columns, entries, form, field, symmetry = scipy.io.mminfo(source)
    return rows, columns, entries, form, field, symmetry


@runs_on_host("io.mmread")
def mmread(source: Any, *, spmatrix: bool = False, queue: cl.CommandQueue | None = None) -> Any:
    r"""Read a Matrix Market file. Runs on the host, by `scipy.io.mmread`.

    Parameters
    ----------
    source : path-like or file
        Ends with ``.mtx``, ``.mtx.gz`` or ``.mtx.bz2``.
    spmatrix : bool
        False, as SciPy's programs for arrays say: there are no matrices on the device.
    queue : pyopencl.CommandQueue, optional
        Where the array lives; `clsparse_py.default_queue` by default.

    Returns
    -------
    coo_array or numpy.ndarray
        A dense array if the file holds one.

    Raises
    ------
    OSError, ValueError
        The file is not there, or is no Matrix Market file; ``spmatrix`` is True.

    Examples
    --------
    >>> import io
    >>> import clsparse_py as sp
    >>> text = "%%MatrixMarket matrix coordinate integer general\n2 2 1\n2 1 5\n"
    >>> sp.io.mmread(io.StringIO(text)).toarray()
    array([[0, 0],
           [5, 0]])
    """
    if spmatrix:
        raise ValueError("spmatrix: must be False, as there are arrays alone on the device; use scipy.io.mmread for a matrix")
    host = scipy.io.mmread(source, spmatrix=False)
    return coo_array(host, queue=queue) if scipy.sparse.issparse(host) else host


@runs_on_host("io.mmwrite")
def mmwrite(
    target: Any,
    a: Any,
    comment: str | None = None,
    field: str | None = None,
    precision: int | None = None,
    symmetry: str = "AUTO",
) -> None:
    """Write an array to a Matrix Market file. Runs on the host, by `scipy.io.mmwrite`.

    Parameters
    ----------
    target : path-like or file
    a : array
        Sparse, of this package or of SciPy, or dense, NumPy's or the device's.
    comment, field, precision, symmetry
        As of `scipy.io.mmwrite`.

    Raises
    ------
    OSError, ValueError
        The file cannot be written, or an option is none.

    Examples
    --------
    >>> import io
    >>> import clsparse_py as sp
    >>> file = io.BytesIO()
    >>> sp.io.mmwrite(file, sp.csr_array([[0, 0], [5, 0]]), symmetry="general")
    >>> file.getvalue().decode().splitlines()[-1]
    '2 1 5'
    """
    host = on_host(a)
    scipy.io.mmwrite(target, host, comment=comment, field=field, precision=precision, symmetry=symmetry)
