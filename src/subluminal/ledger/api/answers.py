"""The form of every answer: JSON, one shape for errors, never cached, never embedded in a page."""

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
    """Answers with a value as JSON."""
    return Response(
        msgspec.json.encode(value), status, media_type="application/json", headers=HEADERS
    )


def refuse(status: int, message: str, hint: str | None = None) -> Response:
    """Answers with an error: what is wrong, and what to do."""
    return answer({"error": message, "hint": hint} if hint else {"error": message}, status)


def said(_request: Request, error: Exception) -> Response:
    """Answers with an error of our own."""
    assert isinstance(error, SubluminalError)
    status = 503 if isinstance(error, LedgerUnavailable) else 400
    return refuse(status, str(error), error.hint)


def not_found(_request: Request, _error: Exception) -> Response:
    return refuse(404, "there is no such address", "see /openapi.json")


def not_allowed(_request: Request, error: Exception) -> Response:
    response = refuse(405, "this address does not take this method")
    response.headers.update(getattr(error, "headers", None) or {})
    return response
