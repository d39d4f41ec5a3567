"""What can be asked of a ledger, however it is reached.

`Ledger` is the interface. `DaemonLedger` asks ledgerd, `direct.DirectLedger` reads the ledger's
file, and both return the same rows. `EmptyLedger` stands for a home where nothing was recorded.
"""

from typing import Any, NamedTuple, Protocol

from subluminal.clock import rfc3339
from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.ledger.client.http import Client, Parameters, quoted

Row = dict[str, Any]


class Page(NamedTuple):
    """One page of a list."""

    limit: int
    newest_first: bool = True
    cursor: str | None = None
    """`next` of the page before; None for the first page"""

    def parameters(self) -> Parameters:
        """The page as query parameters."""
        order = "newest" if self.newest_first else "oldest"
        return {"limit": self.limit, "order": order, "cursor": self.cursor}


class Found(NamedTuple):
    """A page of rows, and the cursor of the next page (None after the last)."""

    rows: list[Row]
    next: str | None


class Ledger(Protocol):
    """The questions that a ledger answers. `where` is a filter as text."""

    def calls(self, where: str, page: Page) -> Found: ...
    def runs(self, where: str, page: Page) -> Found: ...
    def hints(self, where: str, page: Page, outcome: str | None = None) -> Found: ...
    def intents(self, where: str, page: Page) -> Found: ...
    def approvals(self, where: str, page: Page) -> Found: ...
    def recovery(self, by: str, since_ms: int | None, until_ms: int | None) -> list[Row]: ...
    def tools(self) -> list[Row]: ...
    def call(self, call_id: str) -> Row | None: ...
    def run(self, run_id: str) -> Row | None: ...


class DaemonLedger:
    """The ledger, read through ledgerd."""

    def __init__(self, places: Places) -> None:
        self._client = Client(places)

    def calls(self, where: str, page: Page) -> Found:
        return self._list("/v1/calls", "calls", where, page)

    def runs(self, where: str, page: Page) -> Found:
        found = self._list("/v1/scores", "runs", where, page)
        return Found([{**score.pop("run"), **score} for score in found.rows], found.next)

    def hints(self, where: str, page: Page, outcome: str | None = None) -> Found:
        return self._list("/v1/hints", "hints", where, page, outcome=outcome)

    def intents(self, where: str, page: Page) -> Found:
        return self._list("/v1/intents", "intents", where, page)

    def approvals(self, where: str, page: Page) -> Found:
        return self._list("/v1/approvals", "approvals", where, page)

    def recovery(self, by: str, since_ms: int | None, until_ms: int | None) -> list[Row]:
        span = {
            name: None if ms is None else rfc3339(ms)
            for name, ms in (("since", since_ms), ("until", until_ms))
        }
        rows: list[Row] = self._ask("/v1/recovery", {"by": by, **span})
        return rows

    def tools(self) -> list[Row]:
        rows: list[Row] = self._ask("/v1/tools", {})
        return rows

    def call(self, call_id: str) -> Row | None:
        found: Row | None = self._client.find(f"/v1/calls/{quoted(call_id)}")
        return found

    def run(self, run_id: str) -> Row | None:
        found: Row | None = self._client.find(f"/v1/runs/{quoted(run_id)}")
        return found

    def _list(self, path: str, name: str, where: str, page: Page, **more: str | None) -> Found:
        asked = {"where": where or None, **more, **page.parameters()}
        answer = self._ask(path, asked)
        return Found(answer[name], answer["next"])

    def _ask(self, path: str, parameters: Parameters) -> Any:
        """Returns a resource that every ledgerd of this version has."""
        answer = self._client.find(path, parameters)
        if answer is None:
            raise SubluminalError(
                "the running ledgerd is older than this `sub` and cannot answer this question",
                hint="stop it with `sub ledgerd stop` and try again; a new one starts by itself",
            )
        return answer


class EmptyLedger:
    """The ledger of a home where nothing was ever recorded."""

    def calls(self, where: str, page: Page) -> Found:
        return Found([], None)

    runs = intents = approvals = calls

    def hints(self, where: str, page: Page, outcome: str | None = None) -> Found:
        return Found([], None)

    def recovery(self, by: str, since_ms: int | None, until_ms: int | None) -> list[Row]:
        return []

    def tools(self) -> list[Row]:
        return []

    def call(self, call_id: str) -> Row | None:
        return None

    def run(self, run_id: str) -> Row | None:
        return None
