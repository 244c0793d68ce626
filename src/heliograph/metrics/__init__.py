"""Metrics for Prometheus: MM2's and Connect's with the names of the usual exporters, and Heliograph's own.

Values are read from the running flows at each request. The only user of prometheus-client.
"""
