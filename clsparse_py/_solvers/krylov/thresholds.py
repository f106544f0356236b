"""The numbers by which solvers share work out and decide how to go on."""

from __future__ import annotations

from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._ground.records import dataclass

__all__ = ["Thresholds"]


@dataclass(frozen=True, eq=False)
class Thresholds(thresholds.Thresholds):
    """Those of a device."""

    operation = "krylov"

    #: Of a pass on GPUs.
    work_group: int = number(512, "work-items", least=1, evidence="of some twenty on an H200 the best for conjugate gradients")
    #: To a compute unit, at most; on CPU devices of one work-item.
    groups_per_unit: int = number(2, "work-groups", on_cores=4, least=1, evidence="as above, by 2 to 4 %")
    #: That a work-item has in flight.
    unroll: int = number(4, "entries", least=1, most=64, power=True, evidence="as above")
    #: That these take, at most.
    registers: int = number(32, "words of 32 bits", least=1)
    #: Between two looks that the host did not have to wait for, at most, and one for so many so far.
    max_unwatched: int = number(8, "iterations", least=1)
    unwatched_share: int = number(16, "iterations", least=1)
    #: Of the work-group that makes the iterations of a small system together, and those of a launch: a kernel that runs for
    #: seconds holds up all else that a device does, its display, too.
    together_group: int = number(256, "work-items", least=1)
    together_at_once: int = number(1024, "iterations", least=1)
    #: Of a matrix, at most, whose iterations one work-group makes: on CPU devices it then takes no longer for them than launches
    #: over all cores.
    max_rows_together: int = number(4096, "rows")
    max_entries_together: int = number(32768, "entries")
    #: That look for copies of eigenvalues which were missed, and for what rounding left, beside all until then.
    search: float = number(0.3, "share of products")
    #: What rounding leaves of a vector of which nothing should be left, at most.
    noise: float = number(8.0, "times the precision")
    #: To which the residual has to fall for another x to be the better one.
    better: float = number(0.9, "times the residual before", most=1)
