"""Auto-tuning: what was measured on a device once decides ever after.

Operations read `profiles`, which hold decision trees (`tree`), and declare what can be tuned beside their kernels (`tunable`).
The search that makes profiles is not imported at run time.
"""
