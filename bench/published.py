"""Implementations of SpGEMM that are not run here: what they took on an H100 beside cuSPARSE, for A² in double precision.

Their times are held against ours by way of cuSPARSE, which both runs have: a peer's time is taken to be as many times that of
cuSPARSE in our run as it was in the other.
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


def scaled(name: str, cusparse_seconds: float) -> dict[str, float]:
    """Return the seconds that each implementation would have taken, cuSPARSE's own among them; none for other matrices."""
    times = MILLISECONDS.get(name, {})
    return {peer: each / times[CUSPARSE] * cusparse_seconds for peer, each in times.items()}
