"""Scan, reduction, sort, merge, and their segmented forms."""
