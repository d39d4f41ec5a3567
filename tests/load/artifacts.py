"""Checks the artifact and the event stream of one job against its journals."""

import json
from collections import defaultdict

from tests.export.test_junit import SCHEMA as JUNIT
from tests.export.test_sarif import VALIDATOR as SARIF

from subluminal.export.verifying import verify_artifact


def check_artifact(directory, events):
    """Checks that an artifact is proven, valid and complete; `events` are those of the journals."""
    proof = verify_artifact(str(directory))
    assert proof.findings == []
    assert proof.files > 0
    assert proof.events == len(events)
    JUNIT.validate(str(directory / "junit.xml"))
    SARIF.validate(json.loads((directory / "results.sarif").read_text()))
    (end,) = (event["run"] for event in events if event["type"] == "run_end")
    summary = json.loads((directory / "summary.json").read_text())
    assert summary["totals"] == end["summary"]
    assert summary["status"] == end["status"]
    assert summary["events_lost"] == 0
    assert sum(summary["decisions"].values()) == end["summary"]["calls_total"]
    snapshot = directory / "policies" / f"{summary['policy']['policy_hash']}.json"
    assert json.loads(snapshot.read_text())["policy_id"] == "load"
    same_events(directory / "events.jsonl", events)


def same_events(file, events):
    """Checks that a file has exactly the events of the journals, each shim's in its order."""
    assert by_shim(map(json.loads, file.read_text().splitlines())) == by_shim(events)


def by_shim(events):
    found = defaultdict(list)
    for event in events:
        found[event["source"]["shim_id"]].append(event)
    return found
