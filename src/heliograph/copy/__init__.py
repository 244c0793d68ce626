"""The data plane: what runs inside a lease. Reads source partitions, appends to mirror partitions, resumes.

A record's way: `reader` fetches its batch, `classify` decides how it is sent, `ledger_writer` records where it will be,
`writer` appends it. `pipeline` starts each step, `cursor` holds the state of a partition, `resume` finds its position
in the target's log, and `copier` runs one lease. Runs without Spark; `heliograph.engine` only gives it a place to run.
"""
