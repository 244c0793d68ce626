"""Compiled loops over record batches. Everything works without them, at a higher cost per record."""
