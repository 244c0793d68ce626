"""Spark: where leases run. The only package that imports pyspark; everything else works without it.

Spark starts, schedules and restarts leases. It is not relied on to end one, as a cancelled task runs on for seconds:
copies are exact because of the target's log and its sequence check (`heliograph.copy`).
"""
