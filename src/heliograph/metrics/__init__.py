"""Metrics for Prometheus: MM2's and Connect's under the names that exporters give them, and Heliograph's own.

Read from what runs, at the moment that somebody asks: nothing is counted for them alone. The only user of
prometheus-client.
"""
