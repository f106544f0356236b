"""The settings of a block of programs: dtypes, features, and thresholds that send small matrices to the code for large ones."""

from __future__ import annotations

import numpy as np

from tests.programs.drawing import DTYPES, FEATURES, Block
from tests.programs.operations import KERNELS, OPERATIONS, SPGEMM

__all__ = ["draw_block"]

#: Devices to take this one for: of another type, with other units and smaller work-groups.
DEVICES = (
    "type='gpu', compute_units=7",
    "compute_units=7",
    "max_work_group=1",
    "type='gpu', max_work_group=64, local_memory=16 << 10",
    "compute_units=32",
)
#: Names of kernels that a driver refuses.
REFUSED = ("^(spmv|spmm)_", "^spgemm_", "^(primitives|transpose)_", "^(csr|canonical|elementwise|indexing)_", "^(vectors|graph)_")
#: Operations of the programs that are the same each time: few, as their kernels are built by each fresh checkout.
PLAIN = ("A @ x", "A @ B", "transposition", "A + B", "indexing", "sums")
DECISIONS = {
    "spgemm": ("strategy", [f"{method} esc" for method in SPGEMM[1:] if method not in ("esc", "esc-local", "long-rows")]),
    "spmv": ("single", [f"{kernel}/{group}/4" for kernel in KERNELS if kernel != "narrow" for group in (32, 64)]),
    "transpose": ("method", ["gather:0 binned", "gather:0 atomics:256 binned", "gather:900 binned", "binned"]),
    "masked": ("accumulator", ["chunked:places", "chunked:search"]),
    "segmented_sort": ("shape", ["chunks/1/50/8", "chunks/7/50/8", "lanes/64/48/4/32"]),
}
#: By operation and number, or several numbers that are drawn together: the values to draw from.
THRESHOLDS = {
    "spgemm": {
        "max_small_products": (0, 64),
        "max_upper_mean": (0, 4),
        "max_joined_rows": (0, 7),
        "max_item_length": (0, 12),
        "sort_items": (2, 8),
        "max_hash_products": (16, 64),
        "max_span": (512,),
        "min_span": (32,),
        "max_slots": (128,),
        "expected_fill": (0, 0.5),
    },
    "spmv": {"narrow_after": (1,), "min_patterned_rows max_patterned_row": (3, 30)},
    "spmm": {
        "max_direct_columns": (1, 2),
        "min_core_part": (1, 7),
        "part_of_few": (1, 7),
        "part_of_many": (4,),
        "max_lanes": (2, 32),
        "cached_columns": (4,),
    },
    "primitives": {
        "min_scan_chunk": (5, 40),
        "scan_chunks_per_core": (7, 50),
        "max_one_tile": (64, 500),
        "digit_bits": (9,),
        "max_read_at_once": (64,),
        "summing_group": (1, 32),
        "few_rounds": (0,),
    },
    "indexing": {"min_chunk": (16,), "max_at_once": (0,)},
    "construct": {"min_tile": (1,)},
    "launch": {"max_copied": (64,)},
    "transpose": {"max_at_once": (0,), "min_bucket_bytes min_bucket_columns": (0,), "max_near_samples": (256,)},
    "sddmm": {"work_group": (1, 32)},
    "elementwise": {"single_group": (0, 8), "tile_group": (1, 32), "tile_span": (1, 3), "max_few_places": (0, 7)},
    "distributed": {"min_whole_share": (0, 1)},
    "multigrid": {"max_whole_rows": (0, 5)},
    "graph": {"work_group": (1, 32)},
    # A few turns: work-items of a CPU's work-group, which it is taken for a GPU's, may run one after another.
    "triangular": {
        "max_polls": (0, 3, 300),
        "entries_per_lane": (1, 2),
        "levels_ahead": (1,),
        "max_groups_per_unit": (1,),
        "work_group": (1, 4),
        "columns_at_once": (1, 2),
        "supernode_rows": (1, 2, 3),
        "min_continued": (0, 1),
        "min_tiled": (1,),
        "max_tiled_at_once": (1, 1 << 40),
        "max_tiled_points": (16,),
        "tiles_per_unit tiles_per_unit_in_space": (1, 2),
    },
    "krylov": {"work_group": (32,), "together_at_once": (3,)},
}


def draw_block(rng: np.random.Generator, *, fp64: bool, plain: bool = False, limits: bool = True) -> Block:
    """Return the settings of a block, half of all features on; with ``limits`` it may have those of other devices."""
    dtypes = [dtype for dtype in DTYPES if fp64 or np.dtype(dtype).char not in "dD"]
    real = [dtype for dtype in dtypes if np.dtype(dtype).kind == "f"]
    # Integers twice as often: their ranges end where kernels use others.
    menu = [*dtypes, *(dtype for dtype in dtypes if np.dtype(dtype).kind == "i")]
    chosen = {str(rng.choice(real)), *map(str, rng.choice(menu, 0 if plain else int(rng.integers(1, 3))))}
    features = frozenset(feature for feature in FEATURES if rng.random() < 0.5)
    operations = frozenset(PLAIN if plain else (operation for operation in OPERATIONS if rng.random() < 0.5)) or frozenset(
        OPERATIONS
    )
    settings = () if plain or rng.random() < 0.2 else _settings(rng, limits)
    mode = str(rng.choice(["ordered", "unordered"]))
    other = mode if rng.random() < 0.5 else "ordered"
    several = 3 if mode == other == "ordered" and rng.random() < 0.15 else 1
    return Block(
        tuple(sorted(chosen)),
        str(rng.choice(["int32", "int64"])),
        features,
        operations,
        settings,
        (mode, other),
        several,
        int(rng.integers(1 << 30)),
    )


def _settings(rng: np.random.Generator, limits: bool) -> tuple[str, ...]:
    lines = []
    if rng.random() < 0.4 and limits:
        changed = DEVICES[rng.integers(len(DEVICES))]
        lines.append(
            "import clsparse_py._device.device as devices; described = devices._describe; "
            f"devices._describe = functools.cache(lambda device: replace(described(device), {changed}))"
        )
    if rng.random() < 0.3:
        lines.append(f"os.environ['CLSPARSE_POOL_BYTES'] = '{rng.choice([0, 4096, 1 << 20])}'")
    operations, thresholds = {}, {}
    for name, (question, labels) in DECISIONS.items():
        if rng.random() < 0.4:
            operations[name] = {"any": {question: {"take": labels[rng.integers(len(labels))]}}}
    for name, numbers in THRESHOLDS.items():
        if rng.random() < 0.5:
            chosen = {names: values[rng.integers(len(values))] for names, values in numbers.items() if rng.random() < 0.5}
            drawn = {text: {"value": value} for names, value in chosen.items() for text in names.split()}
            if drawn:
                thresholds[name] = {"any": drawn}
    if operations or thresholds:
        profile = f"{{'schema': profiles.SCHEMA, 'name': 'drawn', 'operations': {operations}, 'thresholds': {thresholds}, "
        lines.append(
            "from clsparse_py._decisions import profiles; os.environ['CLSPARSE_PROFILES'] = tempfile.mkdtemp(); "
            f"profiles.forget(); profiles.save({profile}'device': profiles.identity(sp.describe(DEVICE))}})"
        )
    if rng.random() < 0.04:
        lines.append(f"refuse({REFUSED[rng.integers(len(REFUSED))]!r})")
    return tuple(lines)
