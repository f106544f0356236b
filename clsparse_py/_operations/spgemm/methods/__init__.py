"""The methods of SpGEMM: each makes rows of C, with its kernels' records beside it; `accumulator` has their interface."""
