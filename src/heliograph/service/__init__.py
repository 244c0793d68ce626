"""One running deployment: connects the flows of a configuration with Spark and keeps them going.

`supervisor` runs all flows, `flow_supervisor` one of them; `assignment` says which lease copies what, `flow_status` is
what others see.
"""
