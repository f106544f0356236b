"""Thresholds of iterative solvers."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """The Krylov methods' thresholds on a device."""

    operation = "krylov"

    #: Most work-items of a work-group of a vector pass on GPUs; on CPU devices there is one.
    work_group: int = number(512, "work-items", least=1, evidence="of some twenty on an H200 the best for conjugate gradients")
    #: Most work-groups of a vector pass for each compute unit.
    groups_per_unit: int = number(2, "work-groups", on_cores=4, least=1, evidence="as above, by 2 to 4 %")
    #: Most entries that a work-item of a vector pass has in flight; ``registers`` may allow fewer.
    unroll: int = number(4, "entries", least=1, most=64, power=True, evidence="as above")
    #: Most registers that the entries in flight of a work-item take.
    registers: int = number(32, "words of 32 bits", least=1)
    #: Most iterations between two looks of the host at the residual, if no read lets it wait; ``check_every`` if that is more.
    max_unwatched: int = number(8, "iterations", least=1)
    #: After n times as many iterations, n may pass between two looks of the host at the residual, up to ``max_unwatched``.
    unwatched_share: int = number(16, "iterations", least=1)
    #: Most work-items of the work-group that runs the iterations of a small system on GPUs; on CPU devices there is one.
    together_group: int = number(256, "work-items", least=1)
    #: Most iterations in one launch for a small system: a kernel that runs for seconds blocks the device, and its display.
    together_at_once: int = number(1024, "iterations", least=1)
    #: Most rows of a system whose iterations one work-group runs; up to it, that is no slower on CPU devices than all cores.
    max_rows_together: int = number(4096, "rows")
    #: Most entries of a matrix whose iterations one work-group runs.
    max_entries_together: int = number(32768, "entries")
    #: Products that look for missed copies of eigenvalues and for what rounding left, as a share of all products before.
    search: float = number(0.3, "share of products")
    #: Largest norm at which a vector counts as 0 but for rounding, relative to the vectors from which it was computed.
    noise: float = number(8.0, "times the precision")
    #: Ratio of the residual norms of another run's x and the former x, below which the new x replaces the former one.
    better: float = number(0.9, "times the residual before", most=1)
