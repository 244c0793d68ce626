"""One TCP connection to one broker: requests are pipelined, answers come back in the same order.

A frame larger than the small receive buffer is read straight into memory of its own (recv_into): a fetched megabyte is
copied once by the kernel and once when the message is decoded. With TLS, OpenSSL decrypts a record in a buffer of its
own and copies it straight into the frame's memory. Opening includes TLS, the negotiation of API versions
and the login. Reconnecting and choosing a broker belong to `cluster.py`; sockets and their addresses to `sockets.py`.
"""

import asyncio
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from heliograph import __version__
from heliograph.model.flow import Cluster
from heliograph.model.security import UNSECURED
from heliograph.wire.background import in_thread
from heliograph.wire.errors import UNSUPPORTED_VERSION, BrokerError, Fenced, Unreachable, WireError
from heliograph.wire.frames import LARGEST_FRAME, FrameBuffer, NotFrames
from heliograph.wire.login import Login
from heliograph.wire.security import failures
from heliograph.wire.security.failures import SecurityFailure, describe_tls_error
from heliograph.wire.security.tls import client_context
from heliograph.wire.sockets import open_socket

_TLS_ALERT = b"\x15\x03"
# Each part that is written becomes a TLS record of its own: small ones are joined before.
_SMALL_PART = 8 * 1024
_LONGEST_VARINT = 28  # bits before the last byte
_LENGTH = struct.Struct(">i")

Decode = Callable[[memoryview], Any]
Buffer = bytes | bytearray | memoryview


@dataclass(slots=True)
class _Pending:
    correlation: int
    decode: Decode
    answer: asyncio.Future[Any]
    sent: float


class Connection(asyncio.BufferedProtocol):
    """Use `Connection.open`; after `closed` is true every waiting and later request fails with Unreachable."""

    def __init__(self, address: str, cluster: Cluster, check: Callable[[], None] | None = None) -> None:
        """`check` raises Fenced if nothing may be sent any more."""
        self.address = address
        self._check = check
        self.client_id = cluster.client_id
        self.timeout = cluster.request_timeout
        self.closed = False
        self.versions: dict[int, tuple[int, int]] = {}
        self._connecting = cluster.connecting
        self._tls = cluster.security.tls
        self._login: Login | None = None
        self._transport: asyncio.Transport | None = None
        self._lost: Exception | None = None  # why the transport was lost
        self._has_served = False  # has answered a request other than ApiVersions
        self._pending: deque[_Pending] = deque()
        self._correlation = 0
        self._frames = FrameBuffer()
        self._timer: asyncio.TimerHandle | None = None
        self._last_answer = 0.0

    @classmethod
    async def open(
        cls, host: str, port: int, cluster: Cluster, failures: int = 0, check: Callable[[], None] | None = None
    ) -> "Connection":
        """`failures` are those of the attempts before, in a row: they make the timeout longer, and another address of
        the host goes first. Raises SecurityFailure if TLS or the login fails, Unreachable if there is no connection at
        all."""
        tls, sasl = cluster.security.tls, cluster.security.sasl
        context = await in_thread(lambda: client_context(tls)) if tls is not None else None
        connection = cls(f"{host}:{port}", cluster, check)
        if sasl is not None:
            connection._login = Login(sasl, host, connection._send_at_once, connection.close)
            await connection._login.prepare()
        # A dead address must not hold up the others for a whole request timeout. TLS and a login need some more round
        # trips, and time to derive keys.
        setup_timeout = cluster.connecting.setup_timeout.jittered(failures + 1)
        setup_timeout = min(cluster.request_timeout, setup_timeout * (1 if cluster.security == UNSECURED else 2))
        try:
            async with asyncio.timeout(setup_timeout):
                await connection._open(host, port, context, failures)
        except TimeoutError as error:
            raise Unreachable(f"{connection.address} did not answer within {setup_timeout:.3g} s") from error
        except (OSError, UnicodeError) as error:
            raise connection._failure_to_connect(error) from error
        return connection

    async def _open(self, host: str, port: int, context: ssl.SSLContext | None, turn: int) -> None:
        await self._connect(host, port, context, turn)
        try:
            await self._negotiate()
            if self._login is not None:
                await self._login.log_in()
        except BaseException as error:
            self.close()
            # TLS 1.3: a broker refuses our certificate only after the handshake.
            if isinstance(error, Unreachable) and self._lost is not None:
                raise self._failure_to_connect(self._lost) from error
            raise

    async def _connect(self, host: str, port: int, context: ssl.SSLContext | None, turn: int = 0) -> None:
        sock = await open_socket(host, port, self._connecting, turn)
        secured: dict[str, Any] = {"ssl": context, "server_hostname": host} if context is not None else {}
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, sock=sock, **secured)
        except BaseException:
            sock.close()
            raise

    def _failure_to_connect(self, error: Exception) -> Unreachable:
        if (text := self._describe(error)) is not None:
            return SecurityFailure(text)
        if self._tls is not None and isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
            return SecurityFailure(failures.NOT_TLS)
        return Unreachable(f"{self.address}: {getattr(error, 'strerror', None) or error}")

    def _describe(self, error: Exception) -> str | None:
        return describe_tls_error(error, self._tls is not None and self._tls.key is not None)

    async def _negotiate(self) -> None:
        # A broker that does not support our version of ApiVersions answers UNSUPPORTED_VERSION in version 0.
        for version in (3, 0):
            request = ApiVersionsRequest(
                version=version, client_software_name="heliograph", client_software_version=__version__
            )
            code, versions = await self._transmit(request, version, partial(_api_versions, version))
            if code == UNSUPPORTED_VERSION and version > 0:
                continue
            if code:
                raise BrokerError(code)
            self.versions = versions
            return
        raise Unreachable(f"{self.address} supports no version of ApiVersions that Heliograph knows")

    def version(self, api_key: int, newest: int, oldest: int = 0) -> int:
        """The newest version of a request that both sides support, within the caller's limits."""
        low, high = self.versions.get(api_key, (1, 0))
        chosen = min(high, newest)
        if chosen < max(low, oldest):
            raise WireError(f"{self.address} has no usable version of request type {api_key} ({low}..{high})")
        return chosen

    @property
    def requests(self) -> int:
        """Requests sent so far."""
        return self._correlation

    def knows(self, api_key: int, version: int = 0) -> bool:
        """Whether the broker supports a request, in this version or a newer one."""
        return api_key in self.versions and self.versions[api_key][1] >= version

    async def request(
        self, message: Any, newest: int | None = None, oldest: int = 0, decode: Decode | None = None
    ) -> Any:
        """Sends one of kafka-python's request messages and returns its response message, or what `decode` makes of the
        frame after its correlation id."""
        known = int(message.max_version)
        version = self.version(message.API_KEY, known if newest is None else min(newest, known), oldest)
        return await self._transmit(message, version, decode)

    def _transmit(self, message: Any, version: int, decode: Decode | None = None) -> asyncio.Future[Any]:
        frame, decode = self._encode(message, version, decode)
        return self._write([frame], decode)

    def _send_at_once(self, message: Any, newest: int) -> asyncio.Future[Any]:
        """For the login itself, on which other requests wait."""
        frame, decode = self._encode(message, self.version(message.API_KEY, newest))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._send([frame], _Pending(self._correlation, decode, answer, 0.0))
        return answer

    def _encode(self, message: Any, version: int, decode: Decode | None = None) -> tuple[bytes, Decode]:
        message.API_VERSION = version
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        message.with_header(correlation_id=self._correlation, client_id=self.client_id)
        if decode is None:
            decode = _decoder(message.header.get_response_class(), version)
        return message.encode(framed=True, header=True), decode

    def send_parts(self, api_key: int, version: int, parts: Sequence[Buffer], decode: Decode) -> asyncio.Future[Any]:
        """Sends a request that the caller has encoded in pieces, after a header of version 1. For version 2 the first
        piece has the header's tagged fields, and `decode` gets those of the response."""
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        name = self.client_id.encode()
        head = struct.pack(f">hhih{len(name)}s", api_key, version, self._correlation, len(name), name)
        size = len(head) + sum(map(len, parts))
        return self._write([_LENGTH.pack(size), head, *parts], decode)

    def _write(self, parts: Sequence[Buffer], decode: Decode) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        pending = _Pending(self._correlation, decode, answer, 0.0)
        if self._login is None or not self._login.delays(lambda: self._send(parts, pending)):
            self._send(parts, pending)
        return answer

    def _send(self, parts: Sequence[Buffer], pending: _Pending) -> None:
        if pending.answer.done():  # cancelled while it waited for a login
            return
        if self.closed or self._transport is None:
            pending.answer.set_exception(Unreachable(f"{self.address}: connection closed"))
            return
        if self._check is not None:
            try:
                self._check()
            except Fenced as error:
                pending.answer.set_exception(error)
                return
        pending.sent = time.monotonic()
        self._pending.append(pending)
        if len(parts) == 1:
            self._transport.write(parts[0])
        else:
            self._transport.writelines(parts if self._tls is None else _join_small(parts))

    def close(self, reason: str = "closed by us") -> None:
        if self.closed:
            return
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._login is not None:
            self._login.cancel()
        if self._transport is not None:
            self._transport.abort()
        for pending in self._pending:
            if not pending.answer.done():
                pending.answer.set_exception(Unreachable(f"{self.address}: {reason}"))
                pending.answer.exception()  # marks it as retrieved: nobody may be waiting any more
        self._pending.clear()

    # --- called by asyncio --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        # The copier limits the bytes in flight; the transport need not pause it.
        transport.set_write_buffer_limits(high=LARGEST_FRAME)
        self._last_answer = time.monotonic()
        self._check_deadlines()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = error
        if error is not None:
            self.close(self._describe(error) or str(error))
        elif self.versions and not self._has_served and self._login is None:
            self.close(failures.NEEDS_SASL)
        else:
            self.close("the broker closed the connection")

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._frames.free()

    def buffer_updated(self, received: int) -> None:
        try:
            for frame in self._frames.filled(received):
                self._answer(frame)
        except NotFrames as error:
            self.close(failures.NEEDS_TLS if error.start.startswith(_TLS_ALERT) else "this is not a Kafka broker")

    def _answer(self, frame: memoryview) -> None:
        if self.closed:
            return
        correlation = _LENGTH.unpack_from(frame, 0)[0]
        if not self._pending or self._pending[0].correlation != correlation:
            self.close("the broker answers out of order")
            return
        pending = self._pending.popleft()
        self._last_answer = time.monotonic()
        self._has_served = bool(self.versions)
        if pending.answer.done():
            return
        try:
            result = pending.decode(frame[4:])
        except Exception as error:
            pending.answer.set_exception(WireError(f"{self.address}: an answer cannot be decoded: {error}"))
        else:
            pending.answer.set_result(result)

    def _check_deadlines(self) -> None:
        # One timer per connection instead of one per request, of which there are thousands a second. A broker answers
        # in order, and late when it throttles: the timeout counts from the answer before.
        now = time.monotonic()
        if self._pending and max(self._pending[0].sent, self._last_answer) + self.timeout < now:
            self.close(f"no answer within {self.timeout:g} s")
        elif not self._pending and 0 <= self._connecting.max_idle < now - self._last_answer:
            self.close(f"not used for {self._connecting.max_idle:g} s")
        if not self.closed:
            self._timer = asyncio.get_running_loop().call_later(min(1.0, self.timeout / 4), self._check_deadlines)


def _join_small(parts: Sequence[Buffer]) -> list[Buffer]:
    joined: list[Buffer] = []
    run: list[Buffer] = []
    for part in parts:
        if len(part) < _SMALL_PART:
            run.append(part)
            continue
        if run:
            joined.append(b"".join(run))
            run = []
        joined.append(part)
    return [*joined, b"".join(run)] if run else joined


def _api_versions(version: int, frame: Buffer) -> tuple[int, dict[int, tuple[int, int]]]:
    """The error, and without one the versions of each request."""
    code = struct.unpack_from(">h", frame, 0)[0]
    if code:
        return code, {}
    answer = ApiVersionsResponse.decode(bytes(frame), version=version)
    return 0, {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}


def _decoder(response: Any, version: int) -> Decode:
    if response.flexible_version_q(version):
        return lambda frame: response.decode(frame[tags_end(frame) :])
    return lambda frame: response.decode(frame)


def tags_end(frame: memoryview) -> int:
    """Where the tagged fields of the response header end (almost always one zero byte)."""
    count, at = read_uvarint(frame, 0)
    for _ in range(count):
        _tag, at = read_uvarint(frame, at)
        size, at = read_uvarint(frame, at)
        at += size
    return at


def read_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """An unsigned varint and the index after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > _LONGEST_VARINT:
            raise ValueError("a varint has more than five bytes")
