"""How batches are compressed, where a flow asks for it."""

from typing import NamedTuple

# By the number that record batches have for it.
COMPRESSION_TYPES = "none", "gzip", "snappy", "lz4", "zstd"


class Compression(NamedTuple):
    codec: int  # the number of the compression type
    level: int | None = None  # None: the default level of Kafka's own producers
