"""Thresholds: declared in records, and nowhere else compared with anything."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from platforms import PLATFORMS

import clsparse_py
from clsparse_py._decisions import thresholds
from clsparse_py._decisions.thresholds import number
from clsparse_py._device.device import describe
from clsparse_py._ground.records import dataclass

ROOT = Path(clsparse_py.__file__).parent
#: Limits of formats, types and OpenCL that are compared, by module and name, and why each is no threshold.
LIMITS = {
    "_ground.index_types.INT32_MAX": "of a type",
    "_tuner.checkpoint._MANY": "of a format: numbers in files of measurements",
    "_decisions.profiles.SCHEMA": "of a format: its version",
    "_decisions.profiles._WIDTH": "of a format: of a line",
    "_solvers.aggregation.aggregates._NONE": "of a type: what uint32 has no number for",
    "_distributed.mpi._LENGTH": "of a format: bytes of a note that all ranks exchange",
    "_build.driver_cache._ENTER": "of a format: LLVM's bitcode",
    "_build.refusals._WITNESSES": "of a format: processes that a kept refusal names",
    "_operations.spgemm.product_list._MADE_BYTES": "of a format: bytes of a product while a list is made",
    "_operations.spgemm.product_list._KEPT_BYTES": "of a format: bytes of a product of a list",
    "_run.launch._COUNTERS": "of memory that chains share: its size",
    "_device.device.RESERVED": "of OpenCL: local memory that drivers take themselves",
    "_operations.transpose.buckets.MAX_BITS": "of a type: counters of a work-group are bytes and words in local memory",
    "_operations.spgemm.masked_rows._MAX_COLUMNS": "of a type: bits of a key",
    "_primitives.partition._FEW_BITS": "of a type: rounds that a kernel is made with",
    "_primitives.partition._LEAST": "of a kernel: work-items that it needs",
    "_primitives.segments.FEW_REGISTERS": "of a kernel: elements of its smallest sort",
    "_solvers.aggregation.kernels.MAX_INVERTED": "of a kernel: rows that a work-group holds",
    "_arrays.bsr.kernels.MAX_ENTRIES": "of a kernel: values of a block that a work-item holds",
    "_primitives.segments._SHORTEST_BIN": "of a kernel: elements of its smallest bin",
    "_operations.spgemm.methods.dense._MIN_COLUMNS": "of a kernel: columns of its narrowest window",
    "_operations.spgemm.methods.hash._RANKED": "of a kernel: slots of its sort by counting",
    "_command.warmup._LONG_ROW": "of kernels: entries that none of them takes in one part",
    "_command.warmup._WIDEST_BAND": "of kernels: entries of the rows of a band",
    "_memory.pool._MIN_STEP_BITS": "of OpenCL: the alignment of buffers",
    "_memory.unordered._MOST_AHEAD": "of OpenCL: commands of a queue without order that runtimes keep (quirk 43)",
    "_memory.device_array._MAX_EVENTS": "of OpenCL: events that a command waits for",
    "_distributed.halo.MAX_EXCHANGES": "of memory: kinds of vectors, and pairs of divisions, whose buffers are kept",
    "_solvers.amg.coarsest._MAX_DENSE": "of memory: unknowns of a dense inverse",
    "_solvers.amg.coarsest._ROUNDING": "of a type: times the spacing of its numbers",
}


def _is_number(node: ast.AST) -> bool:
    """Return whether an expression is a number, or made of numbers alone."""
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _constants(tree: ast.Module) -> Iterator[str]:
    """Iterate over the upper-case names that a module binds to numbers."""
    for node in tree.body:
        targets, values = [], []
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            of_several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            targets, values = (target.elts, value.elts) if of_several else ([target], [value])  # type: ignore[attr-defined]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, values = [node.target], [node.value]
        for target, value in zip(targets, values, strict=True):
            if isinstance(target, ast.Name) and re.fullmatch("_*[A-Z][A-Z0-9_]*", target.id) and _is_number(value):
                yield target.id


def compared_numbers(modules: dict[str, ast.Module]) -> set[str]:
    """Return the numbers that stand in comparisons, as "MODULE.NAME"."""
    own = {module: {*_constants(tree)} for module, tree in modules.items()}
    result = set()
    for module, tree in modules.items():
        known = {name: f"{module}.{name}" for name in own[module]}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (of := (node.module or "").removeprefix("clsparse_py.")) in own:
                known |= {name.asname or name.name: f"{of}.{name.name}" for name in node.names if name.name in own[of]}
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                result |= {known[node.id] for node in ast.walk(node) if isinstance(node, ast.Name) and node.id in known}
    return result


def test_numbers_are_compared_in_records_alone() -> None:
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): ast.parse(path.read_text("utf-8"))
        for path in ROOT.rglob("*.py")
    }
    result = compared_numbers(modules)
    assert len(LIMITS) <= 30
    assert LIMITS.keys() <= result, "no longer compared"
    assert result - LIMITS.keys() == set()


def test_what_is_compared_is_found() -> None:
    modules = {
        "a": ast.parse(
            "_FEW, LARGE = 1 << 3, -2.5\nN: int = 4\nNAME = 'x'\n_UNUSED = 3\ndef f(n): return n < 2 * _FEW or N == n"
        ),
        "b": ast.parse("from clsparse_py.a import LARGE as MOST\ndef f(n, _FEW): return min(n, MOST) <= n"),
    }
    assert compared_numbers(modules) == {"a._FEW", "a.N", "a.LARGE"}


@dataclass(frozen=True, eq=False)
class Few(thresholds.Thresholds):
    operation = "made-up"

    lanes: int = number(8, "lanes", on_cores=1, least=1, most=64, power=True)
    share: float = number(0.5, "share of entries", most=1)


def test_thresholds_are_the_defaults_of_a_device_and_what_profiles_hold(decided_by: Any) -> None:
    gpu, cpu = (
        replace(describe(next(iter(PLATFORMS.values()))), name="x", platform="y", type=kind, max_work_group=64)
        for kind in ("gpu", "cpu")
    )
    assert (Few.of(gpu).items(), Few.of(cpu).items()) == ({"lanes": 8, "share": 0.5}, {"lanes": 1, "share": 0.5})
    assert Few.of(gpu) is Few.of(gpu)
    decided_by(gpu, {}, {"made-up": {"any": {"lanes": {"value": 4.0}}, "float32": {"share": {"value": 1}}}})
    assert Few.of(gpu, "float64").items() == {"lanes": 4, "share": 0.5}
    assert Few.of(gpu, "float32").items() == {"lanes": 4, "share": 1}
    assert Few.untuned(gpu, "float32").items() == {"lanes": 8, "share": 0.5}
    assert isinstance(Few.of(gpu).lanes, int)


@pytest.mark.parametrize(
    ("values", "message"),
    [({"lanes": 3}, "lanes: must be a power of two"), ({"lanes": 2.5}, "lanes: must be a whole number from 1 to 64"),
     ({"lanes": 0}, "lanes: must be a whole number"), ({"share": 1.5}, "share: must be a number from 0 to 1"),
     ({"shares": 1}, "shares is no threshold")],
)  # fmt: skip
def test_what_is_no_threshold(values: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        Few.from_values(values)


def test_every_record_of_thresholds_is_declared_in_full() -> None:
    for kind in thresholds.Thresholds.__subclasses__():
        for name, (default, declared) in kind._declared().items():
            assert declared.unit, name
            assert declared.evidence, name
            assert isinstance(declared.on_cores, int | None) or isinstance(default, float), name
        for on_cores in (False, True):
            kind.from_values(kind.defaults(on_cores=on_cores))
