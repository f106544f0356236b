"""How long a new process waits for its first operation, and what for: ``python -m bench.first_product`` prints a table.

With ``--out`` all samples go to a file, of which ``<!-- bench FILE first -->`` on a page makes that table.

Two kinds of processes: the very first one, for which nothing was built (all caches are empty folders, the drivers' too), and
later ones, whose kernels an earlier one has left. Each computes once. Phases: *import* of clsparse_py beyond NumPy, SciPy and
PyOpenCL; the *context* with its queue; then, within the first operation, *render* (templates filled in), *build* (the driver's
compiler, or its loading of binaries) and the *rest*. *first* is the operation with its csr_array, all after the context.
"""

from __future__ import annotations

# Imports stand within functions, as a process that measures its own imports may not have them before.
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import machine

if TYPE_CHECKING:
    from bench.report import Sheet

#: The matrix of the first operation, by its name in the gallery.
MATRIX = "cantilever_26"
#: Operations by name, as expressions of a matrix A, a vector x and a list of rows.
OPERATIONS = {"spmv": "A @ x", "spgemm": "A @ A", "add": "A + A", "multiply": "A.multiply(A)", "rows": "A[rows]"}
#: Phases of a new process, in order; "first" is the operation as a whole.
PHASES = ("import", "context", "render", "build", "rest", "first")
# Environment variables that name the folders in which drivers keep built kernels.
DRIVER_CACHES = ("CUDA_CACHE_PATH", "POCL_CACHE_DIR", "NEO_CACHE_DIR", "MESA_SHADER_CACHE_DIR", "XDG_CACHE_HOME")


def in_new_processes(device: str, processes: int = 2) -> list[float]:
    """Return the seconds from the context's creation to the first A @ x of one new process after the other.

    Raises
    ------
    subprocess.CalledProcessError
        If one fails; what it wrote to its standard error goes to ours.
    """
    results = [_process("spmv", device) for _ in range(processes)]
    return [phases["context"] + phases["first"] for phases in results]


def _process(operation: str, device: str, environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """Return the seconds of each phase of a new process."""
    command = [sys.executable, "-m", "bench.first_product", "--child", operation, "--device", device]
    # Users' processes keep Python's bytecode: without it, compiling Python is most of an import.
    kept = {name: value for name, value in (environment or os.environ).items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, cwd=machine.ROOT, env=kept, check=True, stdout=subprocess.PIPE, text=True)
    phases: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return phases


def _with_empty_caches(operation: str, device: str) -> dict[str, float]:
    from bench import gallery

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        own = dict.fromkeys(("CLSPARSE_CACHE_DIR", *DRIVER_CACHES), folder)
        return _process(operation, device, {**os.environ, "CLSPARSE_GALLERY": str(gallery.folder()), **own})


def _child(operation: str, device: str) -> None:
    """Print the phases of this process as JSON."""
    import numpy as np
    import pyopencl as cl
    import pyopencl.array  # likewise
    import scipy.sparse  # noqa: F401 - what the package needs in any case is not its own time

    start = time.perf_counter()
    import clsparse_py as cs

    phases = {"import": time.perf_counter() - start}
    from bench import gallery, opencl
    from clsparse_py._build import programs

    matrix = gallery.load(MATRIX)
    chosen = opencl.choose(device)
    if "cl_khr_fp64" not in chosen.extensions.split():
        matrix = matrix.astype(np.float32)
    x = np.ones(matrix.shape[1], matrix.dtype)
    rows = np.random.default_rng(0).permutation(matrix.shape[0])[::2]

    def result(of: Any) -> Any:
        return eval(OPERATIONS[operation], {"A": of, "x": x, "rows": rows})

    start = time.perf_counter()
    # Named, and so kept: quirk 9.
    context = cl.Context([chosen])
    queue = cl.CommandQueue(context)
    phases["context"] = time.perf_counter() - start

    def timed(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        phases[phase] = 0.0

        def call(*arguments: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                phases[phase] += time.perf_counter() - begin

        return call

    programs.render = timed("render", programs.render)
    programs.compile_source = timed("build", programs.compile_source)
    start = time.perf_counter()
    A = cs.csr_array(matrix, queue=queue)
    actual = result(A)
    queue.finish()
    phases["first"] = time.perf_counter() - start
    phases["rest"] = phases["first"] - phases["render"] - phases["build"]
    # Before the check, which builds kernels of its own.
    measured = json.dumps(phases)
    actual, wanted = (operand if operand.ndim == 1 else operand @ x for operand in (actual, result(matrix)))
    if not np.allclose(actual, wanted, rtol=1e-4):
        raise SystemExit(f"the first {OPERATIONS[operation]} of {MATRIX} is wrong")
    print(measured)


def sheet(document: Mapping[str, Any]) -> Sheet:
    """Return the table of a results file: of each kind of process the median of each phase, and the largest."""
    from bench.report import Sheet

    def cell(seconds: Sequence[float]) -> str:
        return f"{1e3 * statistics.median(seconds):.0f} ({1e3 * max(seconds):.0f})"

    rows = [
        (name, *(cell([process[phase] for process in processes]) for phase in PHASES))
        for name, processes in document["processes"].items()
    ]
    title = f"The first operation on {document['matrix']}"
    return Sheet(title, ("ms, median (largest)", *PHASES), tuple(rows))


def _write(document: Mapping[str, Any], options: argparse.Namespace) -> None:
    """Write a results file: the document, and where it was measured."""
    from bench import opencl, scripts
    from clsparse_py._ground.files import write_text

    whole = {**scripts.provenance(opencl.choose(options.device), options.commit), **document}
    write_text(options.out, json.dumps(whole, indent=1, allow_nan=False) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write, or be one of the processes."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_product", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", default="", metavar="SUBSTRING", help="of the device's or platform's name")
    parser.add_argument("--runs", type=int, default=5, help="processes of each kind (default: 5)")
    parser.add_argument("--later", action="store_true", help="later processes alone")
    parser.add_argument("--operations", nargs="+", choices=OPERATIONS, metavar="NAME", help="by default all: %(choices)s")
    parser.add_argument("--out", type=Path, help="a results file for all samples")
    parser.add_argument("--commit", metavar="REVISION", help="what is measured, where the tree has no repository")
    parser.add_argument("--child", choices=OPERATIONS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        _child(options.child, options.device)
        return
    from clsparse_py._ground.console import make_console

    processes: dict[str, list[dict[str, float]]] = {}
    for operation in options.operations or OPERATIONS:
        expression = OPERATIONS[operation]
        if not options.later:
            processes[f"very first process, {expression}"] = [
                _with_empty_caches(operation, options.device) for _ in range(options.runs)
            ]
        _process(operation, options.device)
        processes[f"later process, {expression}"] = [_process(operation, options.device) for _ in range(options.runs)]
    document = {"matrix": MATRIX, "processes": processes}
    (make_console() if sys.stdout.isatty() else make_console(width=140)).print(sheet(document).as_rich())
    if options.out is not None:
        _write(document, options)


if __name__ == "__main__":
    main()
