"""The catalogue of kernels by name, with their default parameters on a device."""

from __future__ import annotations

from dataclasses import replace

from clsparse_py import amg, graph, linalg
from clsparse_py._arrays import bsr, functions
from clsparse_py._build import sources
from clsparse_py._build.declaration import Parameters, list_examples
from clsparse_py._device.device import Device
from clsparse_py._matrix import given_semirings
from clsparse_py._matrix.loops import LOOPS, LoopKernel
from clsparse_py._matrix.product import ProductKernel
from clsparse_py._operations import sddmm as _sddmm
from clsparse_py._operations.construct import kronecker
from clsparse_py._operations.spgemm import product_list
from clsparse_py._operations.spmv import masked
from clsparse_py._operations.spmv.choose import KERNELS, default_choice
from clsparse_py._precision.arithmetic import Arithmetic

__all__ = ["catalogue", "template_names"]

#: Modules that are imported because they load all modules that register kernels.
_IMPORTED = _sddmm, amg, bsr, functions, given_semirings, graph, kronecker, linalg, masked, product_list


def template_names() -> tuple[str, ...]:
    """Return the names of all kernel templates, such as "spmv/subvector": those of template files, and those of loop kernels."""
    files = (path.removeprefix("templates/").removesuffix(".mako") for path in sources.paths("templates"))
    rows = dict.fromkeys(file.name.partition(":")[0] for file in LOOPS)
    return *(file for file in files if file != LoopKernel.file), *rows


def catalogue(device: Device, arithmetic: Arithmetic, *, scaled: bool = False) -> dict[str, Parameters]:
    """Return the default parameter record of every kernel on a device, by the kernel's names.

    Parameters
    ----------
    device : Device
        Its limits make the records legal.
    arithmetic : Arithmetic
        Value types, index type and semiring.
    scaled : bool
        Whether products have alpha and beta.

    Returns
    -------
    dict of str to Parameters
        By template ("spmv/subvector"), by template and variant where it makes several kernels ("spmv/binning:place"), and by the
        names that ``spmv_plan(kernel=...)`` takes ("subvector8"). Two names may stand for one record.
    """
    records: dict[str, Parameters] = {}
    for examples in list_examples():
        for variant, record in examples(device, arithmetic):
            # Keep the first kernel record of each template and variant: some classes also yield records of other templates.
            records.setdefault(f"{record.template}:{variant}" if variant else record.template, record)
    records = dict(sorted(records.items()))
    for name, record in tuple(records.items()):
        records.setdefault(name.partition(":")[0], record)
    records |= {name: default_choice(name, device).record(device, arithmetic, scaled=False) for name in KERNELS}
    return {name: _scale(record) for name, record in records.items()} if scaled else records


def _scale(record: Parameters) -> Parameters:
    """Return the parameter record of a kernel scaled by alpha and beta, or the given record if the kernel has no such form."""
    return replace(record, scaled=True) if isinstance(record, ProductKernel) and record.scalable else record
