"""Debian's clang, as the lanes use it: one process compiles all sources of a lane."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["PACKAGE", "PROGRAM", "compile_together"]

PROGRAM = "clang-15"
#: What `Lane.require` says where it is missing.
PACKAGE = "the compiler is not installed (Debian: clang-15)"


def compile_together(
    clang: str, target: str, options: Sequence[str], sources: Mapping[str, str], folder: Path
) -> tuple[Mapping[str, str], str]:
    """Compile OpenCL C and return what each source became, by the sources' names, and what the compiler said."""
    folder.mkdir(parents=True)
    for name, source in sources.items():
        (folder / f"{name}.cl").write_text(source)
    # The driver makes a process for each source, which takes longer than to compile it; the compiler behind it takes many.
    root = subprocess.run([clang, "-print-resource-dir"], capture_output=True, text=True, check=True).stdout.strip()
    common = ["-triple", target, "-x", "cl", "-resource-dir", root, "-internal-isystem", f"{root}/include"]
    # Some targets of clang lack what the drivers' own compilers know: `asm`, and atomics of 64 bits.
    common += ["-finclude-default-header", "-fdeclare-opencl-builtins", "-fgnu-keywords", "-cl-ext=+cl_khr_int64_base_atomics"]
    command = [clang, "-cc1", *common, *options, *(f"{name}.cl" for name in sources)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"not all sources compile for {target}:\n{done.stderr[-4000:]}"
    made = {path.stem: path.read_text() for path in folder.iterdir() if path.suffix != ".cl"}
    return made, done.stderr
