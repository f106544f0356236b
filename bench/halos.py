"""What ranks send for a product, and the time by a model: ``python -m bench.halos`` prints a table of grids and a power law.

Rows are divided in their order; "in cubes" stands for a division of a grid as a graph partitioner would have it at best.
``--counted`` runs products on small matrices over threads of one device, and holds the messages and bytes that were counted
against those that are computed here.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse

from bench.generators.graphs import rmat
from clsparse_py import default_queue, distributed
from clsparse_py._distributed.costs import Sent
from clsparse_py.distributed import Division, by_entries, by_rows

__all__ = ["of_cubes", "of_grid", "of_matrix"]


def of_matrix(S: scipy.sparse.csr_array, division: Division) -> list[Sent]:
    """Return what each rank needs, by the matrix's structure; columns are divided as rows."""
    results = []
    for rank in range(division.size):
        part = division.part(rank)
        first, last = S.indptr[part.start], S.indptr[part.stop]
        columns = np.unique(S.indices[first:last])
        others = columns[(columns < part.start) | (columns >= part.stop)]
        results.append(Sent(others.size, np.unique(division.owner(others)).size, int(last - first), part.stop - part.start))
    return results


def of_grid(n: int, points: int, division: Division, rank: int) -> Sent:
    """Return what a rank needs of a grid of n x n x n points with 7 or 27 points to a row, without the matrix."""
    part = division.part(rank)
    steps = np.array([(z, y, x) for z in (-1, 0, 1) for y in (-1, 0, 1) for x in (-1, 0, 1)])
    if points == 7:
        steps = steps[np.abs(steps).sum(axis=1) <= 1]
    reach = n * n + n + 1
    # Rows further inside than a row reaches need none of others.
    near = np.unique(np.r_[part.start : min(part.stop, part.start + reach), max(part.start, part.stop - reach) : part.stop])
    place = np.stack([near // (n * n), near // n % n, near % n], axis=1)
    needed = []
    for step in steps:
        there = place + step
        inside = ((there >= 0) & (there < n)).all(axis=1)
        needed.append(there[inside] @ (n * n, n, 1))
    columns = np.unique(np.concatenate(needed))
    others = columns[(columns < part.start) | (columns >= part.stop)]
    rows = part.stop - part.start
    return Sent(others.size, np.unique(division.owner(others)).size, points * rows, rows)


def of_cubes(n: int, points: int, size: int) -> Sent:
    """Return what an inner one of as many cubes of a grid of n x n x n points needs, by its surface."""
    side = n / size ** (1 / 3)
    halo = 6 * side * side if points == 7 else (side + 2) ** 3 - side**3
    return Sent(round(halo), 6 if points == 7 else 26, round(points * side**3), round(side**3))


def _compute(sizes: Sequence[int], scale: int) -> Iterator[tuple[str, int, Sent]]:
    for n, points in ((256, 27), (256, 7)):
        for size in sizes:
            # The middle one has neighbours on both sides.
            yield f"grid of {n}^3, {points} points", size, of_grid(n, points, by_rows(n**3, size), size // 2)
            if size >= 8:
                yield f"the same in cubes, {points} points", size, of_cubes(n, points, size)
    S = rmat(np.random.default_rng(0), scale)
    for size in sizes:
        yield f"R-MAT {scale}, largest halo", size, max(of_matrix(S, by_entries(S.indptr, size)))


def count_traffic(size: int) -> None:
    """Print what products over threads sent beside what is computed."""
    grid = 12
    line = scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(grid, grid))
    for name, S in (
        ("grid of 12^3, 27 points", scipy.sparse.kron(scipy.sparse.kron(line, line), line).tocsr()),
        ("R-MAT 10", rmat(np.random.default_rng(0), 10)),
    ):
        division = by_rows(S.shape[0], size)
        wanted = of_matrix(scipy.sparse.csr_array(S), division)
        with distributed.over([default_queue()] * size) as team:
            A = team.csr_array(S, division=division)
            x = team.vector(np.ones(S.shape[1]), division)
            A @ x
            messages = sum(comm.sent.messages for comm in team.ranks)
            n_bytes = sum(comm.sent.bytes for comm in team.ranks)
        computed = sum(halo.sources for halo in wanted), sum(halo.bytes for halo in wanted)
        print(f"{name}, {size} ranks: counted {messages} messages of {n_bytes} bytes, computed {computed[0]} of {computed[1]}")
        assert (messages, n_bytes) == computed


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.halos", description=__doc__)
    parser.add_argument("--sizes", default="2,4,64,1024", help="numbers of ranks, with commas between")
    parser.add_argument("--scale", type=int, default=20, help="of the R-MAT graph; by default 20")
    parser.add_argument("--counted", action="store_true", help="compare with products of this machine")
    given = parser.parse_args(arguments)
    sizes = [int(text) for text in given.sizes.split(",")]
    if given.counted:
        for size in sizes:
            count_traffic(size)
        return
    print("| matrix | ranks | rows | messages | KiB | of A's bytes | alone, us | exchange, us | speed-up at most |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, size, halo in _compute(sizes, given.scale):
        of_a = halo.bytes / max(halo.bytes_of_entries, 1)
        print(
            f"| {name} | {size:,} | {halo.rows:,} | {halo.sources:,} | {halo.bytes / 1024:,.0f} | {of_a:.2%} "
            f"| {halo.seconds_alone * 1e6:,.0f} | {halo.seconds_of_exchange * 1e6:,.0f} "
            f"| {size * halo.seconds_alone / halo.seconds:,.1f} |"
        )


if __name__ == "__main__":
    main()
