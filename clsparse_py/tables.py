"""Explanations of plans as tables in text."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

__all__ = ["as_text"]


def as_text(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], rule: str = "", *, numbers: str = "") -> str:
    """Return a table, and below it what decided.

    Parameters
    ----------
    title : str
    columns : sequence of str
        Their heads.
    rows : iterable of sequences of str
    rule : str
        What decided; "" if nothing had to.
    numbers : str
        The column whose entries stand at its right.
    """
    # Here, as few processes show tables and all of them import the package.
    import rich.box
    from rich.table import Table

    from clsparse_py.console import plain

    table = Table(title=title, box=rich.box.SIMPLE)
    for column in columns:
        table.add_column(column, justify="right" if column == numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    text = io.StringIO()
    # Text without colours, whatever the environment says of terminals.
    console = plain(file=text, width=140, force_terminal=False, color_system=None)
    console.print(table)
    if rule:
        console.print(f"Decided: {rule}", soft_wrap=True)
    return text.getvalue().rstrip()
