"""Templates to source to built kernels: rendering, caching, adapting to what a driver allows, and builds that fail."""

from __future__ import annotations

import gc
import inspect
import pickle
import re
import uuid
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
import scipy.sparse as sp
from platforms import PLATFORMS, queue_on
from pyopencl.characterize import has_src_build_cache
from typing_extensions import Self

from clsparse_py import BuildError, csr_array, free_memory
from clsparse_py._build import programs, sources
from clsparse_py._build.built import Built
from clsparse_py._command.catalogue import catalogue
from clsparse_py._device.device import Device, Portability
from clsparse_py._formats.canonical import NONZEROS, Compact
from clsparse_py._formats.coordinates import REGROUP, EntryRows, Range
from clsparse_py._formats.dense_entries import Entries
from clsparse_py._ground import cache
from clsparse_py._ground.records import dataclass
from clsparse_py._matrix.convert import Convert
from clsparse_py._matrix.structure import Check
from clsparse_py._operations.elementwise.values import Values
from clsparse_py._operations.parts import Combine
from clsparse_py._operations.spmm import kernels as spmm_kernels
from clsparse_py._operations.spmv.binning import Binning
from clsparse_py._operations.spmv.kernels import Adaptive, Chunked, CountFeatures, Merge, Subvector, VectorLong
from clsparse_py._operations.transpose.kernels import Count, Gather, GatherChunked, Insert, Order, Sample
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._primitives.arguments import CheckPointers
from clsparse_py._primitives.partition import Partition
from clsparse_py._primitives.permute import PERMUTE
from clsparse_py._primitives.scan import ScanChunks, ScanTiles
from clsparse_py._primitives.segmented import (
    AddPartials,
    CutSegments,
    SegmentedChunks,
    SegmentedTails,
    SegmentedTiles,
    SegmentSums,
)

LANES = Portability("sub_group", 16)
GPU = Device(
    name="a GPU", platform="none", driver_version="1", type="gpu", compute_units=40, max_work_group=1024, local_memory=48 << 10,
    max_allocation=1 << 32, global_memory=1 << 34, preferred_multiple=32, sub_group_sizes=(), fp64=True, fp16=False,
    int64_atomics=True, float_atomics=False, unified_memory=False, aliases_host=False, forward_progress=False,
    svm=(), portability=LANES,
)  # fmt: skip
DOUBLE = Arithmetic("float64", "float64")
MIXED = Arithmetic("int32", "complex64", "int64", "plus_pair")


def records() -> list[programs.Parameters]:
    """Return a few records of every template."""
    results: list[programs.Parameters] = [
        Convert(64, a, b) for a in ("bool", "complex64", "float64") for b in ("int8", "bool", "complex128")
    ]
    results += [
        Entries(64, index, *types) for index in ("int32", "int64") for types in (("bool", "mark"), ("complex128", "place"))
    ]
    results += [REGROUP.record(64, "int32", "int64"), EntryRows(64, "int64", 4, True)]
    results += [Range(64, number) for number in ("int8", "uint64")]
    results += [NONZEROS.record(64, number) for number in ("bool", "float64")]
    for index in ("int32", "int64"):
        results += [Check(64, index), Partition(64, index), CountFeatures(64, index)]
        results += [Binning(64, index, step) for step in ("histogram", "count", "place")]
        results += [CheckPointers(64, index, False), CheckPointers(64, index, True), CutSegments(64, index)]
        results += [Sample(64, index), Count(64, index), Insert(64, index, 4)]
        for size in (0, 1, 16):
            results += [Gather(64, index, size, 4), GatherChunked(64, index, size)]
            results += [Order(64, index, size, 8)]
        results += [PERMUTE.record(64, index, moved) for moved in ("uchar", "ulong2")]
        results += [Compact(64, index, size) for size in (0, 8)]
    results += [kernel for arithmetic in (DOUBLE, MIXED) for kernel in catalogue(GPU, arithmetic).values()]
    results += [Values(64, *3 * ("int32",), "power"), Values(64, *3 * ("complex64",), "arcsin")]
    for portability in (LANES, Portability()):
        for types in (("bool", "int64"), ("float64", "float64"), ("complex64", "complex64")):
            for inclusive in (False, True):
                tiles = ScanTiles(64, *types, portability, False, 15, inclusive, False, False)
                results += [tiles, replace(tiles, carried=True), tiles.sums]
                results += [ScanChunks(1, *types, portability, False, step, inclusive) for step in ("sums", "scan")]
                for index in ("int32", "int64"):
                    common = (*types, portability)
                    results += [SegmentedTiles(64, *common, index, 15, inclusive)]
                    results += [SegmentSums(64, *common, index, inclusive, 8, 2)]
                    results += [SegmentedChunks(1, *common, index, step, inclusive) for step in ("sum", "add", "tails", "scan")]
                    results += [SegmentedTails(64, *common, index)]
            results += [AddPartials(64, types[1], types[1], portability)]
            results += [ScanTiles(64, types[1], types[1], portability, False, 15, True, False, True)]
            results += [results[-1].sums]
        results += [ScanTiles(64, "uint64", "int32", portability, True, 15, True, True, False)]
        results += [results[-1].sums]
        results += [ScanChunks(1, "uint64", "int32", portability, True, step, True) for step in ("sums", "scan")]
    for arithmetic in (DOUBLE, MIXED):
        for portability in (LANES, Portability(), Portability("ptx", 32, "ptx"), Portability("bpermute", 64)):
            for scaled in (False, True):
                common = (64, arithmetic, portability, scaled)
                results += [
                    Subvector(*common, width, unroll, binned)
                    for width in (1, 64)
                    for unroll in (1, 3)
                    for binned in (False, True)
                ]
                results += [
                    VectorLong(*common, 2),
                    *(Adaptive(*common, 5, 32, parts) for parts in ("staged", "rests", "even")),
                    Merge(*common, 5),
                    Combine(*common, 1, 32),
                    Combine(*common, 4, 8),
                    *spmm_records(*common),
                ]
                results += [Chunked(*common, vectors="none", ahead=0)]
                results += [
                    Chunked(*common, vectors=name, ahead=512) for name in ("uneven", "all") if arithmetic.vector_operations
                ]
    return results


def spmm_records(
    work_group: int, arithmetic: Arithmetic, portability: Portability, scaled: bool
) -> Iterator[programs.Parameters]:
    common = (work_group, arithmetic, portability, scaled)
    width = 4 if arithmetic.vector_operations else 1
    for lanes, vectors, unroll, other in ((1, 1, 1, False), (4, 2, 2, True)):
        for aligned in (False, True):
            yield spmm_kernels.Parts(*common, lanes, vectors, width, aligned, unroll, other, other)
    yield spmm_kernels.Pack(work_group, arithmetic.x, 16, 32)


def name_of(record: programs.Parameters) -> str:
    return record.name


def template_files() -> dict[str, str]:
    return {path.removeprefix("templates/").removesuffix(".mako"): sources.text(path) for path in sources.paths("templates")}


def test_every_template_has_a_record() -> None:
    assert set(template_files()) == {record.file for record in records()}


def test_every_cl_file_is_used() -> None:
    files = {path.removeprefix("cl/") for path in sources.paths("cl")}
    rendered = "\n".join(programs.render(record) for record in records())
    assert files == {name for name in files if f"// ---- cl/{name}\n" in rendered}


@pytest.mark.parametrize("name", sorted(template_files()))
def test_every_template_begins_with_what_its_caller_has_to_know(name: str) -> None:
    text = template_files()[name]
    assert text.startswith("<%doc>\n")
    header = text[: text.index("</%doc>")]
    # As a header is never rendered, it is to be read as it stands.
    assert not re.search(r"\$\{|^\s*%( |$)", header, flags=re.MULTILINE)
    assert max(map(len, header.splitlines())) <= 130
    for heading in ("\nIndex space ", "\nLocal memory ", "\nResult "):
        assert heading in header


@pytest.mark.parametrize("record", records(), ids=name_of)
def test_every_record_renders_to_plain_opencl_c(record: programs.Parameters) -> None:
    source = programs.render(record)
    assert f"void {record.name}(" in source
    assert source.startswith(f"{programs._HEAD}\n#define WORK_GROUP {record.work_group}\n")
    assert "reqd_work_group_size" in source
    assert not any(mark in source for mark in ("${", "<%", "\n%", "#include", "Undefined", "None", "True", "False"))
    assert source.count("{") == source.count("}")
    assert "\n\n\n" not in source
    assert programs.render(record) == source
    assert pickle.loads(pickle.dumps(record)) == record
    # Nothing but plain values reaches a template, and records of them.
    for value in record.arguments().values():
        assert isinstance(value, (int, str, bool, tuple)) or is_dataclass(value)


@pytest.mark.parametrize("name", sorted(template_files()))
def test_templates_are_strict_about_names(name: str) -> None:
    record = next(record for record in records() if record.file == name)
    arguments = {"name": record.name, **record.arguments()}
    for left_out in ("name", "work_group"):
        rest = {key: value for key, value in arguments.items() if key != left_out}
        with pytest.raises(NameError, match=f"'{left_out}' is not defined"):
            sources._template(name).render(**rest)


def test_templates_leave_no_argument_unused() -> None:
    files = template_files()
    texts: defaultdict[type, str] = defaultdict(str)
    for record in records():
        # Some records are of several templates.
        texts[type(record)] += files[record.file]
    for record in records():
        # An argument that several kernels share may be unused in one of them.
        bases = [base for base in type(record).__mro__[1:-1] if "arguments" in vars(base) and base is not programs.Parameters]
        shared = {argument for base in bases for argument in base.arguments(record)} - inspect.get_annotations(
            type(record)
        ).keys()
        text = texts[type(record)]
        assert all(argument in text for argument in record.arguments() if argument not in shared), record.template


def test_templates_name_no_vendor() -> None:
    for name, text in template_files().items():
        assert not any(vendor in text.lower() for vendor in ("nvidia", "intel", "amd ", "pocl", "__nv", "ptx")), name


def macros_of(name: str) -> tuple[set[str], set[str]]:
    """Return the macros that a file of ``cl/`` and what it includes need, and those that they define."""
    text = sources.text(f"cl/{name}")
    needed = set(re.findall(rf'^#ifndef (\w+)\n    #error "{re.escape(name)} needs \1: .*"\n#endif$', text, flags=re.MULTILINE))
    defined = set(re.findall(r"^ *#define (\w+)", text, flags=re.MULTILINE))
    for included in re.findall(r'^#include "(.*)"$', text, flags=re.MULTILINE):
        for here, there in zip((needed, defined), macros_of(included), strict=True):
            here |= there
    return needed, defined


@pytest.mark.parametrize("name", [path.removeprefix("cl/") for path in sources.paths("cl")])
def test_headers_refuse_to_do_without_the_macros_that_they_need(name: str) -> None:
    text = sources.text(f"cl/{name}")
    conditions = " ".join(re.findall(r"^ *#(?:el)?if (.*)$", text, flags=re.MULTILINE))
    asked = set(re.findall(r"\b[A-Z]\w*", re.sub(r"defined\(\w+\)", "", conditions)))
    needed, defined = macros_of(name)
    # A macro that is not defined counts as 0 otherwise.
    assert asked <= needed | defined
    queue = queue_on(next(iter(PLATFORMS)))
    if needed:
        with pytest.raises(cl.RuntimeError) as refused:
            programs.compile_source(queue.context, queue.device, sources.expand(f'#include "{name}"\n'))
        told = set(re.findall(r"needs (\w+): ", str(refused.value)))
        assert told == needed


def test_includes_are_put_in_place_once() -> None:
    text = sources.expand('#include "spmv.cl"\n#include "spmv.cl"\n#include "lanes_t.cl"\nint x;')
    assert "#include" not in text
    for name in ("spmv", "update", "lanes_t", "lanes"):
        assert text.count(f"// ---- cl/{name}.cl\n") == 1
    assert text.endswith("int x;")
    with pytest.raises(FileNotFoundError):
        sources.expand('#include "nowhere.cl"')


@dataclass(frozen=True)
class Probe(programs.Parameters):
    """A kernel of this test: any OpenCL C, which may refuse large work-groups."""

    template = "probe"

    body: str = "out[get_global_id(0)] = WORK_GROUP;"
    lanes: int = 1

    @property
    def name(self) -> str:
        return f"probe_wg{self.work_group}"

    @property
    def lane_width(self) -> int:
        return self.lanes

    def arguments(self) -> dict[str, object]:
        return {"work_group": self.work_group, "body": self.body}

    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group, lanes=lane_width) if work_group else None


def test_what_a_template_became_is_kept_until_its_text_or_that_of_one_it_uses_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(n: int) -> str:
        for loader in (sources.text, sources._template):
            loader.cache_clear()
        return sources.fill("kind/uses", {"name": "k", "n": n}).strip()

    def count_cached() -> int:
        return sum(path.is_file() for path in (tmp_path / "cache").iterdir())

    folder = tmp_path / "templates" / "kind"
    folder.mkdir(parents=True)
    (folder / "used.mako").write_text('<%def name="twice(n)">${2 * n}</%def>')
    (folder / "uses.mako").write_text('<%namespace name="used" file="kind/used"/>\\\n${name} ${used.twice(n)}')
    monkeypatch.setattr(sources, "_ROOT", tmp_path)
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path / "cache"))
    assert (fill(1), fill(2), fill(1)) == ("k 2", "k 4", "k 2")
    assert count_cached() == 2
    with monkeypatch.context() as patched:
        patched.setattr(sources, "_template", sources._text)  # which would fail
        assert sources.fill("kind/uses", {"n": 2, "name": "k"}).strip() == "k 4"
    (folder / "used.mako").write_text('<%def name="twice(n)">${3 * n}</%def>')
    assert fill(1) == "k 3"
    (folder / "uses.mako").write_text('<%namespace name="used" file="kind/used"/>\\\n${used.twice(n)}')
    assert fill(1) == "3"
    assert count_cached() == 4
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(b"damaged")
    assert fill(1) == "3"
    for used in (sources.text, sources._template):
        used.cache_clear()


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Put the template "probe" in place, and collect what is compiled."""
    text = "kernel __attribute__((reqd_work_group_size(${work_group}, 1, 1)))\nvoid ${name}(global int *out)\n{\n    ${body}\n}\n"
    compiled, compile_source = [], programs.compile_source
    monkeypatch.setattr(sources, "_text", lambda _: text)

    def counted(context: Any, device: Any, source: str, options: Any = ()) -> Any:
        compiled.append(source)
        return compile_source(context, device, source, options)

    monkeypatch.setattr(programs, "compile_source", counted)
    programs.clear()
    yield compiled
    programs.clear()


def run(queue: cl.CommandQueue, built: Built) -> np.ndarray:
    size = built.parameters.work_group
    out = cl.array.empty(queue, size, np.int32)
    cl.Kernel(built.program, built.parameters.name)(queue, (size,), (size,), out.data)
    return out.get()


def test_a_kernel_is_built_once(queue: cl.CommandQueue, probe: list[str]) -> None:
    with programs.recording() as outer, programs.recording() as inner:
        first = programs.build(queue.context, queue.device, Probe(8))
        again = programs.build(queue.context, queue.device, Probe(8))
    assert first is again
    assert outer == inner == [first, first]
    assert len(probe) == 1
    assert programs.build(queue.context, queue.device, Probe(4)) is not first
    assert len(probe) == 2
    assert outer == [first, first]
    assert first in list(programs.built())
    np.testing.assert_array_equal(run(queue, first), np.full(8, 8))
    assert first.preferred_multiple >= 1
    context = cl.Context([queue.device])
    assert programs.build(context, queue.device, Probe(8)) is not first
    assert len(probe) == 3


def test_kernels_that_are_kept_are_few(queue: cl.CommandQueue, probe: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Used least recently, used last, and one that is worked with stay or go as they should."""

    def build(work_group: int) -> Built:
        return programs.build(queue.context, queue.device, Probe(work_group))

    def there() -> list[int]:
        return sorted(program.parameters.work_group for program in programs.built())

    def worked_out() -> Built:
        return programs.worked_out(queue.context, queue.device, "used", lambda: build(1))

    monkeypatch.setattr(programs, "_KEPT", replace(programs._KEPT, kernels=4))
    held = build(8)
    for factor in (1, 2, 3, 4, 5):
        build(factor)
        worked_out()
    # A plan's is there, and what is used again and again, although it was asked for long ago.
    assert there() == [1, 4, 5, 8]
    assert build(8) is held
    assert len(probe) == 6
    build(2)
    assert len(probe) == 7
    del held
    for factor in (5, 6, 7, 9):
        build(factor)
        worked_out()
    assert there() == [1, 6, 7, 9]
    monkeypatch.setattr(programs, "_KEPT", replace(programs._KEPT, kernels=2))
    build(10)
    assert there() == [1, 10]


def test_kernels_of_plans_stay_and_others_are_let_go(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    context = cl.Context([queue.device])
    own = cl.CommandQueue(context)
    host = sp.random_array((300, 300), density=0.02, format="csr", dtype=np.float32, rng=np.random.default_rng(1))
    A, x = csr_array(host, queue=own), cl.array.to_device(own, np.ones(300, np.float32))
    plan = A.spmv_plan()

    def left() -> list[str]:
        gc.collect()
        return [program.parameters.name for key, program in programs._alive.items() if key[0] == context.int_ptr]

    _ = A @ x, A @ A, A + A, A.T.tocsr(), A.sum(axis=0), A[::2]
    del _
    of_all = left()
    free_memory(own)
    of_plan = left()
    assert 0 < len(of_plan) < len(of_all) - 5
    compiled: list[str] = []
    uncached = programs._create_uncached
    monkeypatch.setattr(programs, "_create_uncached", lambda of, source: (compiled.append(source), uncached(of, source))[1])
    with programs.recording() as asked:
        np.testing.assert_allclose((A @ x).get(), host @ np.ones(300, np.float32), rtol=1e-5)
        np.testing.assert_allclose((A @ A).get().toarray(), (host @ host).toarray(), rtol=1e-5)
    assert asked
    # Where PyOpenCL knows a driver's own cache to be sound, it is asked in place of the package's.
    assert has_src_build_cache(queue.device) or not compiled
    assert len(left()) > len(of_plan)
    del plan, A, asked
    free_memory(own)
    assert not left()


def test_a_kernel_that_spills_is_built_without_the_demand_of_a_size(
    queue: cl.CommandQueue, probe: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that helps; else it stays as it was."""
    hint = "-Dreqd_work_group_size=work_group_size_hint"
    for spilled, options in (([8, 0], (hint,)), ([8, 8], ()), ([0], ())):
        programs.clear()
        probe.clear()
        given = iter(spilled)
        monkeypatch.setattr(programs, "_measure_spill", lambda *_, given=given: next(given))
        built = programs.build(queue.context, queue.device, Probe(8))
        assert built.options == options
        assert len(probe) == len(spilled)
        np.testing.assert_array_equal(run(queue, built), np.full(8, 8))


def test_kernels_are_built_together(queue: cl.CommandQueue, probe: list[str]) -> None:
    first = programs.build(queue.context, queue.device, Probe(2))
    # A new one each time: what other processes saw refused is not compiled.
    refused = Probe(1, body=f"no OpenCL C {uuid.uuid4()};")
    filters = list(warnings.filters)
    made = [Probe(2), Probe(4), Probe(8), Probe(8), refused]
    programs.build_together(queue.context, queue.device, "some", lambda: made)
    assert warnings.filters == filters
    compiled = len(probe)
    assert sorted(source.split("probe_wg")[1][0] for source in probe if "probe_wg" in source) == ["1", "2", "4", "8"]
    programs.build_together(queue.context, queue.device, "some", lambda: pytest.fail("they were made before"))
    for record in made[:4]:
        built = programs.build(queue.context, queue.device, record)
        np.testing.assert_array_equal(run(queue, built), np.full(record.work_group, record.work_group))
    assert programs.build(queue.context, queue.device, Probe(2)) is first
    assert len(probe) == compiled
    with pytest.raises(BuildError):
        programs.build(queue.context, queue.device, refused)


def test_what_was_rendered_is_what_was_compiled(queue: cl.CommandQueue, probe: list[str]) -> None:
    built = programs.build(queue.context, queue.device, Probe(8))
    (compiled,) = probe
    # Behind the declarations that tests show PoCL.
    assert compiled.endswith(programs.render(built.parameters))


def test_smaller_work_group_where_the_driver_allows_less(
    queue: cl.CommandQueue, probe: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_work_group_limit", lambda *_: 5)
    built = programs.build(queue.context, queue.device, Probe(64))
    assert built.parameters.work_group == 5
    np.testing.assert_array_equal(run(queue, built), np.full(5, 5))
    assert programs.build(queue.context, queue.device, Probe(64)) is built  # remembered under what was asked
    # The third source is the empty kernel that asks whether the driver's word is to be taken.
    assert len([source for source in probe if "probe_wg" in source]) == 2


@pytest.mark.refusals
@pytest.mark.usefixtures("probe")
def test_smaller_work_group_where_the_compiler_refuses(queue: cl.CommandQueue) -> None:
    body = "\n#if WORK_GROUP > 16\n#error too large\n#endif\nout[get_global_id(0)] = WORK_GROUP;"
    built = programs.build(queue.context, queue.device, Probe(64, body))
    assert built.parameters.work_group == 16
    np.testing.assert_array_equal(run(queue, built), np.full(16, 16))


@pytest.mark.usefixtures("probe")
def test_smaller_lane_width_where_the_driver_makes_smaller_sub_groups(
    queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_sub_group_size", lambda *_: 4)
    assert programs.build(queue.context, queue.device, Probe(64, lanes=32)).parameters.lanes == 4
    monkeypatch.setattr(programs, "_sub_group_size", lambda *_: 0)
    assert programs.build(queue.context, queue.device, Probe(32, lanes=32)).parameters.lanes == 32  # not told: the probe's word


@pytest.mark.refusals
@pytest.mark.usefixtures("probe")
def test_a_failed_build_says_why_and_keeps_the_source(queue: cl.CommandQueue) -> None:
    record = Probe(8, "this_is_not_declared;")
    with pytest.raises(BuildError) as caught:
        programs.build(queue.context, queue.device, record)
    error = caught.value
    assert error.parameters == record
    assert "this_is_not_declared" in error.log
    assert error.source is not None
    assert error.source.read_text() == programs.render(record)
    for part in ("probe_wg8", repr(record), str(error.source), error.log):
        assert part in str(error)
    error.source.unlink()
    programs.build(queue.context, queue.device, Probe(8))  # nothing of it is left


@pytest.mark.refusals
@pytest.mark.usefixtures("probe")
def test_no_work_item_at_all_is_an_error(queue: cl.CommandQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_work_group_limit", lambda *_: 0)
    with pytest.raises(BuildError, match="allows 0 work-items"):
        programs.build(queue.context, queue.device, Probe(8))


def test_options_reach_the_compiler(queue: cl.CommandQueue) -> None:
    source = "kernel void probe(global int *out) { out[0] = VALUE; }"
    for value in (3, 4):
        program = programs.compile_source(queue.context, queue.device, source, (f"-DVALUE={value}",))
        out = cl.array.empty(queue, 1, np.int32)
        cl.Kernel(program, "probe")(queue, (1,), None, out.data)
        assert out.get()[0] == value


@pytest.fixture
def own_binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep binaries ourselves, in an empty folder, whatever the driver does."""
    monkeypatch.setenv("CLSPARSE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(programs, "has_src_build_cache", lambda _: False)
    return tmp_path


SOURCE = "kernel void probe(global int *out) { out[get_global_id(0)] = 7; }"


def value_of(queue: cl.CommandQueue) -> int:
    out = cl.array.empty(queue, 1, np.int32)
    cl.Kernel(programs.compile_source(queue.context, queue.device, SOURCE), "probe")(queue, (1,), None, out.data)
    return int(out.get()[0])


def test_binaries_come_back(queue: cl.CommandQueue, own_binaries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert value_of(queue) == 7
    assert len(list(own_binaries.iterdir())) == 1

    def refuse(*_: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(programs, "_create_uncached", refuse)
    assert value_of(queue) == 7


def test_a_binary_that_does_not_load_is_built_anew(
    queue: cl.CommandQueue, own_binaries: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert value_of(queue) == 7
    (entry,) = own_binaries.iterdir()
    cache.write(entry.name, b"of an older driver")

    class Refusing(cl.Program):
        """Refuses all binaries: a wrong one may end the process (quirk 32)."""

        def __init__(self, *arguments: Any) -> None:
            if len(arguments) == 3:
                raise cl.LogicError("clCreateProgramWithBinary failed: INVALID_BINARY")
            super().__init__(*arguments)

    monkeypatch.setattr(cl, "Program", Refusing)
    assert value_of(queue) == 7
    # Drivers find out at different times.
    assert re.search(r"cannot be used \(\w+Error: cl\w+ failed: INVALID_BINARY", caplog.text)
    assert len(cache.read(entry.name) or b"") > 20  # replaced


def test_the_binary_of_another_kernel_is_built_anew(
    queue: cl.CommandQueue, own_binaries: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = SOURCE.replace("probe", "other")
    programs.compile_source(queue.context, queue.device, other)
    (of_other,) = own_binaries.iterdir()
    assert value_of(queue) == 7
    (entry,) = set(own_binaries.iterdir()) - {of_other}
    # A copy of the file has another key's checksum; the same binary under the right one lacks the kernel.
    entry.write_bytes(of_other.read_bytes())
    assert value_of(queue) == 7
    assert "is damaged" in caplog.text
    cache.write(entry.name, cache.read(of_other.name) or b"")
    assert value_of(queue) == 7
    assert "cannot be used (ValueError: it has no kernel probe)" in caplog.text
    caplog.clear()
    assert value_of(queue) == 7
    assert not caplog.records


@pytest.mark.usefixtures("probe")
def test_recording_stops_at_its_end(queue: cl.CommandQueue) -> None:
    with programs.recording() as built, pytest.raises(ZeroDivisionError), programs.recording():
        raise ZeroDivisionError
    programs.build(queue.context, queue.device, Probe(8))
    assert built == []


def test_a_record_has_to_name_its_template_and_the_rest_follows_from_its_fields() -> None:
    with pytest.raises(TypeError, match="abstract method"):
        programs.Parameters(1)  # type: ignore[abstract]
    assert programs.Parameters.__abstractmethods__ == {"template"}
    record = Probe(8)
    assert (record.prelude, record.options, record.lane_width) == ("", (), 1)
    assert programs.Parameters.arguments(record) == {"work_group": 8, "body": record.body, "lanes": 1}
    assert [field.name for field in fields(programs.Parameters)] == ["work_group"]
