"""How every answer looks: JSON, one error shape, nothing cached, nothing to embed."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from subluminal.errors import SubluminalError
from subluminal.ledger.store.database import LedgerUnavailable

HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


def answer(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(
        msgspec.json.encode(value), status, media_type="application/json", headers=HEADERS
    )


def refuse(status: int, message: str, hint: str | None = None) -> Response:
    """The one error shape: what is wrong, and what can be done."""
    return answer({"error": message, "hint": hint} if hint else {"error": message}, status)


def said(_request: Request, error: Exception) -> Response:
    """An error of ours as an answer."""
    assert isinstance(error, SubluminalError)
    status = 503 if isinstance(error, LedgerUnavailable) else 400
    return refuse(status, str(error), error.hint)


def not_found(_request: Request, _error: Exception) -> Response:
    return refuse(404, "there is nothing here", "see /openapi.json")


def not_allowed(_request: Request, error: Exception) -> Response:
    response = refuse(405, "this address takes another method")
    response.headers.update(getattr(error, "headers", None) or {})
    return response
