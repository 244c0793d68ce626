"""Everything that speaks to a broker: connections, raw fetch and append, topics and offsets, record batches.

The only package that imports kafka-python, of which it uses the message classes (encoding, decoding, versions).
Connections are our own on asyncio, because the data path reads straight into the frame it hands on.
"""
