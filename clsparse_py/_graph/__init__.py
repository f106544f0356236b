"""Graph algorithms, and NetworkX's backend."""
