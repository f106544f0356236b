"""The contestants of `bench.oracle` for SpMV: every kernel, and every scheme with the best kernel for each bin."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pyopencl as cl

from clsparse_py._decisions.profiles import default
from clsparse_py._device.device import Device
from clsparse_py._operations.spmv import KernelChoice, Scheme, SpmvPlan
from clsparse_py._operations.spmv.choose import Decision
from clsparse_py._tuner.spmv_tunable import SpmvTunable, Subject

# The question whose labels are whole products.
_WHOLE = "whole"
# Beginning of the labels of kernels for all rows.
_SINGLE = "single:"


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
        # The kernel of the untuned rule may be none of those worth trying.
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

    def choices(self, measured: Mapping[str, float]) -> dict[str, float]:
        """Return the best time of each choice that ``auto`` is compared with: schemes, kernels, each kernel by itself."""
        times = {label: seconds for label, seconds in measured.items() if label != "auto"}
        singles = {label.removeprefix(_SINGLE): seconds for label, seconds in times.items() if label.startswith(_SINGLE)}
        results = {"the best kernel for all rows": min(singles.values())}
        for label, seconds in singles.items():
            kernel = KernelChoice.parse(label).name
            results[kernel] = min(seconds, results.get(kernel, math.inf))
        binned = [seconds for label, seconds in times.items() if not label.startswith(_SINGLE)]
        return results | ({"the best scheme with bins": min(binned)} if binned else {})
