"""Explanations of SpMV plans: rows, kernels, parameters, reasons."""

from __future__ import annotations

from typing_extensions import override

from clsparse_py._ground.records import dataclass
from clsparse_py._ground.tables import Shown, Table

__all__ = ["Explanation", "Share"]


@dataclass(frozen=True)
class Share:
    """Rows that one kernel processes: a line of an `Explanation`."""

    rows: int
    kernel: str
    built: str
    why: str


@dataclass(frozen=True)
class Explanation(Shown):
    """Which rows go to which kernel with which parameters, and why. Prints as a table.

    Attributes
    ----------
    scheme : str
        How rows are binned.
    rule : str
        The reason: the profile and the way through its trees, or that the caller named it.
    shares : tuple of Share
        Rows, the kernel chosen, the kernel built (None until the first product), and why.
    launches : int
        Kernel launches of a product.
    """

    scheme: str
    rule: str
    shares: tuple[Share, ...]
    launches: int

    __repr__ = Shown.__repr__

    @property
    @override
    def table(self) -> Table:
        title = f"SpMV: {self.scheme}. Launches: {self.launches}"
        rows = [(f"{share.rows:,}", share.kernel, share.built, share.why) for share in self.shares]
        return Table(title, ("rows", "kernel", "built as", "why"), rows, self.rule, numbers="rows")
