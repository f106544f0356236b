"""How far ``A @ x`` is from the best that was declared: every kernel, and every scheme with the best kernel for each bin.

python -m bench.oracle --device H100 --suite table2 --kept-aside 24 --out bench/results/oracle-h100.json

On each matrix all of these and ``auto``, which is what the device's profile chooses, take part in one race, so that their times
are of the same minutes (`clsparse_py.tuning.search`). Matrices are those of suites, and generated ones of the kinds that tuning
keeps aside. Nothing is trained. What was measured is kept beside the results until all is, and a run goes on from there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl

from bench import opencl, scripts
from bench.tune_device import held_out
from clsparse_py._spmv import KernelChoice, Scheme, SpmvPlan
from clsparse_py._spmv.choose import Decision
from clsparse_py._spmv.problem import Subject
from clsparse_py._spmv.tunable import SpmvTunable
from clsparse_py.console import plain
from clsparse_py.device import Device, describe
from clsparse_py.files import write_text
from clsparse_py.tuning.checkpoint import Checkpoint, Observation
from clsparse_py.tuning.clock import profiling_queue
from clsparse_py.tuning.corpus import TEST, Case, generated
from clsparse_py.tuning.profiles import default
from clsparse_py.tuning.progress import Progress
from clsparse_py.tuning.session import Options, Session

_WHOLE = "whole"
_SINGLE = "single:"
_TOLD = ("rows", "columns", "nnz", "mean", "longest")


class AllOfSpmv(SpmvTunable):
    """SpMV with one question beside that of bins: ``auto``, all kernels for all rows, and all schemes with bins."""

    questions = ("bin", _WHOLE)

    def largest(self, device: Device) -> int:
        """Return how many nonzeros fit the device's memory; tuning stops earlier on CPU devices."""
        return device.global_memory // 48

    def promising(self, device: Device, dtype: str, subject: Subject, question: str, measured: Any, exhaustive: bool) -> Any:
        """Return all labels."""
        if question == "bin":
            return super().promising(device, dtype, subject, question, measured, exhaustive)
        schemes = super().promising(device, dtype, subject, "scheme", measured, exhaustive)
        # What the untuned rule takes may be none of those worth trying.
        untuned = default(device, self.operation, dtype, "single", subject.numbers).label
        kernels = dict.fromkeys((untuned, *self.configurations(device, dtype, "single")))
        return (*(_SINGLE + label for label in kernels), *(label for label in schemes if label != "single"))

    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        """Return the label that takes part to the end."""
        return "auto" if question == _WHOLE else super().default(device, dtype, question, features)

    def prepare(self, subject: Subject, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Return what multiplies once."""
        problem = subject.problem
        if question == "bin":
            return super().prepare(subject, question, label)
        if label == "auto":
            return problem.run(SpmvPlan.of(problem.A, "auto", None).decision)
        if label.startswith(_SINGLE):
            kernel = KernelChoice.parse(label.removeprefix(_SINGLE))
            return problem.run(Decision(Scheme("single"), ((kernel,),), "measured"))
        return super().prepare(subject, "scheme", label)


def cases(suites: Sequence[str], kept_aside: int, largest: int, *, cpu: bool) -> list[Case]:
    """Return the matrices of suites, and the first of the generated ones that tuning keeps aside."""
    of_suites = [case for suite in suites for case in held_out(suite, cpu=cpu)]
    aside = (case for case in generated(largest) if case.split == TEST)
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
    """Return the best time of each choice that ``auto`` is compared with: the oracle, schemes, kernels, each kernel by itself."""
    times = {label: seconds for label, seconds in observation.times.items() if label != "auto"}
    singles = {label.removeprefix(_SINGLE): seconds for label, seconds in times.items() if label.startswith(_SINGLE)}
    found = {"the best of all (oracle)": min(observation.times.values()), "the best kernel for all rows": min(singles.values())}
    for label, seconds in singles.items():
        kernel = KernelChoice.parse(label).name
        found[kernel] = min(seconds, found.get(kernel, math.inf))
    binned = [seconds for label, seconds in times.items() if not label.startswith(_SINGLE)]
    return found | ({"the best scheme with bins": min(binned)} if binned else {})


def comparisons(observations: Sequence[Observation]) -> Iterator[Comparison]:
    """Yield how ``auto`` compares with each choice, on the matrices where it was measured."""
    found = [(each, choices(each)) for each in observations]
    for name in dict.fromkeys(name for _, times in found for name in times):
        taken = [(each, times[name]) for each, times in found if name in times]
        yield Comparison(
            name,
            tuple(seconds / each.times["auto"] for each, seconds in taken),
            tuple(each.noise for each, _ in taken),
            tuple(each.case for each, _ in taken),
        )


def tables(observations: Sequence[Observation]) -> str:
    """Return the comparisons as Markdown, by dtype and suite."""
    lines: list[str] = []
    for (dtype, family), group in itertools.groupby(sorted(observations, key=_group), key=_group):
        rows = [_HEAD, ["---", *("---:" for _ in _HEAD[1:])], *(each.row() for each in comparisons(list(group)))]
        lines += [f"{dtype}, {family}:", "", *(f"| {' | '.join(row)} |" for row in rows), ""]
    return "\n".join(lines)


def _group(each: Observation) -> tuple[str, str]:
    return each.dtype, each.family if each.family.startswith("suite-") else "kinds kept aside"


def results(device: cl.Device, observations: Sequence[Observation], revision: str | None) -> dict[str, Any]:
    """Return what goes into the file."""
    return {
        **scripts.provenance(device, revision),
        "matrices": [
            {
                "case": each.case,
                "family": each.family,
                "dtype": each.dtype,
                "noise": round(each.noise, 4),
                "features": {name: each.features[name] for name in _TOLD if name in each.features},
                "microseconds": {
                    label: round(seconds * 1e6, 2) for label, seconds in sorted(each.times.items(), key=lambda x: x[1])
                },
            }
            for each in observations
        ],
    }


def parser() -> argparse.ArgumentParser:
    """Return the parser of the script's arguments."""
    whole = scripts.parser("oracle", "Compare A @ x with the best that was declared.")
    whole.add_argument("--kept-aside", type=int, default=0, metavar="N", help="as many generated matrices")
    whole.add_argument("--largest", type=int, default=10**7, metavar="NNZ", help="of these (10^7)")
    whole.add_argument("--dtypes", default="float64,float32", metavar="A,B")
    whole.add_argument("--budget", type=float, default=20, metavar="MINUTES", help="that measuring may take (20)")
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script, and return its exit code: 1 where time ran out before all was measured."""
    parsed = parser().parse_args(arguments)
    device = opencl.choose(parsed.device)
    described = describe(device)
    found = cases(parsed.suite, parsed.kept_aside, parsed.largest, cpu=described.is_cpu)
    names = {case.name for case in found}
    checkpoint = Checkpoint(parsed.out.with_suffix(".jsonl"))
    tunable = AllOfSpmv()
    dtypes = tuple(each for each in parsed.dtypes.split(",") if each in tunable.dtypes(described))
    # No generated matrix but those named: none has a single entry.
    options = Options(parsed.budget * 60, dtypes, tuple(found), exhaustive=True, largest=1)
    context = cl.Context([device])  # kept: not every queue keeps its own
    with Progress(plain(force_terminal=False, width=160), options.seconds) as progress:
        complete = Session(
            profiling_queue(context, device), {tunable.operation: tunable}, options, checkpoint, progress
        ).measure()
    observations = [
        each
        for dtype in dtypes
        for each in checkpoint.of(tunable.operation, dtype)
        if each.question == _WHOLE and each.case in names and "auto" in each.times
    ]
    write_text(parsed.out, json.dumps(results(device, observations, parsed.commit), indent=1) + "\n")
    made = tables(observations)
    write_text(parsed.out.with_suffix(".md"), made)
    print(made)
    if not complete:
        print(f"time ran out: {len(observations)} of {len(found) * len(dtypes)} were measured; the same command goes on")
        return 1
    checkpoint.path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
