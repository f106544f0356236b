"""The benchmark matrices by name, and the suites they form.

Every generated matrix is a function of its name alone: the name seeds the generator. Meshes take minutes to build and are
kept in a folder outside the repository (``CLSPARSE_GALLERY``, else the user's cache folder); all others are built anew.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import platformdirs
import scipy.sparse as sp

from bench.generators import graphs, grids, irregular, meshes
from bench.generators.aggregation import prolongator
from bench.generators.patterns import Pattern, distinct_columns
from clsparse_py._arrays.matrix_files import SUFFIXES, read_matrix
from clsparse_py._ground.files import replacing

# A function that makes a matrix or its pattern from a random generator.
Maker = Callable[[np.random.Generator], "sp.csr_array | Pattern"]

# Matrices over 30 million entries, which a CPU run leaves out.
TOO_LARGE_FOR_CPU = frozenset({"fe3d27_120", "long_rows"})

# Unstructured meshes.
_MESHES: dict[str, Maker] = {
    "fe2d_tri_550k": lambda rng: meshes.mesh(rng, 550_387, 2),
    "fe2d_tri_1182k": lambda rng: meshes.mesh(rng, 1_182_309, 2),
    "fe2d_tri_2185k": lambda rng: meshes.mesh(rng, 2_185_401, 2),
    "fe3d_tet_1089k": lambda rng: meshes.mesh(rng, 1_088_958, 3),
}

# Generated matrices, in the order of the paper-spmv suite.
_MATRICES: dict[str, Maker] = {
    "fd2d5_1024": lambda _: grids.fd2d5(1024),
    "fe2d9_1024": lambda _: grids.fe2d9(1024),
    "fd3d7_101": lambda _: grids.fd3d7(101),
    "fe3d27_101": lambda _: grids.fe3d27(101),
    "fe3d27_60": lambda _: grids.fe3d27(60),
    "fd2d5_2048": lambda _: grids.fd2d5(2048),
    "fd3d7_160": lambda _: grids.fd3d7(160),
    "fe3d27_120": lambda _: grids.fe3d27(120),
    **_MESHES,
    "cantilever": lambda _: grids.cantilever(208),
    "spheres": grids.spheres,
    "accelerator": irregular.accelerator,
    "economics": irregular.economics,
    "epidemiology": lambda _: grids.epidemiology(),
    "protein": irregular.protein,
    "wind_tunnel": grids.wind_tunnel,
    "qcd": lambda _: grids.qcd(),
    "qcd8": lambda _: grids.qcd_sites(8),
    "webbase": lambda rng: graphs.webbase(rng, 1_000_005),
    "rmat12": lambda rng: graphs.rmat(rng, 12),
    "rmat14": lambda rng: graphs.rmat(rng, 14),
    "rmat16": lambda rng: graphs.rmat(rng, 16),
    "rmat18": lambda rng: graphs.rmat(rng, 18),
    "rmat20": lambda rng: graphs.rmat(rng, 20),
    "road": lambda rng: grids.road(rng, 2000, 0.62),
    "uniform16": lambda rng: distinct_columns(rng, 1_000_000, 16, 1_000_000),
    "uniform16_200k": lambda rng: distinct_columns(rng, 200_000, 16, 200_000),
    "long_rows": irregular.long_rows,
    "long_rows_40": lambda rng: irregular.long_rows_40(rng, 300_000),
    "dense_row": lambda _: irregular.dense_row(1_000_000),
    "dense_col": lambda _: irregular.dense_column(1_000_000),
    "hypersparse": lambda rng: irregular.hypersparse(rng, 4_000_000),
    "tall": lambda rng: distinct_columns(rng, 1_000_000, 8, 2000),
    "wide": lambda rng: irregular.transpose(distinct_columns(rng, 1_000_000, 8, 2000)),
    "blocks": lambda rng: irregular.blocks(rng, 512, 20_000_000),
}

# Matrices of the same generators at sizes that take seconds on any device.
_QUICK: dict[str, Maker] = {
    "fd2d5_256": lambda _: grids.fd2d5(256),
    "fd3d7_40": lambda _: grids.fd3d7(40),
    "cantilever_26": lambda _: grids.cantilever(26),
    "rmat12": _MATRICES["rmat12"],
    "webbase_100k": lambda rng: graphs.webbase(rng, 100_000),
    "qcd4": lambda _: grids.qcd_sites(4),
    "long_rows_40_tenth": lambda rng: irregular.long_rows_40(rng, 30_000),
    "hypersparse_100k": lambda rng: irregular.hypersparse(rng, 100_000),
}

# Matrices so small that calls, not work, take the time: one entry in 5 to 23 is nonzero.
_SMALL: dict[str, Maker] = {f"small_{n}": functools.partial(irregular.small, size=n) for n in range(10, 101, 10)}

# Matrices whose square has the same number of products in each row: the most that each bin of Liu et al. (2019) takes.
_BINS: dict[str, Maker] = {f"bin_{2**i}": functools.partial(irregular.products_a_row, products=2**i) for i in range(1, 10)}

# Matrices of Table II of Hou et al.: the real one, the generated one that stands for it if it is not at hand, its maker.
_TABLE_2: tuple[tuple[str, str, Maker], ...] = (
    ("apache1", "fd3d7_43", lambda _: grids.fd3d7(43)),
    ("bfly", "butterfly_12", lambda _: graphs.butterfly(12)),
    ("recon_ch7-9-b3", "chessboard_7_9", lambda _: graphs.chessboard_boundary(7, 9, 3)),
    ("crankseg_2", "like_crankseg_2", lambda _: grids.beam((5, 5, 853), grids.box((2, 2, 2)), 3)),
    ("cryg10000", "fd2d5_100", lambda _: grids.fd2d5(100)),
    ("D6-6", "like_D6-6", lambda rng: irregular.sparse_rectangle(rng, (120_000, 24_000), 1.22)),
    ("denormal", "biharmonic_299", lambda _: grids.biharmonic(299)),
    ("dictionary28", "like_dictionary28", lambda rng: graphs.power_law_graph(rng, 53_000, 178_000)),
    # A tenth of the rows of europe_osm.
    ("europe_osm", "road", _MATRICES["road"]),
    ("Ga3As3H12", "like_Ga3As3H12", lambda _: grids.grid((39, 39, 40), grids.ball_97())),
    ("HV15R", "like_HV15R_tenth", lambda _: grids.beam((6, 81, 82), grids.ball(4), 5)),
    ("pcrystk02", "like_pcrystk02", lambda _: grids.beam((7, 19, 35), grids.box((1, 1, 1)), 3)),
    ("pkustk14", "like_pkustk14", lambda _: grids.beam((5, 14, 723), grids.box((2, 1, 1)), 3)),
    ("roadNet-CA", "road_2m", lambda rng: grids.road(rng, 1402, 0.704)),
    ("shar_te2-b2", "like_shar_te2-b2", lambda rng: distinct_columns(rng, 200_200, 3, 17_160)),
    ("whitaker3_dual", "planar_dual", lambda rng: meshes.planar_dual(rng, 9_620)),
)

#: Matrices of Table II of Hou et al. by name: the real one, and the generated one.
TABLE_2 = tuple((real, generated) for real, generated, _ in _TABLE_2)

# Large matrices, for multigrid and for products over several devices alone.
_LARGE: dict[str, Maker] = {"fd3d7_256": lambda _: grids.fd3d7(256), "rmat22": lambda rng: graphs.rmat(rng, 22)}
_ALL: dict[str, Maker] = {**_MATRICES, **_QUICK, **_LARGE, **_SMALL, **_BINS, **{name: maker for _, name, maker in _TABLE_2}}

_PAPER_SPGEMM = [
    "fd2d5_1024",
    "fd3d7_101",
    "fe2d9_1024",
    "fe3d27_60",
    "cantilever",
    "protein",
    "qcd8",
    "rmat14",
    "long_rows_40",
    "epidemiology",
    "economics",
    "accelerator",
    "webbase",
    "road",
    "uniform16_200k",
]
_PAPER_SPGEMM_GPU = ["fd2d5_2048", "fd3d7_160", "spheres", "wind_tunnel", "qcd", "rmat16", "rmat18"]
_PAPER_AMG = ["fd2d5_1024", "fe2d9_1024", "fd3d7_101", "fe3d27_60", "fe2d_tri_550k"]
# Matrices for SpMM: grids, meshes of few unknowns a node, graphs, webs, uniform rows and few long ones.
_SPMM = [
    "fd2d5_1024",
    "fd3d7_101",
    "fe3d27_60",
    "cantilever",
    "protein",
    "rmat16",
    "rmat18",
    "webbase",
    "uniform16_200k",
    "long_rows_40",
]
# Matrices for triangular systems: few levels and many, short rows and long ones.
_TRIANGULAR = [
    "fd2d5_1024",
    "fd2d5_2048",
    "fd3d7_101",
    "fe2d9_1024",
    "fe3d27_60",
    "cantilever",
    "protein",
    "qcd8",
    "rmat14",
    "rmat16",
    "rmat18",
    "webbase",
    "road",
    "uniform16_200k",
    "long_rows_40",
]
# Matrices of the wall: each kind among the first, those that take longest last.
_WALL = [
    "fd2d5_1024", "cantilever", "rmat14", "webbase", "fe3d27_60", "qcd8", "epidemiology", "economics", "long_rows_40",
    "fd3d7_101", "rmat16", "fe2d9_1024", "rmat18", "road", "protein", "accelerator", "uniform16_200k", "fd2d5_2048",
    "fd3d7_160",
]  # fmt: skip
# Symmetric positive definite matrices for multigrid: PyAMG takes seconds for each.
_MULTIGRID = ["fd2d5_256", "fd3d7_40", "fd2d5_1024", "fe2d9_1024", "fd3d7_101", "fe3d27_60"]
_MULTIGRID_GPU = ["fd2d5_2048", "fd3d7_160"]

#: Graphs, the real ones where `CLSPARSE_MATRICES` has them.
_GRAPHS = [
    "rmat16", "rmat18", "soc-Slashdot0902", "ego-twitter_und", "blogcatalog", "cit-HepPh", "email-Enron", "ca-AstroPh_cc1",
    "MIT8", "as-caida", "facebook_combined", "prone_dblp",
]  # fmt: skip

SUITES = (
    "quick",
    "paper",
    "paper-spmv",
    "paper-spgemm",
    "paper-amg",
    "multigrid",
    "spmm",
    "triangular",
    "wall",
    "graphs",
    "small",
    "bins",
    "table2",
    "full",
)


def names() -> list[str]:
    """Return the names of all generated matrices; ``P(name)`` of a grid or mesh is understood besides."""
    return list(_ALL)


def suite(name: str, *, cpu: bool) -> list[str]:
    """Return the names and files of a suite's matrices.

    Parameters
    ----------
    name
        One of ``SUITES``. ``paper`` is ``paper-spmv``, the suite of every operation measured so far.
    cpu
        Whether a CPU device will run it: what is too large for one is left out.

    Raises
    ------
    ValueError
        If there is no such suite.
    """
    paper_spmv = [n for n in _MATRICES if n != "rmat12"]
    members = {
        "quick": list(_QUICK),
        "paper": paper_spmv,
        "paper-spmv": paper_spmv,
        "paper-spgemm": _PAPER_SPGEMM + ([] if cpu else _PAPER_SPGEMM_GPU),
        "paper-amg": _PAPER_AMG,
        "multigrid": _MULTIGRID + ([] if cpu else _MULTIGRID_GPU),
        "spmm": _SPMM,
        "triangular": _TRIANGULAR,
        "wall": _WALL,
        "graphs": _graphs(),
        "small": list(_SMALL),
        "bins": list(_BINS),
        "table2": [_table2_member(real, generated) for real, generated, _ in _TABLE_2],
        "full": names() + [f"P({name})" for name in _PAPER_AMG] + _real_matrices(),
    }
    if name not in members:
        raise ValueError(f"suite: got {name!r}, needs one of {', '.join(SUITES)}")
    return [member for member in members[name] if not (cpu and member in TOO_LARGE_FOR_CPU)]


def load(name: str) -> sp.csr_array:
    """Return a matrix by its name, as ``P(name)``, or from a Matrix Market or ``.npz`` file.

    Returns
    -------
    scipy.sparse.csr_array
        float64, canonical, with 32-bit indices where they suffice.

    Raises
    ------
    ValueError
        If there is no such matrix and no such file.
    """
    if (of := re.fullmatch(r"P\((.+)\)", name)) is not None:
        return _canonical(prolongator(load(of[1]), _generator(name)))
    if name in _MESHES:
        return _load_or_build(name)
    if name in _ALL:
        return _build(name)
    if Path(name).is_file():
        # Precisions under test are real; of a complex matrix its real part is as good as any.
        return _canonical(read_matrix(name).real)
    raise ValueError(f"matrix: {name!r} is neither a name of the gallery nor a file")


def expand(name: str) -> list[str]:
    """Return the files of a folder of Matrix Market and ``.npz`` files, or the name itself."""
    return _files(Path(name)) if Path(name).is_dir() else [name]


def source(name: str) -> tuple[str, int]:
    """Return where a matrix comes from, and the bytes of the file that it is read from, 0 if there is none."""
    if name in _MESHES:
        path = _cache_path(name)
        return ("kept", path.stat().st_size) if path.exists() else ("generated in minutes, then kept", 0)
    if name not in _ALL and Path(name).is_file():
        return "file", Path(name).stat().st_size
    return "generated", 0


def title(name: str) -> str:
    """Return what to call a matrix in a report: a file's name without folder and suffixes, else its own."""
    return Path(name).name.split(".")[0] if os.sep in name else name


def _generator(name: str) -> np.random.Generator:
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return np.random.default_rng(seed)


def _build(name: str) -> sp.csr_array:
    rng = _generator(name)
    made = _ALL[name](rng)
    return _canonical(made.with_random_values(rng) if isinstance(made, Pattern) else made)


def _canonical(matrix: sp.csr_array) -> sp.csr_array:
    matrix.sum_duplicates()
    index_type = np.int32 if max(*matrix.shape, matrix.nnz) < 2**31 else np.int64
    arrays = (
        np.ascontiguousarray(matrix.data, dtype=np.float64),
        matrix.indices.astype(index_type, copy=False),
        matrix.indptr.astype(index_type, copy=False),
    )
    canonical = sp.csr_array(arrays, shape=matrix.shape)
    canonical.has_canonical_format = True
    return canonical


def folder() -> Path:
    """Return the folder where meshes are kept."""
    return Path(os.environ.get("CLSPARSE_GALLERY") or platformdirs.user_cache_path("clsparse_py") / "gallery")


def _cache_path(name: str) -> Path:
    """Return the file that a mesh is kept in."""
    return folder() / f"{name}.npz"


def _load_or_build(name: str) -> sp.csr_array:
    path = _cache_path(name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            sp.save_npz(file, _build(name), compressed=False)
    return _canonical(sp.csr_array(sp.load_npz(path)))


def _table2_member(real: str, generated: str) -> str:
    return _real_by_name().get(real, generated)


def _graphs() -> list[str]:
    known = {**{name: name for name in _ALL}, **_real_by_name()}
    return [known[name] for name in _GRAPHS if name in known]


def _real_by_name() -> dict[str, str]:
    return {title(path): path for path in _real_matrices()}


def _real_matrices() -> list[str]:
    folder = os.environ.get("CLSPARSE_MATRICES")
    return _files(Path(folder)) if folder else []


def _files(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.iterdir() if path.name.endswith(SUFFIXES))
