"""Benchmarks: named matrices, peers, timed and checked products, and reports of what was measured."""
