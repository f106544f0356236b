"""How a product is to be made: the method is resolved here, once, into answers to the questions of the phases."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from clsparse_py._spgemm.analysis import Work
from clsparse_py._spgemm.bins import Bin, Bins
from clsparse_py._spgemm.decide import (
    IN_WINDOWS,
    Speculation,
    alone,
    bins_for,
    compresses,
    decided,
    is_light,
    is_uneven,
    refined,
    small,
    speculation_for,
    staged_entries,
    suits_upper_bound,
)
from clsparse_py._spgemm.fallback import without_refused
from clsparse_py._spgemm.methods.base import Product, workspace_bound
from clsparse_py._spgemm.operands import Operands
from clsparse_py._spgemm.refused import UPPER_BOUND
from clsparse_py._spgemm.request import Request
from clsparse_py._spgemm.strategy import Strategy, features_of
from clsparse_py.tuning.profiles import Ruling

__all__ = ["Decision", "Reason", "decide", "staged_b", "windows"]


class Reason(NamedTuple):
    """The reason for the bins of a product, put into words when it is asked for.

    Attributes
    ----------
    text : str
        If no profile decided.
    ruling : Ruling or None
        If a profile decided.
    upper_bound : bool
        Whether C was allocated by its upper bound.
    """

    text: str
    ruling: Ruling[Strategy] | None = None
    upper_bound: bool = False

    def __str__(self) -> str:
        ruling = self.ruling
        how = "; C allocated by its upper bound, as its products hardly contract" if self.upper_bound else ""
        return (self.text if ruling is None else f"{ruling.label}, by {ruling.why}") + how


class Decision(Protocol):
    """The choices for a product before the device has analysed its rows, and their refinement by the work of rows."""

    def speculation(self) -> Speculation | None:
        """Return the accumulator that may hold all rows, so that none has to be analysed; None if rows are to be analysed."""
        ...

    def bins(self) -> tuple[Bins, Reason]:
        """Return the bins among which the analysis shares rows out, of accumulators whose kernels are not refused."""
        ...

    @property
    def expects_several(self) -> bool:
        """Whether several bins are likely to have rows, so that these are listed while the host waits for the analysis."""
        ...

    def refine(self, bins: Bins, work: Work) -> Bin | list[tuple[Bin, int]]:
        """Return the one bin of all rows, or the bins with their numbers of rows, adjacent ones of the analysis' list each."""
        ...

    def may_skip_counting(self, work: Work, product: Product, bins: list[Bin]) -> bool:
        """Return whether C is allocated by its upper bound, and its rows are made without being counted first."""
        ...


class Fixed:
    """Bins that are given, or those of a named method: rows go to them as the analysis shares them out."""

    expects_several = False

    def __init__(self, operands: Operands, request: Request, bins: Bins, reason: str) -> None:
        self._operands, self._memory_limit = operands, request.memory_limit
        self._bins, self._reason = bins, Reason(reason)

    def speculation(self) -> Speculation | None:
        """Return None: rows are analysed."""
        return None

    def bins(self) -> tuple[Bins, Reason]:
        """Return the bins."""
        product = self._operands.product
        able = without_refused(self._bins, product.kind.device, product.types, product.shape[1], self._memory_limit)
        return able, self._reason

    def refine(self, bins: Bins, work: Work) -> Bin | list[tuple[Bin, int]]:
        """Return the bins as they are; one bin instead if all rows are short and merged in registers."""
        with_rows = list(zip(bins, work.taken, strict=True))
        if all(bin_.method in ("", "reg-merge") for bin_, n in with_rows if n):
            one = _one_item_each(self._operands, work)
            if one is not None:
                return one
        return with_rows

    def may_skip_counting(self, work: Work, product: Product, bins: list[Bin]) -> bool:  # noqa: ARG002 - as all decisions
        """Return False."""
        return False


class Automatic:
    """The method "auto": by a strategy, refined by the analysis; without analysis if a speculation holds."""

    def __init__(self, operands: Operands, request: Request, *, may_skip_counting: bool) -> None:
        self._operands, self._request = operands, request
        self._may_skip_counting = may_skip_counting and request.max_nnz is None

    def speculation(self) -> Speculation | None:
        """Return the accumulator that holds all rows, judging by the facts of the structures."""
        a, b, _, product, refused, _ = self._operands
        m = product.shape[0]
        mean = a.nnz / m
        found = speculation_for(product.kind, m, mean, mean * b.nnz / b.matrix.shape[0], a.known, b.known)
        if found is None or (refused and (found in refused or found.accumulator in refused)):
            return None
        return found

    def bins(self) -> tuple[Bins, Reason]:
        """Return the bins of the strategy."""
        request, (a, b, _, product, *_) = self._request, self._operands
        device, types, n = product.kind.device, product.types, product.shape[1]
        if request.strategy is None:
            entry_bytes = product.b_data.dtype.itemsize + product.b_indices.dtype.itemsize
            features = features_of((*a.matrix.shape, n), (a.nnz, b.nnz), a.known, device, entry_bytes)
            ruling = decided(device, types, features)
            strategy, reason = ruling.value, Reason("", ruling)
        else:
            strategy, reason = request.strategy, Reason("the strategy was given")
        widest = workspace_bound(*product.structure, product.a_data, product.b_data)
        bins = bins_for("auto", device, types, n, request.memory_limit, strategy, widest)
        return without_refused(bins, device, types, n, request.memory_limit), reason

    @property
    def expects_several(self) -> bool:
        """Whether rows are likely to be uneven."""
        product = self._operands.product
        return is_uneven(product.kind.thresholds, product.shape[0], self._operands.a.known)

    def refine(self, bins: Bins, work: Work) -> Bin | list[tuple[Bin, int]]:
        """Return one bin for a small product or for short rows, else the bins that suit the rows' work."""
        product = self._operands.product
        limits = product.kind.thresholds
        if 0 < work.n_products <= limits.max_small_products:
            one = product.kind.once(small, limits, work.longest_row)
        else:
            a, b = self._operands.a.known, self._operands.b
            light = compresses(limits, a) or is_light(limits, work.longest_row, b.nnz / b.matrix.shape[0])
            one = _one_item_each(self._operands, work) if light else None
        if one is not None and one.accumulator not in self._operands.refused:
            return one
        return refined(bins, work, product, self._operands.refused)

    def may_skip_counting(self, work: Work, product: Product, bins: list[Bin]) -> bool:
        """Return whether products hardly contract, if no one asks for the entries of C before its values."""
        allowed = self._may_skip_counting and UPPER_BOUND not in self._operands.refused
        return allowed and suits_upper_bound(work, product, bins)


def _one_item_each(operands: Operands, work: Work) -> Bin | None:
    """Return the bin by which one work-item each merges all rows, in their order; None if they are too long."""
    return alone(operands.product.kind.thresholds, work.longest_row, work.max_products, staged_b(operands))


def staged_b(operands: Operands) -> int:
    """Return how many entries of B are staged for neighbouring rows of A, see `staged_entries`."""
    a, b, product = operands.a, operands.b, operands.product
    return staged_entries(product.kind, product.shape[0], a.known, b.nnz / b.matrix.shape[0])


def decide(operands: Operands, request: Request, *, may_skip_counting: bool = True) -> Decision:
    """Return the decision for a product.

    Parameters
    ----------
    operands : Operands
    request : Request
    may_skip_counting : bool
        False: the entries of C are wanted before its values.
    """
    if request.bins is not None:
        return Fixed(operands, request, request.bins, "the bins were given")
    if request.method == "auto":
        return Automatic(operands, request, may_skip_counting=may_skip_counting)
    product = operands.product
    device, types, n = product.kind.device, product.types, product.shape[1]
    widest = workspace_bound(*product.structure, product.a_data, product.b_data)
    bins = bins_for(request.method, device, types, n, request.memory_limit, None, widest)
    return Fixed(operands, request, bins, "the method was named")


def windows(operands: Operands, request: Request) -> Decision:
    """Return the decision that needs the least memory: all rows go through windows of columns."""
    return Fixed(operands, request, IN_WINDOWS, "windows of columns, as memory is missing for what was chosen")
