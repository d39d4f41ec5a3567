"""Lookups that a person's words need: a call or run by the end of its id, and pages of rows."""

from collections.abc import Callable
from typing import NamedTuple

from subluminal.contracts.vocabulary import Action
from subluminal.errors import SubluminalError
from subluminal.ledger.client.ledger import Found, Ledger, Page, Row
from subluminal.ledger.filter.fields import UNKNOWN

_MAX_PAGE = 1_000
"""The most rows that the ledger returns at once."""
_FEW = 5
_WILD = str.maketrans({char: f"[{char}]" for char in "*?["})


class Meant(NamedTuple):
    """The call or the run that a name stands for; exactly one of the two is set."""

    call_id: str | None
    run_id: str | None


def find_meant(ledger: Ledger, name: str) -> Meant:
    """Finds a call or a run by its id or the end of its id.

    Raises SubluminalError if nothing matches, or more than one does.
    """
    if not name:  # every id ends in the empty string
        raise _nothing(name)
    if ledger.run(name) is not None:
        return Meant(None, name)
    if ledger.call(name) is not None:
        return Meant(name, None)
    runs = [row["run_id"] for row in _ending(ledger, "run", name)]
    calls = [row["call_id"] for row in _ending(ledger, "call", name)]
    if len(runs) + len(calls) == 1:
        return Meant(calls[0], None) if calls else Meant(None, runs[0])
    if not runs and not calls:
        raise _nothing(name)
    raise several(name, [*runs, *calls])


def find_run(ledger: Ledger, name: str) -> str:
    """Returns the id of the run with this id, or with an id that ends in it."""
    meant = find_meant(ledger, name)
    if meant.run_id is None:
        raise SubluminalError(
            f"`{name}` is a call, not a run", hint="list the runs with `sub query runs`"
        )
    return meant.run_id


def find_runs(ledger: Ledger, names: list[str] | None) -> list[str] | None:
    """Returns the ids of the runs with these names, each once; None if no name is given."""
    return None if names is None else list(dict.fromkeys(find_run(ledger, one) for one in names))


def several(name: str, ids: list[str]) -> SubluminalError:
    """The error for a name that more than one id ends in."""
    return SubluminalError(
        f"`{name}` matches more than one id: {', '.join(ids)}",
        hint="type more characters of the id you mean",
    )


def _nothing(name: str) -> SubluminalError:
    return SubluminalError(
        f"there is no call or run `{name}`",
        hint="list calls with `sub query`, and runs with `sub query runs`",
    )


def ending_in(field: str, name: str) -> str:
    """Returns a filter for the values of a field that end in a name."""
    literal = name.translate(_WILD).replace("\\", "\\\\").replace('"', '\\"')
    return f'{field}:"*{literal}"'


def _ending(ledger: Ledger, field: str, name: str) -> list[Row]:
    ask = ledger.runs if field == "run" else ledger.calls
    return ask(ending_in(field, name), Page(_FEW)).rows


def newest_rows(
    ask: Callable[[str, Page], Found],
    where: str,
    limit: int,
    *,
    newest_first: bool,
    keep: Callable[[Row], bool] = lambda _row: True,
) -> list[Row]:
    """Returns the newest `limit` rows that `keep` accepts, in the order of time.

    Asks for one page after another.
    """
    rows: list[Row] = []
    cursor: str | None = None
    while len(rows) < limit:
        found = ask(where, Page(min(_MAX_PAGE, limit - len(rows)), cursor=cursor))
        rows += filter(keep, found.rows)
        cursor = found.next
        if cursor is None:
            break
    return rows if newest_first else rows[::-1]


def with_unknown_status(row: Row) -> Row:
    """Returns a call's row; a call that was forwarded and never ended has the status UNKNOWN."""
    if row["status"] is None and row["decision"] == Action.ALLOW:
        return {**row, "status": UNKNOWN}
    return row
