"""What a plan says of itself: which rows go to which kernel with which parameters, and why."""

from __future__ import annotations

import io
from dataclasses import dataclass

import rich.box
import rich.console
import rich.table

__all__ = ["Explanation", "Share"]


@dataclass(frozen=True)
class Share:
    """Rows that one kernel processes: a line of an `Explanation`."""

    rows: int
    kernel: str
    built: str
    why: str


@dataclass(frozen=True)
class Explanation:
    """Which rows go to which kernel with which parameters, and why. Prints as a table.

    Attributes
    ----------
    scheme : str
        How rows are binned.
    rule : str
        What decided: the profile and the way through its trees, or that it was named.
    shares : tuple of Share
        Rows, the kernel chosen, the kernel built (None until the first product), and why.
    launches : int
        Kernel launches of a product.
    """

    scheme: str
    rule: str
    shares: tuple[Share, ...]
    launches: int

    def __str__(self) -> str:
        table = rich.table.Table(title=f"SpMV: {self.scheme}. Launches: {self.launches}", box=rich.box.SIMPLE)
        for column in ("rows", "kernel", "built as", "why"):
            table.add_column(column, justify="right" if column == "rows" else "left", overflow="fold")
        for share in self.shares:
            table.add_row(f"{share.rows:,}", share.kernel, share.built, share.why)
        text = io.StringIO()
        console = rich.console.Console(file=text, width=140)
        console.print(table)
        console.print(f"Decided: {self.rule}", markup=False, highlight=False)
        return text.getvalue().rstrip()
