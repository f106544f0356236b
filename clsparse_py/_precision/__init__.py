"""Types of values and their arithmetic in kernels; semirings."""
