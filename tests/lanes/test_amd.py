"""AMD's compiler: every kernel in its default configurations compiles without scratch memory or spills.

Its targets take turns; with ``CLSPARSE_FULL=1`` each compiles all. No device is needed: kernels are rendered for made-up ones.
The table of what each kernel takes is in pytest's summary.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from clang import PACKAGE, PROGRAM, compile_together
from lane import Lane
from made_up_devices import by_name, gpu, records, variants
from pairs import exhaustive

from clsparse_py._build.programs import render
from clsparse_py._device.device import Portability

TRIPLE = "amdgcn-amd-amdhsa"
#: Targets, and how many lanes they have: an APU, RDNA2 and CDNA2, which has the APU's lanes and twice its registers.
TARGETS = {"gfx902": 64, "gfx1030": 32} | ({"gfx90a": 64} if exhaustive() else {})

#: Made-up GPUs of these targets.
DEVICES = {target: gpu(target, Portability("bpermute", lanes)) for target, lanes in TARGETS.items()}


@dataclass(frozen=True)
class Usage:
    """The resources of a kernel, as the compiler reports them."""

    vgprs: int
    sgprs: int
    local_memory: int
    scratch: int
    spills: int
    occupancy: int


def bitcode() -> str | None:
    """Return the folder of AMD's device libraries."""
    places = [*Path("/usr/lib").glob("*/amdgcn/bitcode"), *Path("/opt").glob("rocm*/amdgcn/bitcode")]
    return next((str(place) for place in places), None)


def compile_sources(tools: tuple[str, str], target: str, sources: Mapping[str, str], folder: Path) -> dict[str, Usage]:
    """Compile OpenCL C, each source with a kernel of its name, and return what the kernels take."""
    clang, libraries = tools
    options = ["-x", "cl", "-cl-std=CL2.0", "-O3", "-target", TRIPLE, f"-mcpu={target}", f"--rocm-device-lib-path={libraries}"]
    options += ["-Rpass-analysis=kernel-resource-usage", "-S", "-"]
    # What clang's driver tells the compiler behind it, which takes many sources in one process; not the source and its result.
    driver = subprocess.run([clang, "-###", *options], capture_output=True, text=True, check=True)
    words = shlex.split(driver.stderr.splitlines()[-1])
    told = words[words.index("-cc1") + 1 : words.index("-o")]
    said = compile_together(clang, TRIPLE, told, sources, folder)[1]
    return {name: usage(name, said) for name in sources}


def usage(name: str, said: str) -> Usage:
    """Return the resources of a kernel from the compiler's output."""
    # The functions that kernels inline have remarks of their own, before and after it.
    of_kernel = said.partition(f"Function Name: {name} ")[2].partition("Function Name:")[0]

    def remark(what: str) -> int:
        result = re.search(rf"remark: .*\b{what}[^:\n]*: (\d+)", of_kernel)
        assert result, f"the compiler does not tell {what} of {name}:\n{of_kernel}"
        return int(result[1])

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
    clang = lane.require(shutil.which(PROGRAM), PACKAGE)
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
    assert compile_sources(tools, target, {"planted": SCRATCH}, tmp_path / "planted")["planted"].scratch >= 64 * 4


def test_every_kernel_compiles_without_scratch(lane: Lane, tools: tuple[str, str], templates: set[str], tmp_path: Path) -> None:
    kernels = {target: by_name(records(device)) for target, device in DEVICES.items()}
    if not exhaustive():
        for turn, (target, of) in enumerate(kernels.items()):
            kernels[target] = dict(itertools.islice(of.items(), turn, None, len(kernels)))
    # Variants of what compiles for all targets: one of them is enough.
    narrow = min(TARGETS, key=TARGETS.__getitem__)
    kernels[narrow] |= by_name(variants(DEVICES[narrow]))
    assert templates == {record.template for of in kernels.values() for record in of.values()}, (
        "these templates were not compiled"
    )
    sources = {target: [(name, render(record)) for name, record in of.items()] for target, of in kernels.items()}
    jobs = [(target, dict(sources[target][half::2]), tmp_path / f"{target}_{half}") for target in TARGETS for half in range(2)]
    takes: dict[str, dict[str, Usage]] = {target: {} for target in TARGETS}
    with ThreadPoolExecutor(2) as pool:
        for (target, *_), result in zip(jobs, pool.map(lambda job: compile_sources(tools, *job), jobs), strict=True):
            takes[target] |= result

    # Some have the lanes of a target in their names.
    names = list(dict.fromkeys(name for of in kernels.values() for name in of))
    width = max(map(len, names))
    numbers = ", ".join(f"{len(of)} for {target}" for target, of in kernels.items())
    lane.say(f"kernels compiled: {numbers}; VGPRs, SGPRs, bytes of local memory, waves to a SIMD:")
    lane.say(" " * width + "".join(f"{target:>23}" for target in TARGETS))
    for name in names:
        of = [takes[target].get(name) for target in TARGETS]
        cells = (
            f"{operand.vgprs:7}{operand.sgprs:5}{operand.local_memory:7}{operand.occupancy:4}" if operand else " " * 23
            for operand in of
        )
        lane.say(f"{name:{width}}{''.join(cells)}")
    wrong = [
        f"{name} on {target}: {taken}"
        for target, of_target in takes.items()
        for name, taken in of_target.items()
        if taken.scratch or (taken.spills and kernels[target][name].template not in FOR_CPU_DEVICES)
    ]
    assert not wrong, "\n".join(wrong)
