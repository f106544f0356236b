"""Several devices of one host: ``python -m bench.cards --out FILE`` measures all that is asked of two and four, beside one alone.

Products with 27-point grids and R-MAT graphs, beside their local parts and the model of `bench.halos`; conjugate gradients on
grids that grow with the devices; ``A @ A``; multigrid whose coarse levels are divided, or whole on each rank. Over threads of
this process and, if there is an ``mpiexec``, over as many processes. Devices are those like the default one; ``--ranks`` beyond
their number share them, which tells what ranks cost, and no speed-up.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import clsparse_py as sp
from bench import gallery
from bench.halos import of_grid
from clsparse_py import distributed
from clsparse_py._decisions import thresholds
from clsparse_py._distributed.places import assign_devices, list_default_devices
from clsparse_py._distributed.whole_levels import Thresholds

__all__ = ["rows_of_grid"]

Row = dict[str, Any]
#: Batches of calls; the result is their median.
_BATCHES = 5
#: Calls of a batch.
_CALLS = 10
#: Iterations of conjugate gradients that end by their number.
_ITERATIONS = 30
#: Most rows of multigrid levels that are whole on each rank: none, the default on GPUs, and four times as many.
_WHOLE_ROWS = (0, 1 << 17, 1 << 19)


def rows_of_grid(shape: tuple[int, int, int], first: int, last: int) -> scipy.sparse.csr_array:
    """Return some rows of the 27-point matrix of a grid, with all columns; planes are made one after another."""
    planes, side = shape[0], shape[1] * shape[2]
    steps = np.array([(z, y, x) for z in (-1, 0, 1) for y in (-1, 0, 1) for x in (-1, 0, 1)])
    columns, lengths = [], []
    for begin in range(first, last, side):
        rows = np.arange(begin, min(begin + side, last), dtype=np.int64)
        place = rows // side, rows // shape[2] % shape[1], rows % shape[2]
        inside = np.ones((rows.size, 27), np.bool_)
        for axis, extent in enumerate((planes, *shape[1:])):
            moved = place[axis][:, None] + steps[:, axis]
            inside &= (moved >= 0) & (moved < extent)
        columns.append((rows[:, None] + steps @ (side, shape[2], 1))[inside].astype(np.int32))
        lengths.append(inside.sum(axis=1))
    indptr = np.concatenate([[0], *map(np.asarray, lengths)]).cumsum()
    result = np.concatenate([np.zeros(0, np.int32), *columns])
    values = np.full(result.size, -1.0)
    values[result == np.repeat(np.arange(first, last, dtype=np.int32), np.diff(indptr))] = 26.0
    return scipy.sparse.csr_array((values, result, indptr), shape=(last - first, planes * side))


def _milliseconds(comm: Any, queue: Any, *ways: Callable[[], object], calls: int = _CALLS) -> list[float]:
    """Return the median times of calls that all ranks make, each back to back in batches that end with a wait for all.

    Batches of the calls alternate, so that their times can be compared.
    """
    results: list[list[float]] = [[] for _ in ways]
    for call in ways:
        call()
        call()
    for _ in range(_BATCHES):
        for call, times in zip(ways, results, strict=True):
            queue.finish()
            comm.barrier()
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            queue.finish()
            comm.barrier()
            times.append(1e3 * (time.perf_counter() - begin) / calls)
    return [statistics.median(times) for times in results]


def _beside_plain(comm: Any, queue: Any, call: Callable[[], object], plain: Callable[[], object], calls: int = _CALLS) -> Row:
    """Return the time of a call of all ranks, and of one rank beside it the time of the class on one device."""
    if comm.size > 1:
        return {"ms": _milliseconds(comm, queue, call, calls=calls)[0]}
    ms, alone = _milliseconds(comm, queue, call, plain, calls=calls)
    return {"ms": ms, "plain class, ms": alone}


def _product(comm: Any, name: str, A: Any) -> Row:
    """Return the times of ``A @ x`` and of the local part alone, the slowest rank's."""
    x = distributed.vector(np.ones(A.columns.length(comm.rank)), comm, A.columns)
    whole, alone = _milliseconds(comm, A.queue, lambda: A @ x, lambda: A.local @ x.own)
    row = {"what": name, "ms": whole, "local part, ms": float(comm.max(alone))}
    # The local part of a single rank is the whole matrix, of the class on one device.
    beside = {"plain class, ms": alone} if comm.size == 1 else {}
    return row | beside | {"largest halo, entries": int(comm.max(A.halo.columns.size))}


def _grid(comm: Any, n: int) -> Row:
    division = distributed.by_rows(n**3, comm.size)
    own = division.part(comm.rank)
    A = distributed.csr_array(rows_of_grid((n, n, n), own.start, own.stop), comm, rows=division)
    row = _product(comm, f"A @ x, 27-point grid of {n}^3", A)
    return row | {"model, ms": 1e3 * of_grid(n, 27, division, comm.size // 2).seconds}


def _iterations(comm: Any, n: int) -> list[Row]:
    """Return the times of an iteration of conjugate gradients, of some and of all up to two residuals; n^3 points for each rank.

    All iterations have the start, replacements of the residual and the check of the solution in their time.
    """
    shape = n * comm.size, n, n
    division = distributed.by_rows(n**3 * comm.size, comm.size)
    own = division.part(comm.rank)
    A = distributed.csr_array(rows_of_grid(shape, own.start, own.stop), comm, rows=division)
    b = distributed.vector((np.arange(own.start, own.stop) % 7).astype(np.float64), comm, division)
    results = []
    for name, options in (
        ("cg", {"rtol": 1e-300, "maxiter": _ITERATIONS}), ("cg to 1e-6", {"rtol": 1e-6}), ("cg to 1e-12", {"rtol": 1e-12}),
    ):  # fmt: skip
        steps: list[None] = []
        x, _ = sp.linalg.cg(A, b, callback=lambda _, steps=steps: steps.append(None), **options)  # type: ignore[misc]
        solves = (lambda A=A, b=b, options=options: sp.linalg.cg(A, b, **options) for A, b in ((A, b), (A.local, b.own)))  # type: ignore[misc]
        times = {key: ms / len(steps) for key, ms in _beside_plain(comm, A.queue, *solves, calls=1).items()}
        row = {"what": f"{name}, an iteration, 27 points, {n}^3 a rank", **times, "weak": True}
        results.append(row | {"iterations": len(steps), "true residual": (b - A @ x).norm() / b.norm()})
    return results


@contextmanager
def _whole_up_to(comm: Any, rows: int) -> Iterator[None]:
    """Let multigrid levels of at most so many rows be whole on each rank; ranks may be threads, which share the threshold."""
    comm.barrier()
    Thresholds.of = classmethod(lambda cls, *_: cls(max_whole_rows=rows))  # type: ignore[assignment]
    comm.barrier()
    yield
    comm.barrier()
    Thresholds.of = classmethod(thresholds.Thresholds.of.__func__)  # type: ignore[attr-defined, assignment]


def _multigrid(comm: Any, n: int) -> list[Row]:
    """Return the times of multigrid's set-up, `refresh`, cycle and solution to 1e-8, by the rows of levels that are whole."""
    division = distributed.by_rows(n**3, comm.size)
    own = division.part(comm.rank)
    A = distributed.csr_array(rows_of_grid((n, n, n), own.start, own.stop), comm, rows=division)
    b = distributed.vector(np.ones(own.stop - own.start), comm, division)

    def set_up(rows: int) -> Any:
        with _whole_up_to(comm, rows):
            return sp.amg.smoothed_aggregation_solver(A)

    hierarchies = [set_up(rows) for rows in _WHOLE_ROWS]
    cycles = [ml.aspreconditioner() for ml in hierarchies]
    steps: dict[str, tuple[list[Callable[[], object]], int]] = {
        "set-up": ([lambda rows=rows: set_up(rows) for rows in _WHOLE_ROWS], 1),  # type: ignore[misc]
        "refresh": ([lambda ml=ml: ml.refresh(A) for ml in hierarchies], 1),  # type: ignore[misc]
        "a V-cycle": ([lambda M=M: M @ b for M in cycles], _CALLS),  # type: ignore[misc]
        "cg to 1e-8": ([lambda M=M: sp.linalg.cg(A, b, M=M, rtol=1e-8) for M in cycles], 1),  # type: ignore[misc]
    }
    return [
        {"what": f"multigrid: {step}, levels whole up to {rows} rows, 27-point grid of {n}^3", "ms": ms}
        for step, (ways, calls) in steps.items()
        for rows, ms in zip(_WHOLE_ROWS, _milliseconds(comm, A.queue, *ways, calls=calls), strict=True)
    ]


def _of_gallery(comm: Any, name: str, *, squared: bool) -> list[Row]:
    S = gallery.load(name) if comm.rank == 0 else None
    A = distributed.csr_array.scattered(S, comm)
    if not squared:
        return [_product(comm, f"A @ x, {name}", A)]
    plan, plain = distributed.spgemm_plan(A, A), A.local
    own_plan = sp.spgemm_plan(plain, plain) if comm.size == 1 else None
    ways: tuple[tuple[str, Callable[[], object], Callable[[], object], int], ...] = (
        ("A @ A", lambda: A @ A, lambda: plain @ plain, 2),
        ("plan(A, A)", lambda: plan(A, A), lambda: own_plan and own_plan(plain.data, plain.data), 5),
    )
    return [{"what": f"{way}, {name}", **_beside_plain(comm, A.queue, *calls)} for way, *calls in ways]


def measure_ranks(comm: Any, given: argparse.Namespace) -> list[Row]:
    """Return all rows of one number of ranks; a case that fails on all ranks is noted."""
    cases: list[Callable[[], Row | list[Row]]] = [
        *(lambda n=n: _grid(comm, n) for n in given.points),  # type: ignore[misc]
        *(lambda n=n: _iterations(comm, n) for n in given.weak),  # type: ignore[misc]
        *(lambda n=n: _multigrid(comm, n) for n in given.multigrid),  # type: ignore[misc]
        *(lambda name=name: _of_gallery(comm, name, squared=True) for name in given.squared),  # type: ignore[misc]
        *(lambda name=name: _of_gallery(comm, name, squared=False) for name in given.graphs),  # type: ignore[misc]
    ]
    rows: list[Row] = []
    for case in cases:
        try:
            results = case()
        except MemoryError as error:
            results = {"what": f"MemoryError: {error}", "ms": float("nan")}
        rows += results if isinstance(results, list) else [results]
    return [row | {"ranks": comm.size} for row in rows]


def _speedup_table(rows: Sequence[Row]) -> str:
    """Return a table in which each time stands beside that of one rank of the same way, and beside the plain class."""
    one = {(row["way"], row["what"]): row["ms"] for row in rows if row["ranks"] == 1}
    plain = {row["what"]: row["plain class, ms"] for row in rows if "plain class, ms" in row}
    lines = [
        "| what | way | ranks | ms | times one | times plain | local part | model | iterations | true residual |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        alone = one.get((row["way"], row["what"]), float("nan"))
        local, model = (f"{row[key]:.3f}" if key in row else "" for key in ("local part, ms", "model, ms"))
        ratios = (f"{ms / row['ms']:.2f}" for ms in (alone, plain.get(row["what"], float("nan"))))
        residual = f"{row['true residual']:.1e}" if "true residual" in row else ""
        steps = row.get("iterations", "")
        cells = row["what"], row["way"], row["ranks"], f"{row['ms']:.3f}", *ratios, local, model, steps, residual
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _by_processes(size: int, arguments: Sequence[str], out: Path) -> list[Row]:
    """Return what as many processes of MPI measure; none if there is no launcher or it fails, which is said."""
    if shutil.which("mpiexec") is None:
        print("no mpiexec: ranks are threads alone")
        return []
    part = out.with_suffix(f".{size}.json")
    command = ["mpiexec", "-n", str(size), sys.executable, "-m", "bench.cards", *arguments, "--one-of-many", str(part), str(size)]
    if subprocess.run(command, check=False).returncode:
        print(f"mpiexec failed with {size} processes")
        return []
    result: list[Row] = json.loads(part.read_text(encoding="utf-8"))
    part.unlink()
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and keep it."""
    parser = argparse.ArgumentParser(prog="python -m bench.cards", description=__doc__)
    numbers = {"type": int, "nargs": "*"}
    parser.add_argument("--ranks", **numbers, help="by default 1, 2, 4, ... up to the number of devices")
    parser.add_argument("--points", **numbers, default=[200, 256], help="of grids along each axis; by default 200 and 256")
    parser.add_argument("--weak", **numbers, default=[200], help="of a rank's part of the grids of conjugate gradients; 200")
    parser.add_argument("--multigrid", **numbers, default=[128], help="of grids along each axis; by default 128")
    parser.add_argument("--squared", nargs="*", default=["fd3d7_160", "fe3d27_120"], help="matrices of the gallery, for A @ A")
    parser.add_argument("--graphs", nargs="*", default=["rmat20", "rmat22"], help="matrices of the gallery, for A @ x")
    parser.add_argument("--ways", nargs="*", choices=["threads", "processes"], default=["threads", "processes"])
    parser.add_argument("--out", type=Path, default=Path("cards.json"), help="a JSON file; by default cards.json")
    parser.add_argument("--one-of-many", nargs=2, help=argparse.SUPPRESS)
    said = list(sys.argv[1:] if arguments is None else arguments)
    given = parser.parse_args(said)
    if given.one_of_many is not None:
        part, size = given.one_of_many
        comm = distributed.world(expect=int(size))
        try:
            rows = measure_ranks(comm, given)
        except BaseException:
            comm.abort()
            raise
        if comm.rank == 0:
            Path(part).write_text(json.dumps([row | {"way": "processes"} for row in rows]), encoding="utf-8")
        return
    devices = list_default_devices()
    sizes = given.ranks or [1 << bit for bit in range(len(devices).bit_length())]
    results: list[Row] = []
    for size in sizes:
        if "threads" in given.ways:
            places = devices[:size] if size <= len(devices) else assign_devices(devices, size)
            with distributed.over(places) as team:
                results += [row | {"way": "threads"} for row in team.each(measure_ranks, given)[0]]
        if "processes" in given.ways:
            results += _by_processes(size, said, given.out)
        report = {"device": devices[0].name.strip(), "devices": len(devices), "version": sp.__version__, "rows": results}
        given.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(_speedup_table(results))


if __name__ == "__main__":
    main()
