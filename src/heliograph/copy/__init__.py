"""The data plane: what runs inside a lease. Reads source partitions, appends to mirror partitions, resumes.

The way of a record: `reader` fetches it, `intake` looks at its batch, `writer` appends the batch, `cursor` knows how
far a partition has got, `resume` finds that out from the target's log. `copier` ties them together for one lease.
Runs without Spark; `heliograph.engine` only gives it a place to run.
"""
