"""Hashes of operations' kernels, by which a profile tells whether its choices were made for the present kernels.

A hash is that of texts: of the templates of an operation and of all files that these include, without comments. Rendered sources
are not hashed: a kernel has many, for parameters and devices, and rendering one of each takes a second. So a hash does not tell
the types and macros that Python writes before a template's text.
"""

from __future__ import annotations

import functools
import hashlib

from clsparse_py._build import sources

__all__ = ["OPERATIONS", "hash_of"]

#: How the paths of the templates of scans begin, and of segmented sorts and merges, which launch no other primitives.
_SCANS = ("primitives/partition", "primitives/scan_", "primitives/tile_sums")
_SORTS = ("primitives/merge_", "primitives/segment_classes", "primitives/segment_tiles", "primitives/sort_network")
#: How the paths of the templates begin that an operation's choices launch, by the operation's name in profiles; and the file of
#: ``cl/`` that `Arithmetic.prelude` includes.
_KERNELS = {
    "spmv": (
        "spmv/adaptive", "spmv/binning", "spmv/chunked", "spmv/combine", "spmv/features", "spmv/find_patterns", "spmv/merge",
        "spmv/narrow", "spmv/patterned", "spmv/streamed", "spmv/subvector", "spmv/vector_long", "cl/load_once", *_SCANS,
    ),
    "transpose": ("transpose/", "primitives/radix_", *_SCANS, *_SORTS),
    "segmented_sort": _SORTS,
    "spgemm": (
        "spgemm/analysis", "spgemm/compact", "spgemm/dense_", "spgemm/esc_", "spgemm/hash", "spgemm/masks", "spgemm/merge_",
        "spgemm/sort", "primitives/radix_", "cl/load_once", *_SCANS, *_SORTS,
    ),
    "masked": ("spgemm/masked.", "spgemm/masked_chunked.", "cl/load_once"),
}  # fmt: skip
#: Names of the operations whose kernels have a hash: those that can be tuned.
OPERATIONS = tuple(_KERNELS)


def list_sources(operation: str) -> set[str]:
    """Return the paths of the templates and files of ``cl/`` that an operation's kernels are made of; none if it is not tuned."""
    beginnings = _KERNELS.get(operation, ())
    paths = (*sources.paths("templates"), *sources.paths("cl"))
    return sources.with_included(path for path in paths if path.removeprefix("templates/").startswith(beginnings))


@functools.cache
def hash_of(operation: str) -> str:
    """Return the hash of the present kernels of an operation, 16 hexadecimal digits; it takes some milliseconds once."""
    texts = sorted(sources.strip_comments(sources.text(path)) for path in list_sources(operation))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
