"""A program in process lowers its run, and asks for the level (`Host.lower_taint`, `Host.taint`)."""

from pathlib import Path

import pytest
from tests.core.test_taint import SEND, WEB, events, make, policy, tool_call
from tests.hosts import host_in
from tests.policy.bundles import rule
from tests.requirements import requirement

from subluminal.contracts.vocabulary import Action, Taint
from subluminal.core.runs.opening import Sharing
from subluminal.state.errors import StateUnusable


@requirement("taint:program")
def test_a_program_lowers_its_run(tmp_path: Path) -> None:
    host = host_in(tmp_path, policy(WEB, SEND))
    assert host.taint() is Taint.SYSTEM
    make(host, "files", "read")
    assert host.lower_taint(Taint.TRUSTED, source="wiki") is Taint.TRUSTED
    assert host.lower_taint(Taint.UNTRUSTED, source="inbox", reason="a reply") is Taint.UNTRUSTED
    assert host.lower_taint(Taint.TRUSTED, source="wiki") is Taint.UNTRUSTED
    assert host.lower_taint(Taint.SYSTEM, source="own files") is Taint.UNTRUSTED
    assert host.taint() is Taint.UNTRUSTED
    ruling = host.begin(tool_call("mail", "send"), b"{}")
    assert ruling.decision.summary == "nothing is sent; UNTRUSTED since call 1 (inbox: a reply)"
    host.close()
    assert [each["taint"] for each in events(tmp_path, "taint_changed")] == [
        {"from": "SYSTEM", "to": "TRUSTED", "seq": 1, "by": "sdk", "reason": "wiki"},
        {"from": "TRUSTED", "to": "UNTRUSTED", "seq": 1, "by": "sdk", "reason": "inbox: a reply"},
    ]


def test_a_program_lowers_a_run_of_which_no_policy_speaks(tmp_path: Path) -> None:
    """A policy that comes into force later meets the level."""
    host = host_in(tmp_path, policy(rule("tag", "t")))
    assert host.lower_taint(Taint.UNTRUSTED, source="inbox") is Taint.UNTRUSTED
    later = host_in(tmp_path, policy(SEND))
    assert make(later, "mail", "send") is Action.BLOCK
    host.close()
    later.close()


def test_a_program_lowers_only_the_run_that_it_names(tmp_path: Path) -> None:
    host = host_in(tmp_path, policy(WEB, SEND))
    assert host.lower_taint(Taint.UNTRUSTED, source="inbox", session="other") is Taint.UNTRUSTED
    assert host.taint("other") is Taint.UNTRUSTED
    assert host.taint() is Taint.SYSTEM
    host.close()


def test_a_program_cannot_lower_a_run_without_a_state(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(parents=True)
    (tmp_path / "state" / "runs").write_text("not a directory")
    host = host_in(tmp_path, policy(WEB, SEND))
    with pytest.raises(StateUnusable):
        host.lower_taint(Taint.UNTRUSTED, source="inbox")
    assert host.taint() is Taint.UNTRUSTED
    host.close()


def test_a_secret_in_a_program_s_reason_is_masked(tmp_path: Path) -> None:
    secret = "ghp_" + "aB3d" * 9
    host = host_in(tmp_path, policy(WEB, SEND), sharing=Sharing(threads=True))
    host.lower_taint(Taint.UNTRUSTED, source=f"https://{secret}@example.com")
    host.close()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
