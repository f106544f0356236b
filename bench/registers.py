"""Registers, spills, stack and warnings of each kernel, by a driver's own compiler.

python -m bench.registers --out bench/results/NAME-registers.json

Every kernel of the catalogue in its default configuration, for matrices of float32 and float64, is built with
``-cl-nv-verbose`` on a device whose driver knows that option (``cl_nv_compiler_options``). The command ends with 1 if a kernel
spills or draws a warning.
"""

from __future__ import annotations

import os
import re
import sys
import uuid
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyopencl as cl

from bench import opencl, scripts
from bench.report import Sheet
from bench.summaries import as_text
from clsparse_py._build import programs
from clsparse_py._command.catalogue import catalogue
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.files import write_text
from clsparse_py._precision.arithmetic import Arithmetic

#: Extension of OpenCL by which a driver's compiler tells what kernels take.
_EXTENSION = "cl_nv_compiler_options"
#: A remark that a driver makes about every kernel, an empty one included.
_ALWAYS = "is a kernel, so overriding noinline attribute"
#: Patterns of the numbers in a build's log, by the column of the table.
_PATTERNS = {
    "registers": r"Used (\d+) registers",
    "stack": r"(\d+) bytes stack frame",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
    "local_memory": r"(\d+) bytes smem",
}


def records(device: Device) -> Iterator[tuple[str, programs.Parameters]]:
    """Yield each record once, with the first name that the catalogue has for it."""
    seen: set[programs.Parameters] = set()
    for dtype in ("float32", "float64"):
        for name, record in catalogue(device, Arithmetic(dtype, dtype)).items():
            if record not in seen:
                seen.add(record)
                yield f"{name} ({dtype})", record


def usage(log: str) -> dict[str, Any]:
    """Return the numbers of a build's log, 0 for those that it does not name, and its warnings.

    Parameters
    ----------
    log : str
        Of a program with one kernel, built with ``-cl-nv-verbose``.
    """
    results: dict[str, Any] = {
        name: max((int(number) for number in re.findall(pattern, log)), default=0) for name, pattern in _PATTERNS.items()
    }
    results["warnings"] = [line.strip() for line in log.splitlines() if "warning" in line.lower() and _ALWAYS not in line]
    return results


def build(context: cl.Context, device: cl.Device, record: programs.Parameters) -> dict[str, Any]:
    """Build a kernel, with the options that the package builds it with, and return what the compiler says of it, see `usage`."""
    options = programs.build(context, device, record).options
    # A comment of its own: a driver's cache would give the kernel back without the log.
    source = f"// {uuid.uuid4()}\n{programs.render(record)}"
    program = cl.Program(cl._cl._Program(context, source))
    program.build([*options, "-cl-nv-verbose"], devices=[device])
    return usage(program.get_build_info(device, cl.program_build_info.LOG))


def sheet(kernels: dict[str, dict[str, Any]]) -> Sheet:
    """Return the table of what kernels take, by name."""
    rows = ((name, *(str(result[column]) for column in _PATTERNS)) for name, result in sorted(kernels.items()))
    return Sheet("registers, and bytes of stack, spills and local memory", ("kernel", *_PATTERNS), tuple(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Build all kernels, write the results file and the table beside it, and return the exit code."""
    parsed = scripts.parser("registers", "Tell what a driver's compiler says of each kernel.").parse_args(arguments)
    device = opencl.choose(parsed.device)
    if _EXTENSION not in device.extensions.split():
        print(f"--device: {device.name} does not tell what kernels take: it has no {_EXTENSION}", file=sys.stderr)
        return 2
    context = cl.Context([device])
    todo = list(records(describe(device)))
    warnings.simplefilter("ignore", cl.CompilerWarning)  # each log is read here
    programs.build_together(context, device, "registers", lambda: [record for _, record in todo])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        result = pool.map(lambda task: build(context, device, task[1]), todo)
        kernels = {name: usage for (name, _), usage in zip(todo, result, strict=True)}
    rows = {name: [*(usage[column] for column in _PATTERNS), usage["warnings"]] for name, usage in kernels.items()}
    document = {**scripts.provenance(device, parsed.commit), "columns": [*_PATTERNS, "warnings"], "kernels": rows}
    write_text(parsed.out, as_text(document, 2) + "\n")
    write_text(parsed.out.with_suffix(".md"), sheet(kernels).as_markdown())
    bad = [name for name, kernel in kernels.items() if kernel["spill_stores"] or kernel["spill_loads"] or kernel["warnings"]]
    for name in bad:
        print(f"{name}: {kernels[name]}")
    print(f"{len(kernels)} kernels; {len(bad)} of them spill or draw a warning")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
