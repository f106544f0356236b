"""Every kernel by name, with the parameters that it takes by default on a device."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from clsparse_py import programs, sources
from clsparse_py._sddmm import Sampled, SampledByTeams, vector_items
from clsparse_py._spgemm.catalogue import of_spgemm
from clsparse_py._spmm.catalogue import of_spmm
from clsparse_py._spmv.binning import Binning, ScanCounts
from clsparse_py._spmv.choose import KERNELS, choose
from clsparse_py._spmv.features import Features
from clsparse_py._spmv.kernels import Adaptive, Chunked, Combine, CountFeatures, Narrow, Streamed, Subvector, TotalFeatures
from clsparse_py._spmv.masked import MaskedRows
from clsparse_py._transpose import buckets
from clsparse_py._transpose.bucket_chunks import BucketFinish, Nearness
from clsparse_py._transpose.kernels import AtOnce, Count, Gather, GatherChunked, Insert, Order, Sample, Unpack, tile
from clsparse_py.aggregation import kernels as aggregation
from clsparse_py.arithmetic import Arithmetic
from clsparse_py.bsr import kernels as bsr
from clsparse_py.canonical import Begins, Compact, Nonzeros
from clsparse_py.construct.blocks import BlockAlone, BlockEntries, BlockPair, BlockRows
from clsparse_py.construct.diagonals import Diagonals
from clsparse_py.construct.kronecker import Kron, KronPointers
from clsparse_py.construct.tiles import work_group_of
from clsparse_py.construct.triangle import Triangle
from clsparse_py.convert import Convert
from clsparse_py.coordinates import EntryRows, EntryRowsChunked, Range, Regroup
from clsparse_py.dense_entries import Entries
from clsparse_py.device import Device
from clsparse_py.elementwise.comparison import Complement
from clsparse_py.elementwise.dense import AtEntries, DensePair, Outer
from clsparse_py.elementwise.operators import UFUNCS, UNARY
from clsparse_py.elementwise.union_kernels import Union, UnionAtOnce, UnionCuts, UnionMarks, UnionWrite
from clsparse_py.elementwise.values import Dense, Scatter, Values
from clsparse_py.given_semirings import SemiringCheck
from clsparse_py.graph.kernels import Components, Level, Orient
from clsparse_py.indexing import kernels as indexing
from clsparse_py.krylov import (
    basis,
    bicgstab,
    cg,
    lsmr,
    lsqr,
    minres,
    multigrid,
    one_reduction,
    panel,
    polynomials,
    radius,
    scaling,
)
from clsparse_py.krylov.sweep import Sweep
from clsparse_py.krylov.together import Iterations
from clsparse_py.primitives.addition import sum_dtype
from clsparse_py.primitives.arguments import CheckPointers
from clsparse_py.primitives.merge_rounds import MergeChunks, MergeSplits, MergeTiles
from clsparse_py.primitives.partition import Partition
from clsparse_py.primitives.permute import AddAt, Permute
from clsparse_py.primitives.radix_kernels import (
    RadixChunkCount,
    RadixChunkScatter,
    RadixChunkStarts,
    RadixCount,
    RadixScatter,
    RadixStarts,
)
from clsparse_py.primitives.radix_sort import Shape as RadixShape
from clsparse_py.primitives.scan import ScanChunks, ScanTiles
from clsparse_py.primitives.segment_classes import SegmentClasses, SegmentTiles
from clsparse_py.primitives.segmented import (
    AddPartials,
    CutSegments,
    SegmentedChunks,
    SegmentedTails,
    SegmentedTiles,
    SegmentSums,
)
from clsparse_py.primitives.segmented_merge import SORT_ROUNDS, MergePairs, MergeUnsorted
from clsparse_py.primitives.segmented_sort import MergeSerial, SortNetwork
from clsparse_py.primitives.segments import NEVER, Elements, Runs, Shape
from clsparse_py.reductions.extremes import ExtremeColumns, ExtremeOfAll, ExtremePlaces, RowExtremes
from clsparse_py.reductions.sums import Diagonal
from clsparse_py.row_order import RowBegins, RowOrder
from clsparse_py.structure import Check
from clsparse_py.triangular.kernels import Factor, Levels, Solve

__all__ = ["catalogue", "template_names"]

# A kernel that is named gets its default shape for every matrix.
_ANY_MATRIX = Features(n_rows=1, n_cols=1, nnz=1, shortest=1, longest=1, variance=0.0, classes=(0, 1))


def template_names() -> tuple[str, ...]:
    """Return the names of all templates, such as "spmv/subvector", from the files themselves."""
    return tuple(path.removeprefix("templates/").removesuffix(".mako") for path in sources.paths("templates"))


def catalogue(device: Device, arithmetic: Arithmetic, *, scaled: bool = False) -> dict[str, programs.Parameters]:
    """Return the default parameter record of every kernel on a device.

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
    choices = {name: choose(_ANY_MATRIX, device, "auto", name).kernels[0][0] for name in KERNELS}
    by_name: dict[str, programs.Parameters] = {name: each.record(device, arithmetic, scaled) for name, each in choices.items()}
    binned = Subvector.legal(device, arithmetic, scaled, lanes=128, work_group=256, unroll=2, binned=True)
    narrow = cast("Streamed", by_name["narrow"])
    group, index = min(128, device.max_work_group), arithmetic.index
    found: dict[str, programs.Parameters] = {
        "csr/check": Check(group, index),
        "csr/convert": Convert(min(64, device.max_work_group), arithmetic.a, arithmetic.result.name),
        **of_spmm(device, arithmetic, scaled),
        "spmv/adaptive": by_name["adaptive"],
        **{
            f"spmv/adaptive:{parts}": Adaptive.legal(device, arithmetic, scaled, 256, 2, parts)
            for parts in ("staged", "rests", "even")
        },
        "spmv/binning": Binning(group, index, "histogram"),
        **{f"spmv/binning:{step}": Binning(group, index, step) for step in ("histogram", "count", "place")},
        "primitives/partition": Partition(min(64, device.max_work_group), index),
        "spmv/chunked": by_name["chunked"],
        **_of_chunks(Chunked.legal(device, arithmetic, scaled, 1)),
        "spmv/combine": Combine.legal(device, arithmetic, scaled),
        "spmv/combine:few": Combine.legal(device, arithmetic, scaled, lanes=4),
        "spmv/combine:many": Combine.legal(device, arithmetic, scaled, 256, 256),
        "spmv/features": CountFeatures(1 if device.lanes_are_loops else group, index),
        "spmv/features_total": TotalFeatures(group, index),
        "semirings/check": SemiringCheck(1, arithmetic),
        **_of_sampled(device, arithmetic),
        "spmv/masked_rows": MaskedRows.legal(device, arithmetic, 8),
        "spmv/merge": by_name["merge"],
        "spmv/narrow": Narrow(min(256, device.max_work_group), index),
        "spmv/streamed": narrow.wide,
        "spmv/streamed:narrow": narrow,
        "spmv/vector_long": by_name["vector_long"],
        "spmv/scan_counts": ScanCounts(group, index),
        "spmv/subvector": by_name["subvector8"],
        "spmv/subvector:binned": binned,
        **_of_sums(device, arithmetic),
        **_of_segments(device, arithmetic),
        **_of_radix_sort(device, arithmetic),
        **_of_transposition(device, arithmetic),
        **_of_canonical_format(device, arithmetic),
        **_of_elementwise(device, arithmetic),
        **_of_construction(device, arithmetic),
        **_of_indexing(device, arithmetic),
        **_of_methods(device, arithmetic),
        **_of_graphs(device, arithmetic),
        **_of_aggregation(device, arithmetic),
        **_of_blocks(device, arithmetic),
        **_of_triangles(device, arithmetic),
        **of_spgemm(device, arithmetic),
        **by_name,
    }
    return found


def _of_chunks(legal: Chunked) -> dict[str, programs.Parameters]:
    """Return the records of long chunks of rows, as plans take them by the lengths of rows."""
    found: dict[str, programs.Parameters] = {}
    for by, record in (("", legal), ("_sums", replace(legal, vectors="none"))):
        for which, each in (("_empty", record), ("_full", replace(record, empty=False))):
            found[f"spmv/chunked:{(by + which)[1:]}"] = each
            if record.vectors != "uneven":  # such rows keep their columns as they are
                found[f"spmv/chunked:{(by + which)[1:]}_narrow"] = replace(each, narrow=True)
    return found


def _of_sampled(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of sampled products; teams take no complex numbers, and stand with others then."""
    found: dict[str, programs.Parameters] = {
        "spmm/sddmm": Sampled.legal(device, arithmetic, 64),
        "spmm/sddmm:aligned": Sampled.legal(device, arithmetic, 64, "aligned"),
        "spmm/sddmm:vectors": Sampled.legal(device, arithmetic, 64, "vectors"),
    }
    for each in (arithmetic, Arithmetic("float32", "float32", arithmetic.index)):
        for way, by_rows in (("", False), (":rows", True)):
            record = SampledByTeams.of(device, each, 4 * vector_items(device, each.result), by_rows=by_rows)
            if record is not None:
                found.setdefault(f"spmm/sddmm_teams{way}", record)
    return found


def _of_sums(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of scans and of kernels built on scans; all add up values of the arithmetic's result type."""
    dtype, index, serial = arithmetic.result, arithmetic.index, device.portability.at_most(1)
    group = min(128, device.max_work_group)
    types = dtype.name, sum_dtype(dtype).name
    tiles = ScanTiles.legal(device, *types, inclusive=False)
    runs = replace(ScanTiles.legal(device, index, index, inclusive=True, runs=True), carried=True)
    by_key = ScanTiles.legal(device, tiles.total, tiles.total, inclusive=True, by_key=True)
    chunked = SegmentedChunks(1, *types, serial, index, "sum", True)
    segmented = SegmentedTiles.legal(device, *types, index, inclusive=True)
    summing = SegmentSums.legal(device, *types, index, whole=False)
    return {
        "primitives/add_partials": AddPartials.of(summing),
        "primitives/check_pointers": CheckPointers(group, index, False),
        "primitives/check_pointers:adjacent": CheckPointers(group, index, True),
        "primitives/cut_segments": CutSegments(segmented.work_group, index),
        "primitives/scan_chunks": ScanChunks(1, *types, serial, False, "scan", False),
        "primitives/scan_chunks:sums": ScanChunks(1, *types, serial, False, "sums", False),
        "primitives/scan_chunks:runs": ScanChunks(1, index, index, serial, True, "scan", True),
        "primitives/scan_tiles": tiles,
        "primitives/scan_tiles:carried": replace(tiles, carried=True),
        "primitives/scan_tiles:adds": replace(tiles, carried=True, adds=True),
        "primitives/scan_tiles:runs": runs,
        "primitives/scan_tiles:by_key": by_key,
        "primitives/segmented_chunks": chunked,
        **{f"primitives/segmented_chunks:{step}": replace(chunked, step=step) for step in ("add", "tails", "scan")},
        "primitives/segmented_tails": SegmentedTails(segmented.work_group, *types, segmented.portability, index),
        "primitives/segmented_tiles": segmented,
        "primitives/segmented_tiles:exclusive": replace(segmented, inclusive=False),
        "primitives/segment_sums": summing,
        "primitives/segment_sums:whole": SegmentSums.legal(device, *types, index, whole=True),
        "primitives/segment_sums:maximum": replace(summing, operation="maximum"),
        "primitives/segmented_chunks:maximum": replace(chunked, operation="maximum"),
        "primitives/tile_sums": tiles.sums,
        "primitives/tile_sums:runs": runs.sums,
        "primitives/tile_sums:by_key": by_key.sums,
    }


def _of_segments(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of segmented sort and merge: they move values of the arithmetic's result with keys of its index type."""
    index, elements = arithmetic.index, Elements(arithmetic.index, arithmetic.result.itemsize)
    shape, group = Shape.lanes(256, 512, 16).legal(device, elements), min(64, device.max_work_group)
    made, given = Runs(False, shape.tile), Runs(True, shape.tile, SORT_ROUNDS)
    chunk = Runs(False, Shape.chunks(1).tile)
    chunks = replace(chunk, given=True, sort_rounds=NEVER)
    short, medium = SortNetwork.of_segments(device, shape, index, elements)
    bins = shape.bins, short.teams + medium.teams, len(short.bins)
    classes = SegmentClasses(min(128, device.max_work_group), index, made, "count", *bins)
    serial = MergeSerial(1, index, chunk, elements, "segments", False)
    tiles = SortNetwork.of_tiles(device, shape, index, elements, made)
    merge = MergeTiles.legal(device, index, made, elements, shape.merge_group)
    return {
        "primitives/merge_chunks": MergeChunks(1, index, chunk, elements),
        "primitives/merge_chunks:given": MergeChunks(1, index, chunks, elements),
        "primitives/merge_pairs": MergePairs(group, index, given, elements),
        "primitives/merge_serial": serial,
        "primitives/merge_serial:tiles": replace(serial, ranges="tiles"),
        "primitives/merge_serial:given": replace(serial, runs=chunks, given_runs=True),
        "primitives/merge_splits": MergeSplits(group, index, made, elements),
        "primitives/merge_splits:given": MergeSplits(group, index, given, elements),
        "primitives/merge_tiles": merge,
        "primitives/merge_tiles:given": MergeTiles.legal(device, index, given, elements, shape.merge_group),
        "primitives/merge_unsorted": MergeUnsorted(min(128, device.max_work_group), index, given, elements),
        "primitives/segment_classes": classes,
        "primitives/segment_classes:place": replace(classes, step="place"),
        "primitives/segment_classes:given": replace(classes, runs=given),
        "primitives/segment_classes:given_place": replace(classes, runs=given, step="place"),
        "primitives/segment_tiles": SegmentTiles(group, index, made),
        "primitives/segment_tiles:given": SegmentTiles(group, index, given),
        "primitives/sort_network": medium,
        "primitives/sort_network:short": short,
        "primitives/sort_network:tiles": tiles,
        "primitives/sort_network:given": replace(tiles, runs=given),
    }


def _of_radix_sort(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of radix sort: it moves values of the arithmetic's result, and sorts by indices."""
    index, moved = arithmetic.index, arithmetic.result.itemsize
    widest = RadixShape(False, min(512, device.max_work_group), 16, 10, 0)
    tiles = widest.legal(device, index, moved, pointers=True, word_bytes=4)
    tiles = tiles.narrowed(tiles.bits, 1 << 30, moved)
    made = RadixScatter(
        tiles.work_group, device.portability, index, index, "uint32", bits=tiles.bits, items=tiles.items, source="rows",
        first=True, last=False, value_bytes=moved, positions=False, pointers=True,
    )  # fmt: skip
    words = replace(made, word="uint32", result=index, source="words", first=False, last=True)
    rows = RadixChunkScatter(
        1, index, index, index, source="rows", last=True, value_bytes=moved, positions=False, pointers=False, far=True
    )
    return {
        "primitives/radix_count": RadixCount(tiles.work_group, index, index, tiles.bits, made.tile, 1),
        "primitives/radix_count:few": RadixCount(tiles.work_group, index, "uint32", tiles.bits, made.tile, 1, few=True),
        "primitives/radix_count:together": RadixCount(tiles.work_group, index, "uint32", tiles.bits, made.tile, 4),
        "primitives/radix_starts": RadixStarts(
            1 if device.lanes_are_loops else min(128, device.max_work_group), device.portability, index, tiles.bits
        ),
        "primitives/radix_scatter": made,
        "primitives/radix_scatter:few": replace(words, few=True),
        "primitives/radix_scatter:items": replace(made, source="items", result=index, last=True),
        "primitives/radix_scatter:listed": replace(
            made, source="positions", result=index, last=True, value_bytes=0, pointers=False
        ),
        "primitives/radix_scatter:positions": replace(made, value_bytes=np.dtype(index).itemsize, positions=True),
        "primitives/radix_scatter:words": words,
        "primitives/radix_chunk_count": RadixChunkCount(1, index, index),
        "primitives/radix_chunk_starts": RadixChunkStarts(1, index, "sum"),
        "primitives/radix_chunk_starts:scan": RadixChunkStarts(1, index, "scan"),
        "primitives/radix_chunk_scatter": rows,
        "primitives/radix_chunk_scatter:highest": replace(rows, last=False, result="uint32", highest=True, far=False),
        "primitives/radix_chunk_scatter:listed": replace(rows, source="positions", value_bytes=0),
        "primitives/radix_chunk_scatter:words": replace(rows, source="words", word="uint32", pointers=True),
    }


def _of_transposition(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of SpTRANS: they move values of A."""
    group, index, item = min(256, device.max_work_group), arithmetic.index, np.dtype(arithmetic.a).itemsize
    tile_group, items = tile(device)
    return {
        "transpose/at_once": AtOnce.legal(device, index, item),
        "transpose/at_once:positions": AtOnce.legal(device, index, 0),
        "transpose/count": Count(group, index),
        "transpose/gather": Gather(tile_group, index, item, items),
        "transpose/gather:positions": Gather(tile_group, index, 0, items),
        "transpose/gather_chunked": GatherChunked(1, index, item),
        "transpose/gather_chunked:positions": GatherChunked(1, index, 0),
        "transpose/insert": Insert(tile_group, index, items),
        "transpose/order": Order(*tile(device, entry_bytes=12)[:1], index, item, tile(device, items=8, entry_bytes=12)[1]),
        "transpose/unpack": Unpack(group, index, item),
        "primitives/permute": Permute(group, index, item),
        "primitives/add_at": AddAt(group, index, arithmetic.result.name),
        "transpose/bucket_finish": BucketFinish(1, index, item, "uint32"),
        "transpose/bucket_finish:wide": BucketFinish(1, index, item, "uint64"),
        "transpose/nearness": Nearness(1, index),
        "transpose/sample": Sample(group, index),
        **_of_buckets(device, index, item),
    }


def _of_buckets(device: Device, index: str, item: int) -> dict[str, programs.Parameters]:
    """Return the records of SpTRANS by buckets: in two steps of values, in one of positions."""
    # Where lanes have no instruction that finds equal digits, they share counters by eight: fewer entries fit.
    many = device.portability.match == "ptx" and device.max_work_group >= 512
    group, items, bits = (512, 8, 9) if many else (min(64, device.max_work_group), 4, 6)
    shape = buckets.Shape(group, items, group, items, bits)
    two = buckets.kernels_of(device, index, item, (1000, 1 << 2 * shape.bits), shape)
    one = buckets.kernels_of(device, index, 0, (1000, 1 << shape.bits), shape)
    named = {each.template: each for each in two.all}
    return {**named, "transpose/bucket_move:last": one.move}


def _of_canonical_format(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of kernels that sort rows of A, and leave out duplicates and zeros."""
    group, index = min(128, device.max_work_group), arithmetic.index
    return {
        "canonical/begins": Begins(group, index, "columns"),
        "canonical/begins:rows": Begins(group, index, "rows"),
        "canonical/compact": Compact(group, index, 0),
        "canonical/compact:values": Compact(group, index, np.dtype(arithmetic.a).itemsize),
        "canonical/entries": Entries(group, index, arithmetic.a, "mark"),
        "canonical/entries:place": Entries(group, index, arithmetic.a, "place"),
        "canonical/nonzeros": Nonzeros(group, arithmetic.a),
        "canonical/order": RowOrder(group, index),
        "canonical/range": Range(group, index),
        "canonical/regroup": Regroup(group, index, index),
        "canonical/row_begins": RowBegins(group, index),
        "canonical/rows": EntryRows.legal(device, index, True),
        "canonical/rows:many": EntryRows.legal(device, index, False),
        "canonical/rows:copies": EntryRows.legal(device, index, True, value_bytes=arithmetic.result.itemsize),
        "canonical/rows_chunked": EntryRowsChunked(1, index),
        "canonical/rows_chunked:copies": EntryRowsChunked(1, index, value_bytes=arithmetic.result.itemsize),
    }


def _of_elementwise(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of operators that apply entry by entry, and of diagonals."""
    group, index, a = min(128, device.max_work_group), arithmetic.index, arithmetic.a
    types = index, a, arithmetic.x, "plus"
    marks, of_few = (UnionMarks.legal(device, *types, few=few) for few in (False, True))
    extremes = {"dtype": "uint8" if a == "bool" else a, "operation": "maximum"}
    return {
        "elementwise/at_entries": AtEntries(group, index, a, arithmetic.x, "multiply"),
        "elementwise/outer": Outer(group, index, a, arithmetic.x, "multiply", index, True),
        "elementwise/outer:column": Outer(group, index, a, arithmetic.x, "multiply", "int64", False),
        "reductions/row_extremes": RowExtremes(group, index, **extremes),
        "reductions/extreme_columns": ExtremeColumns(group, index, **extremes, of_all=False),
        "reductions/extreme_columns:of_all": ExtremeColumns(group, index, **extremes, of_all=True),
        "reductions/extreme_places": ExtremePlaces(group, index, **extremes),
        "reductions/extreme_of_all": ExtremeOfAll(1, index),
        "elementwise/complement": Complement(group, index, index),
        "elementwise/dense_pair": DensePair(group, a, a, "bool", "lt"),
        "elementwise/dense": Dense(group, a, a, a, "positive"),
        "elementwise/scatter": Scatter(group, index, a, a, "plus"),
        "elementwise/union": Union(1, *types, "count"),
        "elementwise/union:fill": Union(1, *types, "fill"),
        "elementwise/union_at_once": UnionAtOnce.legal(device, *types, work_group=512, span=8),
        "elementwise/union_cuts": UnionCuts(min(64, device.max_work_group), index),
        "elementwise/union_marks": marks,
        "elementwise/union_marks:few": of_few,
        "elementwise/union_write": UnionWrite.of(marks),
        "elementwise/union_write:few": UnionWrite.of(of_few),
        "reductions/diagonal": Diagonal(group, index, a),
        "elementwise/values": Values(group, a, a, a, "multiply"),
        "elementwise/values:power": Values(group, a, *2 * (a if a != "bool" else "int8",), "power"),
        "elementwise/values:positive": Values(group, a, a, a, "positive"),
        **{f"elementwise/values:{name}": Values(group, a, a, a, name) for name in UFUNCS if UNARY[name].expression(np.dtype(a))},
        "elementwise/values:absolute": Values(group, a, a, np.abs(np.zeros(0, a)).dtype.name, "absolute"),
    }


def _of_construction(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of kernels that make matrices from others, and from diagonals."""
    group, tile, index = min(128, device.max_work_group), work_group_of(device), arithmetic.index
    kron = Kron(tile, index, arithmetic.a, arithmetic.x, False)
    return {
        "construct/block_alone": BlockAlone(group, index, arithmetic.result.itemsize),
        "construct/block_pair": BlockPair(group, index),
        "construct/block_entries": BlockEntries(tile, index, arithmetic.result.itemsize),
        "construct/block_rows": BlockRows(group, index),
        "construct/diagonals": Diagonals(group, index, arithmetic.result.itemsize),
        "construct/kron": kron,
        "construct/kron:coordinates": replace(kron, coordinates=True),
        "construct/kron_pointers": KronPointers(group, index),
        "construct/triangle": Triangle(tile, index, False),
        "construct/triangle:upper": Triangle(tile, index, True),
    }


def _of_indexing(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of kernels that read rows, columns and places of A, and set its values."""
    group, index, item = min(128, device.max_work_group), arithmetic.index, np.dtype(arithmetic.a).itemsize
    forms = [(phase, listed) for phase in ("count", "fill") for listed in (False, True)]
    columns = {
        f"{record.template}:{phase}{'_listed' if listed else ''}": record(size, index, item, phase, listed, index)
        for record, size in ((indexing.Columns, group), (indexing.ColumnsChunked, 1))
        for phase, listed in forms
    }
    return {
        "indexing/columns": columns["indexing/columns:fill"],
        "indexing/columns_chunked": columns["indexing/columns_chunked:fill"],
        **columns,
        **{
            f"indexing/columns:{phase}_mapped": indexing.Columns(group, index, item, phase, False, index, mapped=True)
            for phase in ("count", "fill")
        },
        "indexing/targets": indexing.Targets(group, index, "int64"),
        "indexing/insert": indexing.Insert(group, index, item, "new"),
        **{f"indexing/insert:{phase}": indexing.Insert(group, index, item, phase) for phase in ("new", "entries", "rows")},
        "indexing/keys": indexing.Keys(group, index),
        "indexing/lengths": indexing.Lengths(group, index, "int64"),
        "indexing/locate": indexing.Locate(group, index, item),
        "indexing/marked": indexing.Marked(group, index),
        "indexing/masked": indexing.Masked(group, index),
        "indexing/masked_pointers": indexing.MaskedPointers(group, index),
        "indexing/offsets": indexing.Offsets(group, index),
        "indexing/points": indexing.Points(group, index, arithmetic.a),
        "indexing/positions": indexing.Positions(group, index, "int64"),
        "indexing/rows": indexing.Rows.legal(device, index, item, "int64", True),
        "indexing/rows:masked": indexing.Rows.legal(device, index, item, "", True),
        "indexing/rows_at_once": indexing.RowsAtOnce.legal(device, index, item, "int64"),
        "indexing/rows_chunked": indexing.RowsChunked(1, index, item, "int64"),
        "indexing/rows_chunked:masked": indexing.RowsChunked(1, index, item, ""),
    }


def _of_methods(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of the passes of Krylov methods, over vectors of the arithmetic's result, or float32 for integers."""
    dtype = arithmetic.result.name if arithmetic.result.kind in "fc" else "float32"
    methods = basis, bicgstab, cg, lsmr, lsqr, minres, multigrid, one_reduction, panel, polynomials, radius, scaling
    found: dict[str, programs.Parameters] = {
        f"vectors/sweep:{each.name}": Sweep.legal(device, dtype, each, of.LAYOUT) for of in methods for each in of.PASSES
    }
    for of in (bicgstab, cg):
        for each in of.SCRIPTS:
            indices = (("A", arithmetic.index), ("M", ""))[: len(each.matrices)]
            found[f"vectors/iterations:{each.name}"] = Iterations.legal(device, dtype, each, of.LAYOUT, indices)
    return {
        "vectors/sweep": found["vectors/sweep:cg_residual"],
        "vectors/iterations": found["vectors/iterations:cg"],
        **found,
    }


def _of_aggregation(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of smoothed aggregation, for values of the arithmetic's result, or float32 for integers."""
    group, tile, index = min(128, device.max_work_group), work_group_of(device), arithmetic.index
    dtype = arithmetic.result.name if arithmetic.result.kind in "fc" else "float32"
    advance = aggregation.Advance.legal(device, index, "first", 7.0)
    prolongator = aggregation.Prolongator(tile, index, dtype, "make", False)
    return {
        "aggregation/advance": advance,
        "aggregation/advance:step": replace(advance, phase="step"),
        "aggregation/advance:many_lanes": aggregation.Advance.legal(device, index, "step", 100.0),
        "aggregation/begin": aggregation.Begin(group, index),
        "aggregation/choose": aggregation.Choose(group, index, False),
        "aggregation/choose:serial": aggregation.Choose(1, index, True),
        "aggregation/dense_inverse": aggregation.DenseInverse(1, index, dtype),
        "aggregation/dense_inverse:group": aggregation.DenseInverse(group, index, dtype),
        "aggregation/inverse": aggregation.Inverse(group, index, dtype),
        "aggregation/join": aggregation.Join(group, index, True),
        "aggregation/join:far": aggregation.Join(group, index, False),
        "aggregation/nodes": aggregation.Nodes(group, index, dtype),
        "aggregation/norms": aggregation.Norms(1, index, dtype),
        "aggregation/orthonormal": aggregation.Orthonormal(min(64, group), index, dtype),
        "aggregation/prolongator": prolongator,
        **{f"aggregation/prolongator:{phase}": replace(prolongator, phase=phase) for phase in ("pack", "values")},
        "aggregation/prolongator:make-room": aggregation.Prolongator(min(64, tile), index, dtype, "make", False, 8),
        "aggregation/prolongator:values-room": aggregation.Prolongator(min(64, tile), index, dtype, "values", False, 8),
        "aggregation/prolongator:make-adjacent": aggregation.Prolongator(1, index, dtype, "make", True),
        "aggregation/prolongator:pack-adjacent": aggregation.Prolongator(1, index, dtype, "pack", True),
        "aggregation/roots": aggregation.Roots(group, index),
        "aggregation/smoothing": aggregation.Smoothing(tile, index, dtype),
        "aggregation/strength": aggregation.Strength(tile, index, dtype),
        "aggregation/tentative": aggregation.Tentative(group, index, dtype),
        "aggregation/tentative:normed": aggregation.Tentative(1, index, dtype, normed=True),
    }


def _of_blocks(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of matrices of blocks, of the usual addition and multiplication."""
    usual = replace(arithmetic, semiring="plus_times")
    group, index, dtype, portability = (
        min(64, device.max_work_group),
        arithmetic.index,
        arithmetic.a,
        device.portability.at_most(1),
    )
    return {
        "bsr/columns": bsr.Columns.legal(device, usual, 3, 3, 8, adjacent=True),
        "bsr/columns:strided": bsr.Columns.legal(device, usual, 3, 3, 8, adjacent=False),
        "bsr/from_csr": bsr.FromCsr(group, index, dtype, "fill"),
        "bsr/from_csr:count": bsr.FromCsr(group, index, dtype, "count"),
        **{f"bsr/gather:{way}": bsr.Gather(group, index, dtype, way, False) for way in ("moved", "transposed", "summed")},
        **{f"bsr/gather:{way}_entries": bsr.Gather(group, index, dtype, way, True) for way in ("moved", "transposed")},
        "bsr/gather": bsr.Gather(group, index, dtype, "moved", False),
        "bsr/multiply": bsr.Multiply.legal(device, usual, 3, 3, 3, 5.0),
        "bsr/nonzero": bsr.Nonzero(group, index, dtype),
        "bsr/product": bsr.Product.legal(device, usual, 3, 3, 4),
        "bsr/product_chunked": bsr.ProductChunked(1, usual, portability, 3, 3),
        "bsr/to_csr": bsr.ToCsr(group, index, dtype, "entries"),
        "bsr/to_csr:pointers": bsr.ToCsr(group, index, dtype, "pointers"),
    }


def _of_triangles(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of triangular systems and incomplete factors, of the arithmetic's result, or float32 for integers."""
    dtype = arithmetic.result.name if arithmetic.result.kind in "fc" else "float32"
    group, index = 1 if device.lanes_are_loops else min(256, device.max_work_group), arithmetic.index
    return {
        "triangular/levels": Levels(min(group, 64), index, False),
        "triangular/levels:upper": Levels(min(group, 64), index, True),
        "triangular/solve": Solve(group, index, dtype, False, False),
        "triangular/solve:unit": Solve(group, index, dtype, True, True),
        "triangular/factor": Factor(group, index, dtype, False),
        "triangular/factor:hermitian": Factor(group, index, dtype, True),
    }


def _of_graphs(device: Device, arithmetic: Arithmetic) -> dict[str, programs.Parameters]:
    """Return the records of graph algorithms."""
    group, index = min(128, device.max_work_group), arithmetic.index
    return {
        "graph/components": Components(group, index, "link"),
        "graph/components:start": Components(group, index, "start"),
        "graph/components:label": Components(group, index, "label"),
        "graph/level": Level(group, index),
        "graph/orient": Orient(group, index),
    }
