"""Sparse matrices from files."""

from __future__ import annotations

import gzip
import inspect
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from clsparse_py._ground.files import replacing
from clsparse_py._precision.arithmetic import OPENCL_TYPES

__all__ = ["SUFFIXES", "read_matrix", "suffix_of", "write_matrix"]

#: Endings of the names of files that `read_matrix` takes.
SUFFIXES = (".mtx", ".mtx.gz", ".npz")

# Errors of SciPy's readers for malformed, truncated or oversized files.
_DAMAGED = (OSError, ValueError, TypeError, KeyError, EOFError, OverflowError, MemoryError, zipfile.BadZipFile, zlib.error)

# Asks for an array: older versions of SciPy have no such option, and later ones warn if it is not given.
_AS_ARRAY: dict[str, Any] = {"spmatrix": False} if "spmatrix" in inspect.signature(scipy.io.mmread).parameters else {}


def read_matrix(path: str | os.PathLike[str]) -> scipy.sparse.csr_array:
    """Read a sparse matrix from a Matrix Market file or from one that `scipy.sparse.save_npz` wrote.

    Parameters
    ----------
    path : path-like
        Ends with ``.mtx``, ``.mtx.gz`` or ``.npz``, in upper or lower case.

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
    suffix = suffix_of(path)
    # The readers' own errors for such files differ, and not all of them name the file.
    with path.open("rb"):
        pass
    try:
        matrix = _check(_load(path, suffix))
    except _DAMAGED as error:
        reason = str(error).strip() or type(error).__name__
        raise ValueError(f"{path}: holds no sparse matrix that can be read: {reason.splitlines()[0]}") from error
    return matrix


def write_matrix(path: str | os.PathLike[str], matrix: scipy.sparse.csr_array) -> None:
    """Write a sparse matrix to a Matrix Market file or as `scipy.sparse.save_npz` does: all of it, or nothing.

    A file that is there keeps its permissions, and stays as it is where the new one cannot be written.

    Parameters
    ----------
    path : path-like
        Ends with ``.mtx``, ``.mtx.gz`` or ``.npz``, in upper or lower case.
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
    suffix = suffix_of(path)
    numbers = matrix.astype("int8") if matrix.dtype.kind == "b" and suffix != ".npz" else matrix
    with replacing(path) as file:
        if suffix == ".npz":
            scipy.sparse.save_npz(file, numbers)
        elif suffix == ".mtx":
            scipy.io.mmwrite(file, numbers, symmetry="general")
        else:
            with gzip.GzipFile(path.name, "wb", fileobj=file) as compressed:
                scipy.io.mmwrite(compressed, numbers, symmetry="general")


def suffix_of(path: Path) -> str:
    """Return which of `SUFFIXES` a name ends with, in upper or lower case.

    Raises
    ------
    ValueError
        None of them.
    """
    ending = next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), None)
    if ending is None:
        raise ValueError(f"{path}: not a name of a matrix file, which ends with {', '.join(SUFFIXES)}")
    return ending


def _load(path: Path, suffix: str) -> Any:
    """Return the matrix as SciPy reads it, in any format, dense included."""
    if suffix == ".mtx":
        return scipy.io.mmread(path, **_AS_ARRAY)
    if suffix == ".mtx.gz":
        # SciPy takes a name for that of a compressed file in lower case alone.
        with gzip.open(path, "rb") as file:
            return scipy.io.mmread(file, **_AS_ARRAY)
    if not zipfile.is_zipfile(path):
        raise ValueError("not a file that numpy.savez wrote")
    return scipy.sparse.load_npz(path)


def _check(loaded: Any) -> scipy.sparse.csr_array:
    """Return a matrix in CSR form, in order and without duplicates."""
    if loaded.ndim != 2:
        raise ValueError(f"has {loaded.ndim} dimensions, a matrix has 2")
    if loaded.dtype.name not in OPENCL_TYPES:
        raise ValueError(f"dtype {loaded.dtype} is not supported; use one of {', '.join(OPENCL_TYPES)}")
    if hasattr(loaded, "check_format"):
        # Before any conversion: SciPy converts compressed formats without looking, whatever the indices in the file are.
        loaded.check_format(full_check=True)
    if (
        getattr(loaded, "format", "") == "coo"
        and 8 * loaded.shape[0] > loaded.row.nbytes + loaded.col.nbytes + loaded.data.nbytes
    ):
        return _of_few_entries(loaded)
    matrix = scipy.sparse.csr_array(loaded)
    matrix.sum_duplicates()
    return matrix


def _of_few_entries(coordinates: Any) -> scipy.sparse.csr_array:
    """Return the CSR form of a matrix in coordinates that takes less memory than the pointers of its rows.

    SciPy passes over all rows several times; this writes each row's pointer once.
    """
    coordinates.sum_duplicates()
    order = np.lexsort((coordinates.col, coordinates.row))
    steps = np.diff(coordinates.row[order].astype(np.int64), prepend=-1, append=coordinates.shape[0])
    indptr = np.repeat(np.arange(order.size + 1, dtype=coordinates.col.dtype), steps)
    return scipy.sparse.csr_array((coordinates.data[order], coordinates.col[order], indptr), shape=coordinates.shape)
