"""Value types, index type and semiring in OpenCL C: the part of a kernel's prelude that defines the arithmetic."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from clsparse_py._ground.errors import DtypeError
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.semiring import of_name

__all__ = [
    "MOVED_TYPES",
    "OPENCL_TYPES",
    "Arithmetic",
    "conversion",
    "define_numbers",
    "define_sum_type",
    "extreme",
    "extreme_of_none",
    "literal",
    "name_of",
    "needs_fp64",
    "operation",
    "unsupported_dtype",
]

#: OpenCL C types of values that kernels only move, without computing: an unsigned word or a pair, by the size in bytes.
MOVED_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "ulong2"}
#: NumPy's dtypes that kernels take, and their types in OpenCL C. A bool is a byte of 0 or 1; a complex is a pair.
OPENCL_TYPES = {
    "bool": "uchar",
    "int8": "char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "long",
    "uint64": "ulong",
    "float32": "float",
    "float64": "double",
    "complex64": "float2",
    "complex128": "double2",
}
#: OpenCL's macros for the largest value of each integer type.
_MAX_VALUES = {"char": "CHAR_MAX", "short": "SHRT_MAX", "int": "INT_MAX", "long": "LONG_MAX"}
_MAX_VALUES |= {"uchar": "UCHAR_MAX", "ushort": "USHRT_MAX", "uint": "UINT_MAX", "ulong": "ULONG_MAX"}
#: Unsigned OpenCL C types for the bits of a value, by the size of the value in bytes.
_BITS = {1: "uchar", 2: "ushort", 4: "uint", 8: "uint2", 16: "uint4"}
#: OpenCL C text of functions of a type T of real numbers, such as products and absolute values.
_REAL_FUNCTIONS = """T times(const T a, const T b) { return a * b; }
T quotient(const T a, const T b) { return a / b; }
T conjugate(const T a) { return a; }
R real_part(const T a) { return a; }
T of_real(const R a) { return a; }
R square(const T a) { return a * a; }
R magnitude(const T a) { return fabs(a); }
R largest(const T a) { return fabs(a); }
T times_power(const T a, const int exponent) { return ldexp(a, exponent); }"""
#: OpenCL C text of functions of a type T of complex numbers, with the names in `_REAL_FUNCTIONS`.
_COMPLEX_FUNCTIONS = """T times(const T a, const T b) { return (T)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
T quotient(const T a, const T b) // Smith, "Algorithm 116": the inverse of b may overflow where a is small, too
{
    const bool turned = fabs(b.x) < fabs(b.y);
    const T over = turned ? (T)(a.y, -a.x) : a, under = turned ? (T)(b.y, -b.x) : b;
    const R ratio = under.y / under.x;
    return (T)(over.x + over.y * ratio, over.y - over.x * ratio) / (under.x + under.y * ratio);
}
T conjugate(const T a) { return (T)(a.x, -a.y); }
R real_part(const T a) { return a.x; }
T of_real(const R a) { return (T)(a, 0); }
R square(const T a) { return a.x * a.x + a.y * a.y; }
R magnitude(const T a) { return hypot(a.x, a.y); }
R largest(const T a) { return fmax(fabs(a.x), fabs(a.y)); }
T times_power(const T a, const int exponent) { return (T)(ldexp(a.x, exponent), ldexp(a.y, exponent)); } // quirk 45"""


def needs_fp64(*dtypes: np.dtype[Any]) -> bool:
    """Return whether computing with values of these dtypes needs double precision of the device."""
    return any(dtype.char in "dD" for dtype in dtypes)


def conversion(source: np.dtype[Any], target: np.dtype[Any]) -> str:
    """Return the OpenCL C expression that converts a value ``v`` of dtype ``source`` to dtype ``target``.

    A complex value loses its imaginary part for a real target; a bool is True for a value that is not 0. Floats become integers
    by way of int64, whose lowest bits count: -1.0 is 255 as uint8, as NumPy has it, where C leaves the result open. The result
    for floats that int64 does not hold is undefined in NumPy, too, but for uint64.
    """
    kind = OPENCL_TYPES[target.name]
    if source == target:
        return "(v)"
    if target.kind == "b":
        return "(v.x != 0 || v.y != 0)" if source.kind == "c" else "(v != 0)"
    if target.kind == "c":
        return f"convert_{kind}(v)" if source.kind == "c" else f"(({kind})(v, 0))"
    value = "v.x" if source.kind == "c" else "v"
    if source.kind in "fc" and target.kind in "iu":
        integer = f"({kind})(long){value}"
        return f"({value} < 0 ? {integer} : (ulong){value})" if target.name == "uint64" else f"({integer})"
    return f"(({kind})({value}))"


def define_sum_type(dtype: np.dtype[Any]) -> list[str]:
    """Return lines of OpenCL C: the type T of sums, and macros that convert T to unsigned words of the same bits and back."""
    kind, bits = OPENCL_TYPES[dtype.name], _BITS[dtype.itemsize]
    return [
        f"typedef {kind} T;  // {dtype.name}: sums",
        f"#define T_BYTES {dtype.itemsize}",
        f"#define T_BITS(v) as_{bits}(v)",
        f"#define T_FROM_BITS(v) as_{kind}(v)",
    ]


def define_numbers(dtype: np.dtype[Any], addition: str = "((a) + (b))") -> list[str]:
    """Return lines of OpenCL C: a type T of real or complex numbers, the real type R of its parts, and functions of T."""
    real = "double" if needs_fp64(dtype) else "float"
    fp64 = ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if needs_fp64(dtype) else []
    types = [*define_sum_type(dtype), f"typedef {real} R;", "#define ZERO ((T)(0))", f"#define ADD(a, b) {addition}"]
    return [*fp64, *types, _COMPLEX_FUNCTIONS if dtype.kind == "c" else _REAL_FUNCTIONS]


def extreme(name: str, dtype: np.dtype[Any]) -> str:
    """Return the OpenCL C expression for the maximum or the minimum of two values ``a`` and ``b`` of a dtype.

    Parameters
    ----------
    name : str
        NumPy's name of the function: "maximum" and "minimum" give NaN if a value is NaN, "fmax" and "fmin" the other value.
    dtype : dtype
        Complex numbers are ordered as in NumPy: by the real part, then by the imaginary part.
    """
    largest, ignores = name in ("maximum", "fmax"), name.startswith("f")
    sign = ">" if largest else "<"
    if dtype.kind == "c":
        nan = "any(b != b)" if ignores else "any(a != a)"
        return f"(a.x {sign} b.x || (a.x == b.x && a.y {sign}= b.y)) || {nan} ? a : b"
    if dtype.kind == "b":
        return "a || b" if largest else "a && b"
    if dtype.kind in "iu":
        return f"{'max' if largest else 'min'}(a, b)"
    return f"{name}(a, b)" if ignores else f"a {sign}= b || a != a ? a : b"


def extreme_of_none(name: str, dtype: np.dtype[Any]) -> str:
    """Return the OpenCL C expression for the maximum or minimum of no values (the identity of `extreme`) of a dtype but bool."""
    if dtype.kind in "fc":
        bound = "NAN" if name.startswith("f") else "-INFINITY" if name == "maximum" else "INFINITY"
        return bound if dtype.kind == "f" else f"{bound}, {bound}"
    largest = _MAX_VALUES[OPENCL_TYPES[dtype.name]]
    if name in ("minimum", "fmin"):
        return largest
    return "0" if dtype.kind == "u" else largest.replace("MAX", "MIN")


def literal(value: Any) -> str:
    """Return the OpenCL C literal of a real NumPy scalar, of the scalar's dtype."""
    dtype = np.dtype(value.dtype)
    if dtype.kind == "f":
        if not np.isfinite(value):
            return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return f"{float(value)!r}{'f' if dtype.itemsize == 4 else ''}"
    if dtype.kind == "b":
        return str(int(value))
    bounds = np.iinfo(dtype)
    for bound, name in ((bounds.max, "maximum"), (bounds.min, "minimum")):
        if value == bound:
            return extreme_of_none("minimum" if name == "maximum" else "maximum", dtype)
    return f"(({OPENCL_TYPES[dtype.name]}){int(value)}L)"


def operation(name: str, dtype: np.dtype[Any]) -> str:
    """Return the OpenCL C expression for an operation of semirings on two values ``a`` and ``b`` of a dtype.

    Parameters
    ----------
    name : str
        A name in `ADDITIONS` or `MULTIPLICATIONS` of `clsparse_py._precision.semiring`, or "minus".
    dtype : dtype
        "or", "and" and "xor" are not for complex numbers.
    """
    if name in ("min", "max", "any"):
        return extreme("minimum" if name == "min" else "maximum", dtype)
    boolean, compared = dtype.kind == "b", "a != 0 {} b != 0"
    if name == "plus":
        return "a || b" if boolean else "a + b"
    if name == "minus":
        return "a != b" if boolean else "a - b"
    if name == "times":
        return {"c": "(T)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x)", "b": "a && b"}.get(dtype.kind, "a * b")
    unit = "(T)(1, 0)" if dtype.kind == "c" else "1"
    logical = {"or": compared.format("||"), "and": compared.format("&&"), "xor": "(a != 0) != (b != 0)"}
    return {"first": "a", "second": "b", "pair": unit, **logical}[name]


def unsupported_dtype(name: str, dtype: Any) -> DtypeError:
    """Return the error to raise for an argument of a dtype that kernels do not take."""
    names = ", ".join(OPENCL_TYPES)
    return DtypeError(f"{name}: dtype {dtype} is not supported; use one of {names} (the package does not support dtype {dtype})")


@functools.cache
def name_of(dtype: np.dtype[Any]) -> str:
    """Return a NumPy dtype's name, which is cached, as NumPy takes microseconds to put a name together."""
    return dtype.name


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic of a kernel: types of values and indices, and the semiring.

    Attributes
    ----------
    a, x : str
        NumPy's names of the dtypes in which the values of the matrix and of the dense operand are stored.
    index : str
        "int32" or "int64": the dtype of ``indices`` and ``indptr``.
    semiring : str
        The name of a `clsparse_py._precision.semiring.Semiring`.
    """

    a: str
    x: str
    index: str = "int32"
    semiring: str = "plus_times"

    @functools.cached_property
    def result(self) -> np.dtype:
        """The dtype of the operation's result, in which products and sums are computed."""
        return of_name(self.semiring).result_dtype(np.dtype(self.a), np.dtype(self.x))

    @property
    def floating(self) -> str:
        """NumPy's name of the dtype of an operation's result, or "float32" if the result is of integers or bool."""
        return self.result.name if self.result.kind in "fc" else "float32"

    @property
    def name(self) -> str:
        """A part of a kernel's name, for semiring, value types and index, such as ``f64_i32`` or ``min_plus_f32_x_f64_i64``."""
        a, x, index = (f"{np.dtype(dtype).kind}{np.dtype(dtype).itemsize * 8}" for dtype in (self.a, self.x, self.index))
        ring = "" if self.semiring == "plus_times" else f"{self.semiring}_"
        return f"{ring}{a}_{index}" if a == x else f"{ring}{a}_x_{x}_{index}"

    @property
    def needs_fp64(self) -> bool:
        """Whether the arithmetic needs double precision of the device."""
        return needs_fp64(np.dtype(self.a), np.dtype(self.x), self.result)

    def _convert_stored(self, dtype: np.dtype) -> str:
        """Return the OpenCL C expression that converts a stored value ``v`` to the type T in which a kernel computes."""
        if of_name(self.semiring).of_truth:
            return "(v.x != 0 || v.y != 0)" if dtype.kind == "c" else "(v != 0)"
        return conversion(dtype, self.result)

    def _operations(self) -> tuple[str, str, str]:
        """Return the semiring's addition, multiplication and identity of addition in OpenCL C; "" if a user gave no identity."""
        ring, result = of_name(self.semiring), self.result
        if ring.is_given:
            return ring.plus, ring.times, "" if ring.zero is None else literal(ring.identity(result))
        plus, times = (operation(part, result) for part in ring.operations)
        if ring.ordered and ring.operations[1] == "plus" and result.kind in "iu":
            times = "add_sat(a, b)"
        identity = ring.identity(result)
        return plus, times, literal(identity) if identity else "(T)(0)"

    @property
    def vector_operations(self) -> tuple[str, str] | None:
        """The semiring's addition and multiplication of OpenCL vectors ``a`` and ``b``, in OpenCL C; None if only scalars serve.

        None if no such expressions are known: values have several types, T is no real number of 32 or 64 bits, or a user gave
        expressions of the semiring.
        """
        if (
            of_name(self.semiring).is_given
            or self.a != self.x
            or np.dtype(self.a) != self.result
            or self.result.kind not in "iuf"
            or self.result.itemsize < 4
        ):
            return None
        return self._operations()[:2]

    @property
    def prelude(self) -> str:
        """The OpenCL C text that defines the arithmetic in a kernel: the types, the loads, and the semiring's operations.

        ``I`` is the index type, ``A_VALUE`` and ``X_VALUE`` are the stored types, ``T`` is the type of sums and products.
        ``LOAD_A(p)`` and ``LOAD_INDEX(p)`` go through ``cl/load_once.cl``, ``LOAD_X(p)`` is an ordinary load. ``LOAD_A`` and
        ``LOAD_X`` return a T, ``LOAD_VALUE(p)`` returns a value as it is stored.
        """
        a, x, index, result = (np.dtype(dtype) for dtype in (self.a, self.x, self.index, self.result))
        add, multiply, identity = self._operations()
        lines = []
        if self.needs_fp64:
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
        lines += [
            f"typedef {OPENCL_TYPES[index.name]} I;  // {index.name}: indices and indptr",
            f"typedef {OPENCL_TYPES[a.name]} A_VALUE;  // {a.name}",
            f"typedef {OPENCL_TYPES[x.name]} X_VALUE;  // {x.name}",
            *define_sum_type(result),
            f"#define T_IS_COMPLEX {int(result.kind == 'c')}",
            '#include "load_once.cl"',
            f"#define LOAD_INDEX(p) {_load_once(index)}",
            f"T from_a(A_VALUE v) {{ return {self._convert_stored(a)}; }}",
            f"T from_x(X_VALUE v) {{ return {self._convert_stored(x)}; }}",
            f"#define LOAD_VALUE(p) {_load_once(a)}",
            "#define LOAD_A(p) from_a(LOAD_VALUE(p))",
            "#define LOAD_X(p) from_x(*(p))",
            f"// semiring {self.semiring}",
            *([f"#define ZERO ((T)({identity}))"] if identity else []),
            f"T ADD(T a, T b) {{ return {add}; }}",
            f"T MULTIPLY(T a, T b) {{ return {multiply}; }}",
        ]
        return "\n".join(lines)


def _load_once(dtype: np.dtype) -> str:
    """Return the OpenCL C expression of a load from the pointer ``p`` past caches; an ordinary one for values under 4 bytes."""
    bits = dtype.itemsize * 8
    if bits < 32:
        return "(*(p))"
    word = {32: "uint", 64: "ulong", 128: "ulong2"}[bits]
    return f"as_{OPENCL_TYPES[dtype.name]}(load_once_{bits}((global const {word} *)(p)))"
