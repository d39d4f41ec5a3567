"""Finds the call or the run that a person means: by its id, or by the end of it."""

from typing import NamedTuple

from subluminal.errors import SubluminalError
from subluminal.ledger.client.ledger import Ledger, Page, Row

_FEW = 5
_WILD = str.maketrans({char: f"[{char}]" for char in "*?["})


class Meant(NamedTuple):
    """One of the two."""

    call_id: str | None
    run_id: str | None


def find_meant(ledger: Ledger, name: str) -> Meant:
    """Raises SubluminalError if there is none, or more than one."""
    if not name:  # the end of everything
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
    raise SubluminalError(
        f"`{name}` is the end of several: {', '.join([*runs, *calls])}", hint="give more of it"
    )


def _nothing(name: str) -> SubluminalError:
    return SubluminalError(
        f"there is no call and no run `{name}`", hint="`sub query` and `sub query runs` list them"
    )


def find_run(ledger: Ledger, name: str) -> str:
    """The run that is meant."""
    meant = find_meant(ledger, name)
    if meant.run_id is None:
        raise SubluminalError(f"`{name}` is a call, not a run", hint="`sub query runs` lists runs")
    return meant.run_id


def ending_in(field: str, name: str) -> str:
    """A filter for what ends in a name."""
    literal = name.translate(_WILD).replace("\\", "\\\\").replace('"', '\\"')
    return f'{field}:"*{literal}"'


def _ending(ledger: Ledger, field: str, name: str) -> list[Row]:
    ask = ledger.runs if field == "run" else ledger.calls
    return ask(ending_in(field, name), Page(_FEW)).rows
