"""The ledger as commands see it, by whatever road it can be reached."""

from typing import Any, NamedTuple, Protocol

from subluminal.cli.output import Output
from subluminal.clock import rfc3339
from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.ledger.client import socket as daemon
from subluminal.ledger.client.socket import quoted

Row = dict[str, Any]


class Page(NamedTuple):
    """Which part of a list."""

    limit: int
    newest_first: bool = True
    cursor: str | None = None

    def parameters(self) -> dict[str, str | int | None]:
        order = "newest" if self.newest_first else "oldest"
        return {"limit": self.limit, "order": order, "cursor": self.cursor}


class Found(NamedTuple):
    """Rows, and where the next page begins."""

    rows: list[Row]
    next: str | None


class Ledger(Protocol):
    """What can be asked. `where` is a filter as text."""

    def calls(self, where: str, page: Page) -> Found: ...
    def runs(self, where: str, page: Page) -> Found: ...
    def hints(self, where: str, page: Page, outcome: str | None = None) -> Found: ...
    def approvals(self, where: str, page: Page) -> Found: ...
    def recovery(self, by: str, since_ms: int | None, until_ms: int | None) -> list[Row]: ...
    def tools(self) -> list[Row]: ...
    def call(self, call_id: str) -> Row | None: ...
    def run(self, run_id: str) -> Row | None: ...


class DaemonLedger:
    """Asks ledgerd."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def calls(self, where: str, page: Page) -> Found:
        return self._list("/v1/calls", "calls", where, page)

    def runs(self, where: str, page: Page) -> Found:
        found = self._list("/v1/scores", "runs", where, page)
        return Found([{**score.pop("run"), **score} for score in found.rows], found.next)

    def hints(self, where: str, page: Page, outcome: str | None = None) -> Found:
        return self._list("/v1/hints", "hints", where, page, outcome=outcome)

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
        found: Row | None = daemon.get(self._places, f"/v1/calls/{quoted(call_id)}", {})
        return found

    def run(self, run_id: str) -> Row | None:
        found: Row | None = daemon.get(self._places, f"/v1/runs/{quoted(run_id)}", {})
        return found

    def _list(self, path: str, name: str, where: str, page: Page, **more: str | None) -> Found:
        asked = {"where": where or None, **more, **page.parameters()}
        answer = self._ask(path, asked)
        return Found(answer[name], answer["next"])

    def _ask(self, path: str, parameters: dict[str, str | int | None]) -> Any:
        """What every ledgerd of this version has."""
        answer = daemon.get(self._places, path, parameters)
        if answer is None:
            raise SubluminalError(
                "the ledgerd that runs is older than this `sub`, and cannot tell",
                hint="stop it with `sub ledgerd stop`, and ask again",
            )
        return answer


class EmptyLedger:
    """Nothing was ever recorded here."""

    def calls(self, where: str, page: Page) -> Found:
        return Found([], None)

    runs = approvals = calls

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


def open_ledger(places: Places, out: Output) -> Ledger:
    """The quickest road there is; what was journalled before this call can be found on it."""
    from subluminal.ledger.client.roll_call import close_what_died

    close_what_died(places)
    if daemon.answers(places):
        return DaemonLedger(places)
    from subluminal.ledger.client.unattended import open_without_daemon

    return open_without_daemon(places, out)
