"""Every event of one run: out of the ledger, or straight from its journals where there is none."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from subluminal.cli.output import Output
from subluminal.config.places import Places, encode_name
from subluminal.core.runs.names import journal_dir
from subluminal.errors import SubluminalError
from subluminal.export.ordering import ordered
from subluminal.ledger.client.run_roads import journal_roads


@contextmanager
def run_lines(places: Places, name: str, out: Output) -> Iterator[Iterator[bytes]]:
    """The events of the run that `name` means, in an artifact's order."""
    if find_spec("apsw") is None:
        yield ordered(journal_roads(_journals_of(places, name)))
        return
    from subluminal.ledger.client.ledger import open_ledger
    from subluminal.ledger.client.naming import find_run
    from subluminal.ledger.query.run_events import run_roads
    from subluminal.ledger.store.database import open_reader

    run_id = find_run(open_ledger(places, out), name)
    connection = open_reader(places.ledger)
    try:
        yield ordered(run_roads(connection, run_id))
    finally:
        connection.close()


def _journals_of(places: Places, name: str) -> str:
    """The directory of the run with this id, or with an id that ends so."""
    exact = journal_dir(places, name)
    if os.path.isdir(exact):
        return exact
    found = [each for each in _listed(places.journal) if each.endswith(encode_name(name))]
    if len(found) == 1:
        return os.path.join(places.journal, found[0])
    if found:
        several = ", ".join(sorted(found))
        raise SubluminalError(f"`{name}` is the end of several: {several}", hint="give more of it")
    raise SubluminalError(f"there is no run `{name}`", hint="the journals have none of this name")


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
