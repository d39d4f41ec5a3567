"""Signs a checkpoint on request, so that an anchor covers all that is recorded."""

import asyncio
from collections.abc import Callable

import apsw
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from subluminal.ledger.api.answers import answer, refuse
from subluminal.ledger.api.readers import Readers
from subluminal.ledger.upkeep.checkpoints import last_checkpoint

Ask = Callable[[Callable[[bool], None]], None]
"""Asks the writer for a checkpoint. It calls back, in its own thread, with whether it signed."""


class SignedRecord(Struct, frozen=True):
    """The newest checkpoint."""

    checkpoint: int
    """its number; 0 if nothing was recorded yet"""
    digest: str
    events: int
    """events in the ledger then"""


class Signing:
    """Hands the request to the writer, and waits for it."""

    def __init__(self, readers: Readers, ask: Ask) -> None:
        self._readers = readers
        self._ask = ask

    async def post(self, _request: Request) -> Response:
        """POST /v1/checkpoints"""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        self._ask(lambda is_signed: _tell(loop, done, is_signed))
        if not await done:
            return refuse(503, "the ledger cannot be signed now", "try again")
        return answer(await self._readers.run(_newest))


def _tell(loop: asyncio.AbstractEventLoop, done: "asyncio.Future[bool]", is_signed: bool) -> None:
    loop.call_soon_threadsafe(_settle, done, is_signed)


def _settle(done: "asyncio.Future[bool]", is_signed: bool) -> None:
    if not done.done():
        done.set_result(is_signed)


def _newest(connection: apsw.Connection) -> SignedRecord:
    last = last_checkpoint(connection)
    if last is None:
        return SignedRecord(0, "", 0)
    return SignedRecord(last.id, last.digest.hex(), last.pos)
