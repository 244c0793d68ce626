"""Syncing everything besides records: topics, configs, ACLs, heartbeats, offset syncs, checkpoints, groups; taking over
from MirrorMaker 2; packing the ledger.

Most modules are a pure rule, wanted minus actual state, with a thin shell that talks to the clusters.
"""
