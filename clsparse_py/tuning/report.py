"""The report of a tuning run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clsparse_py.device import Device
from clsparse_py.tuning.outcome import Outcome

__all__ = ["write"]


def write(folder: Path, device: Device, outcomes: Mapping[tuple[str, str], Outcome]) -> Path:
    """Write it."""
    raise NotImplementedError
