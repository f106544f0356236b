"""Files of sparse matrices, read to SciPy's arrays and written from them: Matrix Market, and NumPy's ``.npz``."""

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

#: Endings of the names of files that `read_matrix` and `write_matrix` take.
SUFFIXES = (".mtx", ".mtx.gz", ".npz")

#: Classes of errors that SciPy's readers raise for malformed, truncated or oversized files.
_DAMAGED = (OSError, ValueError, TypeError, KeyError, EOFError, OverflowError, MemoryError, zipfile.BadZipFile, zlib.error)

#: Option of `scipy.io.mmread` for a sparse array, not a matrix, as the result; empty if SciPy is too old to have the option.
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
        The matrix, in the dtype of the file's values; patterns are ones, and duplicates are summed. A Matrix Market file of a
        dense matrix gives its nonzeros.

    Raises
    ------
    OSError
        The file is not there or may not be read.
    ValueError
        The file holds no sparse matrix; the message names the file and says why.
    """
    path = Path(path)
    suffix = suffix_of(path)
    # A missing file raises an OSError here that names the file, which not all errors of SciPy's readers do.
    with path.open("rb"):
        pass
    try:
        matrix = _canonical_csr(_load(path, suffix))
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
        A matrix of any supported dtype; Matrix Market has no bool, which is written as integers.

    Raises
    ------
    OSError
        The file cannot be written.
    ValueError
        The name has another ending.
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
    """Return the one of `SUFFIXES` with which a file's name ends, ignoring the name's case; raise a ValueError without one."""
    ending = next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), None)
    if ending is None:
        raise ValueError(f"{path}: not a name of a matrix file, which ends with {', '.join(SUFFIXES)}")
    return ending


def _load(path: Path, suffix: str) -> Any:
    """Return the matrix in a file as SciPy's reader returns it: in any format, dense included."""
    if suffix == ".mtx":
        return scipy.io.mmread(path, **_AS_ARRAY)
    if suffix == ".mtx.gz":
        # A compressed Matrix Market file is opened here, as SciPy takes a file as compressed by a lower-case ending alone.
        with gzip.open(path, "rb") as file:
            return scipy.io.mmread(file, **_AS_ARRAY)
    if not zipfile.is_zipfile(path):
        raise ValueError("not a file that numpy.savez wrote")
    return scipy.sparse.load_npz(path)


def _canonical_csr(loaded: Any) -> scipy.sparse.csr_array:
    """Return a loaded matrix in canonical CSR form; raise a ValueError if it is no valid matrix of a supported dtype."""
    if loaded.ndim != 2:
        raise ValueError(f"has {loaded.ndim} dimensions, a matrix has 2")
    if loaded.dtype.name not in OPENCL_TYPES:
        raise ValueError(f"dtype {loaded.dtype} is not supported; use one of {', '.join(OPENCL_TYPES)}")
    if hasattr(loaded, "check_format"):
        # A loaded matrix is checked before any conversion, as SciPy's conversions of compressed formats trust its indices.
        loaded.check_format(full_check=True)
    if (
        getattr(loaded, "format", "") == "coo"
        and 8 * loaded.shape[0] > loaded.row.nbytes + loaded.col.nbytes + loaded.data.nbytes
    ):
        return _convert_hypersparse(loaded)
    matrix = scipy.sparse.csr_array(loaded)
    matrix.sum_duplicates()
    return matrix


def _convert_hypersparse(coordinates: Any) -> scipy.sparse.csr_array:
    """Return the canonical CSR form of a COO matrix whose arrays take less memory than its row pointers will.

    SciPy's conversion passes over all rows several times; this conversion writes row pointers once.
    """
    coordinates.sum_duplicates()
    order = np.lexsort((coordinates.col, coordinates.row))
    steps = np.diff(coordinates.row[order].astype(np.int64), prepend=-1, append=coordinates.shape[0])
    indptr = np.repeat(np.arange(order.size + 1, dtype=coordinates.col.dtype), steps)
    return scipy.sparse.csr_array((coordinates.data[order], coordinates.col[order], indptr), shape=coordinates.shape)
