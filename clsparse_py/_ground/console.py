"""The console that all output goes to."""

from __future__ import annotations

from typing import Any

from rich.console import Console

__all__ = ["plain"]


class _Piped(Console):
    """A console that raises BrokenPipeError, so that the command decides about a closed pipe."""

    def on_broken_pipe(self) -> None:
        """Raise what the system said."""
        raise BrokenPipeError


def plain(**options: Any) -> Console:
    """Return a console that prints text as it is.

    Devices, files, matrices and profiles are named by anyone: what looks like rich's markup or like an emoji in a name is a part
    of the name.

    Parameters
    ----------
    **options
        Of `rich.console.Console`.
    """
    return _Piped(markup=False, highlight=False, emoji=False, **options)
