"""A refused call and its retry: whoever finds one of the two in the record finds the other."""

import json
from typing import Any

import pytest
from tests.adapters.records import calls_of
from tests.ledger.home import Home
from tests.requirements import requirement
from tests.sdk.waiting.conftest import Desk, asks

from subluminal import Blocked
from subluminal.cli.main import main


@requirement("sdk:retry-of")
def test_both_calls_name_each_other_in_every_view(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    guard = desk.guard(asks(), approvals="wait", approval_timeout_ms=1)
    with pytest.raises(Blocked, match="nobody answered"), guard.call("refund", {"amount": 5}):
        pass
    assert guard.check("other", {}).action == "ALLOW"
    (refused, *_), (retry, *_), (other, *_) = calls_of(desk.events())
    first, second = refused["call"]["call_id"], retry["call"]["call_id"]
    ledger = Home(str(desk.home))
    ledger.ingest()
    ledger.close()

    def said(*words: str) -> str:
        assert main([*words]) == 0
        return capsys.readouterr().out

    def rows(*words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in said(*words, "--json").splitlines()]

    calls = {row["call_id"]: row["retry_of"] for row in rows("query", "calls")}
    assert calls == {first: None, second: first, other["call"]["call_id"]: None}
    assert [row["call_id"] for row in rows("query", "calls", f"retry_of:{first}")] == [second]
    (shown,), (again,) = rows("show", first), rows("show", second)
    assert (shown["call"]["retry_of"], shown["retries"]) == (None, [second])
    assert (again["call"]["retry_of"], again["retries"]) == (first, [])
    assert f"retried     {second}" in said("show", first)
    assert f"retry of    {first}" in said("show", second)
    assert f"python/refund (retry of {first[-8:]})" in said("tail", "--no-follow")
    assert json.loads(said("ledger", "verify", "--json"))["holds"] is True
