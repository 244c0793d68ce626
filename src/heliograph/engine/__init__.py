"""Spark: where leases run. The only package that imports pyspark; everything else works without it.

Spark starts, places and restarts leases. It is never trusted to end one: a cancelled task goes on for seconds, so
what makes copies exact is the target's log and its sequence check (`heliograph.copy`).
"""
