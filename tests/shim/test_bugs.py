"""A bug in Subluminal applies decision_on_error, is recorded, leaves a report; the stream goes on."""

import pathlib
import stat
import sys

import pytest
from tests.shim.household import deny, policy

FAULTY = str(pathlib.Path(__file__).with_name("faulty_sub.py"))


def start(household, where, on_error="BLOCK"):
    household.write_policy(policy(deny("rm"), on_error=on_error))
    shim = household.start(sub=[sys.executable, FAULTY, where]).ready()
    assert shim.code("echo") == 0
    return shim


def reports(household):
    return sorted((household.home / "reports").glob("*"))


@pytest.mark.parametrize(("on_error", "code"), [("BLOCK", -32081), ("ALLOW", 0)])
def test_a_bug_while_deciding(household, on_error, code):
    shim = start(household, "deciding", on_error)
    assert shim.code("boom") == code
    assert shim.code("boom") == code, "again: no second report of the same bug"
    assert [shim.code("echo"), shim.code("rm")] == [0, -32081]
    shim.close()
    assert shim.wait() == 0
    [report] = reports(household)
    assert "KeyError: 'planted'" in report.read_text()
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    failed = [
        event["decision"]
        for event in household.events("tool_call_decision")
        if event["call"]["tool_name"] == "boom"
    ]
    assert [each["explain"]["reason_code"] for each in failed] == ["EVALUATION_ERROR"] * 2
    assert "a bug in sub: KeyError" in failed[0]["explain"]["summary"]
    told = household.wait_event("shim_health", health__state="degraded")
    assert str(report) in told["health"]["detail"]
    assert len(household.executed()) == (2 if code else 4)
    assert household.status() == "SUCCEEDED"


def test_a_bug_while_recording_refuses_what_could_not_be_recorded(household):
    """Even where decision_on_error is ALLOW: nothing is executed without its record (journal-first)."""
    shim = start(household, "recording", "ALLOW")
    error = shim.call("echo", {"boom": 1})["error"]
    assert error["code"] == -32081
    assert "a bug in sub kept this call from being recorded" in error["message"]
    assert shim.code("echo") == 0
    shim.close()
    assert shim.wait() == 0
    assert len(household.executed()) == 2
    assert len(reports(household)) == 1


def test_a_bug_while_accounting_for_an_answer(household):
    household.write_policy(policy())
    shim = household.start(sub=[sys.executable, FAULTY, "accounting"]).ready()
    assert [shim.code("echo"), shim.code("echo")] == [0, 0], "the answer had left already"
    assert len(reports(household)) == 1
    shim.close()
    shim.wait()
    household.wait_empty()


def test_a_bug_in_the_loop_itself_ends_the_shim_in_order(household):
    shim = household.start(sub=[sys.executable, FAULTY, "looping"]).ready()
    shim.ask("hang")
    assert shim.wait() == 70
    assert b"error: a bug in sub: KeyError" in shim.err
    assert b"Traceback" not in shim.err
    assert len(reports(household)) == 1
    assert household.alive() == []
    assert household.status() == "FAILED"
