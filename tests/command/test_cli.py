"""The command, the catalogue of kernels that it shows, and warming up."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from pairs import exhaustive
from platforms import PLATFORMS, queue_on

import clsparse_py
from clsparse_py._arrays import matrix_files
from clsparse_py._build import programs
from clsparse_py._build.declaration import list_examples
from clsparse_py._command import cli, demo
from clsparse_py._command import warmup as _warmup
from clsparse_py._command.catalogue import catalogue, template_names
from clsparse_py._device.device import Device, Portability, describe
from clsparse_py._operations.spmv import KERNELS
from clsparse_py._precision.arithmetic import Arithmetic

pytestmark = pytest.mark.any_platform

SINGLE = Arithmetic("float32", "float32")
GPU = Device(
    "a card", "a platform", "1", "gpu", 64, 1024, 48 << 10, 1 << 30, 1 << 32, 32, (), True, True, True, False, False, False,
    False, (), Portability("ptx", 32, "ptx"),
)  # fmt: skip


def without_devices() -> dict[str, str]:
    return {**os.environ, "OCL_ICD_VENDORS": os.devnull, "OCL_ICD_FILENAMES": "", "PYOPENCL_CTX": ""}


# ---- catalogue


@pytest.mark.parametrize("arithmetic", [SINGLE, Arithmetic("complex128", "float64", "int64"), Arithmetic("int8", "int32")])
def test_the_catalogue_covers_every_template(arithmetic: Arithmetic) -> None:
    files, result = set(template_names()), catalogue(GPU, arithmetic)
    if arithmetic.index == "int64":
        files.remove("spgemm/merge_staged")  # which takes 32 bits
    assert files <= set(result)
    assert {name: result[name].template for name in files} == {name: name for name in files}
    assert set(KERNELS) <= set(result)


def test_each_template_is_registered_once() -> None:
    sources_of: defaultdict[str, set[int]] = defaultdict(set)
    for number, examples in enumerate(list_examples()):
        for _, record in examples(GPU, SINGLE):
            sources_of[record.template].add(number)
    assert sources_of.keys() == set(template_names())
    assert {template: result for template, result in sources_of.items() if len(result) > 1} == {}


def test_no_module_registers_kernels_that_the_catalogue_does_not_import() -> None:
    result = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


IMPORT_ALL = """
import importlib, pkgutil
import clsparse_py._command.catalogue
from clsparse_py._build.declaration import list_examples
before = list_examples()
for module in pkgutil.walk_packages(clsparse_py.__path__, "clsparse_py."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print([each.__module__ for each in list_examples() if each not in before])
"""


@pytest.mark.parametrize("platform", sorted(PLATFORMS, reverse=True)[: None if exhaustive() else 1])
def test_every_kernel_of_the_catalogue_builds(platform: str) -> None:
    """On PoCL, if it is there: others take two minutes for kernels that their devices are not given."""
    queue = queue_on(platform)
    for scaled in (False, True):
        for name, record in catalogue(describe(queue.device), SINGLE, scaled=scaled).items():
            built = programs.build(queue.context, queue.device, record)
            assert built.parameters.template == name.split(":")[0] or name in KERNELS


def test_the_catalogue_holds_what_plans_build(queue: cl.CommandQueue) -> None:
    all_records = catalogue(describe(queue.device), SINGLE).values()
    records = [record for record in all_records if record.template.startswith(("spmv/", "csr/", "primitives/partition"))]
    # As built: a driver may take smaller work-groups and fewer lanes.
    known = {programs.build(queue.context, queue.device, record).parameters for record in records}
    A = clsparse_py.csr_array(sp.csr_array(np.eye(3, dtype=np.float32)), queue=queue)
    for name in KERNELS:
        plan = clsparse_py.spmv_plan(A, kernel=name)
        with programs.recording() as record:
            clsparse_py.spmv(A, np.ones(3, np.float32), plan=plan)
        assert {program.parameters for program in record} <= known


# ---- warming up


def test_after_a_warm_up_products_build_nothing(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    # Those of other tests may be held by their plans: beside them a process keeps fewer of these.
    programs.let_go()
    monkeypatch.setattr(programs, "_KEPT", replace(programs._KEPT, kernels=1 << 20))
    context = cl.Context([queue.device])
    fresh = cl.CommandQueue(context, queue.device)
    assert clsparse_py.warmup(fresh) > 0
    reported: list[tuple[int, int]] = []
    before = set(programs._built)
    built = clsparse_py.warmup(fresh, report=lambda *step: reported.append(step))
    assert not built, [len(programs._alive), *(key[2] for key in programs._built.keys() - before)]
    assert reported == [(done, len(reported)) for done in range(1, len(reported) + 1)]

    def refuse(_context: cl.Context, _device: cl.Device, source: str, _options: Any = ()) -> None:
        pytest.fail(f"built: {programs._KERNEL.findall(source)}")

    monkeypatch.setattr(programs, "compile_source", refuse)
    rng = np.random.default_rng(3)
    dtypes = [np.float32, np.float64] if describe(queue.device).fp64 else [np.float32]
    matrices = [sp.csr_array(np.eye(50)), sp.random_array((300, 200), density=0.1, rng=rng), sp.csr_array(np.ones((2, 70_000)))]
    matrices.append(sp.csr_array(sp.vstack([sp.random_array((9000, 900), density=0.01, rng=rng), np.ones((1, 900))])))
    for dtype in dtypes:
        for matrix in matrices:
            host = sp.csr_array(matrix, dtype=dtype)
            x, y = rng.random(host.shape[1]).astype(dtype), rng.random(host.shape[0]).astype(dtype)
            A = clsparse_py.csr_array(host, queue=fresh)
            np.testing.assert_allclose(A @ x, host @ x, rtol=1e-4)
            np.testing.assert_allclose(clsparse_py.spmv(A, x, alpha=2, beta=3, out=y.copy()), 2 * (host @ x) + 3 * y, rtol=1e-4)
            for columns in (1, 2, 4, 32):
                X = rng.random((host.shape[1], columns)).astype(dtype)
                np.testing.assert_allclose(A @ X, host @ X, rtol=1e-4)
        lengths = rng.permutation(np.repeat([0, 1, 3, 6, 20], 40))
        host = sp.csr_array(sp.random_array((200, 200), density=0.9, rng=rng) * (np.arange(200) < lengths[:, None]), dtype=dtype)
        A = clsparse_py.csr_array(host, queue=fresh)
        np.testing.assert_allclose((A @ A).toarray(), (host @ host).toarray(), rtol=1e-4)
        clsparse_py.spgemm_plan(A, A)(2 * host.data)
        grid = sp.csr_array(sp.diags_array(np.ones(5), offsets=[-150, -1, 0, 1, 150], shape=(22_500, 22_500)), dtype=dtype)
        A = clsparse_py.csr_array(grid, queue=fresh)
        assert (A.T.get() != grid.T).nnz == 0
        assert ((A @ A).get() != grid @ grid).nnz == 0
        few = clsparse_py.csr_array(grid[:40, :40], queue=fresh)
        for made in (
            A + A,
            A.multiply(A),
            A[np.arange(0, A.shape[0], 2)],
            clsparse_py.hstack([A, A, A]),
            clsparse_py.vstack([A, A]),
        ):
            assert made.nnz
        for form in ("csr", "coo"):
            assert clsparse_py.kron(few, few, format=form).nnz == few.nnz**2


def test_warming_up_leaves_out_what_the_device_lacks(queue: cl.CommandQueue, take_as: Callable[..., None]) -> None:
    take_as(fp64=False)
    assert clsparse_py.warmup(queue, [np.float64]) == 0
    with pytest.raises(TypeError, match="float16"):
        clsparse_py.warmup(queue, [np.float16])


def test_warming_up_tries_all_that_the_profile_chooses_on_a_gpu() -> None:
    choices = [set(_warmup._choices(GPU, dtype)) for dtype in ("float32", "float64")]
    assert all(1 < len(choice) < 20 for choice in choices)
    assert choices[0] != choices[1]


# ---- the command


def test_devices_are_shown_with_all_that_is_known(queue: cl.CommandQueue, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["devices"]) == 0
    shown = capsys.readouterr().out
    for word in ("(default)", "driver version", "lane exchange", "local memory", "svm", "fp64", queue.device.name.split()[0]):
        assert word in shown
    assert "is used by default: " in shown.splitlines()[-1]
    assert max(len(line) for line in shown.splitlines()[:-1]) <= 100


def test_one_device_is_shown_alone(queue: cl.CommandQueue, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["devices", "--device", queue.device.platform.name]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^platform +(.*?) *$", shown, re.MULTILINE) == [queue.device.platform.name.strip()]
    assert "is used by default: " in shown.splitlines()[-1]
    assert cli.main(["devices", "--device", "no such card"]) == 2


def test_every_field_of_a_device_is_shown() -> None:
    shown = cli._capabilities(GPU)
    assert shown["lane exchange"] == "inline PTX, 32 lanes"
    assert shown["global memory"] == "4 GiB"
    assert shown["local memory"] == "48 KiB"
    assert shown["fp64"] == "yes"
    assert shown["sub group sizes"] == "none named"
    # All fields but the name, and two for the one that holds how kernels are made portable.
    assert len(shown) == len(GPU.__dataclass_fields__)


def test_many_devices_are_shown_in_several_tables(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "devices", lambda: [queue.device] * 5)
    monkeypatch.setattr(cli, "choose_device", lambda: queue.device)
    assert cli.main(["devices"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("driver version") > 1
    assert max(len(line) for line in shown.splitlines()[:-1]) <= 100


@pytest.mark.parametrize("command", ["devices", "demo", "warmup", "source"])
def test_without_a_device_the_message_says_what_to_do(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _NO_DEVICE, command], capture_output=True, text=True, check=False, env=without_devices()
    )
    assert done.returncode == 1
    assert re.search("Install a driver for your device|Intel's runtime is installed .* and not used", done.stderr)
    assert len(done.stderr.splitlines()) == 1


# Not by the environment alone: a loader may bring its own runtime.
_NO_DEVICE = """
import sys
import clsparse_py._device.device
clsparse_py._device.device.devices = lambda: []
from clsparse_py._command.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", [*KERNELS, "spmv/adaptive", "csr/check", "spmv/binning:place"])
def test_source_prints_what_is_built(
    queue: cl.CommandQueue, capsys: pytest.CaptureFixture[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "choose_device", lambda: queue.device)
    assert cli.main(["source", name, "--dtype", "float32"]) == 0
    shown = capsys.readouterr().out
    assert "kernel" in shown
    assert "#include" not in shown
    assert "${" not in shown
    programs.compile_source(queue.context, queue.device, shown)


def test_source_takes_types_semiring_and_scaling(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["source", "subvector8", "--dtype", "float32", "--index", "int64", "--scaled"]) == 0
    shown = capsys.readouterr().out
    assert "f32_i64_scaled" in shown
    assert "#define SCALED 1" in shown
    assert cli.main(["source", "serial", "--dtype", "int32", "--x-dtype", "int8", "--semiring", "min_plus"]) == 0
    assert "min_plus_i32_x_i8_i32" in capsys.readouterr().out


def test_source_lists_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    # Some kernels take values of four bytes alone.
    assert cli.main(["source"]) == cli.main(["source", "--dtype", "float32"]) == 0
    listed = capsys.readouterr().out.split()
    lanes = describe(cli.find_device(None)).portability.lane_width > 1
    assert {*template_names(), *KERNELS} - (set() if lanes else {"spgemm/merge_team", "spgemm/merge_staged"}) <= set(listed)
    assert cli.main(["source", "warp64"]) == 2
    captured = capsys.readouterr()
    assert "'warp64'" in captured.err
    assert "subvector64" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--dtype", "complex64", "--semiring", "min_plus"], "complex64"),
        (["--semiring", "or_and", "--scaled"], "--scaled"),
        (["--device", "no such card"], "no such card"),
    ],
)
def test_source_refuses_what_there_is_not(capsys: pytest.CaptureFixture[str], arguments: list[str], word: str) -> None:
    assert cli.main(["source", "serial", *arguments]) == 2
    assert word in capsys.readouterr().err


def test_double_precision_is_refused_where_there_is_none(
    take_as: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    take_as(fp64=False)
    assert cli.main(["source", "serial", "--dtype", "float64"]) == 2
    assert "double precision" in capsys.readouterr().err
    assert cli.main(["source", "serial"]) == 0
    assert "f32_i32" in capsys.readouterr().out


def test_a_device_is_found_by_its_platform_before_its_name(queue: cl.CommandQueue) -> None:
    result = cli.find_device(queue.device.platform.name.upper())
    assert result.platform.name == queue.device.platform.name
    assert cli.find_device(queue.device.name).name == queue.device.name
    assert cli.find_device(None) == clsparse_py._device.device.choose_device()


def test_warmup_and_demo_run_on_the_device_named(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    platform = queue.device.platform.name.strip()
    assert cli.main(["warmup", "--device", platform, "--dtype", "float32"]) == 0
    shown = capsys.readouterr().out
    assert "kernels built for" in shown
    assert platform in shown
    monkeypatch.setattr(demo, "generate", list)
    monkeypatch.setattr(demo, "EFFORT", demo.Effort(seconds=0))
    assert cli.main(["demo", "--device", platform]) == 0
    assert "results verified" in capsys.readouterr().out
    assert cli.main(["demo", "--device", platform, "no-such-file.mtx"]) == 1
    assert "error: no-such-file.mtx: No such file or directory" in capsys.readouterr().err


def test_version_and_module() -> None:
    done = subprocess.run([sys.executable, "-m", "clsparse_py", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"clsparse_py {clsparse_py.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["fly"], ["source", "serial", "--dtype", "float16"], ["demo", "--fast"]])
def test_wrong_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage: clsparse" in capsys.readouterr().err


# ---- transpose


@pytest.mark.parametrize(("method", "taken"), [("auto", "at once"), ("binned", "binned")])
def test_transpose_writes_the_transposed(tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str, taken: str) -> None:
    matrix = sp.random_array((30, 20), density=0.2, format="csr", rng=np.random.default_rng(0)).astype(np.float32)
    sp.save_npz(tmp_path / "a.npz", matrix)
    assert cli.main(["transpose", str(tmp_path / "a.npz"), "-o", str(tmp_path / "t.npz"), "--method", method]) == 0
    np.testing.assert_array_equal(sp.load_npz(tmp_path / "t.npz").toarray(), matrix.toarray().T)
    printed = capsys.readouterr().out
    assert "20 x 30" in printed
    assert f"SpTRANS: {taken}. " in printed
    assert "The first call, which builds its kernels or loads them, took" in printed


def test_times_are_those_of_calls_that_build_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(np.eye(5, dtype=np.float32)))
    calls: list[str] = []
    multiply, transpose = clsparse_py.spgemm, clsparse_py.transpose

    def built() -> list[int]:
        return [0] * min(len(calls), 2)  # the first two calls build a kernel each

    def slow_at_first(what: str) -> float:
        calls.append(what)
        return 300.0 if len(calls) < 3 else 0.25

    monkeypatch.setattr(cli.programs, "built", built)
    monkeypatch.setattr(
        clsparse_py, "spgemm", lambda *args, **named: (multiply(*args, **named)[0], {"numeric": slow_at_first("spgemm")})
    )
    assert cli.main(["multiply", *[str(tmp_path / "a.npz")] * 2]) == 0
    assert "multiplied in 250 ms" in capsys.readouterr().out
    assert len(calls) == 3
    calls.clear()
    now = [0.0]

    def passing(*args: Any, **named: Any) -> Any:
        now[0] += slow_at_first("transpose")
        return transpose(*args, **named)

    monkeypatch.setattr(cli.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(clsparse_py, "transpose", passing)
    assert cli.main(["transpose", str(tmp_path / "a.npz")]) == 0
    printed = capsys.readouterr().out
    assert "transposed in 250 ms" in printed
    assert "took 300 s" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.mtx"], "none.mtx"),
        (["a.npz", "-o", "t.txt"], "not a name of a matrix file"),
        (["a.npz", "--method", "gather"], "gather does not take this matrix"),
    ],
)
def test_transpose_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sp.save_npz("a.npz", sp.csr_array(np.arange(6, dtype=np.float32).reshape(2, 3)))
    assert cli.main(["transpose", *arguments]) == 2
    assert message in capsys.readouterr().err


# ---- multiply


@pytest.mark.parametrize(
    ("arguments", "product"),
    [
        (["b.npz", "a.npz"], lambda a, b: b @ a),
        (["a.npz", "b.npz", "--method", "esc", "--memory-limit", "1000000"], lambda a, b: a @ b),
        (["a.npz", "a.npz", "-T", "--loose"], lambda a, _: a @ a.T),
        (["a.npz", "b.npz", "--semiring", "plus_pair", "--max-nnz", "900"], lambda a, b: (a != 0).astype(float) @ (b != 0)),
    ],
)
def test_multiply_writes_the_product(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], product: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b = (sp.random_array(shape, density=0.2, format="csr", rng=rng).astype(np.float32) for shape in ((30, 20), (20, 30)))
    sp.save_npz("a.npz", a)
    sp.save_npz("b.npz", b)
    assert cli.main(["multiply", *arguments, "-o", "c.mtx", "--explain"]) == 0
    result, wanted = matrix_files.read_matrix("c.mtx").toarray(), product(a.toarray(), b.toarray())
    np.testing.assert_allclose(result, wanted, rtol=1e-5)
    printed = capsys.readouterr().out
    assert f"{wanted.shape[0]} x {wanted.shape[1]}, {np.count_nonzero(wanted)} entries, multiplied in" in printed
    assert "numeric" in printed
    assert "SpGEMM, method" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.mtx", "a.npz"], "none.mtx"),
        (["a.npz", "a.npz"], "B: must have 3 rows, as A is 2 x 3, is 2 x 3"),
        (["a.npz", "a.npz", "-T", "-o", "t.txt"], "not a name of a matrix file"),
        (["a.npz", "a.npz", "-T", "--max-nnz", "3"], "max_nnz: the product has 4 entries, more than 3"),
        (["a.npz", "a.npz", "-T", "-o", ""], "not a name of a matrix file"),
        (["a.npz", "a.npz", "-T", "-o", "none/t.npz"], "none/t.npz: there is no folder none"),
    ],
)
def test_multiply_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sp.save_npz("a.npz", sp.csr_array(np.arange(1, 7, dtype=np.float32).reshape(2, 3)))
    assert cli.main(["multiply", *arguments]) == 2
    assert message in capsys.readouterr().err


# ---- tuning


def test_every_option_of_tune_reaches_the_tuner(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    cli.add_tune_options(parser)
    options = [action for action in parser._actions if action.option_strings and action.dest != "help"]
    texts = {"budget": "3", "largest": "1000", **{name: str(tmp_path / name) for name in ("corpus", "out", "report")}}
    line = ["tune", "--device", queue.device.name]
    for action in options:
        line += [action.option_strings[0], *([] if action.nargs == 0 else [texts.get(action.dest, action.dest)])]
    reached: dict[str, Any] = {}
    monkeypatch.setattr("clsparse_py._tuner.run.tune", lambda *_, **named: reached.update(named) or 1)
    assert cli.main(line) == 1
    of_tuner = {"budget": "minutes"}
    assert set(reached) == {of_tuner.get(action.dest, action.dest) for action in options}
    assert reached["questions"] == ("questions",)
    assert all(reached.values())
