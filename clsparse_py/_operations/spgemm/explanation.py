"""Explanations of SpGEMM plans: the rows of each method, as a table."""

from __future__ import annotations

from typing_extensions import override

from clsparse_py._ground.records import dataclass
from clsparse_py._ground.tables import Shown, Table

__all__ = ["BinRows", "Explanation", "ProductSizes"]


class ProductSizes(Shown):
    """Base of the explanation and of the estimate of a product: ratios of its sizes."""

    nnz_a: int
    n_products: int
    nnz: int

    @property
    def expansion_factor(self) -> float:
        """Number of intermediate products of A @ B for each entry of A."""
        return self.n_products / max(self.nnz_a, 1)

    @property
    def compression_ratio(self) -> float:
        """Number of intermediate products for each entry of C; a lower bound if ``nnz`` is an upper one."""
        return self.n_products / max(self.nnz, 1)


@dataclass(frozen=True)
class BinRows:
    """The rows that one accumulator makes.

    Attributes
    ----------
    method : str
        The method asked for, or one of "auto" for rows that it cannot hold.
    parameters : str
    max_products, max_length : int or None
        The bin's limits of a row, see `bins`.
    n_rows : int
        Number of rows.
    """

    method: str
    parameters: str
    max_products: int | None
    max_length: int | None
    n_rows: int


@dataclass(frozen=True)
class Explanation(ProductSizes):
    """The methods of a product, with the rows of C that each makes. Prints as a table.

    Attributes
    ----------
    method : str
        The method asked for.
    bins : tuple of BinRows
        Bins that have rows; rows without products are in none.
    shape : tuple of int
        Of C.
    nnz_a, n_products, nnz : int
        Entries of A, intermediate products, entries of C.
    rule : str
        The strategy and the profile that has it, or another reason for the choice of methods.
    c_bytes : int
        Bytes of C's three arrays.
    workspace_bytes, kept_bytes : int or None
        The most memory in use beside A, B and C at a time, while planning and for the first product, and the part of it that the
        plan keeps for new values; None if memory was not counted.
    """

    method: str
    bins: tuple[BinRows, ...]
    shape: tuple[int, int]
    nnz_a: int
    n_products: int
    nnz: int
    rule: str = ""
    c_bytes: int = 0
    workspace_bytes: int | None = None
    kept_bytes: int | None = None

    __repr__ = Shown.__repr__

    @property
    @override
    def table(self) -> Table:
        """The explanation as a table: sizes in the title; each bin's method, parameters, limits, number of rows; the reason."""
        title = (
            f"SpGEMM, method {self.method}: {self.n_products:,} products, {self.nnz:,} entries, "
            f"expansion {self.expansion_factor:.2f}, compression {self.compression_ratio:.2f}"
        )
        if self.workspace_bytes is not None:
            title += f"; bytes: C {self.c_bytes:,}, workspace {self.workspace_bytes:,}, kept {self.kept_bytes:,}"
        rows = []
        for bin_ in self.bins:
            limits = ("" if limit is None else f"{limit:,}" for limit in (bin_.max_products, bin_.max_length))
            rows.append((bin_.method, bin_.parameters, *limits, f"{bin_.n_rows:,}"))
        return Table(title, ("method", "parameters", "products up to", "row of A up to", "rows"), rows, self.rule)
