"""Kernels of smoothed aggregation: strong entries, aggregates, tentative prolongators. `clsparse_py.amg` has them for users."""
