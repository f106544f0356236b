"""Times of implementations that are not run here.

SpGEMM on an H100 beside cuSPARSE, for A² in double precision: held against ours by way of cuSPARSE, which both runs have. A
peer's time is taken to be as many times that of cuSPARSE in our run as it was in the other. And papers, on machines of their
time: only ratios can be compared.
"""

from __future__ import annotations

# Milliseconds; medians of one run, results from a warm pool, cuSPARSE 12.6 by its default algorithm.
CUSPARSE = "cusparse/spgemm"
MILLISECONDS: dict[str, dict[str, float]] = {
    "fd2d5_1024": {CUSPARSE: 1.22, "spECK": 1.65, "OpSparse": 0.77, "nsparse": 1.62, "AC-SpGEMM": 1.70},
    "fd2d5_2048": {CUSPARSE: 4.37, "spECK": 6.17, "OpSparse": 2.40, "nsparse": 5.59, "AC-SpGEMM": 6.28},
    "fd3d7_101": {CUSPARSE: 2.16, "spECK": 2.76, "OpSparse": 2.97, "nsparse": 7.48, "AC-SpGEMM": 2.65},
    "fd3d7_160": {CUSPARSE: 7.96, "spECK": 9.54, "OpSparse": 12.4, "nsparse": 36.3, "AC-SpGEMM": 10.5},
    "fe2d9_1024": {CUSPARSE: 2.98, "spECK": 3.49, "OpSparse": 5.06, "nsparse": 11.7, "AC-SpGEMM": 4.03},
    "fe3d27_60": {CUSPARSE: 14.9, "spECK": 3.16, "OpSparse": 3.24, "nsparse": 4.04, "AC-SpGEMM": 5.83},
    "cantilever": {CUSPARSE: 12.6, "spECK": 4.57, "OpSparse": 4.05, "nsparse": 4.66, "AC-SpGEMM": 11.4},
    "protein": {CUSPARSE: 19.3, "spECK": 4.33, "OpSparse": 7.80, "nsparse": 9.29, "AC-SpGEMM": 16.8},
    "qcd8": {CUSPARSE: 1.97, "spECK": 0.63, "OpSparse": 0.67, "nsparse": 1.11, "AC-SpGEMM": 0.91},
    "rmat14": {CUSPARSE: 5.77, "spECK": 2.36, "OpSparse": 14.4},
    "long_rows_40": {CUSPARSE: 2.64, "spECK": 14.8, "OpSparse": 663.0, "nsparse": 690.0, "AC-SpGEMM": 3.22},
}


def scale(name: str, cusparse_seconds: float) -> dict[str, float]:
    """Return the seconds that each implementation would have taken, cuSPARSE's own among them; none for other matrices."""
    times = MILLISECONDS.get(name, {})
    return {peer: seconds / times[CUSPARSE] * cusparse_seconds for peer, seconds in times.items()}


# Dalton, Olson, Bell (2015), Tesla C2075, milliseconds of CUSP's reference ESC, their optimised ESC, and cuSPARSE of CUDA 5.0:
# table, matrix, the product here that it is held against.
DALTON: tuple[tuple[str, str, str, tuple[float, float, float]], ...] = (
    ("11", "1a. 2D FD, 5-point", "AP(fd2d5_1024)", (98.2, 33.3, 135.5)),
    ("11", "1b. 2D FE, 9-point", "AP(fe2d9_1024)", (186.6, 47.3, 206.2)),
    ("11", "2a. 3D FD, 7-point", "AP(fd3d7_101)", (196.6, 57.8, 428.9)),
    ("11", "2b. 3D FE, 27-point", "AP(fe3d27_60)", (820.1, 168.0, 1633.0)),
    ("11", "3a. 2D FE, h = 0.03", "AP(fe2d_tri_550k)", (75.7, 24.7, 168.2)),
    ("11", "3b. 2D FE, h = 0.02", "AP(fe2d_tri_1182k)", (166.6, 120.3, 368.8)),
    ("11", "3c. 2D FE, h = 0.015", "AP(fe2d_tri_2185k)", (323.9, 216.6, 682.4)),
    ("11", "4. 3D FE, h = 0.15", "AP(fe3d_tet_1089k)", (567.2, 160.0, 1269.2)),
    ("11", "5a. 2D FE, horseshoe", "", (94.5, 29.2, 162.4)),
    ("11", "5b. 2D FE, square", "", (95.0, 31.4, 412.9)),
    ("13", "Cantilever, A P", "AP(cantilever)", (115.9, 33.9, 145.5)),
    ("13", "Spheres, A P", "AP(spheres)", (170.2, 41.8, 247.3)),
    ("13", "Accelerator, A P", "AP(accelerator)", (67.9, 30.1, 216.2)),
    ("13", "Economics, A P", "AP(economics)", (45.0, 37.5, 67.5)),
    ("13", "Epidemiology, A P", "AP(epidemiology)", (53.3, 16.6, 71.7)),
    ("13", "Protein, A P", "AP(protein)", (113.7, 36.0, 181.7)),
    ("13", "Wind Tunnel, A P", "AP(wind_tunnel)", (205.7, 50.2, 446.2)),
    ("13", "QCD, A P", "AP(qcd)", (83.2, 28.5, 96.7)),
    ("13", "Webbase, A P", "AP(webbase)", (152.9, 149.1, 3091.3)),
    ("14", "Cantilever, A²", "cantilever", (1979.6, 390.5, 469.1)),
    ("14", "Spheres, A²", "spheres", (3410.6, 706.5, 1127.3)),
    ("14", "Accelerator, A²", "accelerator", (629.5, 113.4, 1052.9)),
    ("14", "Economics, A²", "economics", (63.2, 40.9, 136.5)),
    ("14", "Epidemiology, A²", "epidemiology", (65.3, 19.8, 54.9)),
    ("14", "Protein, A²", "protein", (4111.9, 3442.5, 1227.7)),
    ("14", "Wind Tunnel, A²", "wind_tunnel", (4641.0, 628.5, 1580.9)),
    ("14", "QCD, A²", "qcd", (528.4, 78.4, 333.3)),
    ("14", "Webbase, A²", "webbase", (571.9, 308.5, 1558.2)),
)
# Their Table 10: milliseconds of analysis; of expansion, sort and contraction; of reordering.
DALTON_PHASES: tuple[tuple[str, str, tuple[float, float, float]], ...] = (
    ("1a. 2D FD, 5-point", "AP(fd2d5_1024)", (4.6, 28.7, 0.0)),
    ("1b. 2D FE, 9-point", "AP(fe2d9_1024)", (7.5, 39.8, 0.0)),
    ("2a. 3D FD, 7-point", "AP(fd3d7_101)", (5.8, 52.0, 0.0)),
    ("2b. 3D FE, 27-point", "AP(fe3d27_60)", (17.9, 146.7, 3.4)),
    ("3a. 2D FE, h = 0.03", "AP(fe2d_tri_550k)", (4.5, 20.2, 0.0)),
    ("3b. 2D FE, h = 0.02", "AP(fe2d_tri_1182k)", (8.0, 110.6, 1.7)),
    ("3c. 2D FE, h = 0.015", "AP(fe2d_tri_2185k)", (14.5, 198.0, 4.1)),
    ("4. 3D FE, h = 0.15", "AP(fe3d_tet_1089k)", (13.1, 142.7, 4.2)),
    ("5a. 2D FE, horseshoe", "", (4.9, 24.3, 0.0)),
    ("5b. 2D FE, square", "", (5.3, 26.1, 0.0)),
)
# The reason of several products.
_MESH = "the mesh takes minutes to make, longer than a GPU was available"
# Products of the paper that are not measured here, with the reason.
WITHOUT = {
    "": "its mesh is not described closely enough to make one like it",
    "AP(fe2d_tri_1182k)": _MESH,
    "AP(fe2d_tri_2185k)": _MESH,
    "AP(fe3d_tet_1089k)": _MESH,
}
# Products of the paper of which methods are not measured here, with the reason.
WITHOUT_PART = {
    "wind_tunnel": "`esc` was refused the memory for its products",
    "epidemiology": "`esc` and `esc-local` were not run",
    "AP(webbase)": "P takes longer to make than a GPU was available",
}

# Liu et al. (2019), Tesla P100: figure, accumulator, speedup of kernels and of whole products, mean and most.
LIU: tuple[tuple[int, str, tuple[tuple[float, float], tuple[float, float]]], ...] = (
    (9, "sort", ((2.0, 5.4), (1.3, 2.0))),
    (10, "merge", ((2.6, 10.5), (1.1, 5.4))),
    (11, "hash", ((1.7, 5.2), (1.2, 2.7))),
)
