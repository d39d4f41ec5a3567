"""The summary counts a run from its events alone."""

from subluminal.export.summary import MAX_REFUSED, as_text, summarise


def decision(number, action="BLOCK", summary="no"):
    call = {"call_id": f"c{number}", "server_name": "s", "tool_name": "t|x"}
    explain = {"summary": summary, "reason_code": "R"}
    return {
        "type": "tool_call_decision",
        "ts": "2026-01-01T00:00:00.000Z",
        "run_id": "r",
        "call": call,
        "decision": {"action": action, "rule_id": None, "explain": explain},
    }


def test_nothing():
    found = summarise([])
    assert (found["events"], found["decisions"], found["status"]) == (0, {}, None)
    assert as_text(found)[2] == "- status: RUNNING"


def test_refusals_are_all_counted_and_some_listed():
    found = summarise(decision(number) for number in range(MAX_REFUSED + 5))
    assert found["decisions"] == {"BLOCK": MAX_REFUSED + 5}
    assert len(found["refused"]) == MAX_REFUSED


def test_text_from_outside_stays_in_its_cell():
    found = summarise([decision(1, summary="a|b\nc")])
    assert as_text(found)[-1] == "| s/t\\|x BLOCK | R | a\\|b c |"


def test_a_forwarded_call_without_an_end_is_unknown():
    assert summarise([decision(1, "ALLOW")])["statuses"] == {"UNKNOWN": 1}
