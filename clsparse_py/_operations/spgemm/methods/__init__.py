"""The methods of SpGEMM: each makes rows of C, with its kernels' records beside it; `base` is their interface."""
