"""One HTTP connection: limits on how long a client may take, and the client's certificate for the application."""

import asyncio
import ssl
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from heliograph.rest.tls import subject_of

_HEADERS_WITHIN = 15.0  # seconds; a client that sends a header at a time would hold a connection for ever
CERTIFICATE_SUBJECT = "heliograph.certificate_subject"  # in the state of a request


class Connection(H11Protocol):
    """uvicorn's, which has no limit until the headers of a request are complete, and drops certificates."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        subject = _subject(transport)
        self.app_state = {**self.app_state, CERTIFICATE_SUBJECT: subject}
        self._limit_wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._limit_wait()
        else:
            self._end_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._end_wait()
        super().on_response_complete()

    def _should_upgrade(self) -> bool:
        return False  # without uvicorn's warning: nothing here is a WebSocket

    def _limit_wait(self) -> None:
        if self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(_HEADERS_WITHIN, self.transport.close)

    def _end_wait(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def _subject(transport: asyncio.Transport) -> str:
    """Of a certificate that was verified in the handshake; empty without one."""
    tls: Any = transport.get_extra_info("ssl_object")
    certificate = tls.getpeercert(binary_form=True) if isinstance(tls, ssl.SSLObject) else None
    return subject_of(certificate) if certificate else ""
