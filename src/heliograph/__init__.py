"""Heliograph: Kafka cross-cluster mirroring that copies whole record batches, exactly once, on Spark."""

__version__ = "0.1.0"
