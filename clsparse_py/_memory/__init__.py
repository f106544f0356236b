"""Memory of the device: the pool, scratch memory, arrays of results, and the order of their uses."""
