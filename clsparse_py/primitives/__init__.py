"""Segmented and plain primitives on device arrays: scan, reduce, sort, merge."""
