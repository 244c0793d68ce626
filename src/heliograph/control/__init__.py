"""The syncers: what both clusters should look like, minus what they look like, gives what is to be done.

Each module is a pure plan with a thin shell that talks to the clusters. This version syncs topics and partitions.
"""
