"""The command line, the demo, warming up, the catalogue of kernels."""
