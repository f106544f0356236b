"""Demo of a product over ranks: division, halo, time and error."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from clsparse_py._distributed.communicator import Communicator
from clsparse_py._distributed.csr import csr_array
from clsparse_py._distributed.division import Division, by_rows
from clsparse_py._distributed.mpi import world
from clsparse_py._distributed.places import assign_devices, list_default_devices
from clsparse_py._distributed.team import over
from clsparse_py._distributed.vectors import vector
from clsparse_py._ground.console import make_console
from clsparse_py._ground.tables import Table

__all__ = ["Shown", "grid_rows", "main", "measure"]


def grid_rows(n: int, begin: int, end: int) -> Any:
    """Return rows ``begin`` to ``end - 1`` of the 7-point Laplacian of an n * n * n grid, with all columns, as a CSR array."""
    rows = np.arange(begin, end)
    point = np.stack([rows, rows // n, rows // (n * n)]) % n
    steps = np.array([[-n * n, -n, -1, 0, 1, n, n * n]])
    inside = np.ones((rows.size, 7), np.bool_)
    for axis in range(3):
        inside[:, 2 - axis] = point[axis] > 0
        inside[:, 4 + axis] = point[axis] < n - 1
    values = np.broadcast_to(np.where(steps == 0, 6.0, -1.0), inside.shape)[inside]
    indptr = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    return scipy.sparse.csr_array((values, (rows[:, None] + steps)[inside], indptr), shape=(rows.size, n**3))


class Shown(NamedTuple):
    """A rank's row of the demo's table.

    Attributes
    ----------
    device : str
    rows, entries, halo, neighbours : int
    seconds, alone : float
        Seconds of a product, and of its local part alone.
    error : float
        The largest error of this rank's entries.
    """

    device: str
    rows: int
    entries: int
    halo: int
    neighbours: int
    seconds: float
    alone: float
    error: float


def measure(comm: Communicator, n: int, division: Division, repeats: int) -> Shown:
    """Return this rank's row of the demo's table: the sizes of its share, the mean seconds of a product, the largest error."""
    part = division.part(comm.rank)
    S = grid_rows(n, part.start, part.stop)
    A = csr_array(S, comm, rows=division)
    # The entries of the demo's vector x are whole numbers, so that the product ``A @ x`` is exact in floating point.
    x_of_all = (np.arange(n**3) * 7 % 1000).astype(np.float64)
    x = vector(x_of_all[part], comm, division)
    error = np.abs((A @ x).own.get() - S @ x_of_all).max(initial=0)

    def time_product(product: Any) -> float:
        """Return the mean seconds of a call of ``product``, on all ranks at once, over the repeats."""
        product()
        A.queue.finish()
        comm.barrier()
        begin = time.perf_counter()
        for _ in range(repeats):
            product()
        A.queue.finish()
        comm.barrier()
        return (time.perf_counter() - begin) / repeats

    times = time_product(lambda: A @ x), time_product(lambda: A.local @ x.own)
    device = A.queue.device
    name = f"{device.name.strip()}, {device.max_compute_units} units"
    return Shown(name, S.shape[0], S.nnz, A.halo.columns.size, len(A.halo.sources), *times, float(error))


def _format_table(shown: Sequence[Shown], n: int, how: str) -> str:
    """Return the demo's table of shares, times and errors as text, a row for each rank."""
    rows = [
        (str(rank), row.device, f"{row.rows:,}", f"{row.entries:,}", f"{row.halo:,} of {row.neighbours}",
         f"{row.seconds * 1e3:.3f}", f"{row.alone * 1e3:.3f}", f"{row.error:.1e}")
        for rank, row in enumerate(shown)
    ]  # fmt: skip
    heads = ("rank", "device", "rows", "entries", "halo, of ranks", "A @ x, ms", "local part, ms", "error")
    return Table(f"A grid of {n} x {n} x {n} points over {len(shown)} ranks, {how}", heads, rows).as_text()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo of a product over ranks by arguments of the command line, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m clsparse_py.distributed", description=__doc__)
    parser.add_argument("command", choices=["demo"])
    parser.add_argument("--points", type=int, default=40, help="of the grid along each axis; by default 40")
    parser.add_argument("--repeats", type=int, default=20, help="products that are timed; by default 20")
    parser.add_argument("--threads", type=int, help="so many threads of one process, without MPI")
    options = parser.parse_args(arguments)
    for name in ("points", "repeats", "threads"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name}: must be at least 1, is {value}")
    if options.threads is None:
        return _run_by_mpi(options.points, options.repeats)
    queues = assign_devices(list_default_devices(), options.threads)
    with over(queues) as team:
        shown = team.each(measure, options.points, by_rows(options.points**3, options.threads), options.repeats)
    return _print_table(shown, options.points, "threads of one process")


def _run_by_mpi(n: int, repeats: int) -> int:
    """Run the demo over the ranks of MPI, print its table on rank 0, and return the exit code: there 1 if a product is wrong."""
    comm = world()
    try:
        shown = comm.gather(measure(comm, n, by_rows(n**3, comm.size), repeats))
    except BaseException as error:
        make_console(stderr=True).print(f"rank {comm.rank}: {type(error).__name__}: {error}")
        comm.abort()
        raise
    return 0 if shown is None else _print_table(shown, n, "by MPI")


def _print_table(shown: Sequence[Shown], n: int, how: str) -> int:
    """Print the demo's table of the ranks' times and errors, and return the exit code: 1 if a product is wrong."""
    make_console(width=140).print(_format_table(shown, n, how))
    return 0 if all(rank_shown.error == 0 for rank_shown in shown) else 1
