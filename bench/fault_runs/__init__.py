"""Faults under load: two clusters, the real command, a nemesis with a seed, and a verifier. See docs/faults."""
