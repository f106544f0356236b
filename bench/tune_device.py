"""Tune a device in a batch job: what ``clsparse tune`` does, in plain lines, and scored on a suite that is kept out of training.

python -m bench.tune_device --device H100 --suite table2 --report results --out h100.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
import pyopencl as cl
import scipy.sparse as sp

from bench import gallery, opencl
from clsparse_py._command.cli import add_tune_options
from clsparse_py._ground.console import make_console
from clsparse_py._tuner.corpus import TEST, Case
from clsparse_py._tuner.run import tune

_WIDTH = 160


def hold_out(suite: str, *, cpu: bool) -> list[Case]:
    """Return the matrices of a suite as cases that are tested on and never trained on.

    Raises
    ------
    ValueError
        If there is no such suite.
    """
    return [
        Case(gallery.title(name), f"suite-{suite}", TEST, 0, partial(_pattern, name)) for name in gallery.suite(suite, cpu=cpu)
    ]


def _pattern(name: str) -> sp.csr_array:
    made = gallery.load(name)
    return sp.csr_array((np.ones(made.nnz, np.float32), made.indices, made.indptr), shape=made.shape)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the script's arguments."""
    whole = argparse.ArgumentParser(prog="python -m bench.tune_device", description="Tune a device in a batch job.")
    whole.add_argument(
        "--device", default="", metavar="SUBSTRING", help="the first device in whose name or platform this is found"
    )
    whole.add_argument("--suite", action="append", default=[], choices=gallery.SUITES, help="test on it, too; may be repeated")
    whole.add_argument("--name", default="", help="of the profile, if not that of the device")
    add_tune_options(whole)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script, and return its exit code."""
    parsed = parser().parse_args(arguments)
    console = make_console(force_terminal=False, width=_WIDTH)
    try:
        device = opencl.choose(parsed.device)
        cases = [case for suite in parsed.suite for case in hold_out(suite, cpu=opencl.is_cpu(device))]
        return tune(
            device,
            console,
            operations=parsed.operations,
            questions=parsed.questions,
            dtypes=parsed.dtypes,
            minutes=parsed.budget,
            corpus=parsed.corpus,
            held_out=cases,
            largest=parsed.largest,
            exhaustive=parsed.exhaustive,
            report=parsed.report,
            out=parsed.out,
            fresh=parsed.fresh,
            command=" ".join(["python -m bench.tune_device", *(f"--suite {suite}" for suite in parsed.suite)]),
            commit=parsed.commit,
            name=parsed.name,
        )
    except (ValueError, cl.Error) as error:
        console.print(f"tune_device: {error}", soft_wrap=True)
        return 2


if __name__ == "__main__":
    sys.exit(main())
