"""A broker that answers with random bytes: the client reports it, and neither crashes nor waits for ever."""

import asyncio
import struct
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.fetch import FetchPartition, FetchSession, Limits
from heliograph.wire.offsets import LATEST, list_offsets
from waiting import PATIENCE
from wire.scripted_broker import RawBytes, Request, scripted_cluster

EXAMPLES = settings(
    max_examples=40, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def _frame(request: Request, payload: bytes) -> bytes:
    """A frame with the right length and correlation id, so that its content is decoded."""
    return struct.pack(">ii", len(payload) + 4, request.header.correlation_id) + payload


# Numbers that occur in responses, among random bytes: lengths of arrays and strings, also impossible ones.
NUMBERS = st.sampled_from(
    [b"\0", b"\x01", b"\0\0\0\x01", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\x01t", b"\x02t"]
)
PAYLOADS = st.lists(NUMBERS | st.binary(max_size=12), max_size=20).map(b"".join)


@EXAMPLES
@given(api=st.sampled_from([ApiVersionsRequest, MetadataRequest, ListOffsetsRequest, FetchRequest]), payload=PAYLOADS)
def test_random_content_of_a_frame_is_an_error_of_the_wire(api: Any, payload: bytes) -> None:
    asyncio.run(_ask(api, lambda request: _frame(request, payload)))


@EXAMPLES
@given(api=st.sampled_from([ApiVersionsRequest, MetadataRequest, FetchRequest]), data=st.binary(min_size=8))
def test_random_bytes_are_an_error_of_the_wire(api: Any, data: bytes) -> None:
    asyncio.run(_ask(api, lambda _request: data))


async def _ask(api: Any, answer: Any) -> None:
    async with scripted_cluster(1, {"t": [0]}) as cluster, asyncio.timeout(PATIENCE):
        cluster.brokers[0].script(api, RawBytes(answer))
        client = ClusterClient(cluster.as_cluster(request_timeout=0.05))
        try:
            with suppress(WireError):
                await client.connect()
                topics = (await client.metadata(["t"])).topics
                if api is ListOffsetsRequest:
                    await list_offsets(client, topics, [("t", 0)], LATEST, False)
                if api is FetchRequest:
                    session = FetchSession(await client.connection(0))
                    await session.fetch([FetchPartition("t", topics["t"].id, 0, 0, 100)], [], Limits(100, 0, 0.0))
        finally:
            client.close()
