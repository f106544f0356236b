"""The sources of all kernels, as clang reads them: no function has a long vector, and nothing draws a warning.

No device is needed: kernels are rendered for made-up ones, and one process reads all kernels of a device.
"""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import clang
import pytest
from lane import Lane
from made_up_devices import CPU, by_name, gpu, records, variants

from clsparse_py._build.programs import render
from clsparse_py._command.catalogue import catalogue
from clsparse_py._device.device import Device, Portability
from clsparse_py._precision.arithmetic import Arithmetic

#: The compiler's target for each device: where lanes exchange values by an instruction, the one that knows it.
DEVICES = {
    "spir64": (CPU, replace(CPU, name="cpu with sub-groups", portability=Portability("sub_group", 16))),
    "amdgcn-amd-amdhsa": (gpu("amd", Portability("bpermute", 64)),),
    "nvptx64-nvidia-nvcl": (gpu("nvidia", Portability("ptx", 32, "ptx", match="ptx")),),
}
#: A processor without registers of 32 bytes: clang warns of functions whose vectors are longer than its registers.
OLD_CPU = "x86_64-pc-linux-gnu"
#: Values of other kinds and sizes than `records` has, with operations that are built-ins for some of them.
MORE = (
    Arithmetic("complex128", "complex128", "int64"),
    Arithmetic("int64", "int64", "int64", "min_plus"),
    Arithmetic("bool", "bool"),
)
#: Bytes of a vector that functions may take or return (quirk 2).
LONGEST = 32

#: Functions that have a long vector; each kernel calls one.
LONG_VECTORS = {
    "argument": "uint take(uint16 v) { return v.s0; }\nkernel void K(global uint *p) { uint16 v = *p; *p = take(v); }",
    "result": "double8 give(double a) { return a; }\nkernel void K(global double *p) { double8 v = give(*p); *p = v.s3; }",
    "second": "void add(int *a, long8 b) { *a += b.s0; }\nkernel void K(global int *p) { int a = *p; add(&a, 1); *p = a; }",
    "convert": "kernel void K(global int8 *p, global long *q) { long8 v = convert_long8(*p); *q = v.s2; }",
    "load": "kernel void K(global const uint *p, global uint *q) { uint16 v = vload16(0, p); *q = v.s1; }",
    "store": "kernel void K(global uint *p) { uint16 v = *p; vstore16(v, 0, p); }",
    "popcount": "kernel void K(global uint *p) { uint16 v = *p; v = popcount(v); *p = v.s7; }",
    "fmax": "kernel void K(global double *p) { double8 v = *p; v = fmax(v, 2.0); *p = v.s7; }",
    "select": "kernel void K(global float *p) { float16 v = *p; v = select(v, v + 1, v > 3); *p = v.s7; }",
    "macro": "#define LEAST(a, b) min(a, b)\nkernel void K(global long *p) { long8 v = *p; v = LEAST(v, v + 1); *p = v.s7; }",
}
#: Functions of shorter vectors, pointers to long ones, and long ones that no function takes or returns.
SHORT_VECTORS = """
uint8 add(uint8 a, double4 b, const global uint16 *c) { return a + (uint)b.x + (*c).lo; }
kernel void K(global uint16 *p, global ulong8 *q)
{
    uint16 v = *p > 3u ? *p * 2 : as_uint16(*q);
    v.lo = min(add(v.hi, 1.0, p), vload8(3, (global uint *)p));
    *p = v << 3;
}
"""


@dataclass(frozen=True)
class Read:
    """The compiler's report on sources: bytes of the longest vector of a function in each, and the warnings."""

    vectors: dict[str, int]
    warnings: list[str]

    @property
    def long_vectors(self) -> set[str]:
        return {name for name, size in self.vectors.items() if size > LONGEST}


def read(program: str, target: str, sources: dict[str, str], folder: Path) -> Read:
    """Let one process compile sources to LLVM's language as they are written, unoptimised.

    Functions keep their arguments and results there, built-ins are declared as they are called, and vectors are not taken apart.
    """
    options = ["-cl-std=CL2.0", "-O0", "-disable-llvm-passes", "-emit-llvm"]
    made, said = clang.compile_together(program, target, options, sources, folder)
    warnings = [line for line in said.splitlines() if "warning:" in line]
    signatures = {name: re.findall(r"^(?:define|declare) .*", text, flags=re.MULTILINE) for name, text in made.items()}
    return Read({name: max(map(vector, of)) for name, of in signatures.items()}, warnings)


def vector(signature: str) -> int:
    """Return the bytes of the longest vector that a function takes or returns, not by pointer."""
    result = re.findall(r"<(\d+) x (i(\d+)|half|float|double|[^>]+)>(?! addrspace\(\d+\)\*|\*)", signature)
    bits = {"half": 16, "float": 32, "double": 64}
    return max((int(n) * (int(width) if width else bits.get(kind, 64)) // 8 for n, kind, width in result), default=0)


def kernels(on: Device) -> dict[str, str]:
    """Return the sources of all kernels for a device."""
    more = (record for arithmetic in MORE for record in catalogue(on, arithmetic).values())
    return {name: render(record) for name, record in by_name([*records(on), *variants(on), *more]).items()}


@pytest.fixture
def program(lane: Lane) -> str:
    """Return the compiler."""
    return lane.require(shutil.which(clang.PROGRAM), clang.PACKAGE)


@pytest.mark.parametrize("target", DEVICES)
def test_planted_faults_are_found(program: str, target: str, tmp_path: Path) -> None:
    result = read(program, target, LONG_VECTORS | {"short": SHORT_VECTORS}, tmp_path / "vectors")
    assert result.long_vectors == set(LONG_VECTORS)
    warns = read(program, target, {"warns": "kernel void K(global uint *p) { *p = 1u << *p - 1; }"}, tmp_path / "warnings")
    assert len(warns.warnings) == 1


def test_a_vector_longer_than_registers_draws_a_warning(program: str, tmp_path: Path) -> None:
    source = "uint8 twice(uint8 v) { return v * 2; }\nkernel void K(global uint8 *p) { *p = twice(*p); }"
    assert read(program, OLD_CPU, {"warns": source}, tmp_path / "warnings").warnings


def test_no_function_has_a_long_vector_and_no_source_draws_a_warning(
    lane: Lane, program: str, templates: set[str], tmp_path: Path
) -> None:
    jobs = [(target, on) for target, devices in DEVICES.items() for on in devices]
    assert templates == {record.template for _, on in jobs for record in records(on)}, "these templates were not read"
    sources = [kernels(on) for _, on in jobs]
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda job, of: read(program, job[0], of, tmp_path / job[1].name), jobs, sources))
        # One by one, as clang misplaces pragmas about warnings in all files but the first.
        wide = {
            name: of[name]
            for of, report in zip(sources, reports, strict=True)
            for name, size in report.vectors.items()
            if size > 16
        }
        assert wide
        reports += pool.map(lambda name: read(program, OLD_CPU, {name: wide[name]}, tmp_path / "old" / name), wide)
    numbers = ", ".join(f"{len(of)} for a made-up {on.name}" for (_, on), of in zip(jobs, sources, strict=True))
    lane.say(f"kernels read for vectors over {LONGEST} bytes and for warnings: {numbers}, {len(wide)} for an old one")
    assert not [report.long_vectors for report in reports if report.long_vectors]
    warnings = [line for report in reports for line in report.warnings]
    assert not warnings, "\n".join(warnings)
