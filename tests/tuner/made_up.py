"""Made-up measurements and a made-up operation: the tuner without a device's kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyopencl as cl

from clsparse_py._device.device import Device
from clsparse_py._ground.errors import BuildError
from clsparse_py._tuner.checkpoint import Observation
from clsparse_py._tuner.corpus import TEST, TRAIN
from clsparse_py._tuner.tunable import Tunable


def make_observation(
    times: Mapping[str, float], features: Mapping[str, float], *, case: str = "case", family: str = "family", **others: Any
) -> Observation:
    """Return an observation with defaults for all that a test does not ask about."""
    given: dict[str, Any] = {"split": TRAIN, "default": next(iter(times), ""), "noise": 0.01, "subject": 0, **others}
    return Observation("made-up", "float32", "method", case, family=family, features=dict(features), times=dict(times), **given)


def separable(n: int = 240, families: int = 8, seed: int = 0) -> list[Observation]:
    """Return observations of which "short" is twice as fast up to a mean of 12, "long" above; by default all take "middle"."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        mean = float(np.exp(rng.uniform(0, 6)))
        short, long = (1e-3, 2e-3) if mean <= 12 else (2e-3, 1e-3)
        family = number % families
        made.append(
            make_observation(
                {"middle": 1.5e-3, "short": short, "long": long},
                {"mean": mean, "rows": float(rng.integers(1, 10**6))},
                case=f"case{number}",
                family=f"family{family}",
                split=TEST if family % 4 == 3 else TRAIN,
            )
        )
    return made


class MadeUp(Tunable[Any]):
    """An operation whose configurations fill a buffer more or less often; one of them does not build, one is wrong."""

    operation = "made-up"
    questions: tuple[str, ...] = ("method",)

    def __init__(self, before: Callable[[str, str], None] = lambda _name, _label: None) -> None:
        self.before = before
        self.prepared: list[tuple[str, str]] = []
        self.last = ""

    def dtypes(self, device: Device) -> tuple[str, ...]:  # noqa: ARG002
        return ("float32",)

    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> Any:  # noqa: ARG002
        if name.startswith("hubs"):
            raise ValueError("hubs are not for this operation")
        self.queue, self.buffer = queue, cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 1 << 16)
        lengths = np.diff(matrix.indptr)
        return {"name": name, "mean": float(lengths.mean()), "rows": float(matrix.shape[0])}

    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:  # noqa: ARG002
        return ("fill/4", "fill/1", "fill/16", "unbuildable", "wrong")

    def features(self, subject: Any) -> dict[str, float]:
        return {name: value for name, value in subject.items() if name != "name"}

    def parse(self, question: str, label: str) -> object:  # noqa: ARG002
        if not label.startswith("fill/"):
            raise ValueError(label)
        return int(label.split("/")[1])

    def prepare(self, subject: Any, question: str, label: str) -> Callable[[], list[cl.Event]]:  # noqa: ARG002
        self.prepared.append((subject["name"], label))
        self.before(subject["name"], label)
        if label == "unbuildable":
            raise BuildError("it does not build\nas the log says", log="", parameters=None, source=None)
        times = int(label.split("/")[1]) if "/" in label else 1

        def run() -> list[cl.Event]:
            self.last = label
            return [cl.enqueue_fill_buffer(self.queue, self.buffer, b"\0", 0, 1 << 16) for _ in range(times * times)]

        return run

    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:  # noqa: ARG002
        return "fill/4"

    def verify(self, subject: Any) -> bool:  # noqa: ARG002
        return self.last != "wrong"
