"""Conversion between formats: canonical rows, coordinates, parts, dense entries, memory of other libraries."""
