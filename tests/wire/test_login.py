"""Logins on one connection: which requests wait, and what happens to them."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from heliograph.model.secret import Secret
from heliograph.model.security import PLAIN, OAuthLogin, PasswordLogin, Sasl
from heliograph.wire import login as login_module
from heliograph.wire.login import Login
from heliograph.wire.security.failures import SecurityFailure
from waiting import async_until

SASL = Sasl(PLAIN, PasswordLogin("me", Secret("my password")))


class Broker:
    """Answers logins; `lifetime` is that of the session in seconds. With `silent` it does not answer any more."""

    def __init__(self, lifetime: float = 0.0) -> None:
        self.lifetime = lifetime
        self.error = 0
        self.logins = 0
        self.silent = False

    async def send(self, request: Any, _newest: int) -> Any:
        if self.silent:
            await asyncio.Event().wait()
        if isinstance(request, SaslHandshakeRequest):
            return SimpleNamespace(error_code=0, mechanisms=[PLAIN])
        assert isinstance(request, SaslAuthenticateRequest)
        self.logins += 1
        lifetime = int(self.lifetime * 1000)
        return SimpleNamespace(error_code=self.error, error_message="no", auth_bytes=b"", session_lifetime_ms=lifetime)


async def _logged_in(broker: Broker, failures: list[str], sasl: Sasl = SASL) -> Login:
    login = Login(sasl, "host", broker.send, failures.append)
    await login.prepare()
    await login.log_in()
    return login


def test_a_login_is_repeated_as_long_as_sessions_end() -> None:
    async def main() -> None:
        broker, failures = Broker(lifetime=0.05), list[str]()
        login = await _logged_in(broker, failures)
        await async_until(lambda: broker.logins >= 4)
        login.cancel()
        assert not failures

    asyncio.run(main())


def test_requests_wait_while_a_login_is_under_way_and_are_sent_in_order() -> None:
    async def main() -> None:
        broker, sent = Broker(), list[int]()
        login = Login(SASL, "host", broker.send, lambda _: None)
        await login.prepare()
        under_way = asyncio.create_task(login.log_in())
        await asyncio.sleep(0)
        waits = [login.delays(lambda number=number: sent.append(number)) for number in range(3)]  # type: ignore[misc]
        assert waits == [True] * 3
        assert not sent
        await under_way
        assert sent == [0, 1, 2]
        assert not login.delays(lambda: sent.append(3))

    asyncio.run(main())


def test_requests_that_wait_are_not_forgotten_when_the_connection_is_closed() -> None:
    async def main() -> None:
        broker, sent = Broker(), list[str]()
        broker.silent = True
        login = Login(SASL, "host", broker.send, lambda _: None)
        await login.prepare()
        under_way = asyncio.create_task(login.log_in())
        await asyncio.sleep(0)
        assert login.delays(lambda: sent.append("waited"))
        login.cancel()
        assert sent == ["waited"]
        under_way.cancel()

    asyncio.run(main())


def test_a_request_after_the_close_does_not_wait_for_a_login_that_was_under_way() -> None:
    async def main() -> None:
        broker = Broker()
        broker.silent = True
        login = Login(SASL, "host", broker.send, lambda _: None)
        await login.prepare()
        under_way = asyncio.create_task(login.log_in())
        await asyncio.sleep(0)
        login.cancel()
        assert not login.delays(lambda: None)
        under_way.cancel()

    asyncio.run(main())


def test_a_password_that_cannot_be_encoded_is_not_quoted() -> None:
    async def main() -> None:
        login = Login(
            Sasl("SCRAM-SHA-512", PasswordLogin("me", Secret("my \udce9 password"))), "host", Broker().send, print
        )
        with pytest.raises(SecurityFailure) as failure:
            await login.prepare()
        assert "password:" not in repr(failure.value)
        assert "my " not in repr(failure.value)

    asyncio.run(main())


def test_a_repeated_login_that_is_refused_ends_the_connection() -> None:
    async def main() -> None:
        broker, failures = Broker(lifetime=0.05), list[str]()
        await _logged_in(broker, failures)
        broker.error = 58
        await async_until(lambda: failures)
        assert failures[0].startswith("the repeated login failed: sasl.jaas.config: the broker refuses user me")

    asyncio.run(main())


def test_a_token_server_that_is_down_for_a_moment_does_not_end_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the session's end the token is asked for again."""
    attempts = 0

    async def start_mechanism(_sasl: Sasl, _host: str) -> Any:
        nonlocal attempts
        attempts += 1
        if 2 <= attempts <= 3:
            raise SecurityFailure("the token server is down")
        state = SimpleNamespace(done=False)
        return SimpleNamespace(
            is_done=lambda: state.done,
            is_authenticated=lambda: True,
            auth_bytes=lambda: b"token",
            receive=lambda _: setattr(state, "done", True),
        )

    monkeypatch.setattr(login_module, "start_mechanism", start_mechanism)

    async def main() -> None:
        broker, failures = Broker(lifetime=1.0), list[str]()
        login = await _logged_in(broker, failures, Sasl("OAUTHBEARER", OAuthLogin()))
        await async_until(lambda: broker.logins >= 2)
        login.cancel()
        assert attempts >= 4
        assert not failures

    asyncio.run(main())
