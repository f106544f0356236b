"""Smoothed aggregation on the device: strong entries, aggregates, prolongators. `clsparse_py.amg` is for users."""
