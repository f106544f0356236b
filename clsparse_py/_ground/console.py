"""The console of the command's output, and its tables."""

from __future__ import annotations

from typing import Any

import rich.box
from rich.console import Console
from rich.table import Table

__all__ = ["make_console", "plain_table"]


class _Piped(Console):
    """A console that raises BrokenPipeError, so that the command decides about a closed pipe."""

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError of a closed pipe, at which the library rich would end the process."""
        raise BrokenPipeError


def make_console(**options: Any) -> Console:
    """Return a console that prints text unchanged, without rich's markup, highlights and emoji.

    Anyone may name devices, files, matrices and profiles: markup of rich's or an emoji in such a name is a part of the name.

    Parameters
    ----------
    **options
        Of `rich.console.Console`.
    """
    return _Piped(markup=False, highlight=False, emoji=False, **options)


def plain_table(**options: Any) -> Table:
    """Return an empty table without borders, with a rule below the headings; ``options`` are those of `rich.table.Table`."""
    return Table(box=rich.box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, **options)
