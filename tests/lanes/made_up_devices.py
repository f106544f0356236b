"""Devices that are not there, and the kernels that they are given: what compilers are shown without a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from clsparse_py._build.programs import Parameters
from clsparse_py._command.catalogue import catalogue
from clsparse_py._device.device import Device, Portability
from clsparse_py._operations.spmv.choose import choose
from clsparse_py._operations.spmv.features import Features
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import SEMIRINGS

__all__ = ["CPU", "by_name", "gpu", "records", "variants"]

#: A matrix for each rule of the choice on GPUs.
MATRICES = (
    Features(n_rows=1000, n_cols=1000, nnz=5000, shortest=3, longest=5, variance=1, classes=()),
    Features(n_rows=1000, n_cols=1000, nnz=20_000, shortest=3, longest=50, variance=50, classes=()),
    Features(n_rows=1000, n_cols=1000, nnz=20_000, shortest=0, longest=900, variance=900, classes=()),
    Features(n_rows=1 << 20, n_cols=1 << 20, nnz=1 << 24, shortest=0, longest=10_000, variance=900, classes=()),
)


def gpu(name: str, portability: Portability, local_memory: int = 64 << 10) -> Device:
    """Return a GPU with the limits of drivers at their widest."""
    return Device(
        name=name,
        platform="made up",
        driver_version="",
        type="gpu",
        compute_units=16,
        max_work_group=1024,
        local_memory=local_memory,
        max_allocation=4 << 30,
        global_memory=16 << 30,
        preferred_multiple=portability.lane_width,
        sub_group_sizes=(),
        fp64=True,
        fp16=True,
        int64_atomics=True,
        float_atomics=False,
        unified_memory=True,
        aliases_host=True,
        forward_progress=True,
        svm=(),
        portability=portability,
    )


#: A CPU device whose lanes exchange values through local memory alone.
CPU = replace(gpu("cpu", Portability()), type="cpu")


def by_name(records: Iterable[Parameters]) -> dict[str, Parameters]:
    """Return records by their kernels' names."""
    return {record.name: record for record in records}


def records(on: Device) -> Iterator[Parameters]:
    """Yield every kernel as it is by default and as the rules for GPUs choose it."""
    for values in ("float32", "float64"):
        arithmetic = Arithmetic(values, values)
        yield from catalogue(on, arithmetic).values()
        for features in MATRICES:
            choice = choose(features, on, "auto", None).kernels[0][0]
            yield choice.record(on, arithmetic, scaled=False)


def variants(on: Device) -> Iterator[Parameters]:
    """Yield some kernels scaled, with wide indices, and with each semiring."""
    scaled = catalogue(on, Arithmetic("float64", "float64", "int64"), scaled=True)
    some = "adaptive", "merge", "vector_long", "spmv/subvector:binned", "spmv/combine", "spmv/combine:columns", "spmm/parts"
    yield from (scaled[name] for name in some)
    yield from (record for name, record in scaled.items() if name.startswith(("csr/", "spmv/binning", "spmv/features")))
    for semiring in SEMIRINGS:
        sampled = catalogue(on, Arithmetic("float64", "float32", semiring=semiring))
        yield from (sampled[name] for name in ("adaptive", "spmv/subvector:binned"))
