"""Everything that talks to a broker: connections, raw fetch and append, topics, groups and offsets, record batches.

The only package that imports kafka-python, of which it uses the message classes (encoding, decoding, versions).
Connections are our own on asyncio: the data path reads straight into the frame that it passes on.
"""
