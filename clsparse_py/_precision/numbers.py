"""Real and complex numbers in OpenCL C: one set of functions that serves both."""

from __future__ import annotations

from typing import Any

import numpy as np

from clsparse_py._precision.arithmetic import needs_fp64, type_of_sums

__all__ = ["numbers"]

_REAL = """T times(const T a, const T b) { return a * b; }
T quotient(const T a, const T b) { return a / b; }
T conjugate(const T a) { return a; }
R real_part(const T a) { return a; }
T of_real(const R a) { return a; }
R square(const T a) { return a * a; }
R magnitude(const T a) { return fabs(a); }
R largest(const T a) { return fabs(a); }
T times_power(const T a, const int exponent) { return ldexp(a, exponent); }"""
_COMPLEX = """T times(const T a, const T b) { return (T)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
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


def numbers(dtype: np.dtype[Any], addition: str = "((a) + (b))") -> list[str]:
    """Return lines of OpenCL C: real or complex numbers T, their real ones R, and functions that serve both."""
    real = "double" if needs_fp64(dtype) else "float"
    fp64 = ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if needs_fp64(dtype) else []
    types = [*type_of_sums(dtype), f"typedef {real} R;", "#define ZERO ((T)(0))", f"#define ADD(a, b) {addition}"]
    return [*fp64, *types, _COMPLEX if dtype.kind == "c" else _REAL]
