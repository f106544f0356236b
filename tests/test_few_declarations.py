"""Declarations of built-ins that PoCL is shown: those that a kernel names, with their conditions."""

from __future__ import annotations

from pathlib import Path

import few_declarations
import numpy as np
import pyopencl as cl
import pytest
from few_declarations import Declarations
from pyopencl import array as cl_array

from clsparse_py._build import programs

HEADER = """
#ifndef _OPENCL_H_
#define _OPENCL_H_
#include "opencl-c-base.h"
typedef uint fence; // a type
int __ovld __cnfn min(int x,
                      int y);
float __ovld __cnfn max(float x, float y);
#ifdef cl_khr_fp64
double __ovld __cnfn max(double x, double y);
#endif
#if defined(a) || \\
    defined(b)
int __attribute__((overloadable)) min(long x, long y);
#endif
#endif
"""


def test_only_what_is_named_is_declared(tmp_path: Path) -> None:
    header = tmp_path / "opencl-c.h"
    header.write_text(HEADER)
    result = Declarations(header).before("kernel void a(global int *p) { *p = min(*p, 3); }").splitlines()
    assert result == [
        "#ifndef _OPENCL_H_OF_TESTS",
        "#define _OPENCL_H_OF_TESTS",
        f'#include "{tmp_path}/opencl-c-base.h"',
        "typedef uint fence;",
        "int __ovld __cnfn min(int x, int y);",
        "#if defined(a) || defined(b)",
        "int __attribute__((overloadable)) min(long x, long y);",
        "#endif",
        "#endif",
        "kernel void a(global int *p) { *p = min(*p, 3); }",
    ]


def test_kernels_run_so(queue: cl.CommandQueue) -> None:
    header = few_declarations.header_of(queue.device)
    if header is None:
        pytest.skip("only PoCL's compiler reads such a header")
    source = "kernel void least(global long *p) { *p = min(*p, clz(p[1])); atomic_inc((global int *)p + 4); }"
    program = programs.compile_source(
        queue.context, queue.device, Declarations(header).before(source), (f"-D{few_declarations.READ}",)
    )
    p = cl_array.to_device(queue, np.array([100, 1, 5]))
    cl.Kernel(program, "least")(queue, (1,), None, p.base_data)
    np.testing.assert_array_equal(p.get(), [63, 1, 6])
