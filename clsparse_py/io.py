"""Sparse matrices from files."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import scipy.io
import scipy.sparse

from clsparse_py.arithmetic import OPENCL_TYPES

__all__ = ["SUFFIXES", "read_matrix", "write_matrix"]

#: What the names of files that `read_matrix` takes end with.
SUFFIXES = (".mtx", ".mtx.gz", ".npz")

# What the readers raise on files that hold something else, or only a part. A file may also claim more entries than fit in memory.
_DAMAGED = (OSError, ValueError, TypeError, KeyError, EOFError, OverflowError, MemoryError, zipfile.BadZipFile, zlib.error)


def read_matrix(path: str | os.PathLike[str]) -> scipy.sparse.csr_array:
    """Read a sparse matrix from a Matrix Market file or from one that `scipy.sparse.save_npz` wrote.

    Parameters
    ----------
    path : path-like
        Ends with ``.mtx``, ``.mtx.gz`` or ``.npz``.

    Returns
    -------
    scipy.sparse.csr_array
        With the values' dtype in the file; patterns are ones, and duplicates are summed. A Matrix Market file of a dense matrix
        gives its nonzeros.

    Raises
    ------
    OSError
        The file is not there or may not be read.
    ValueError
        It holds no sparse matrix; the message names the file and says why.
    """
    path = Path(path)
    if not path.name.lower().endswith(SUFFIXES):
        raise ValueError(f"{path}: not a name of a matrix file, which ends with {', '.join(SUFFIXES)}")
    # The readers' own errors for such files differ, and not all of them name the file.
    with path.open("rb"):
        pass
    try:
        matrix = _checked(_load(path))
    except _DAMAGED as error:
        reason = str(error).strip() or type(error).__name__
        raise ValueError(f"{path}: holds no sparse matrix that can be read: {reason.splitlines()[0]}") from error
    return matrix


def write_matrix(path: str | os.PathLike[str], matrix: scipy.sparse.csr_array) -> None:
    """Write a sparse matrix to a Matrix Market file or as `scipy.sparse.save_npz` does.

    Parameters
    ----------
    path : path-like
        Ends with ``.mtx``, ``.mtx.gz`` or ``.npz``.
    matrix : scipy.sparse.csr_array
        Any supported dtype; Matrix Market has no bool, which is written as integers.

    Raises
    ------
    OSError
        The file cannot be written.
    ValueError
        The name ends otherwise.
    """
    path = Path(path)
    name = path.name.lower()
    if not name.endswith(SUFFIXES):
        raise ValueError(f"{path}: not a name of a matrix file, which ends with {', '.join(SUFFIXES)}")
    if name.endswith(".npz"):
        scipy.sparse.save_npz(path, matrix)
        return
    numbers = matrix.astype("int8") if matrix.dtype.kind == "b" else matrix
    opened: Any = gzip.open if name.endswith(".gz") else Path.open
    with opened(path, "wb") as file:
        scipy.io.mmwrite(file, numbers, symmetry="general")


def _load(path: Path) -> Any:
    """Return what SciPy reads, in any format, dense included."""
    if path.suffix.lower() != ".npz":
        return scipy.io.mmread(path)
    if not zipfile.is_zipfile(path):
        raise ValueError("not a file that numpy.savez wrote")
    return scipy.sparse.load_npz(path)


def _checked(found: Any) -> scipy.sparse.csr_array:
    """Return a matrix in CSR form, in order and without duplicates."""
    if found.ndim != 2:
        raise ValueError(f"has {found.ndim} dimensions, a matrix has 2")
    if found.dtype.name not in OPENCL_TYPES:
        raise ValueError(f"dtype {found.dtype} is not supported; use one of {', '.join(OPENCL_TYPES)}")
    if hasattr(found, "check_format"):
        # Before any conversion: SciPy converts compressed formats without looking, whatever the indices in the file are.
        found.check_format(full_check=True)
    matrix = scipy.sparse.csr_array(found)
    matrix.sum_duplicates()
    return matrix
