"""The parts of a sparse array: structure, values, placement; and operands of operations."""
