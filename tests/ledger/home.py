"""A home in a temporary directory: producers write its journals, the ledger follows them."""

import os

import apsw
from tests.ledger.events import Producer

from subluminal.config.places import Places
from subluminal.ledger.ingest.following import Following
from subluminal.ledger.proof import Report, verify_ledger
from subluminal.ledger.store.committing import Store
from subluminal.ledger.store.database import open_reader, open_writer
from subluminal.ledger.upkeep.checkpoints import write_checkpoint
from subluminal.trust.home_key import home_key


class Home:
    """Everything below one SUB_HOME."""

    def __init__(self, path: str) -> None:
        self.places = Places(path, os.path.join(path, "run"))
        self._store: Store | None = None
        self._following: Following | None = None
        self._closing: list[Producer | apsw.Connection] = []

    def producer(self, run_id: str = "run", shim_id: str = "shim", **limits: int) -> Producer:
        made = Producer(self.places.journal, run_id, shim_id, **limits)
        self._closing.append(made)
        return made

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = Store(open_writer(self.places.ledger), self.places.ledger)
        return self._store

    def ingest(self) -> int:
        """Reads all that the journals hold; returns how many events were new."""
        if self._following is None:
            self._following = Following(self.places.journal, self.store.lookups)
        before = self.store.events_total
        while self._following.pump(self.store.intake):
            self.store.commit()
        self.store.commit()
        return self.store.events_total - before

    def take(self, lines: list[bytes], origin: str = "test") -> int:
        """Takes lines by another road."""
        before = self.store.events_total
        self.store.intake.take(lines, origin, 0)
        self.store.commit()
        return self.store.events_total - before

    def checkpoint(self, at_ms: int = 1) -> None:
        write_checkpoint(self.store.connection, self.places, home_key(self.places.state), at_ms)

    def restart(self) -> None:
        """Forgets everything that is not on disk."""
        if self._following is not None:
            self._following.close()
        if self._store is not None:
            self._store.close()
        self._store = self._following = None

    def reader(self) -> apsw.Connection:
        connection = open_reader(self.places.ledger)
        self._closing.append(connection)
        return connection

    def verify(self, run_id: str | None = None) -> Report:
        return verify_ledger(self.reader(), self.places, run_id=run_id)

    def rows(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        return self.store.connection.execute(sql, values).fetchall()

    def lines(self) -> list[bytes]:
        """Every whole line in every journal."""
        found: list[bytes] = []
        for directory, _, names in sorted(os.walk(self.places.journal)):
            for name in sorted(names):
                with open(os.path.join(directory, name), "rb") as file:
                    found += file.read().split(b"\n")[:-1]
        return found

    def close(self) -> None:
        self.restart()
        for each in self._closing:
            each.close()
