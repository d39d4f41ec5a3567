"""Builds the ASGI application from its parts."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from subluminal.errors import SubluminalError
from subluminal.ledger.api.answers import (
    HEADERS,
    answer,
    not_allowed,
    not_found,
    refuse,
    said,
)
from subluminal.ledger.api.ingest import Ingest
from subluminal.ledger.api.live import Live
from subluminal.ledger.api.openapi import document
from subluminal.ledger.api.parameters import NoParameters, read_parameters
from subluminal.ledger.api.readers import Readers
from subluminal.ledger.api.resources import RESOURCES, endpoint
from subluminal.ledger.api.signing import Signing
from subluminal.ledger.api.status import Reporter, read_stored


def build_app(
    readers: Readers, live: Live, ingest: Ingest, signing: Signing, reporter: Reporter
) -> Starlette:
    """The application for the unix socket and, behind an AccessCheck, for loopback."""

    async def status(request: Request) -> Response:
        read_parameters(request.query_params.multi_items(), NoParameters)
        return answer(reporter.status(await readers.run_fresh(read_stored)))

    async def metrics(_request: Request) -> Response:
        text = reporter.metrics(await readers.run_fresh(read_stored))
        return Response(text, media_type="text/plain; version=0.0.4", headers=HEADERS)

    async def openapi(_request: Request) -> Response:
        return answer(document())

    routes = [
        *(Route(each.path, endpoint(each, readers), methods=["GET"]) for each in RESOURCES),
        Route("/v1/status", status, methods=["GET"]),
        Route("/v1/events", ingest.post, methods=["POST"]),
        Route("/v1/checkpoints", signing.post, methods=["POST"]),
        Route("/metrics", metrics, methods=["GET"]),
        Route("/openapi.json", openapi, methods=["GET"]),
        WebSocketRoute("/v1/stream", live.serve),
    ]
    return Starlette(
        routes=routes,
        exception_handlers={
            SubluminalError: said,
            404: not_found,
            405: not_allowed,
            HTTPException: _http_error,
            500: _bug,
        },
    )


def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refuse(error.status_code, error.detail)


def _bug(_request: Request, error: Exception) -> Response:
    return refuse(500, f"ledgerd failed with {type(error).__name__}, which is a bug", "see its log")
