"""Derive the profile for a type of device from what ``clsparse tune`` measured on several such devices.

python -m bench.generic_profile --device pocl --out clsparse_py/tuning/profiles/generic-cpu.json INTEL.jsonl POCL.jsonl

The files are the checkpoints of tuning runs, which name them as they begin. Trees are trained on all their measurements together;
a matrix measured on two devices counts twice. Questions for which trees do not gain on families left out keep the rule they have.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import opencl
from clsparse_py.console import plain
from clsparse_py.device import describe
from clsparse_py.tuning import profiles
from clsparse_py.tuning.checkpoint import Checkpoint
from clsparse_py.tuning.outcome import made_by, profile_of, train
from clsparse_py.tuning.run import summary
from clsparse_py.tuning.tunable import tunables

_WIDTH = 160


def together(paths: Sequence[Path]) -> Checkpoint:
    """Return the measurements of several devices as those of one, of matrices that are called by the device too."""
    found = Checkpoint(None)
    for path in paths:
        for observation in Checkpoint(path).observations.values():
            found.add(replace(observation, case=f"{observation.case} ({path.stem})"))
    return found


def derived(base: dict[str, Any], trained: dict[str, Any]) -> dict[str, Any]:
    """Return a generic profile with the trees that were trained, and the evidence for them, in place of what it had."""
    operations = dict(base["operations"])
    for operation, by_dtype in trained["operations"].items():
        for dtype, trees in by_dtype.items():
            scores = trained["scores"][operation][dtype]
            taken = {question: tree for question, tree in trees.items() if scores[question]["tuned"]}
            if taken:
                of_operation = {key: dict(questions) for key, questions in operations.get(operation, {}).items()}
                of_operation[dtype] = of_operation.get(dtype, {}) | taken
                operations[operation] = of_operation
    thresholds = {operation: dict(by_dtype) for operation, by_dtype in base.get("thresholds", {}).items()}
    for operation, by_dtype in trained["thresholds"].items():
        thresholds.setdefault(operation, {}).update(by_dtype)
    kept = {key: trained[key] for key in ("date", "versions", "made", "evidence", "scores")}
    head = {"schema": base["schema"], "name": base["name"], "device": base["device"]}
    return {**head, **kept, "operations": operations, "thresholds": thresholds}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script, and return its exit code."""
    whole = argparse.ArgumentParser(prog="python -m bench.generic_profile", description="Derive a generic profile.")
    whole.add_argument("checkpoints", nargs="+", type=Path, metavar="FILE", help="what tuning runs measured")
    whole.add_argument("--device", default="", metavar="SUBSTRING", help="a device of the type, which is not measured")
    whole.add_argument("--out", type=Path, required=True, help="the generic profile, which is replaced")
    whole.add_argument("--commit", default="", help="of the package, if it does not run from a checkout that tells")
    parsed = whole.parse_args(arguments)
    device = describe(opencl.choose(parsed.device))
    base = profiles.read(parsed.out).content
    if base["device"] != {"type": device.type}:
        whole.error(f"--out: {parsed.out} is for {base['device']}, not for any device of type {device.type}")
    measured = together(parsed.checkpoints)
    outcomes = train(device, measured, tunables())
    plain(width=_WIDTH).print(summary(outcomes))
    command = f"python -m bench.generic_profile {' '.join(path.name for path in parsed.checkpoints)}"
    made = made_by(command, measured, minutes=0, commit=parsed.commit)
    profiles.save(derived(dict(base), profile_of(device, outcomes, None, {"name": base["name"], "made": made})), parsed.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
