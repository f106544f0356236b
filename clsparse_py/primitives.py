"""Segmented and plain primitives on device arrays: scan, reduce, sort, merge.

The primitives take and return one-dimensional `pyopencl.array.Array` objects, and run on the queue of the first. Their serial
references are in `clsparse_py.primitives.reference`.
"""

from clsparse_py._primitives import reference as reference
from clsparse_py._primitives.radix_sort import radix_sort
from clsparse_py._primitives.reduce import reduce_by_key
from clsparse_py._primitives.scan import exclusive_scan, inclusive_scan
from clsparse_py._primitives.segmented import segmented_scan, segmented_sum
from clsparse_py._primitives.segmented_merge import segmented_merge
from clsparse_py._primitives.segmented_sort import segmented_sort

__all__ = [
    "exclusive_scan",
    "inclusive_scan",
    "radix_sort",
    "reduce_by_key",
    "segmented_merge",
    "segmented_scan",
    "segmented_sort",
    "segmented_sum",
]
