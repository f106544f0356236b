"""Common arguments of the scripts beside ``python -m bench``, and the provenance of their results."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pyopencl as cl

from bench import gallery, machine, opencl
from bench.runner import now


def parser(script: str, description: str) -> argparse.ArgumentParser:
    """Return a parser of the arguments that all have."""
    whole = argparse.ArgumentParser(prog=f"python -m bench.{script}", description=description)
    whole.add_argument("--device", default="", metavar="SUBSTRING", help="part of a device's or platform's name")
    whole.add_argument("--suite", action="append", default=[], choices=gallery.SUITES, help="may be repeated")
    whole.add_argument("--commit", metavar="REVISION", help="what is measured, where the tree has no repository")
    whole.add_argument("--out", type=Path, required=True, help="the results file; tables go to one beside it, with .md")
    return whole


def provenance(device: cl.Device, revision: str | None) -> dict[str, Any]:
    """Return where, with what and when a run was made."""
    return {
        "device": opencl.describe(device),
        "host": machine.host(),
        "versions": machine.versions(),
        "commit": machine.commit(revision),
        "date": now(),
    }
