"""Other processors: each operation runs once, and is right, on PyPI's PoCL under qemu, which stands for an older processor.

PoCL takes its compiler's target and its library of built-ins from the processor. qemu has no AVX-512.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import runtimes
from lane import Lane
from pairs import exhaustive

#: With AVX2, and with SSE4.2.
PROCESSORS = ("Haswell", "Nehalem")


@pytest.fixture(params=PROCESSORS)
def processor(request: pytest.FixtureRequest, lane: Lane) -> tuple[str, ...]:
    """Return the words before a command that run it on a processor."""
    program = lane.require(shutil.which("qemu-x86_64"), "qemu is not installed (Debian: qemu-user)")
    lane.require(runtimes.bundled_pocl(), "PyPI's PoCL is not installed (its wheels are for x86-64 alone)")
    return program, "-cpu", request.param


@pytest.fixture
def environment(processor: tuple[str, ...], tmp_path: Path) -> dict[str, str]:
    """Return the environment of PyPI's PoCL alone. NumPy's OpenBLAS mistakes qemu's Nehalem for a later processor."""
    return runtimes.environment(tmp_path, "", OPENBLAS_CORETYPE=processor[-1])


def printed_text(stderr: str) -> list[str]:
    """Return what a process printed beside qemu, which names the features that it does not emulate."""
    return [line for line in stderr.splitlines() if not line.startswith("qemu-x86_64: ")]


def test_each_operation_is_right(lane: Lane, processor: tuple[str, ...], environment: dict[str, str]) -> None:
    lane.say(f"on {processor[-1]}:")
    result = lane.run_workload(
        "small.py", *([] if exhaustive() else ["--few-declarations"]), environment=environment, before=processor
    )
    assert not result["failures"], "\n".join(result["failures"])
    assert not printed_text(result["stderr"])


@pytest.mark.skipif(not exhaustive(), reason="takes minutes: with CLSPARSE_FULL=1")
def test_the_demo_is_right(lane: Lane, processor: tuple[str, ...], environment: dict[str, str]) -> None:
    done = lane.run("-m", "clsparse_py", "demo", environment=environment, before=processor)
    lane.say(f"the demo on {processor[-1]}: {done.stdout.splitlines()[-1]}")
    assert not printed_text(done.stderr)
