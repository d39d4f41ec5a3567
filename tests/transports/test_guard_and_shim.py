"""A guard and a shim with the same calls: what the model is told, and a ledger that proves both."""

import json
from pathlib import Path
from typing import Any

from tests.adapters.records import calls_of, events_of
from tests.ledger.home import Home
from tests.requirements import requirement
from tests.transports.doors import DOORS
from tests.transports.test_identical_events import ACTIONS, POLICY, STEPS

from subluminal.cli.main import main


@requirement("sdk:refusals")
def test_the_model_is_told_the_same_and_the_ledger_proves_both(
    own_home: Path, tmp_path: Path, capsys: Any
) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    told = {}
    for kind in ("mcp_stdio", "guard"):
        door = DOORS[kind](own_home, tmp_path, policy, kind)
        answers = [door.call(step) for step in STEPS]
        assert [answer.action for answer in answers] == ACTIONS
        told[kind] = [answer.refusal.get("message") for answer in answers]
        door.close()
    assert told["guard"] == told["mcp_stdio"]
    events = events_of(own_home)
    assert _decided(events, "guard") == _decided(events, "mcp_stdio")
    ledger = Home(str(own_home))
    ledger.ingest()
    ledger.close()
    assert main(["ledger", "verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["holds"] is True


def _decided(events: list[dict[str, Any]], run_id: str) -> list[tuple[Any, ...]]:
    """The order, tool, hash and decision of each call, and the error of one that was refused."""
    return [
        (
            *(start["call"][name] for name in ("seq", "tool_name", "args_hash")),
            decided["decision"],
            decided["decision"]["action"] != "ALLOW" and end["error"],
        )
        for start, decided, end in calls_of([e for e in events if e["run_id"] == run_id])
    ]
