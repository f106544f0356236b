"""`Arithmetic`: names and preludes; that what they say is right is for the kernels' tests."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pyopencl as cl
import pytest

import clsparse_py
from clsparse_py._device.device import describe
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic
from clsparse_py._precision.semiring import SEMIRINGS


def legal() -> list[Arithmetic]:
    """Return every arithmetic there is."""
    results = []
    for a, x, index, name in itertools.product(OPENCL_TYPES, OPENCL_TYPES, ("int32", "int64"), SEMIRINGS):
        complex_values = "complex64" in (a, x) or "complex128" in (a, x)
        if not (complex_values and SEMIRINGS[name].ordered):
            results.append(Arithmetic(a, x, index, name))
    return results


def test_names_are_identifiers_and_tell_apart() -> None:
    names = [operator.name for operator in legal()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"\w+", name) for name in names)
    assert Arithmetic("float64", "float64").name == "f64_i32"
    assert Arithmetic("float32", "complex128", "int64", "or_and").name == "or_and_f32_x_c128_i64"


def test_every_arithmetic_has_a_prelude() -> None:
    for arithmetic in legal():
        prelude = arithmetic.prelude
        result = OPENCL_TYPES[arithmetic.result.name]
        assert f"typedef {result} T;" in prelude
        assert f"#define T_BYTES {arithmetic.result.itemsize}\n" in prelude
        assert f"#define T_IS_COMPLEX {int(arithmetic.result.kind == 'c')}\n" in prelude
        assert f"// semiring {arithmetic.semiring}" in prelude
        # Double precision is asked for where it is used, and nowhere else.
        assert ("cl_khr_fp64" in prelude) == ("double" in prelude) == arithmetic.needs_fp64
        for name in ("ADD(T a, T b)", "MULTIPLY(T a, T b)", "#define ZERO", "LOAD_A(p)", "LOAD_X(p)", "LOAD_INDEX(p)"):
            assert name in prelude


@pytest.mark.parametrize(
    ("arithmetic", "needs"),
    [(Arithmetic("float32", "float32"), False), (Arithmetic("float32", "float64"), True), (Arithmetic("int32", "float32"), True),
     (Arithmetic("int16", "float32"), False), (Arithmetic("complex64", "int32"), True),
     (Arithmetic("float64", "bool", semiring="or_and"), True)],
)  # fmt: skip
def test_double_precision_follows_promotion(arithmetic: Arithmetic, needs: bool) -> None:
    assert arithmetic.needs_fp64 == needs


def test_vectors_are_for_plain_numbers_of_one_type() -> None:
    for arithmetic in legal():
        dtype = np.dtype(arithmetic.a)
        plain = arithmetic.a == arithmetic.x and dtype.kind in "iuf" and dtype.itemsize >= 4 and arithmetic.result == dtype
        assert (arithmetic.vector_operations is not None) == plain


def test_floats_become_integers_as_numpy_makes_them(queue: cl.CommandQueue) -> None:
    # Of negative and large values C leaves open what unsigned and short types hold.
    values = np.float32([-1, -1.9, -0.5, -0.0, 2.7, 300, -129, -40000.5, 65536 * 7, 2**31 - 200, -(2**31)])
    sources = [values, values.astype(np.complex64) + 3j]
    if describe(queue.device).fp64:
        sources += [values.astype(np.float64), values.astype(np.complex128) - 3j]
    for source in sources:
        A = clsparse_py.csr_array(source[None], queue=queue)
        for target in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, bool):
            kept = source[source != 0]
            wanted = kept.astype(bool) if target is bool else kept.real.astype(np.int64).astype(target)
            np.testing.assert_array_equal(A.astype(target).data.get(), wanted, err_msg=f"{source.dtype} to {target.__name__}")
    large = np.float32([2**63, 2**64 - 2**41])
    np.testing.assert_array_equal(
        clsparse_py.csr_array(large[None], queue=queue).astype(np.uint64).data.get(), large.astype(np.uint64)
    )
