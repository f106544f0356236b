"""AMD's compiler: every kernel in its default configurations compiles for three targets, without scratch memory or spills.

No device is needed: kernels are rendered for made-up ones. The table of what each kernel takes is in pytest's summary.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from clang import PACKAGE, PROGRAM
from lane import Lane
from made_up_devices import by_name, gpu, records, variants

from clsparse_py.device import Portability
from clsparse_py.programs import render

#: Targets, and how many lanes they have: an APU, CDNA2 and RDNA2.
TARGETS = {"gfx902": 64, "gfx90a": 64, "gfx1030": 32}

#: Made-up GPUs of these targets.
DEVICES = {target: gpu(target, Portability("bpermute", lanes)) for target, lanes in TARGETS.items()}


@dataclass(frozen=True)
class Usage:
    """What the compiler says that a kernel takes."""

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
    assert compiled(tools, target, "planted", SCRATCH, tmp_path).scratch >= 64 * 4


def test_every_kernel_compiles_without_scratch(lane: Lane, tools: tuple[str, str], templates: set[str], tmp_path: Path) -> None:
    kernels = {target: by_name(records(device)) for target, device in DEVICES.items()}
    # Variants of what compiles for all targets: one of them is enough.
    narrow = min(TARGETS, key=TARGETS.__getitem__)
    kernels[narrow] |= by_name(variants(DEVICES[narrow]))
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
