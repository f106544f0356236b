"""The request of a product: all that a caller asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from clsparse_py._operations.spgemm.bins import Bins
from clsparse_py._operations.spgemm.strategy import Choice, Strategy
from clsparse_py._precision.semiring import Semiring, plus_times

__all__ = ["Request"]


class Request(NamedTuple):
    """The keyword arguments of `spgemm`, checked; or bins or a strategy instead of a method.

    Attributes
    ----------
    method : str
        "auto" or a name in `METHODS`; with ``bins`` only a name for them.
    semiring : Semiring
    deterministic : bool
    memory_limit, max_nnz : int or None
    strategy : Strategy or None
        Strategy of "auto", if not the profile's.
    bins : Bins or None
        Bins that make the rows exactly as given: no speculation, no refinement. The last takes any row.
    why : str
        The reason for these bins.
    choices : mapping of int to Choice, or None
        Choices of accumulators by the numbers of bins, if not the profile's.
    values_later : bool
        Whether the entries of C are asked for before its values.
    allow_upper_bound : bool
        Whether memory for the upper bound of each row (all its products) may be allocated, however large.
    """

    method: str = "auto"
    semiring: Semiring = plus_times
    deterministic: bool = True
    memory_limit: int | None = None
    max_nnz: int | None = None
    strategy: Strategy | None = None
    bins: Bins | None = None
    why: str = "the bins were given"
    choices: Mapping[int, Choice] | None = None
    values_later: bool = False
    allow_upper_bound: bool = False

    @property
    def is_auto(self) -> bool:
        """Whether a strategy (list of methods) gives the bins of rows, so that a speculation may spare the analysis of rows."""
        return self.bins is None and self.method == "auto"

    @property
    def may_skip_counting(self) -> bool:
        """Whether C may be allocated by an upper bound: its entries are neither limited nor asked for before its values."""
        return not self.values_later and self.max_nnz is None

    @property
    def is_open(self) -> bool:
        """Whether the request leaves the method open: it names no method, and has no strategy and no bins of rows."""
        return self.method == "auto" and self.strategy is None and self.bins is None
