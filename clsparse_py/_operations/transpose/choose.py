"""Choose the methods of SpTRANS and their limits, without a device."""

from __future__ import annotations

from clsparse_py._decisions.labels import MOST, number
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix

__all__ = ["STRATEGIES", "Strategy", "features_of", "parse"]

#: Declared strategies. The device counts, in a sample of 1024 entries, those found at the first place that `gather` looks at, and
#: the longest row of the transposed before `atomics` moves anything.
STRATEGIES = (
    "gather:900 binned",
    "gather:1024 binned",
    "gather:0 binned",
    "gather:100 binned",
    "gather:500 binned",
    "gather:0 atomics:256 binned",
    "gather:900 atomics:256 binned",
    "atomics:256 binned",
    "atomics:4096 binned",
    "binned",
)

# The highest limit of each method.
_MAX_LIMITS = {"gather": 1024, "atomics": MOST}


@dataclass(frozen=True)
class Strategy:
    """Methods that are tried one after another: those with a limit give up where the device finds that a matrix exceeds it.

    Attributes
    ----------
    limits : tuple of (str, int)
        "gather" and how many of 1024 sampled entries it has to find at the first place it looks at; "atomics" and how many
        entries a row of the transposed may have. "binned", which takes any matrix, comes after them.
    """

    limits: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return " ".join((*(f"{method}:{limit}" for method, limit in self.limits), "binned"))


def parse(label: str) -> Strategy:
    """Return the strategy of a label such as "gather:900 binned".

    Raises
    ------
    ValueError
        It names no strategy.
    """
    *first_methods, last = label.split(" ")
    limits: list[tuple[str, int]] = []
    for step in first_methods:
        method, _, limit = step.partition(":")
        if method not in _MAX_LIMITS or any(method == earlier for earlier, _ in limits):
            raise ValueError(f'strategy: must be such as "{STRATEGIES[0]}", is {label!r}')
        limits.append((method, number(limit, f"strategy: the limit of {method}", 0, _MAX_LIMITS[method])))
    if last != "binned":
        raise ValueError(f"strategy: must end with binned, which takes any matrix, is {label!r}")
    return Strategy(tuple(limits))


def features_of(A: Matrix, value_bytes: int) -> dict[str, float]:
    """Return the features of a transposition that are known before the device is asked.

    Parameters
    ----------
    A : csr_array
    value_bytes : int
        Bytes of a value; 0 where positions are moved in its place.
    """
    (rows, columns), nnz = A.shape, A.nnz
    return {
        "rows": rows,
        "columns": columns,
        "nnz": nnz,
        "mean": nnz / (rows or 1),
        "mean_of_columns": nnz / (columns or 1),
        "square": float(rows == columns),
        "value_bytes": value_bytes,
    }
