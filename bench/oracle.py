"""How far ``A @ x`` and ``A @ A`` are from the best of many ways to make them.

python -m bench.oracle --device H100 --suite table2 --kept-aside 24 --out bench/results/oracle-h100.json
python -m bench.oracle --device H100 --operation spgemm --kept-aside 36 --smallest 10000 --dtypes float64 --out FILE

On each matrix all of these and ``auto``, which is what the device's profile chooses, take part in one race, so that their times
are of the same minutes (`clsparse_py._tuner.search`). Which ways take part, `bench.oracle_spmv` and `bench.oracle_spgemm` say.
Matrices are those of suites, and generated ones of the kinds that tuning keeps aside. Nothing is trained. Measurements are
kept beside the results until all are there, and a run goes on from them.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl

from bench import opencl, scripts
from bench.oracle_spgemm import AllOfSpgemm
from bench.oracle_spmv import AllOfSpmv
from bench.summaries import as_text
from bench.tune_device import hold_out
from clsparse_py._device.device import describe
from clsparse_py._ground.console import make_console
from clsparse_py._ground.files import write_text
from clsparse_py._tuner.checkpoint import Checkpoint, Observation
from clsparse_py._tuner.clock import profiling_queue
from clsparse_py._tuner.corpus import TEST, Case, generate
from clsparse_py._tuner.progress import Progress
from clsparse_py._tuner.session import Options, Session

# The question whose labels are whole products.
_WHOLE = "whole"
# The question that measures the fastest labels once more.
_AGAIN = "again"
# The choice that `_AGAIN` measured.
_CONFIRMED = "the best of all, measured again"
# Features of a matrix that results hold.
_TOLD = ("rows", "columns", "nnz", "mean", "longest", "products")
_CONTESTS = {contest.operation: contest for contest in (AllOfSpmv(), AllOfSpgemm())}


def cases(suites: Sequence[str], kept_aside: int, sizes: tuple[int, int], *, cpu: bool) -> list[Case]:
    """Return the matrices of suites, and the first of the generated ones of some sizes that tuning keeps aside."""
    of_suites = [case for suite in suites for case in hold_out(suite, cpu=cpu)]
    smallest, largest = sizes
    aside = (case for case in generate(largest) if case.split == TEST and case.nnz >= smallest)
    return [*of_suites, *itertools.islice(aside, kept_aside)]


@dataclass(frozen=True)
class Comparison:
    """``auto`` and another choice on all matrices: the other's time by that of ``auto``."""

    name: str
    ratios: tuple[float, ...]
    noise: tuple[float, ...]
    cases: tuple[str, ...]

    def row(self) -> list[str]:
        """Return the cells of a table."""
        least = int(np.argmin(self.ratios))
        equal = sum(ratio >= 1 - noise for ratio, noise in zip(self.ratios, self.noise, strict=True))
        mean = math.exp(float(np.mean(np.log(self.ratios))))
        slow = float(np.percentile(1 / np.array(self.ratios), 95))
        return [
            self.name,
            f"{mean:.3f}",
            f"{self.ratios[least]:.2f}",
            self.cases[least],
            f"{slow:.2f}",
            f"{equal} of {len(self.ratios)}",
        ]


_HEAD = [
    *("choice", "its time by auto's, geometric mean", "least", "on", "auto's by its, 95th percentile"),
    "auto no slower, beyond noise",
]


def choices(observation: Observation) -> dict[str, float]:
    """Return the best time of each choice that ``auto`` is compared with: of all, and of each kind that an operation has."""
    of_kinds = _CONTESTS[observation.operation].choices(observation.times)
    return {"the best of all (oracle)": min(observation.times.values()), **of_kinds}


def _fastest(observation: Observation) -> float:
    """Return the time of the label that was the fastest at first; that of ``auto`` if it was."""
    times = observation.times
    return min((seconds for label, seconds in times.items() if label != "auto"), default=times["auto"])


def _others(observation: Observation) -> dict[str, float]:
    """Return the times that ``auto`` is compared with."""
    return choices(observation) if observation.question == _WHOLE else {_CONFIRMED: _fastest(observation)}


def comparisons(observations: Sequence[Observation]) -> Iterator[Comparison]:
    """Yield how ``auto`` compares with each choice, on the matrices where it was measured."""
    outcomes = [(observation, _others(observation)) for observation in observations]
    for name in dict.fromkeys(name for _, times in outcomes for name in times):
        taken = [(observation, times[name]) for observation, times in outcomes if name in times]
        yield Comparison(
            name,
            tuple(seconds / observation.times["auto"] for observation, seconds in taken),
            tuple(observation.noise for observation, _ in taken),
            tuple(observation.case for observation, _ in taken),
        )


def tables(observations: Sequence[Observation]) -> str:
    """Return the comparisons as Markdown, by dtype and suite."""
    lines: list[str] = []
    for (dtype, family), group in itertools.groupby(sorted(observations, key=_group), key=_group):
        rows = [_HEAD, ["---", *("---:" for _ in _HEAD[1:])], *(comparison.row() for comparison in comparisons(list(group)))]
        lines += [f"{dtype}, {family}:", "", *(f"| {' | '.join(row)} |" for row in rows), ""]
    return "\n".join(lines)


def _group(array: Observation) -> tuple[str, str]:
    return array.dtype, array.family if array.family.startswith("suite-") else "kinds kept aside"


def results(device: cl.Device, observations: Sequence[Observation], revision: str | None) -> dict[str, Any]:
    """Return what goes into the file: of all ways, ``auto`` and those that it is compared with."""
    return {
        **scripts.provenance(device, revision),
        "tables": [
            {"dtype": dtype, "family": family, **_table(list(group))}
            for (dtype, family), group in itertools.groupby(sorted(observations, key=_group), key=_group)
        ],
    }


def _table(observations: Sequence[Observation]) -> dict[str, Any]:
    """Return the choices, and of each matrix the microseconds of each, null where a choice was not measured."""
    times = [{"auto": observation.times["auto"], **_others(observation)} for observation in observations]
    names = list(dict.fromkeys(name for names_of_case in times for name in names_of_case))
    matrices = [
        {
            "case": observation.case,
            "question": observation.question,
            "noise": round(observation.noise, 4),
            "configurations": len(observation.times) + len(observation.failed),
            "features": {name: float(f"{observation.features[name]:.9g}") for name in _TOLD if name in observation.features},
            "microseconds": [round(of_case[name] * 1e6, 2) if name in of_case else None for name in names],
        }
        for observation, of_case in zip(observations, times, strict=True)
    ]
    return {"choices": names, "matrices": matrices}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the script's arguments."""
    whole = scripts.parser("oracle", "Compare A @ x, or A @ A, with the best of many ways to make it.")
    whole.add_argument("--operation", choices=_CONTESTS, default="spmv", help="spmv if not given")
    whole.add_argument("--kept-aside", type=int, default=0, metavar="N", help="as many generated matrices")
    whole.add_argument("--smallest", type=int, default=0, metavar="NNZ", help="entries of these, at least (0)")
    whole.add_argument("--largest", type=int, default=10**7, metavar="NNZ", help="entries of these, at most (10^7)")
    whole.add_argument("--dtypes", default="float64,float32", metavar="A,B")
    whole.add_argument("--budget", type=float, default=20, metavar="MINUTES", help="that measuring may take (20)")
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script, and return its exit code: 1 where time ran out before all was measured."""
    parsed = parser().parse_args(arguments)
    device = opencl.choose(parsed.device)
    described = describe(device)
    result = cases(parsed.suite, parsed.kept_aside, (parsed.smallest, parsed.largest), cpu=described.lanes_are_loops)
    names = {case.name for case in result}
    checkpoint = Checkpoint(parsed.out.with_suffix(".jsonl"))
    tunable = _CONTESTS[parsed.operation]
    dtypes = tuple(text for text in parsed.dtypes.split(",") if text in tunable.dtypes(described))
    # No generated matrix but those named: none has a single entry.
    options = Options(parsed.budget * 60, dtypes, tuple(result), exhaustive=True, largest=1)
    context = cl.Context([device])  # kept: not every queue keeps its own
    with Progress(make_console(force_terminal=False, width=160), options.seconds) as progress:
        complete = Session(
            profiling_queue(context, device), {tunable.operation: tunable}, options, checkpoint, progress
        ).measure()
    observations = [
        operand
        for dtype in dtypes
        for operand in checkpoint.select(tunable.operation, dtype)
        if operand.question in (_WHOLE, _AGAIN) and operand.case in names and "auto" in operand.times
    ]
    write_text(parsed.out, as_text(results(device, observations, parsed.commit)) + "\n")
    made = tables(observations)
    write_text(parsed.out.with_suffix(".md"), made)
    print(made)
    if not complete:
        measured = len({(observation.case, observation.dtype) for observation in observations})
        print(f"time ran out: {measured} of {len(result) * len(dtypes)} were measured; the same command goes on")
        return 1
    checkpoint.path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
