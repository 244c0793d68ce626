"""How batches are compressed, where a flow asks for it."""

from dataclasses import dataclass

# By the number that record batches have for it.
COMPRESSION_TYPES = "none", "gzip", "snappy", "lz4", "zstd"


@dataclass(frozen=True, slots=True)
class Compression:
    type: str
    level: int | None = None  # None: the default level of Kafka's own producers

    @property
    def codec(self) -> int:
        return COMPRESSION_TYPES.index(self.type)
