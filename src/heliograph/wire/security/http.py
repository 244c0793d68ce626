"""HTTP requests that carry a secret: to token endpoints, and to Vault."""

import ssl
import urllib.request
from typing import Any


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would send the same credentials to whatever address an answer names."""

    def redirect_request(self, *_: Any) -> None:
        return None


def opener(context: ssl.SSLContext | None, *, uses_proxies: bool) -> urllib.request.OpenerDirector:
    """Follows no redirect: it is an HTTPError. `context` is for https."""
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if not uses_proxies:
        handlers.append(urllib.request.ProxyHandler({}))
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers)
