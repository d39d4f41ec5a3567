"""Checks who may ask over loopback (local-is-not-trusted). The unix socket is private already.

Checking Host stops DNS rebinding, checking Origin stops pages of other sites, and the token stops
other users of this machine. There is no CORS, because no other origin may ask at all.
"""

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

COOKIE = "subluminal_token"
_NAMES = ("127.0.0.1", "localhost", "[::1]")
_POLICY_VIOLATION = 1008


class AccessCheck:
    """Refuses requests that do not come from this machine's user."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"{name}:{port}" for name in _NAMES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            problem = self._problem(_headers(scope))
            if problem is not None:
                await _refuse(scope, send, *problem)
                return
        await self._app(scope, receive, send)

    def _problem(self, headers: dict[str, str]) -> tuple[int, str] | None:
        if headers.get("host", "") not in self._hosts:
            return 403, "only this machine may ask here"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc not in self._hosts:
            return 403, "pages of other sites may not ask here"
        given = _given_token(headers)
        if given is None or not hmac.compare_digest(given.encode(), self._token.encode()):
            return 401, "a token is needed"
        return None


def _headers(scope: Scope) -> dict[str, str]:
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }


def _given_token(headers: dict[str, str]) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


async def _refuse(scope: Scope, send: Send, status: int, message: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": message})
        return
    body = f'{{"error":"{message}"}}'.encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
