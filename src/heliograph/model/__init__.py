"""Plain frozen values and the pure rules about them: names, policies, flows.

Nothing here opens a connection, reads a file or knows another package of Heliograph. Import from the modules themselves
(`heliograph.model.flow`, `heliograph.model.policy`, ...).
"""
