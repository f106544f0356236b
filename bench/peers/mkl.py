"""Intel MKL: one-shot products as ``sparse_dot_mkl`` makes them, a handle optimised beforehand, what is made of handles."""

from __future__ import annotations

import abc
import ctypes
import ctypes.util
import functools
import importlib.metadata
import os
import time
from types import ModuleType
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.sparse as sp

from bench import machine
from bench.contestants import Contestant, HostPrepared
from bench.problems.base import Array, Result
from bench.problems.spgemm import Spgemm
from bench.problems.spmm import OPERATIONS, Spmm
from bench.problems.spmv import Spmv
from bench.problems.sptrans import Sptrans
from bench.problems.sptrsv import Sptrsv

# sparse_operation_t: the matrix itself.
_NON_TRANSPOSE = 10
# sparse_operation_t: its transposed.
_TRANSPOSE = 11
# sparse_index_base_t: indices from 0.
_ZERO_BASED = 0
# Products that a handle is told to expect: many, as the cost of optimising it is reported apart.
_EXPECTED_PRODUCTS = 1000
# Letters of the dtypes in MKL's function names.
_LETTERS = {"float64": "d", "float32": "s"}
_SCALARS: dict[str, Any] = {"float64": ctypes.c_double, "float32": ctypes.c_float}


class _Description(ctypes.Structure):
    """``struct matrix_descr``: a general matrix; the other two fields then do not count."""

    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diagonal", ctypes.c_int)]


# A general matrix, as MKL numbers it.
_GENERAL = _Description(20, 40, 50)
# The lower triangle of a matrix, with the stored diagonal.
_LOWER = _Description(23, 40, 50)


def available() -> str | None:
    """Return why this peer cannot run here, or None."""
    try:
        _interface()
    except ImportError as error:
        return str(error)
    return None


def versions() -> dict[str, str]:
    """Return the versions that this peer's times depend on."""
    return {name: machine.version_of(name) or "unknown" for name in ("mkl", "sparse_dot_mkl")}


def contestants(operation: str, _queue: cl.CommandQueue) -> list[Contestant]:
    """Return who can compute an operation."""
    if operation == "spmv":
        return [Contestant("mkl/one-shot", _one_shot), Contestant("mkl/handle", _optimise)]
    calls = {"sptrans": _sptrans, "spgemm": _spgemm, "amg": _spgemm, "sptrsv": _sptrsv, **dict.fromkeys(OPERATIONS, _spmm)}
    return [Contestant("mkl", calls[operation])] if operation in calls else []


def _one_shot(problem: Spmv) -> HostPrepared:
    dot = _interface().dot_product_mkl
    y = problem.empty()
    return HostPrepared(problem, lambda: (dot(problem.matrix, problem.x, out=y, out_scalar=0.0),), f"{machine.threads()} threads")


def _optimise(problem: Spmv) -> HostPrepared:
    start = time.perf_counter()
    product = _Product(problem)
    created = time.perf_counter() - start
    prepared = HostPrepared(problem, product, f"{machine.threads()} threads, {_EXPECTED_PRODUCTS} products expected")
    prepared.once["plan"] = created
    return prepared


def _spmm(problem: Spmm) -> HostPrepared:
    dot = _interface().dot_product_mkl
    return HostPrepared(problem, lambda: (dot(problem.matrix, problem.X),), f"{machine.threads()} threads")


def _sptrans(problem: Sptrans) -> HostPrepared:
    return HostPrepared(problem, _Conversion(problem), f"{machine.threads()} threads")


def _spgemm(problem: Spgemm) -> HostPrepared:
    return HostPrepared(
        problem, _MatrixProduct(problem), f"{machine.threads()} threads, rows sorted", unpack=problem.with_cancelled
    )


def _sptrsv(problem: Sptrsv) -> HostPrepared:
    start = time.perf_counter()
    solution = _Solution(problem)
    created = time.perf_counter() - start
    prepared = HostPrepared(problem, solution, f"{machine.threads()} threads, {_EXPECTED_PRODUCTS} solutions expected")
    prepared.once["plan"] = created
    return prepared


class _Handle:
    """MKL's handle of a matrix, kept for as long as the arrays that it points into."""

    def __init__(self, matrix: sp.csr_array) -> None:
        # LP64: MKL's integers are 32 bits wide.
        self._arrays = (matrix.indptr.astype(np.int32, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.data)
        starts, columns, values = (array.ctypes.data for array in self._arrays)
        self.letter = _LETTERS[matrix.dtype.name]
        self.pointer = ctypes.c_void_p()
        _call(
            f"mkl_sparse_{self.letter}_create_csr",
            ctypes.byref(self.pointer),
            _ZERO_BASED,
            *matrix.shape,
            ctypes.c_void_p(starts),
            ctypes.c_void_p(starts + self._arrays[0].itemsize),
            ctypes.c_void_p(columns),
            ctypes.c_void_p(values),
        )

    def __del__(self) -> None:
        _destroy(self.pointer)


class _Product:
    """A product by a handle that was told what to expect, and optimised."""

    def __init__(self, problem: Spmv) -> None:
        self._problem = problem
        self._scalar = _SCALARS[problem.dtype]
        self._y = problem.empty()
        self._handle = _Handle(problem.matrix)
        _call("mkl_sparse_set_mv_hint", self._handle.pointer, _NON_TRANSPOSE, _GENERAL, _EXPECTED_PRODUCTS)
        _call("mkl_sparse_optimize", self._handle.pointer)

    def __call__(self) -> Result:
        """Compute y = A @ x."""
        _call(
            f"mkl_sparse_{self._handle.letter}_mv",
            _NON_TRANSPOSE,
            self._scalar(1.0),
            self._handle.pointer,
            _GENERAL,
            ctypes.c_void_p(self._problem.x.ctypes.data),
            self._scalar(0.0),
            ctypes.c_void_p(self._y.ctypes.data),
        )
        return (self._y,)


class _Solution:
    """A solution by a handle that was told what to expect, and optimised."""

    def __init__(self, problem: Sptrsv) -> None:
        self._b, self._x = problem.b, problem.empty()
        self._scalar = _SCALARS[problem.dtype]
        self._handle = _Handle(problem.matrix)
        _call("mkl_sparse_set_sv_hint", self._handle.pointer, _NON_TRANSPOSE, _LOWER, _EXPECTED_PRODUCTS)
        _call("mkl_sparse_optimize", self._handle.pointer)

    def __call__(self) -> Result:
        """Solve L x = b."""
        name, b, x = f"mkl_sparse_{self._handle.letter}_trsv", self._b.ctypes.data, self._x.ctypes.data
        _call(name, _NON_TRANSPOSE, self._scalar(1.0), self._handle.pointer, _LOWER, ctypes.c_void_p(b), ctypes.c_void_p(x))
        return (self._x,)


class _Made(abc.ABC):
    """A matrix in memory that MKL takes at each call and that is given back at the next."""

    def __init__(self, *operands: sp.csr_array) -> None:
        self._handles = [_Handle(operand) for operand in operands]
        self._dtype = operands[0].dtype
        self._made = ctypes.c_void_p()

    @abc.abstractmethod
    def _make(self) -> None:
        """Have MKL make it."""

    def __call__(self) -> Result:
        """Make it, and return views of its arrays."""
        _destroy(self._made)
        self._make()
        base, rows, columns = (ctypes.c_int() for _ in range(3))
        starts, ends, indices, values = (ctypes.c_void_p() for _ in range(4))
        _call(
            f"mkl_sparse_{self._handles[0].letter}_export_csr",
            self._made,
            *(ctypes.byref(part) for part in (base, rows, columns, starts, ends, indices, values)),
        )
        indptr = _view(starts, rows.value + 1, np.dtype(np.int32))
        return indptr, _view(indices, int(indptr[-1]), indptr.dtype), _view(values, int(indptr[-1]), self._dtype)

    def __del__(self) -> None:
        _destroy(self._made)


class _Conversion(_Made):
    """A^T in CSR form."""

    def __init__(self, problem: Sptrans) -> None:
        super().__init__(problem.matrix)

    def _make(self) -> None:
        _call("mkl_sparse_convert_csr", self._handles[0].pointer, _TRANSPOSE, ctypes.byref(self._made))


class _MatrixProduct(_Made):
    """A @ B with sorted rows."""

    def __init__(self, problem: Spgemm) -> None:
        super().__init__(problem.matrix, problem.right)

    def _make(self) -> None:
        left, right = (handle.pointer for handle in self._handles)
        _call("mkl_sparse_spmm", _NON_TRANSPOSE, left, right, ctypes.byref(self._made))
        _call("mkl_sparse_order", self._made)


def _view(pointer: ctypes.c_void_p, size: int, dtype: np.dtype[Any]) -> Array:
    """Return the memory at a pointer as an array."""
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(pointer.value or 0)
    view: Array = np.frombuffer(memory, dtype)
    return view


def _destroy(handle: ctypes.c_void_p) -> None:
    if handle:
        _library().mkl_sparse_destroy(handle)
        handle.value = None


def _call(function: str, *arguments: Any) -> None:
    status = getattr(_library(), function)(*arguments)
    if status != 0:
        raise RuntimeError(f"{function} returned status {status}")


@functools.cache
def _interface() -> ModuleType:
    # Workers that spin for 200 ms after a product, MKL's default, would slow down whoever is measured next; 1 ms still spans
    # the gap between products that follow one another.
    os.environ.setdefault("KMP_BLOCKTIME", "1")
    if "MKL_RT" not in os.environ and ctypes.util.find_library("mkl_rt") is None and (path := _runtime_of_wheel()):
        os.environ["MKL_RT"] = path
    import sparse_dot_mkl

    sparse_dot_mkl.mkl_set_num_threads(machine.threads())
    module: ModuleType = sparse_dot_mkl
    return module


@functools.cache
def _library() -> ctypes.CDLL:
    _interface()
    from sparse_dot_mkl._mkl_interface._cfunctions import mkl_library_name

    # The same runtime as the one-shot products', through objects of our own: that package declares argument types on its own.
    return ctypes.CDLL(mkl_library_name())


def _runtime_of_wheel() -> str | None:
    """Return where pip put MKL's runtime: a virtual environment's ``lib`` is not on the loader's path."""
    try:
        files = importlib.metadata.files("mkl") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.name.startswith("libmkl_rt.so")), None)
