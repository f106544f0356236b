"""Explanations of SpMM plans: kernels by number of columns, with reasons."""

from __future__ import annotations

from clsparse_py._ground.records import dataclass
from clsparse_py._ground.tables import Shown, Table

__all__ = ["Explanation", "Product"]


@dataclass(frozen=True)
class Product:
    """A kind of product: a line of an `Explanation`.

    Attributes
    ----------
    columns : int
        Of X.
    kernel, built : str
        The shape that was chosen, and the kernel that was built.
    parts, pieces : int
        Parts of A, and those that begin inside a row.
    launches : int
        Kernel launches of a product.
    why : str
    """

    columns: int
    kernel: str
    built: str
    parts: int
    pieces: int
    launches: int
    why: str


@dataclass(frozen=True)
class Explanation(Shown):
    """The kernels of a plan's products so far. Prints as a table.

    Attributes
    ----------
    products : tuple of Product
        The kinds of products; the first product of a kind adds it.
    """

    products: tuple[Product, ...]

    __repr__ = Shown.__repr__

    @property
    def table(self) -> Table:
        """The table to show."""
        heads = ("columns", "kernel", "built as", "parts", "in a row", "launches", "why")
        rows = [
            (
                str(line.columns),
                line.kernel,
                line.built,
                f"{line.parts:,}",
                f"{line.pieces:,}",
                str(line.launches),
                line.why,
            )
            for line in self.products
        ]
        return Table("SpMM", heads, rows, numbers="columns")
