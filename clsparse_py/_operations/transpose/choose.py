"""Choose the methods of SpTRANS and their limits, without a device; and its thresholds."""

from __future__ import annotations

from clsparse_py._decisions import labels, thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.matrix import Matrix

__all__ = ["STRATEGIES", "Strategy", "Thresholds", "features_of", "parse"]

#: Labels of the strategies of sparse transposition that a tuner tries: methods, with limits, that are tried in turn.
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

#: Greatest limit that a label may give to each method of transposition. What a limit counts: for `gather`, how many of 1024
#: sampled entries at least have mirror images where first guessed; for `atomics`, how many entries a row of the transposed has
#: at most.
_MAX_LIMITS = {"gather": 1024, "atomics": labels.MOST}


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Thresholds of SpTRANS that the decision tree does not decide."""

    operation = "transpose"

    #: Least bytes of moved entries for which buckets pay on CPU devices: fewer fit the caches of two cores.
    min_bucket_bytes: int = number(16 << 20, "bytes")
    #: Least columns for which buckets pay on CPU devices: counters of fewer columns fit the caches.
    min_bucket_columns: int = number(1 << 13, "columns")
    #: Most cores of a CPU device for which buckets pay: more cores wait for the core with the largest bucket.
    max_bucket_cores: int = number(16, "cores")
    #: Most of 256 sampled entries that shortly follow an entry of a near column for A's columns to count as scattered.
    max_near_samples: int = number(127, "entries")
    #: Number of ranges of buckets to a core of a CPU; a work-item scans the counts of each range.
    ranges_per_core: int = number(4, "ranges", least=1)
    #: Most bits of a digit (of a bucket, or of a column within one) for which the largest tiles of entries fit local memory.
    moderate_bits: int = number(10, "bits", least=1, most=11)
    #: Most entries for which buckets are few (`few_entries_bits`), and each work-group adds up counts, which saves a launch.
    max_few_entries: int = number(3 << 18, "entries")
    #: Most bits of a bucket's number in a transposition of at most `max_few_entries` entries.
    few_entries_bits: int = number(7, "bits", least=1, most=11)
    #: Work-items of a work-group that scans the counts of buckets of columns.
    starts_group: int = number(512, "work-items", least=1)
    #: Most rows, columns and entries together that one work-group transposes in one launch.
    max_at_once: int = number(1 << 12, "places")
    #: Number of parts to a core of a CPU into which `gather` cuts a matrix.
    parts_per_core: int = number(4, "parts", least=1)


@dataclass(frozen=True)
class Strategy:
    """Methods of SpTRANS that are tried one after another; a method gives up if the device finds the matrix beyond its limit.

    Attributes
    ----------
    limits : tuple of (str, int)
        Methods with their limits: "gather" with the least number of 1024 sampled entries whose mirror images stand at the first
        guess; "atomics" with the most entries of a row of the transposed. "binned", which takes any matrix, is always the last.
    """

    limits: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return " ".join((*(f"{method}:{limit}" for method, limit in self.limits), "binned"))


def parse(label: str) -> Strategy:
    """Return the strategy of transposition, methods tried in turn up to limits, that a label such as "gather:900 binned" names.

    Raises
    ------
    ValueError
        The label names no strategy.
    """
    *first_methods, last = label.split(" ")
    limits: list[tuple[str, int]] = []
    for step in first_methods:
        method, _, limit = step.partition(":")
        if method not in _MAX_LIMITS or any(method == earlier for earlier, _ in limits):
            raise ValueError(f'strategy: must be such as "{STRATEGIES[0]}", is {label!r}')
        limits.append((method, labels.number(limit, f"strategy: the limit of {method}", 0, _MAX_LIMITS[method])))
    if last != "binned":
        raise ValueError(f"strategy: must end with binned, which takes any matrix, is {label!r}")
    return Strategy(tuple(limits))


def features_of(A: Matrix, value_bytes: int) -> dict[str, float]:
    """Return the features, such as numbers of rows and entries, by which a method of transposition is chosen for a matrix.

    Parameters
    ----------
    A : csr_array
    value_bytes : int
        Bytes of a value; 0 if positions are moved in place of values.
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
