"""Write the sample matrices beside this file from their definitions: ``python make.py``. See README.md. Not in the wheel."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

#: Friendships in a karate club (Zachary 1977, Figure 1): by each member's number, the friends with higher numbers.
_KARATE = {
    1: (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32),
    2: (3, 4, 8, 14, 18, 20, 22, 31),
    3: (4, 8, 9, 10, 14, 28, 29, 33),
    4: (8, 13, 14),
    5: (7, 11),
    6: (7, 11, 17),
    7: (17,),
    9: (31, 33, 34),
    10: (34,),
    14: (34,),
    15: (33, 34),
    16: (33, 34),
    19: (33, 34),
    20: (34,),
    21: (33, 34),
    23: (33, 34),
    24: (26, 28, 30, 33, 34),
    25: (26, 28, 32),
    26: (32,),
    27: (30, 34),
    28: (34,),
    29: (32, 34),
    30: (33, 34),
    31: (33, 34),
    32: (33, 34),
    33: (34,),
}


def karate() -> sp.coo_array:
    """Return the adjacency matrix of the friendships in a karate club."""
    pairs = [(a - 1, b - 1) for a, friends in _KARATE.items() for b in friends]
    row, col = np.array(pairs + [(b, a) for a, b in pairs]).T
    return sp.coo_array((np.ones(row.size), (row, col)), shape=(34, 34))


def plate(nx: int = 40, ny: int = 20) -> sp.csr_array:
    """Return the stiffness matrix of a plate with a hole: plane stress, square bilinear elements, steel in GPa.

    A node has two displacements; nodes inside the hole are left out, and the left edge is clamped.
    """
    modulus, nu = 210.0, 0.3
    elasticity = modulus / (1 - nu**2) * np.array([[1, nu, 0], [nu, 1, 0], [0, 0, (1 - nu) / 2]])
    corner = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    element = np.zeros((8, 8))
    for point in product((-1, 1), repeat=2):
        xi, eta = np.array(point) / np.sqrt(3)
        slope = np.stack([corner[:, 0] * (1 + corner[:, 1] * eta), corner[:, 1] * (1 + corner[:, 0] * xi)]) / 2
        strain = np.zeros((3, 8))
        strain[0, 0::2], strain[1, 1::2] = slope
        strain[2, 0::2], strain[2, 1::2] = slope[1], slope[0]
        element += strain.T @ elasticity @ strain / 4

    def node(i: int, j: int) -> int:
        """Return the number of the node in column i and row j of the plate's grid."""
        return i * (ny + 1) + j

    size = 2 * (nx + 1) * (ny + 1)
    row: list[int] = []
    for i, j in product(range(nx), range(ny)):
        if np.hypot(i + 0.5 - nx / 2, j + 0.5 - ny / 2) >= ny / 4:
            nodes = (node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1))
            row += [2 * number + axis for number in nodes for axis in (0, 1)]
    unknowns = np.array(row).reshape(-1, 8, 1)
    places = (np.broadcast_to(axis, (len(unknowns), 8, 8)).ravel() for axis in (unknowns, unknowns.swapaxes(1, 2)))
    whole = sp.csr_array((np.tile(element.ravel(), len(unknowns)), tuple(places)), shape=(size, size))
    free = np.flatnonzero((np.diff(whole.indptr) > 0) & (np.arange(size) >= 2 * (ny + 1)))
    stiffness = whole[free][:, free]
    stiffness.data = np.round(stiffness.data, 6)
    stiffness.eliminate_zeros()
    return stiffness


def assignment_lp(n: int = 8) -> sp.coo_array:
    """Return the constraints of Adams and Johnson's linear relaxation of the quadratic assignment problem of size n.

    Unknowns are x[i, j], and y[i, j, k, l] for i < k and j != l, which stands for x[i, j] x[k, l].
    """
    x = {(i, j): i * n + j for i, j in product(range(n), repeat=2)}
    y = {key: n * n + number for number, key in enumerate(product(combinations(range(n), 2), permutations(range(n), 2)))}

    def pair(i: int, j: int, k: int, l: int) -> int:  # noqa: E741 - the problem's own indices
        """Return the number of the unknown y that stands for x[i, j] x[k, l]."""
        return y[(i, k), (j, l)] if i < k else y[(k, i), (l, j)]

    rows = [{x[i, j]: 1 for j in range(n)} for i in range(n)] + [{x[i, j]: 1 for i in range(n)} for j in range(n)]
    for i, j, other in product(range(n), repeat=3):
        if other != i:
            rows.append({x[i, j]: -1} | {pair(i, j, other, column): 1 for column in range(n) if column != j})
        if other != j:
            rows.append({x[i, j]: -1} | {pair(i, j, row, other): 1 for row in range(n) if row != i})
    row = np.repeat(np.arange(len(rows)), [len(entries) for entries in rows])
    col, data = (np.array(part) for part in zip(*(entry for entries in rows for entry in entries.items()), strict=True))
    return sp.coo_array((data, (row, col)), shape=(len(rows), len(x) + len(y)))


def _primes(n: int) -> list[int]:
    """Return the prime numbers up to n."""
    return [k for k in range(2, n + 1) if all(k % d for d in range(2, int(k**0.5) + 1))]


def trefethen(n: int = 1000) -> sp.csr_array:
    """Return Trefethen's matrix: the first n primes on the diagonal, 1 where row and column differ by a power of two."""
    distances = [1 << bit for bit in range(n.bit_length()) if 1 << bit < n]
    # The first 1000 primes are all below 8000.
    diagonals = [np.array(_primes(8000)[:n], float), *(np.ones(n - d) for d in distances for _ in (0, 1))]
    return sp.csr_array(sp.diags_array(diagonals, offsets=[0, *(sign * d for d in distances for sign in (1, -1))]))


def redheffer(n: int = 1000) -> sp.coo_array:
    """Return Redheffer's matrix: 1 where the row divides the column, and in the first column."""
    pairs = {(i, j) for i in range(1, n + 1) for j in range(i, n + 1, i)} | {(i, 1) for i in range(1, n + 1)}
    row, col = np.array(sorted(pairs)).T - 1
    return sp.coo_array((np.ones(row.size), (row, col)), shape=(n, n))


def divisibility(n: int = 2000) -> sp.coo_array:
    """Return the Hasse diagram of divisibility: 1 where the column is a prime times the row. Rows above n / 2 are empty."""
    primes = _primes(n)
    row, col = np.array([(i, i * p) for i in range(1, n // 2 + 1) for p in primes if i * p <= n]).T - 1
    return sp.coo_array((np.ones(row.size), (row, col)), shape=(n, n))


#: Function, and Matrix Market field, symmetry and comment, of every file of a sample matrix, by name.
SAMPLES: dict[str, tuple[Callable[[], sp.sparray], str, str, str]] = {
    "karate": (karate, "pattern", "symmetric", "social network: friendships in a karate club"),
    "plate": (plate, "real", "symmetric", "finite elements: elastic plate with a hole"),
    "qap_lp_8": (assignment_lp, "integer", "general", "linear programme: relaxed quadratic assignment"),
    "trefethen_1000": (trefethen, "integer", "symmetric", "bands at powers of two around the primes"),
    "redheffer_1000": (redheffer, "pattern", "general", "divisibility: rows from 2 to 1000 entries"),
    "hasse_2000": (divisibility, "pattern", "general", "Hasse diagram: half of the rows are empty"),
}


def main() -> None:
    """Write the compressed Matrix Market files of all sample matrices."""
    for name, (make, field, symmetry, comment) in SAMPLES.items():
        text = io.BytesIO()
        scipy.io.mmwrite(text, make(), comment=comment, field=field, symmetry=symmetry)
        # The compressed file has no time stamp, so that the same matrix gives the same file.
        (Path(__file__).parent / f"{name}.mtx.gz").write_bytes(gzip.compress(text.getvalue(), 9, mtime=0))


if __name__ == "__main__":
    main()
