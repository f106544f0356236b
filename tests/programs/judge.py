"""Runs a step on our arrays and on SciPy's, and says in what they differ."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from pyopencl import array as cl_array

import clsparse_py
from clsparse_py._device.device import describe
from tests.programs import prelude, references
from tests.programs.drawing import SkipError
from tests.programs.prelude import ERRORS
from tests.programs.program import Input, Program, Step

__all__ = ["Find", "Machine"]

#: Steps whose results have a dtype of indices, which SciPy's versions choose by other rules.
_INDICES = ("triangles", "triangle_count", "connected_components", "bfs", "positions", "arguments of extremes", "counts")


@dataclass
class Find:
    """A failure of a step: its kind, by which shrunken programs are compared, and details in words."""

    kind: str
    text: str
    wanted: Any = None
    number: int = 0


class DifferenceError(Exception):
    """Values that are not as they should be."""


def _parts(value: Any) -> list[np.ndarray]:
    """Return the arrays of a value on the host, as they are stored."""
    if clsparse_py.issparse(value):
        names = ("data", "coords") if value.format == "coo" else ("data", "indices", "indptr")
        parts = [part for name in names for part in (getattr(value, name) if name == "coords" else (getattr(value, name),))]
        return [part.get() for part in parts]
    return [value.get()] if isinstance(value, cl_array.Array) else [value] if isinstance(value, np.ndarray) else []


def _host(value: Any) -> Any:
    """Return the host's form of a value of ours."""
    if clsparse_py.issparse(value) and not scipy.sparse.issparse(value):
        return value.get()
    if isinstance(value, tuple):
        return tuple(map(_host, value))
    return value.get() if isinstance(value, cl_array.Array) else value


def _absolute(value: Any) -> Any:
    """Return sizes in float64: what is not finite has none."""
    if scipy.sparse.issparse(value):
        wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        data = _absolute(wide.data)
        return wide._with_data(data) if wide.format != "coo" else type(wide)((data, wide.coords), shape=wide.shape)
    if isinstance(value, np.ndarray):
        wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        size = np.abs(wide.real) + np.abs(wide.imag)
        return np.where(np.isfinite(size), size, 0)
    return value


def _unit(value: Any) -> float:
    """Return the exponent of the largest power of two of which all values are multiples."""
    data = value.data if scipy.sparse.issparse(value) else value if isinstance(value, np.ndarray) else None
    if data is None or data.dtype.kind not in "fc" or not data.size:
        return 0.0
    flat = np.ravel(data)
    parts = np.concatenate([flat.real, flat.imag]) if data.dtype.kind == "c" else flat
    parts = np.unique(np.abs(parts[np.isfinite(parts) & (parts != 0)].astype(np.float64)))
    if not parts.size:
        return 0.0
    mantissa, exponent = np.frexp(parts)
    whole = (mantissa * 2.0**53).astype(np.int64)
    return float(np.min(exponent - 53 + np.log2((whole & -whole).astype(np.float64))))


def _may_have_duplicates(value: Any, kinds: str) -> bool:
    """Return whether a value is a matrix of some kinds of dtypes that may have duplicates."""
    return bool(
        scipy.sparse.issparse(value) and value.dtype.kind in kinds and not (value.format != "coo" and value.has_canonical_format)
    )


def _depends_on_conversion(value: Any) -> bool:
    """Return whether sums of a matrix's duplicates depend on when they are converted, in which SciPy's versions differ."""
    if not _may_have_duplicates(value, "biu"):
        return False
    S = value.tocoo()
    own, wide = (scipy.sparse.coo_array((S.data.astype(to), S.coords), shape=S.shape).tocsr() for to in (value.dtype, float))
    return bool(np.any(own.data.astype(float) != wide.data))


def _has_complex_infinities(value: Any) -> bool:
    """Return whether a value has complex numbers that are not finite."""
    data = np.asarray(value.data if scipy.sparse.issparse(value) else value)
    return data.dtype.kind == "c" and not np.isfinite(data).all()


def _rounds(value: Any) -> bool:
    """Return whether sums of a matrix's duplicates are rounded: what is no sum of them depends on their order."""
    if not _may_have_duplicates(value, "fc"):
        return False
    sums = _absolute(value).tocsr()
    sums.sum_duplicates()
    return sums.nnz < value.nnz and _largest(sums) * 2.0 ** -_unit(value) > 1 / float(np.finfo(value.dtype).eps)


def _largest(value: Any) -> float:
    data = value.data if scipy.sparse.issparse(value) else np.asarray(value)
    return float(np.max(np.abs(data), initial=0)) if data.dtype.kind in "fiub" else float("inf")


class Machine:
    """A process's queues, and the variables of a program on both sides.

    Parameters
    ----------
    program : Program
        Whose steps may come later.
    """

    def __init__(self, program: Program) -> None:
        self.ours: dict[str, Any] = dict(vars(prelude))
        self.ours["q"], self.ours["q2"] = (self.ours["queue"](mode) for mode in program.queues)
        self.oracle: dict[str, Any] = {
            **{name: getattr(references, name) for name in vars(references) if not name.startswith("__")},
            "eye": lambda _, m, n: scipy.sparse.eye_array(m, n, dtype=bool, format="csr"),
            "np": np,
            "sp": scipy.sparse,
            "linalg": scipy.sparse.linalg,
            "q": None,
            "inf": np.inf,
            "nan": np.nan,
        }
        self.ours_of: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        #: Arrays of variables that have been operands, as they were.
        self.parts: dict[str, list[np.ndarray]] = {}

    def make(self, given: Input) -> Find | None:
        """Make an input on both sides."""
        for i, part in enumerate(given.parts):
            self.ours[f"{given.target}_{i}"] = part.copy()
            self.oracle[f"{given.target}_{i}"] = part
        wanted = eval(given.text(False), self.oracle)
        self._keep(given.target, None, wanted)
        try:
            result = eval(given.text(True), self.ours)
        except Exception as error:
            return self._raised(given.name, error)
        self._keep(given.target, result, wanted)
        summed = given.made == "coordinates" and wanted.dtype.kind in "fc"
        bound = 32 * np.finfo(wanted.dtype).eps * _largest(_absolute(wanted)) if summed else None
        find = self._judged(given, result, wanted, bound)
        if summed:
            self._keep(given.target, result, _host(result))
        return find

    def bounds(self, step: Step, wanted: Any) -> tuple[bool, Any]:
        """Return whether a step is exact in every order, and bounds of its errors if not.

        Raises
        ------
        SkipError
            Numbers grow too large or too small for either.
        """
        names = [name for name in step.uses() if name in self.values]
        of = [self.values[name] for name in names]
        # A function as steep as tan makes any error of its argument larger, and a sum that is rounded is zero, or is not.
        if (step.grade == "move" or step.name in ("functions", "positions")) and any(map(_rounds, of)):
            raise SkipError
        # NumPy makes a real factor complex, and the product of its zero with an infinity is NaN; ours stays real.
        if (step.grade == "product" or step.same) and any(map(_has_complex_infinities, of)):
            raise SkipError
        wanted = wanted[-1] if isinstance(wanted, tuple) else wanted
        dtype = np.asarray(wanted.data if scipy.sparse.issparse(wanted) else wanted).dtype
        if any(_depends_on_conversion(operand) and operand.dtype != dtype for operand in of):
            raise SkipError
        if step.grade == "move" or (dtype.kind not in "fc" and step.grade != "round"):
            return True, None
        sizes = {**self.oracle, **{name: _absolute(value) for name, value in zip(names, of, strict=True)}}
        if step.grade == "round":
            rounded = eval(step.magnitude, sizes) if step.magnitude else wanted
            rounded = rounded if scipy.sparse.issparse(rounded) else np.asarray(rounded)
            return False, step.tolerance * np.finfo(dtype).eps * _largest(_absolute(rounded)) if dtype.kind in "fc" else 0.0
        with np.errstate(all="ignore"):
            magnitude = eval(step.magnitude or step.oracle or step.ours, sizes)
        magnitude = magnitude[-1] if isinstance(magnitude, tuple) else magnitude
        largest = _largest(magnitude)
        # A factor that is there twice, as in A @ A, has its unit twice.
        there = re.findall(r"\bv\d+\b", step.oracle or step.ours)
        times = {name: there.count(name) if step.grade == "product" else 1 for name in names}
        units = [
            min(unit, times[name] * unit) for name, unit in zip(names, map(_unit, of), strict=True) if name not in step.apart
        ]
        unit = (
            min([sum(units), *(_unit(self.values[name]) for name in step.apart)])
            if step.grade == "product"
            else min([0.0, *units] if any(not _floats(operand) for operand in of) else units or [0.0])
        )
        info = np.finfo(dtype)
        # SciPy adds values up in their own dtype, whatever the dtype of the result is.
        coarsest = max(
            [float(info.eps), *(float(np.finfo(operand.dtype).eps) for operand in of if step.grade == "sum" and _floats(operand))]
        )
        if not largest < float(info.max) / 8:
            raise SkipError
        # Sums of duplicates are rounded to their own dtype, whatever the result's is.
        rough = [float(np.finfo(operand.dtype).eps) for operand in of if _rounds(operand)]
        if not rough and unit > info.minexp + 2 and largest * 2.0**-unit <= 1 / coarsest:
            return True, None
        if largest < float(info.tiny) / float(info.eps) * 4 and largest:
            raise SkipError
        eps = max([coarsest, *rough]) * (step.terms + 8) * 4
        return False, eps * largest

    def run(self, step: Step, before_ours: Callable[[], None] = lambda: None) -> Find | None:
        """Do a step on both sides, and compare; raise a SkipError if the oracle cannot say what is right."""
        if step.name == "del":
            before_ours()
            self.forget(step.ours.split()[1])
            return None
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # SciPy's methods put their own operand in order; ours leave it.
            operands = {name: self.values[name] for name in step.uses() if name in self.values}
            copied = {name: value.copy() for name, value in operands.items() if scipy.sparse.issparse(value)}
            # As docs/arrays.md has it of products of matrices.
            matrices = [name for name in re.findall(r"\bv\d+\b", step.oracle or step.ours) if name in copied]
            several = step.grade == "product" and step.name != "kron" and len(matrices) > 1
            for copied_value in copied.values() if several else ():
                copied_value.sum_duplicates()
            try:
                wanted: Any = eval(step.oracle or step.ours, {**self.oracle, **copied})
            except ERRORS as error:
                wanted = error
            except Exception as error:
                raise SkipError from error
            if isinstance(wanted, Exception):
                exact, bound = True, None
            else:
                exact, bound = self.bounds(step, wanted)
            names = [name for name in step.uses() if name in self.ours_of]
            for name in names:
                if name not in self.parts:
                    self.parts[name] = _parts(self.ours_of[name])
            before_ours()
            if step.fails:
                try:
                    self.ours["failing"](*step.fails, lambda: eval(step.ours, self.ours))
                except Exception as error:
                    return self._raised(f"{step.name}: planted failure", error)
            find = self._ours(step, wanted, exact, bound)
            if find is None:
                for name in names:
                    after = _parts(self.ours_of[name])
                    if any(a.tobytes() != b.tobytes() for a, b in zip(self.parts[name], after, strict=True)):
                        return Find(f"{step.name}: operand", f"{name} is not the same after {step.ours}")
            return find

    def _ours(self, step: Step, wanted: Any, exact: bool, bound: Any) -> Find | None:
        for text in (step.ours, step.same):
            if not text:
                continue
            try:
                result = eval(text, self.ours)
            except Exception as error:
                if isinstance(error, TypeError) and "lacks" in str(error) and not describe(prelude.DEVICE).fp64:
                    return None  # as documented of devices without double precision
                if isinstance(wanted, Exception):
                    if isinstance(error, type(wanted)) or isinstance(wanted, type(error)):
                        continue
                    return Find(
                        f"{step.name}: error",
                        f"{type(wanted).__name__} is wanted ({wanted}), not {type(error).__name__}: {error}",
                        wanted,
                    )
                return self._raised(step.name, error)
            if isinstance(wanted, Exception):
                return Find(f"{step.name}: no error", f"{type(wanted).__name__} is wanted: {wanted}", wanted)
            self._keep(step.target, result, wanted)
            of = step if text is step.ours else replace(step, name=f"{step.name}: relation")
            find = self._judged(of, result, wanted, None if exact else bound)
            if find:
                return find
        if isinstance(wanted, Exception):
            return None
        if not exact or not step.stored:
            # What follows is judged by what our value is.
            self._keep(step.target, self.ours[step.target], _host(self.ours[step.target]))
        return None

    def _keep(self, name: str, result: Any, wanted: Any) -> None:
        self.parts.pop(name, None)
        self.ours[name] = self.ours_of[name] = result
        self.oracle[name] = self.values[name] = wanted

    def forget(self, name: str) -> None:
        """Let a variable die."""
        for names in (self.ours, self.ours_of, self.oracle, self.values, self.parts):
            names.pop(name, None)

    @staticmethod
    def _raised(name: str, error: Exception) -> Find:
        return Find(f"{name}: {type(error).__name__}", "".join(traceback.format_exception(error)[-4:]), None)

    def _judged(self, step: Any, result: Any, wanted: Any, bound: Any) -> Find | None:
        try:
            compare(result, wanted, bound, step)
        except DifferenceError as difference:
            return Find(f"{step.name}: {str(difference).partition(':')[0]}", str(difference), wanted)
        except Exception as error:
            return self._raised(f"{step.name}: reading", error)
        return None


def _floats(value: Any) -> bool:
    return bool(getattr(value, "dtype", np.dtype(int)).kind in "fc")


def compare(result: Any, wanted: Any, bound: Any, step: Any) -> None:
    """Compare a value of ours with the oracle's."""
    if isinstance(wanted, tuple):
        if not isinstance(result, tuple) or len(result) != len(wanted):
            raise DifferenceError(f"kind: {type(result).__name__}, not a tuple of {len(wanted)}")
        for pair in zip(result, wanted, strict=True):
            compare(*pair, bound, step)
        return
    if scipy.sparse.issparse(wanted):
        _compare_sparse(result, wanted, bound, step)
        return
    if clsparse_py.issparse(result):
        raise DifferenceError(f"kind: {type(result).__name__} instead of a dense result")
    result, wanted = np.asarray(_host(result)), np.asarray(wanted)
    if step.name not in _INDICES:
        _same("dtype", result.dtype, wanted.dtype)
    _same("shape", result.shape, wanted.shape)
    _compare_values(result, wanted, bound, step)


def _same(what: str, result: Any, wanted: Any) -> None:
    if result != wanted:
        raise DifferenceError(f"{what}: {result} instead of {wanted}")


def _compare_sparse(result: Any, wanted: Any, bound: Any, step: Any) -> None:
    if not clsparse_py.issparse(result):
        raise DifferenceError(f"kind: {type(result).__name__} instead of {wanted.format}")
    if wanted.format in ("csr", "csc", "coo") and not step.name.endswith("relation"):
        _same("format", result.format, wanted.format)
    _same("dtype", result.dtype, wanted.dtype)
    _same("shape", result.shape, wanted.shape)
    ours = result.get()
    if getattr(step, "stored", True):
        _same("nnz", ours.nnz, wanted.nnz)
    ours, others = (_entries(matrix) for matrix in (ours, wanted))
    if not getattr(step, "stored", True) or bound is not None:
        keys = np.union1d(ours[0], others[0])
        ours, others = ((keys, _spread(keys, *entries)) for entries in (ours, others))
    elif not np.array_equal(ours[0], others[0]):
        raise DifferenceError("structure: entries are at other places")
    _compare_values(ours[1], others[1], bound, step, ours[0], wanted.shape)


def _spread(keys: np.ndarray, of: np.ndarray, values: np.ndarray) -> np.ndarray:
    all_of = np.zeros(keys.size, values.dtype)
    all_of[np.searchsorted(keys, of)] = values
    return all_of


def _entries(S: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return places in order, and the sum of the values at each."""
    S = S.tocoo()
    with np.errstate(all="ignore"):
        coords = S.coords if S.ndim == 2 else (np.zeros(S.nnz, np.int64), *S.coords)
        keys = coords[0].astype(np.int64) * S.shape[-1] + coords[1]
        order = np.lexsort((S.data.imag, S.data.real, keys))  # sums of duplicates do not depend on how they are stored
        keys, values = keys[order], S.data[order]
        if keys.size < 2 or (np.diff(keys) > 0).all():
            return keys, values
        first = np.flatnonzero(np.concatenate(([True], np.diff(keys) > 0)))
        add = np.logical_or if values.dtype.kind == "b" else np.add
        return keys[first], add.reduceat(values, first).astype(values.dtype)


def _compare_values(result: np.ndarray, wanted: np.ndarray, bound: Any, step: Any, keys: Any = None, shape: Any = None) -> None:
    if bound is None:
        signs = getattr(step, "signs", False)
        right = (result == wanted) | ((result != result) & (wanted != wanted))
        if signs and result.dtype.kind == "f":
            right &= (np.signbit(result) == np.signbit(wanted)) | (result != result)
    else:
        with np.errstate(all="ignore"):
            sizes = np.abs(wanted.astype(np.complex128 if wanted.dtype.kind == "c" else float))
            finite = np.isfinite(sizes)
            right = np.where(
                finite,
                np.abs(result.astype(sizes.dtype if wanted.dtype.kind != "c" else complex) - wanted) <= bound,
                ~np.isfinite(result),
            )
    if not np.all(right):
        wrong = np.flatnonzero(~np.ravel(right))
        at = int(wrong[0]) if keys is None else int(keys[wrong[0]])
        where = tuple(map(int, np.unravel_index(at, shape or result.shape))) if result.ndim or keys is not None else ()
        raise DifferenceError(
            f"value: {np.ravel(result)[wrong[0]]!r} instead of {np.ravel(wanted)[wrong[0]]!r} at {where}, "
            f"{wrong.size} of {right.size} are wrong"
        )
