"""The kernels of products with several columns by name, with the parameters that they take by default on a device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clsparse_py import programs
from clsparse_py._spmm.choose import Layout, Pattern, choose
from clsparse_py._spmm.kernels import Combine, Pack, Parts, Same
from clsparse_py.arithmetic import Arithmetic, name_of
from clsparse_py.device import Device

__all__ = ["of_spmm"]


def of_spmm(device: Device, arithmetic: Arithmetic, scaled: bool) -> dict[str, programs.Parameters]:
    """Return the records of all SpMM kernels."""
    x = name_of(np.dtype(arithmetic.x))
    parts = {
        f"spmm/parts:{columns}": Parts.of(
            choose(device, arithmetic, columns, Pattern(1, 1, 1), layout)[0], device, arithmetic, scaled
        )
        for columns, layout in ((2, Layout(False, 1)), (3, Layout(True, 1)), (4, Layout(True, 4)), (128, Layout(True, 16)))
    }
    parts["spmm/parts:rows"] = replace(parts["spmm/parts:128"], staged=False, rows=1)
    parts["spmm/parts:together"] = replace(parts["spmm/parts:rows"], rows=3, exact=True)
    return {
        "spmm/same": Same(min(256, device.max_work_group), arithmetic.index),
        "spmm/combine": Combine.legal(device, arithmetic, scaled, 32),
        "spmm/pack": Pack.legal(device, x, 32),
        "spmm/parts": parts["spmm/parts:4"],
        **parts,
    }
