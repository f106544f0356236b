"""Derive the profile for a type of device from what ``clsparse tune`` measured on several such devices.

python -m bench.generic_profile --type cpu --out clsparse_py/_decisions/profiles/generic-cpu.json INTEL.jsonl POCL.jsonl

The files are the checkpoints of tuning runs, which name them as they begin. Trees are trained on all their measurements together;
a matrix measured on two devices counts twice. Labels are those that the least device of the type takes. Questions for which trees
do not gain on families left out keep the rule they have.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clsparse_py._decisions import profiles
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.console import make_console
from clsparse_py._tuner.checkpoint import Checkpoint
from clsparse_py._tuner.outcome import describe_origin, profile_of, train
from clsparse_py._tuner.run import summary
from clsparse_py._tuner.tunable import Tunable, tunables

_WIDTH = 160
#: The least of all devices that profiles are for: of no maker, with little local memory, through which lanes exchange values.
_LEAST = Device(
    name="any", platform="any", driver_version="", type="gpu", compute_units=1, max_work_group=1024, local_memory=32 << 10,
    max_allocation=1 << 28, global_memory=1 << 30, preferred_multiple=1, sub_group_sizes=(), fp64=True, fp16=False,
    int64_atomics=False, float_atomics=False, unified_memory=False, aliases_host=False, forward_progress=False,
    svm=(), portability=Portability(),
)  # fmt: skip


def together(paths: Sequence[Path]) -> Checkpoint:
    """Return the measurements of several devices as those of one, of matrices that are called by the device too."""
    result = Checkpoint(None)
    for path in paths:
        for observation in Checkpoint(path).observations.values():
            result.add(replace(observation, case=f"{observation.case} ({path.stem})"))
    return result


def legal(measured: Checkpoint, device: Device, known: Mapping[str, Tunable[Any]]) -> Checkpoint:
    """Return the measurements without the labels that a device does not take."""
    result = Checkpoint(None)
    for observation in measured.observations.values():
        tunable = known.get(observation.operation)
        if tunable is None or observation.question in tunable.descents:
            result.add(observation)
            continue
        labels = tunable.configurations(device, observation.dtype, observation.question)
        taken = {tunable.parse(observation.question, label) for label in labels}
        times = {
            label: seconds
            for label, seconds in observation.times.items()
            if _parse(tunable, observation.question, label) in taken
        }
        result.add(replace(observation, times=times))
    return result


def _parse(tunable: Tunable[Any], question: str, label: str) -> object:
    """Return what a label means; None if this version does not know it."""
    try:
        return tunable.parse(question, label)
    except ValueError:
        return None


def derive(base: dict[str, Any], trained: dict[str, Any]) -> dict[str, Any]:
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
    of_others = {name: digest for name, digest in base.get("kernels", {}).items() if name not in trained["operations"]}
    head = {"schema": base["schema"], "name": base["name"], "device": base["device"]}
    return {**head, **kept, "kernels": {**of_others, **trained["kernels"]}, "operations": operations, "thresholds": thresholds}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script, and return its exit code."""
    whole = argparse.ArgumentParser(prog="python -m bench.generic_profile", description="Derive a generic profile.")
    whole.add_argument("checkpoints", nargs="+", type=Path, metavar="FILE", help="what tuning runs measured")
    whole.add_argument("--type", choices=("cpu", "gpu"), required=True, help="of devices")
    whole.add_argument("--out", type=Path, required=True, help="the generic profile, which is replaced")
    whole.add_argument("--commit", default="", help="of the package, if it does not run from a checkout that tells")
    parsed = whole.parse_args(arguments)
    device = replace(_LEAST, type=parsed.type)
    base = profiles.read(parsed.out).content
    if base["device"] != {"type": device.type}:
        whole.error(f"--out: {parsed.out} is for {base['device']}, not for any device of type {device.type}")
    known = tunables()
    measured = legal(together(parsed.checkpoints), device, known)
    outcomes = train(device, measured, known)
    make_console(width=_WIDTH).print(summary(outcomes))
    command = f"python -m bench.generic_profile --type {parsed.type} {' '.join(path.name for path in parsed.checkpoints)}"
    made = describe_origin(command, measured, minutes=0, commit=parsed.commit)
    kept = [
        " ".join((operation, dtype, question))
        for (operation, dtype), outcome in outcomes.items()
        for question, answer in outcome.answers.items()
        if not answer.tuned and question not in known[operation].descents
    ]
    if kept:
        made["note"] = f"No tree beat the rule that was there, and it is kept: {', '.join(kept)}."
    profiles.save(derive(dict(base), profile_of(device, outcomes, None, {"name": base["name"], "made": made})), parsed.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
