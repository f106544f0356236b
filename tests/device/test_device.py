"""Devices: what is described and how one is chosen, on the devices present and on made-up ones."""

from __future__ import annotations

import json
import re
import types
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp

import clsparse_py
from clsparse_py import NoDeviceError, csr_array, default_queue
from clsparse_py._build import programs, sources
from clsparse_py._command import cli
from clsparse_py._decisions import profiles
from clsparse_py._device import capabilities, device, trial
from clsparse_py._device.device import Portability, choose_device, describe, devices, preference
from clsparse_py._ground import cache


def test_description_is_what_the_driver_reports(queue: cl.CommandQueue) -> None:
    result = describe(queue.device)
    assert result is describe(queue.device)
    assert result.name == queue.device.name.strip()
    assert result.fingerprint == (result.name, queue.device.driver_version)
    assert result.max_work_group == min(queue.device.max_work_group_size, 1024)
    assert result.local_memory == queue.device.local_mem_size > 0
    assert result.compute_units == queue.device.max_compute_units > 0
    assert result.preferred_multiple > 0
    assert result.fp64 == ("cl_khr_fp64" in queue.device.extensions) == result.portability.fp64
    assert result.lanes_are_loops == bool(queue.device.type & cl.device_type.CPU)
    assert result.type in ("gpu", "accelerator", "cpu", "custom")


def test_lanes_were_seen_to_exchange(queue: cl.CommandQueue) -> None:
    result = describe(queue.device).portability
    assert result.lane_width & (result.lane_width - 1) == 0
    assert (result.lane_width > 1) == (result.lanes != "local")
    if "cl_khr_subgroup_shuffle" in queue.device.extensions.split():
        assert result.lanes == "sub_group"
    if result.lane_width > 1:
        assert capabilities._exchanges(queue, result)
    # A way that is not there is found not to work, without an error.
    for lanes in ("bpermute", "ptx", "sub_group"):
        if lanes != result.lanes:
            assert not capabilities._exchanges(queue, Portability(lanes, 4096 * 1024))
    if result.lanes == "local":
        wrong = Portability("sub_group", 2)
        assert not capabilities._exchanges(queue, wrong)


def test_kernels_exchange_lanes_where_the_device_does(queue: cl.CommandQueue) -> None:
    width = describe(queue.device).portability.lane_width
    A = csr_array(sp.eye_array(64, dtype=np.float32, format="csr"), queue=queue)
    with programs.recording() as built:
        clsparse_py.spmv(A, np.ones(64, np.float32), plan=clsparse_py.spmv_plan(A, kernel="subvector8"))
    record = built[-1].parameters
    assert (record.lane_width > 1) == (width > 1)
    assert record.arguments()["needs_box"] == (width < 8 or record.lane_width < 8)


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no child try the compiler, which `test_trial` does."""
    monkeypatch.setattr(trial, "examine", lambda _: None)


@pytest.mark.usefixtures("untried")
def test_probing_is_kept_on_disk(queue: cl.CommandQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path))
    result = capabilities.probe(queue.device)
    assert list(tmp_path.iterdir())

    def refuse(*_: Any) -> None:
        raise AssertionError("probed again")

    monkeypatch.setattr(programs, "compile_source", refuse)
    assert capabilities.probe(queue.device) == result
    for path in filter(Path.is_file, tmp_path.iterdir()):  # driver_cache has a folder there while PoCL builds
        path.write_bytes(b"")
    with pytest.raises(AssertionError, match="probed again"):
        capabilities.probe(queue.device)


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize("change", ["a field less", "a field more", "another type", "a list"])
def test_what_another_version_kept_of_probing_is_found_anew(
    queue: cl.CommandQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path))
    # So that probing alone keeps something.
    monkeypatch.setattr(programs, "has_src_build_cache", lambda _: True)
    monkeypatch.setattr(programs.driver_cache, "remove_truncated", lambda: None)
    result = capabilities.probe(queue.device)
    (path,) = tmp_path.iterdir()
    whole = content = json.loads(cache.read(path.name) or b"")
    if change == "a field less":
        content = {name: value for name, value in whole.items() if name != "aliases_host"}
    elif change == "a field more":
        content = {**whole, "portability": {**whole["portability"], "colour": "red"}}
    elif change == "another type":
        content = {**whole, "portability": {**whole["portability"], "lane_width": "wide"}}
    else:
        content = [whole]
    cache.write(path.name, json.dumps(content).encode())
    assert capabilities.probe(queue.device) == result
    assert "cannot be used" in caplog.text
    assert json.loads(cache.read(path.name) or b"") == whole


@pytest.mark.parametrize(
    ("asked", "width", "lanes"),
    [(64, 32, "ptx"), (32, 32, "ptx"), (31, 16, "ptx"), (2, 2, "ptx"), (1, 1, "local"), (0, 1, "local")],
)
def test_portability_at_most(asked: int, width: int, lanes: str) -> None:
    result = Portability("ptx", 32, "ptx", False).at_most(asked)
    assert result == Portability(lanes, width, "ptx", False)


def test_portability_as_macros() -> None:
    assert Portability("ptx", 32, "ptx").defines.splitlines() == [
        "#define LANES_BY_PTX",
        "#define LANE_WIDTH 32",
        "#define LOAD_ONCE_BY_PTX",
    ]


def make_device(
    name: str, kind: int, units: int = 1, clock: int = 1000, shares: bool = False, width: int = 1, platform: str = "made up"
) -> Any:
    return types.SimpleNamespace(
        name=name,
        platform=types.SimpleNamespace(name=platform),
        type=kind,
        available=True,
        max_compute_units=units,
        max_clock_frequency=clock,
        host_unified_memory=shares,
        native_vector_width_float=width,
    )


class MadeUpPlatform(types.SimpleNamespace):
    def get_devices(self) -> list[Any]:
        if self.devices is None:
            raise cl.RuntimeError("clGetDeviceIDs failed: DEVICE_NOT_FOUND")
        return self.devices


def test_order_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = cl.device_type
    cpus = [make_device("cpu", kinds.CPU, 64), make_device("small cpu", kinds.CPU, 2), make_device("off", kinds.GPU)]
    cpus[2].available = False
    platforms = [
        MadeUpPlatform(name="cpu platform", version="1", devices=cpus),
        MadeUpPlatform(name="without devices", version="1", devices=None),
        MadeUpPlatform(name="custom", version="1", devices=[make_device("fpga", kinds.CUSTOM, 999)]),
        MadeUpPlatform(name="accelerators", version="1", devices=[make_device("npu", kinds.ACCELERATOR, 999)]),
        MadeUpPlatform(
            name="gpus",
            version="1",
            devices=[
                make_device("shared", kinds.GPU, 99, shares=True),
                make_device("slow", kinds.GPU, 4),
                make_device("fast", kinds.GPU, 3, 2000),
            ],
        ),
        MadeUpPlatform(name="cpu platform", version="1", devices=cpus),  # shown twice
        MadeUpPlatform(name="cpu platform", version="2", devices=[make_device("newer", kinds.CPU, 64)]),
    ]
    monkeypatch.setattr(cl, "get_platforms", lambda: platforms)
    assert [candidate.name for candidate in devices()] == ["fast", "slow", "shared", "npu", "cpu", "newer", "small cpu", "fpga"]


def test_a_clock_that_one_driver_does_not_tell_counts_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, gpu = cl.device_type.CPU, cl.device_type.GPU
    for name, wide, narrow in (("clock told", 1000, 3000), ("clock not told", 0, 3000)):
        there = [make_device("narrow", cpu, 4, narrow, width=8), make_device("wide", cpu, 4, wide, width=16)]
        # Those of another type do not matter.
        there += [make_device("gpu", gpu, 9, 0), make_device("larger gpu", gpu, 10, 0)]
        platforms = [MadeUpPlatform(name=name, version="1", devices=there)]
        monkeypatch.setattr(cl, "get_platforms", lambda platforms=platforms: platforms)
        results = [candidate.name for candidate in devices()]
        assert results == ["larger gpu", "gpu", *(("narrow", "wide") if wide else ("wide", "narrow"))]


def test_a_device_tuned_here_comes_first_then_ranks_that_profiles_tell_of_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLSPARSE_PROFILES", str(tmp_path))
    cpu, gpu = cl.device_type.CPU, cl.device_type.GPU
    portable, intel = "Portable Computing Language", "Intel(R) OpenCL"
    there = [
        make_device("pthread-of another maker", cpu, 4, width=16, platform=portable),
        make_device("of another maker", cpu, 4, 0, width=8, platform=intel),
        make_device("NVIDIA H100 80GB HBM3", gpu, 132, 1980, platform="NVIDIA CUDA"),
        make_device("NVIDIA H200", gpu, 132, 1980, platform="NVIDIA CUDA"),
    ]

    def order() -> list[int]:
        monkeypatch.setattr(cl, "get_platforms", lambda: [MadeUpPlatform(name="all", version="1", devices=there)])
        return [there.index(candidate) for candidate in devices()]

    def tuned(at: int, name: str) -> None:
        of = {"name": there[at].name, "platform": there[at].platform.name, "vendor": "", "driver": "", "compute_units": 1}
        kind = {cpu: "cpu", gpu: "gpu"}[there[at].type]
        profiles.save({"schema": profiles.SCHEMA, "name": name, "device": {**of, "type": kind}, "operations": {}})

    assert order() == [3, 2, 1, 0]  # a CPU's runtime has a rank on any processor
    assert preference(there[1], there)[:2] == (True, -1.21)
    (tmp_path / "damaged.json").write_text("{")
    tuned(0, "a")
    tuned(2, "b")
    assert order() == [2, 3, 0, 1]
    # The H200 has another GPU beside it of which no profile tells a rank: units, width and clock decide.
    there[2] = make_device("NVIDIA of another kind", gpu, 150, 1980, platform="NVIDIA CUDA")
    assert order() == [2, 3, 0, 1]
    assert preference(there[3], there)[:2] == (True, 0)


@pytest.mark.parametrize(("named", "number"), [("portable", 1), ("Portable:pth", 1), ("2", 2), ("2:0", 2), ("other", 0)])
def test_a_name_of_several_platforms_means_the_one_that_can_be_used(
    monkeypatch: pytest.MonkeyPatch, named: str, number: int
) -> None:
    platforms = [
        MadeUpPlatform(name=name, version=str(n), devices=[make_device("pthread", cl.device_type.CPU)])
        for n, name in enumerate(("Other", "Portable", "Portable"))
    ]
    for platform in platforms:
        platform.devices[0].platform = platform
    monkeypatch.setattr(cl, "get_platforms", lambda: platforms)
    monkeypatch.setattr(cl, "choose_devices", lambda **_: platforms[0 if named == "other" else 2].devices)
    monkeypatch.setattr(device, "unusable", lambda candidate: None if candidate is platforms[1].devices[0] else "builds nothing")
    monkeypatch.setenv("PYOPENCL_CTX", named)
    assert choose_device() is platforms[number].devices[0]
    if named == "portable":
        assert cli.find_device("portable") is platforms[1].devices[0]


@pytest.mark.parametrize("refuse", [True, False])
def test_no_platform_says_what_to_install(monkeypatch: pytest.MonkeyPatch, refuse: bool) -> None:
    def get_platforms() -> list[Any]:
        if refuse:
            raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
        return []

    monkeypatch.setattr(cl, "get_platforms", get_platforms)
    monkeypatch.setenv("PYOPENCL_CTX", "none of this run's")  # so that no queue is kept from before
    assert devices() == []
    for use in (choose_device, default_queue, lambda: csr_array(np.eye(3))):
        with pytest.raises(
            NoDeviceError, match=r"no OpenCL device was found.*(Install a driver for your device|Intel's runtime is installed)"
        ):
            use()


@pytest.mark.usefixtures("untried")
def test_a_device_whose_compiler_builds_nothing_is_passed_over(
    queue: cl.CommandQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise cl.RuntimeError("Build on a device:\n\nerror: unknown target CPU 'generic'\n")

    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PYOPENCL_CTX", raising=False)
    monkeypatch.setattr(device, "devices", lambda: [queue.device])
    monkeypatch.setattr(programs, "compile_source", refuse)
    device.unusable.cache_clear()
    try:
        assert device.unusable(queue.device) == "its compiler builds nothing: error: unknown target CPU 'generic'"
        with pytest.raises(NoDeviceError, match=r"builds nothing: .*unknown target CPU"):
            choose_device()
    finally:
        device.unusable.cache_clear()
    monkeypatch.undo()
    assert device.unusable(queue.device) is None


def test_a_driver_that_refuses_a_context_is_passed_over(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PYOPENCL_CTX", raising=False)
    monkeypatch.setattr(device, "_refusing", {})
    monkeypatch.setattr(device, "_choose", device._choose.__wrapped__)  # keeps nothing
    monkeypatch.setattr(device, "unusable", lambda _: None)
    another = type("Device", (), {"name": "another", "platform": types.SimpleNamespace(name="all")})()
    context = cl.Context

    def refuse(of: Any) -> cl.Context:
        if of == [another]:
            raise cl.RuntimeError("clCreateContext failed: OUT_OF_HOST_MEMORY")
        return context(of)

    monkeypatch.setattr(cl, "Context", refuse)
    for there in ([another, queue.device], [another]):
        monkeypatch.setattr(device, "devices", lambda there=there: there)
        caplog.clear()
        if len(there) == 2:
            with caplog.at_level("INFO"):
                assert default_queue().device == queue.device
            assert "another is passed over: its driver refuses a context" in caplog.text
        else:
            with pytest.raises(NoDeviceError, match="another of platform all: its driver refuses a context"):
                default_queue()
    monkeypatch.setattr(device, "choose_device", lambda: another)  # as PYOPENCL_CTX may name it
    with pytest.raises(NoDeviceError, match="another cannot be used: its driver refuses a context"):
        default_queue()


def test_default_queue_is_one_and_is_the_first_usable_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYOPENCL_CTX", raising=False)
    assert default_queue() is default_queue()
    assert default_queue().device == next(candidate for candidate in devices() if device.unusable(candidate) is None)
    A = csr_array(np.eye(3, dtype=np.float32))
    assert A.queue is default_queue()


def test_pyopencl_ctx_chooses(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    platforms = cl.get_platforms()
    number = next(i for i, platform in enumerate(platforms) if platform == queue.device.platform)
    monkeypatch.setenv("PYOPENCL_CTX", f"{number}:0")
    assert choose_device() == queue.device
    assert default_queue().device == queue.device
    # An explicit queue wins.
    other = cl.CommandQueue(queue.context, queue.device)
    assert csr_array(np.eye(3, dtype=np.float32), queue=other).queue is other


@pytest.mark.parametrize("named", ["no such platform", "99", "0:99", "0:no such device", "0:0:0"])
def test_pyopencl_ctx_that_names_no_device(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("PYOPENCL_CTX", named)
    for use in (choose_device, default_queue):
        with pytest.raises(NoDeviceError, match=rf"^PYOPENCL_CTX: '{named}' names no device .*There are: ") as caught:
            use()
        assert queue.device.name.strip() in str(caught.value)


def test_a_query_that_a_driver_does_not_know_has_a_default(queue: cl.CommandQueue) -> None:
    assert capabilities.query(queue.device, "no_such_thing", 17) == 17
    assert cache.folder().is_dir()


def test_probes_define_what_their_headers_need() -> None:
    """A probe that does not build is no error: the device is taken to lack what it asks for."""
    probes = [capabilities._lanes_probe_source(Portability("ptx", 32, "ptx", True, "ptx"), 64)]
    probes += [f"#define LOAD_ONCE_BY_PTX\n{capabilities._LOAD_ONCE_PROBE}", capabilities._MATCH_PROBE]
    for source in map(sources.expand, probes):
        needed = re.findall(r"#ifndef (\w+)\n\s*#error", source)
        for macro in needed:
            before = source[: source.index(f"#ifndef {macro}")]
            assert f"#define {macro}" in before, macro
