"""Audit records are read back as they were journalled, by run and by time."""

import json

from tests.ledger.events import ALLOW, Producer, audit_record, judged
from tests.ledger.home import Home

from subluminal.ledger.query.audits import audit_records
from subluminal.ledger.store.drops import DAY_MS
from subluminal.ledger.upkeep.deferred import pack_some
from subluminal.ledger.upkeep.retention import Retention
from subluminal.trust.home_key import home_key


def propose(shim: Producer, nonce: str) -> str:
    call_id = shim.begin(decision=judged())
    shim.audit(call_id, audit_record(nonce))
    shim.finish(call_id)
    return call_id


def test_records_of_runs_and_of_times(home: Home) -> None:
    one, two = home.producer("run-1", "a"), home.producer("run-2", "b")
    first = propose(one, "n-1")
    one.call(decision=ALLOW)
    one.clock_ms += DAY_MS
    second = propose(one, "n-2")
    home.ingest()  # runs are in the order of ingest
    third = propose(two, "n-3")
    home.ingest()
    reader = home.reader()
    found = list(audit_records(reader))
    assert [(line.call_id, line.run_id) for line in found] == [
        (first, "run-1"),
        (second, "run-1"),
        (third, "run-2"),
    ]
    assert json.loads(found[0].record) == audit_record("n-1")
    assert list(audit_records(reader, ["run-2"])) == found[2:]
    assert list(audit_records(reader, since_ms=one.clock_ms - 1_000)) == [found[1]]
    assert list(audit_records(reader, ["run-1"], one.clock_ms - 1_000)) == [found[1]]
    assert list(audit_records(reader, ["nobody"])) == []


def test_records_in_packed_segments_and_without_the_dropped_ones(home: Home) -> None:
    shim = home.producer()
    propose(shim, "n-1")
    home.ingest()
    shim.clock_ms += 30 * DAY_MS
    kept = propose(shim, "n-2")
    home.ingest()
    while pack_some(home.store.connection):
        pass
    retention = Retention(home.store.connection, 10, 1 << 40, home_key(home.places.state))
    while retention.step(shim.clock_ms):
        pass
    assert [line.call_id for line in audit_records(home.reader())] == [kept]
