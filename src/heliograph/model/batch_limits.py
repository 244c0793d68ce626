"""Topic settings that limit the size of a batch."""

LIMITS = ("max.message.bytes", "segment.bytes")
