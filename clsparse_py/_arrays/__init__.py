"""The array class of each format, and the functions that make, join and read arrays."""
