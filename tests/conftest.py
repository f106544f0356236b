"""Every test that takes `queue` runs on every OpenCL platform found.

A test with several cases takes turns: each of them runs on one platform. So do the tests of a module marked ``any_platform``.
Environment: ``CLSPARSE_FULL=1`` runs the full product of all axes where a plain run covers them pairwise, and every case on every
platform; ``CLSPARSE_MATRICES`` names a folder of Matrix Market files for `test_real_matrices`; ``CLSPARSE_CACHE_DIR`` is pytest's
own cache folder unless it is set.
"""

from __future__ import annotations

import gc
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

# Quirk 10. Kernels for CPU devices do not show it, but tests give them others.
os.environ.setdefault("CL_CONFIG_LLVM_OPTIONS", "-opt-disable=sycl-kernel-reduce-cross-barrier-values -opt-bisect-verbose=0")

import few_declarations
import hypothesis
import numpy as np
import pyopencl as cl
import pytest
import unoptimised
from pairs import exhaustive
from platforms import PLATFORMS, queue_on
from supposed import describe_as

from clsparse_py._build import programs, refusals
from clsparse_py._decisions import profiles
from clsparse_py._device.device import Device, describe
from clsparse_py._operations.spmv import plan
from clsparse_py._run import launch

#: `make examples` runs code blocks of pages, in the site's environment, which has all that they import but PyTorch and JAX.
collect_ignore = [] if exhaustive() else ["test_code_blocks.py"]

hypothesis.settings.register_profile("suite", deadline=None, derandomize="CI" in os.environ, print_blob=True)
hypothesis.settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", help="K/N: run the K-th of N parts, which hold whole files and about as many tests", metavar="K/N")


def pytest_configure(config: pytest.Config) -> None:
    # For processes that tests start, in whichever folder: the package may be importable here, and not installed.
    path = [str(config.rootpath), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path))
    if "CLSPARSE_CACHE_DIR" not in os.environ:
        os.environ["CLSPARSE_CACHE_DIR"] = str(config.cache.mkdir("clsparse_py"))
    # Not the user's: what is chosen is tested.
    folder = tempfile.TemporaryDirectory(prefix="clsparse_py_profiles_")
    config.add_cleanup(folder.cleanup)
    os.environ["CLSPARSE_PROFILES"] = folder.name
    if not exhaustive():
        few_declarations.install()
        unoptimised.install()
    config.addinivalue_line("markers", "every_platform: cases do not take turns, as some of them run on one platform alone")
    config.addinivalue_line("markers", "any_platform: a module whose tests take turns, as what they show is the host's doing")
    config.addinivalue_line("markers", "refusals: the test has kernels refused; in all others a refused kernel is a failure")
    # PyOpenCL says so of its own kernels, which tests use to fill arrays; those of the package are tested to be silent.
    config.addinivalue_line("filterwarnings", "ignore:Non-empty compiler output")
    # Which test calls a name first in its process is chance; one test looks at all of them.
    config.addinivalue_line("filterwarnings", "ignore:.* runs on the host, with copies")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave each case of a test with several cases to one platform, in turns; with ``CLSPARSE_FULL=1`` all run on all.

    Lanes come first: one of them takes minutes, for which the other process has work then.
    """
    items.sort(key=lambda item: "lanes" not in item.path.parts)
    if config.option.part:
        _keep_part(config, items)
    if exhaustive() or len(PLATFORMS) < 2:
        return
    # Of each test that takes `queue`, and nothing but it of platforms: the cases by the places of their other parameters' values,
    # which are the same objects on every platform. (Pytest's own indices may count platforms too.) The tests of a module whose
    # tests take turns are cases of it.
    tests: dict[tuple[str, str], set[tuple[int, ...]]] = {}
    turns: dict[pytest.Item, tuple[tuple[str, str], tuple[int, ...], str]] = {}
    modules: dict[str, dict[str, int]] = {}
    places: dict[tuple[str, ...], dict[int, int]] = {}
    for item in items:
        call = getattr(item, "callspec", None)
        if item.get_closest_marker("every_platform"):
            continue
        if isinstance(item, pytest.Function) and call is not None and call.params.get("queue") in PLATFORMS:
            test = (item.parent.nodeid if item.parent else "", item.originalname)
            seen = {name: places.setdefault((*test, name), {}) for name in sorted(call.params) if name != "queue"}
            case = tuple(of.setdefault(id(call.params[name]), len(of)) for name, of in seen.items())
            if item.get_closest_marker("any_platform"):
                members = modules.setdefault(test[0], {})
                case = (*case, members.setdefault(item.originalname, len(members)))
                test = (test[0], "")
            tests.setdefault(test, set()).add(case)
            turns[item] = test, case, call.params["queue"]
    names = list(PLATFORMS)
    # A kernel takes PoCL 0.2 s, Intel's runtime 0.06 s if it need not optimise it.
    weighted = [name for name in names for _ in range(1 if name.startswith("pocl") else 2)]

    def turn(item: pytest.Item, test: tuple[str, str], case: tuple[int, ...]) -> str | None:
        """Return the platform whose turn a case is, None if it runs on all."""
        several = item.get_closest_marker("any_platform") or len(tests[test]) > 1
        return weighted[sum(case) % len(weighted)] if several else None

    left = [item for item, (test, case, platform) in turns.items() if turn(item, test, case) not in (None, platform)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


def _keep_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of all parts but the one asked for: the largest file goes to the smallest part so far."""
    part, parts = (int(number) for number in config.option.part.split("/"))
    if not 1 <= part <= parts:
        raise pytest.UsageError(f"--part is {config.option.part}; the first number has to be 1 to {parts}")
    loads = [0] * parts
    part_of = {}
    for path, count in sorted(Counter(item.path for item in items).items(), key=lambda counted: (-counted[1], counted[0])):
        part_of[path] = loads.index(min(loads))
        loads[part_of[path]] += count
    others = [item for item in items if part_of[item.path] != part - 1]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if part_of[item.path] == part - 1]


@pytest.hookimpl(optionalhook=True)  # pytest-xdist's
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give all tests of a platform, which have its name in theirs, to one process: it builds each kernel once.

    Other tests are given out one by one, to whichever process is through with its platform. With more processes than platforms
    pytest-xdist's own way is taken.
    """
    if config.option.numprocesses > len(PLATFORMS):
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByPlatform(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            test = nodeid.partition("::")[2]
            return next((name for name in PLATFORMS if re.search(rf"\b{name}\b", test)), nodeid)

    return ByPlatform(config, log)


def pytest_collection_finish() -> None:
    """Spare the garbage collector the tests themselves, which live until the end: going through them took a fifth of the time."""
    gc.collect()
    gc.freeze()


def pytest_report_header() -> list[str]:
    return [f"OpenCL: {name}, {device.name}, driver {device.driver_version}" for name, device in PLATFORMS.items()]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what the lanes did, whatever pytest's verbosity is.

    Not in a file of the lanes' folder: the process that writes the summary reads those alone that it was pointed to.
    """
    # What a test says travels with its report, as it may have run in another process. Reports of skipped modules have none.
    reports = (report for kind in ("passed", "failed", "skipped") for report in terminalreporter.getreports(kind))
    said = [text for report in reports for name, text in getattr(report, "user_properties", ()) if name == "lane"]
    if said:
        terminalreporter.section("lanes")
        for line in dict.fromkeys(said):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session", params=list(PLATFORMS) or ["none"])
def queue(request: pytest.FixtureRequest) -> cl.CommandQueue:
    """A queue on each platform."""
    if not PLATFORMS:
        pytest.fail('no OpenCL platform was found: pip install "clsparse_py[pocl]"')
    return queue_on(request.param)


@pytest.fixture(autouse=True)
def no_refusal(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which a compiler refused a kernel: another method taking its place is no reason to pass."""
    if request.node.get_closest_marker("refusals"):
        yield
        programs.forget_refused()
        for device in PLATFORMS.values():
            refusals.forget(programs.identity(device))
        return
    before = set(map(str, programs.list_refusals()))
    yield
    refused = [str(error) for error in programs.list_refusals() if str(error) not in before]
    assert not refused, "\n".join(refused)


@pytest.fixture(scope="module", autouse=True)
def few_kernels() -> Iterator[None]:
    """Let kernels go between modules if there are many: Intel's runtime takes 3 MB for each."""
    yield
    if sum(1 for _ in programs.built()) > 300:
        programs.clear()


@pytest.fixture
def real(queue: cl.CommandQueue) -> np.dtype:
    """The widest real dtype of the device."""
    return np.dtype(np.float64 if describe(queue.device).fp64 else np.float32)


@pytest.fixture
def take_as() -> Iterator[Callable[..., None]]:
    """Make the package take devices for ones with other fields, such as ``type="gpu"``, until the test ends."""
    with ExitStack() as stack:
        yield lambda *change, **fields: stack.enter_context(describe_as(*change, **fields))


@pytest.fixture
def decided_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Make the package decide on a device by made-up trees and thresholds: by operation, dtype, and question or name."""

    def decide(device: Device, operations: dict[str, Any], thresholds: dict[str, Any] | None = None) -> None:
        made_up = {"schema": profiles.SCHEMA, "name": "made-up", "device": profiles.identity(device)}
        profiles.save({**made_up, "operations": operations, "thresholds": thresholds or {}})

    monkeypatch.setenv("CLSPARSE_PROFILES", str(tmp_path))
    profiles.forget()
    yield decide
    monkeypatch.undo()
    profiles.forget()


@pytest.fixture
def narrow_lanes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make the kernels of chains and of SpMV's plans exchange over at most so many lanes; the device itself stays as it is."""

    def narrow(width: int) -> None:
        for module in (plan, launch):
            monkeypatch.setattr(
                module, "describe", lambda of: replace(describe(of), portability=describe(of).portability.at_most(width))
            )

    return narrow
