"""NVIDIA's compiler without a card: every kernel in its default configurations, by clang to PTX and by ptxas to machine code.

The driver's compiler is another one in front of the same ptxas: registers and spills that count are its own. What is tested here
is that ptxas takes what kernels say in PTX, and that no kernel asks for more than an architecture has.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from clang import PACKAGE, PROGRAM, compile_together
from lane import Lane
from made_up_devices import by_name, gpu, records
from pairs import exhaustive

from clsparse_py._build.programs import render
from clsparse_py._device.device import Portability

#: The PTX is that of the oldest; with ``CLSPARSE_FULL=1`` it is compiled for all.
ARCHITECTURES = ("sm_75", "sm_80", "sm_90") if exhaustive() else ("sm_90",)
TARGET = "nvptx64-nvidia-nvcl"
DEVICE = gpu("nvidia", Portability("ptx", 32, "ptx", match="ptx"), local_memory=48 << 10)
#: What kernels say in PTX: exchange between lanes, equal values among them, loads of what is read once.
INSTRUCTIONS = ("shfl.sync.bfly.b32", "vote.sync.ballot.b32", "ld.global.nc.L1::no_allocate")

#: What clang takes and ptxas has to refuse.
REFUSED = {
    "instruction": 'kernel void refused(global int *p) { int x; asm("shfl.sync.sideways.b32 %0, 1;" : "=r"(x)); *p = x; }',
    "memory": "kernel void refused(global int *p) { local int a[13000]; a[*p] = *p; barrier(1); *p = a[p[1]]; }",
    "function": "int missing(int); kernel void refused(global int *p) { *p = missing(*p); }",
}

#: A built-in that the library lacks: it has no atomics of 64 bits. `ulong` is a name of the header that declares built-ins.
LACKING = """
__attribute__((overloadable))
unsigned long atom_cmpxchg(volatile __local unsigned long *p, unsigned long expected, unsigned long value)
{
    return __sync_val_compare_and_swap(p, expected, value);
}
"""


@dataclass(frozen=True)
class Tools:
    """clang, its library of NVIDIA's built-ins, and ptxas."""

    clang: str
    library: str
    ptxas: str

    def to_ptx(self, sources: Mapping[str, str], folder: Path) -> Mapping[str, str]:
        """Compile OpenCL C as NVIDIA's driver does if it is told no version."""
        folder.mkdir()
        lacking = [self.clang, "-x", "cl", "-cl-no-stdinc", "-target", TARGET, "-emit-llvm", "-c", "-", "-o", "lacking.bc"]
        subprocess.run(lacking, input=LACKING, cwd=folder, text=True, check=True)
        options = ["-target-cpu", "sm_75", "-target-feature", "+ptx75", "-O3", "-S"]
        options += [word for library in (self.library, "../lacking.bc") for word in ("-mlink-builtin-bitcode", library)]
        return compile_together(self.clang, TARGET, options, sources, folder / "ptx")[0]

    def assemble(self, architecture: str, name: str, folder: Path) -> tuple[str, str]:
        """Return what ptxas says of a kernel, and why it refuses it, if it does."""
        command = [self.ptxas, f"-arch={architecture}", "-v", "-o", "/dev/null", f"ptx/{name}.s"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        return said, said if done.returncode else ""


@pytest.fixture
def tools(lane: Lane) -> Tools:
    """Return the compilers."""
    clang = lane.require(shutil.which(PROGRAM), PACKAGE)
    library = Path("/usr/lib/clc/nvptx64--nvidiacl.bc")
    result = lane.require(library if library.exists() else None, "the built-ins are not installed (Debian: libclc-15)")
    return Tools(clang, str(result), lane.require(ptxas(), "ptxas is not installed (PyPI: nvidia-cuda-nvcc-cu12)"))


def ptxas() -> str | None:
    """Return the assembler that pip installed beside this Python."""
    try:
        files = importlib.metadata.files("nvidia-cuda-nvcc-cu12") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.name == "ptxas"), None)


def number(said: str, pattern: str) -> int:
    """Return a number that ptxas tells, 0 where it does not."""
    result = re.search(pattern, said)
    return int(result[1]) if result else 0


def test_planted_faults_are_refused(tools: Tools, tmp_path: Path) -> None:
    tools.to_ptx(REFUSED, tmp_path / "refused")
    for name in REFUSED:
        assert tools.assemble("sm_90", name, tmp_path / "refused")[1], f"{name} was taken"


def test_every_kernel_is_taken(lane: Lane, tools: Tools, templates: set[str], tmp_path: Path) -> None:
    kernels = by_name(records(DEVICE))
    assert templates == {record.template for record in kernels.values()}, "these templates were not compiled"
    sources = [(name, render(record)) for name, record in kernels.items()]
    halves = {tmp_path / str(half): dict(sources[half::2]) for half in range(2)}
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(tools.to_ptx, halves.values(), halves))
        jobs = [(architecture, name, folder) for architecture in ARCHITECTURES for folder, of in halves.items() for name in of]
        said = {job[:2]: result for job, result in zip(jobs, pool.map(lambda job: tools.assemble(*job), jobs), strict=True)}
    for instruction in INSTRUCTIONS:
        assert any(instruction in text for of in made for text in of.values()), f"no kernel says {instruction}"

    newest = ARCHITECTURES[-1]
    lane.say(f"kernels compiled for {', '.join(ARCHITECTURES)}: {len(kernels)}")
    lane.say(f"registers, bytes of spills and of local memory on {newest}:")
    width = max(map(len, kernels))
    for name in kernels:
        text = said[newest, name][0]
        numbers = (number(text, name) for name in (r"Used (\d+) registers", r"(\d+) bytes spill stores", r"(\d+) bytes smem"))
        lane.say(f"{name:{width}}{''.join(f'{count:7}' for count in numbers)}")
    refused = [f"{name} on {architecture}: {why}" for (architecture, name), (_, why) in said.items() if why]
    assert not refused, "\n".join(refused)
