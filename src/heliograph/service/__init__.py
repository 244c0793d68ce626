"""One running deployment: connects the flows of a configuration with Spark and keeps them going.

`running` is the whole, `flow` one flow of it, `assignment` says which lease copies what, `status` is what others see.
"""
