"""Every test that takes `queue` runs on every OpenCL platform found.

Environment: ``CLSPARSE_FULL=1`` runs the full product of all axes where a plain run covers them pairwise; ``CLSPARSE_MATRICES``
names a folder of Matrix Market files for `test_real_matrices`; ``CLSPARSE_CACHE_DIR`` is pytest's own cache folder unless it is
set.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import replace

import hypothesis
import numpy as np
import pyopencl as cl
import pytest
from platforms import PLATFORMS, queue_on

from clsparse_py.device import Device, describe

hypothesis.settings.register_profile("suite", deadline=None, derandomize="CI" in os.environ, print_blob=True)
hypothesis.settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    if "CLSPARSE_CACHE_DIR" not in os.environ:
        os.environ["CLSPARSE_CACHE_DIR"] = str(config.cache.mkdir("clsparse_py"))
    # PyOpenCL says so of its own kernels, which tests use to fill arrays; those of the package are tested to be silent.
    config.addinivalue_line("filterwarnings", "ignore:Non-empty compiler output")


def pytest_report_header() -> list[str]:
    return [f"OpenCL: {name}, {device.name}, driver {device.driver_version}" for name, device in PLATFORMS.items()]


@pytest.fixture(scope="session", params=list(PLATFORMS) or ["none"])
def queue(request: pytest.FixtureRequest) -> cl.CommandQueue:
    """A queue on each platform."""
    if not PLATFORMS:
        pytest.fail('no OpenCL platform was found: pip install "clsparse_py[pocl]"')
    return queue_on(request.param)


@pytest.fixture
def real(queue: cl.CommandQueue) -> np.dtype:
    """The widest real dtype of the device."""
    return np.dtype(np.float64 if describe(queue.device).fp64 else np.float32)


@pytest.fixture
def take_for(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make chains of commands take devices for ones of another type, "cpu" or "gpu", which have kernels of their own."""

    def take(device_type: str) -> None:
        monkeypatch.setattr("clsparse_py.launch.describe", lambda device: replace(describe(device), type=device_type))

    return take


@pytest.fixture
def narrow_lanes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make kernels take devices to exchange over at most so many lanes."""

    def narrow(lane_width: int) -> None:
        def described(device: cl.Device) -> Device:
            found = describe(device)
            return replace(found, portability=found.portability.at_most(lane_width))

        for name in ("clsparse_py.spmv.plan", "clsparse_py.spmm"):
            # Not by attribute: the functions `spmv` and `spmm` hide the modules of their names.
            monkeypatch.setattr(importlib.import_module(name), "describe", described)

    return narrow
