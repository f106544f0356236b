"""AMD's compiler: every kernel in its default configurations compiles for three targets, without scratch memory or spills.

No device is needed: kernels are rendered for made-up ones. The table of what each kernel takes is in pytest's summary.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from lane import Lane

from clsparse_py.arithmetic import Arithmetic
from clsparse_py.catalogue import catalogue
from clsparse_py.device import Device, Portability
from clsparse_py.programs import Parameters, render
from clsparse_py.semiring import SEMIRINGS
from clsparse_py.spmv.choose import choose
from clsparse_py.spmv.features import Features

#: Targets, and how many lanes they have: an APU, CDNA2 and RDNA2.
TARGETS = {"gfx902": 64, "gfx90a": 64, "gfx1030": 32}

#: A matrix for each rule of the choice on GPUs.
MATRICES = (
    Features(n_rows=1000, n_cols=1000, nnz=5000, shortest=3, longest=5, variance=1, classes=()),
    Features(n_rows=1000, n_cols=1000, nnz=20_000, shortest=3, longest=50, variance=50, classes=()),
    Features(n_rows=1000, n_cols=1000, nnz=20_000, shortest=0, longest=900, variance=900, classes=()),
    Features(n_rows=1 << 20, n_cols=1 << 20, nnz=1 << 24, shortest=0, longest=10_000, variance=900, classes=()),
)


@dataclass(frozen=True)
class Usage:
    """What the compiler says that a kernel takes."""

    vgprs: int
    sgprs: int
    local_memory: int
    scratch: int
    spills: int
    occupancy: int


def device(target: str) -> Device:
    """Return a made-up device of a target, with the limits of AMD's drivers at their widest."""
    return Device(
        name=target,
        platform="AMD",
        driver_version="",
        type="gpu",
        compute_units=16,
        max_work_group=1024,
        local_memory=64 << 10,
        max_allocation=4 << 30,
        global_memory=16 << 30,
        preferred_multiple=TARGETS[target],
        sub_group_sizes=(),
        fp64=True,
        fp16=True,
        int64_atomics=True,
        float_atomics=False,
        unified_memory=True,
        aliases_host=True,
        svm=(),
        portability=Portability("bpermute", TARGETS[target], "plain"),
    )


def records(on: Device) -> Iterator[Parameters]:
    """Yield every kernel as it is by default and as the rules for GPUs choose it."""
    for values in ("float32", "float64"):
        arithmetic = Arithmetic(values, values)
        yield from catalogue(on, arithmetic).values()
        for features in MATRICES:
            choice = choose(features, on, "auto", None).kernels[0][0]
            yield choice.record(on, arithmetic, scaled=False)


def variants(on: Device) -> Iterator[Parameters]:
    """Yield some kernels scaled, with wide indices, and with each semiring."""
    scaled = catalogue(on, Arithmetic("float64", "float64", "int64"), scaled=True)
    yield from (scaled[name] for name in ("adaptive", "merge", "pieces", "spmv/subvector:binned", "spmv/combine", "spmm/rows"))
    yield from (record for name, record in scaled.items() if name.startswith(("csr/", "spmv/binning", "spmv/features")))
    for semiring in SEMIRINGS:
        sampled = catalogue(on, Arithmetic("float64", "float32", semiring=semiring))
        yield from (sampled[name] for name in ("adaptive", "spmv/subvector:binned"))


def bitcode() -> str | None:
    """Return the folder of AMD's device libraries."""
    places = [*Path("/usr/lib").glob("*/amdgcn/bitcode"), *Path("/opt").glob("rocm*/amdgcn/bitcode")]
    return next((str(place) for place in places), None)


def compiled(tools: tuple[str, str], target: str, name: str, text: str, folder: Path) -> Usage:
    """Compile OpenCL C and return what the kernel of that name takes."""
    clang, libraries = tools
    source = folder / f"{target}_{name}.cl"
    source.write_text(text)
    options = ["-x", "cl", "-cl-std=CL2.0", "-O3", "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}"]
    options += [f"--rocm-device-lib-path={libraries}", "-Rpass-analysis=kernel-resource-usage", "-S", "-o", "/dev/null"]
    done = subprocess.run([clang, *options, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name} does not compile for {target}:\n{done.stderr[:2000]}"
    # The functions that the kernel inlines have remarks of their own, before and after it.
    of_kernel = done.stderr.partition(f"Function Name: {name} ")[2].partition("Function Name:")[0]

    def remark(what: str) -> int:
        found = re.search(rf"remark: .*\b{what}[^:\n]*: (\d+)", of_kernel)
        assert found, f"the compiler does not tell {what} of {name}:\n{done.stderr}"
        return int(found[1])

    return Usage(
        vgprs=remark("VGPRs"),
        sgprs=remark("SGPRs"),
        local_memory=remark("LDS Size"),
        scratch=remark("ScratchSize"),
        spills=remark("VGPRs Spill") + remark("SGPRs Spill"),
        occupancy=remark("Occupancy"),
    )


@pytest.fixture
def tools(lane: Lane) -> tuple[str, str]:
    """Return AMD's compiler and the folder of its libraries."""
    clang = lane.require(shutil.which("clang-15"), "the compiler is not installed (Debian: clang-15)")
    return clang, lane.require(bitcode(), "the device libraries are not installed (Debian: rocm-device-libs)")


#: Kernels of a few work-items with a core each, which no GPU runs: they compile, but may keep some scalars elsewhere.
FOR_CPU_DEVICES = {"spgemm/dense_chunked"}

SCRATCH = """
kernel void planted(global const int *in, global int *out)
{
    int most[64];
    for (int i = 0; i < 64; ++i)
        most[in[i]] = i;
    out[get_global_id(0)] = most[in[get_global_id(0)]];
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_planted_scratch_is_found(tools: tuple[str, str], target: str, tmp_path: Path) -> None:
    assert compiled(tools, target, "planted", SCRATCH, tmp_path).scratch >= 64 * 4


def test_every_kernel_compiles_without_scratch(lane: Lane, tools: tuple[str, str], templates: set[str], tmp_path: Path) -> None:
    kernels = {target: {record.name: record for record in records(device(target))} for target in TARGETS}
    # Variants of what compiles for all targets: one of them is enough.
    narrow = min(TARGETS, key=TARGETS.__getitem__)
    kernels[narrow] |= {record.name: record for record in variants(device(narrow))}
    assert templates == {record.template for of in kernels.values() for record in of.values()}, (
        "these templates were not compiled"
    )
    jobs = [(target, name) for target in TARGETS for name in kernels[target]]
    with ThreadPoolExecutor(2) as pool:
        sources = (render(kernels[target][name]) for target, name in jobs)
        found = pool.map(lambda job, text: compiled(tools, *job, text, tmp_path), jobs, sources)
        usage = dict(zip(jobs, found, strict=True))

    # Some have the lanes of a target in their names.
    names = list(dict.fromkeys(name for of in kernels.values() for name in of))
    width = max(map(len, names))
    numbers = ", ".join(f"{len(of)} for {target}" for target, of in kernels.items())
    lane.say(f"kernels compiled: {numbers}; VGPRs, SGPRs, bytes of local memory, waves to a SIMD:")
    lane.say(" " * width + "".join(f"{target:>23}" for target in TARGETS))
    for name in names:
        of = [usage.get((target, name)) for target in TARGETS]
        cells = (f"{each.vgprs:7}{each.sgprs:5}{each.local_memory:7}{each.occupancy:4}" if each else " " * 23 for each in of)
        lane.say(f"{name:{width}}{''.join(cells)}")
    wrong = [
        f"{name} on {target}: {taken}"
        for (target, name), taken in usage.items()
        if taken.scratch or (taken.spills and kernels[target][name].template not in FOR_CPU_DEVICES)
    ]
    assert not wrong, "\n".join(wrong)
