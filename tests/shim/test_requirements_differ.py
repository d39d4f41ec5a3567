"""What a rule requires of a person: each requirement is met in its own way only (issue 19)."""

import json
import sys

import pytest
from tests.processes import wait_until
from tests.requirements import requirement
from tests.shim.test_approvals import REJECTED, answers_dir, asking, problems, waiting
from tests.shim.test_shared_runs import leave
from tests.terminal import typed

from subluminal.config.places import places
from subluminal.config.settings import ApprovalSettings
from subluminal.contracts.vocabulary import Requirement
from subluminal.core.controls.approval_files import Slot
from subluminal.core.controls.grants import issue_grant
from subluminal.core.controls.passphrase import set_passphrase
from subluminal.errors import SubluminalError
from subluminal.operator.approving import approve

WORDS = "correct horse"


@pytest.fixture
def asked(household, person):
    """Starts a shim whose rule requires something, makes the call; returns shim and approval id."""
    shims = []

    def make(require, settings=""):
        household.write_policy(asking(require))
        if settings:
            (household.home / "config.toml").write_text(settings)
        shims.append(household.start().ready())
        said = shims[-1].call("push")["error"]["data"]["subluminal"]
        assert said["reason_code"] == f"{require.upper()}_REQUIRED"
        (row,) = waiting(person)
        assert row["requirement"] == require
        return shims[-1], row["approval_id"]

    yield make
    leave(*shims)


@pytest.fixture
def passphrase(household):
    set_passphrase(str(household.home / "state"), WORDS)


def decided(household):
    return [event["approval"] for event in household.events("approval_decided")]


def test_a_confirmation_is_given_by_sub_approve(asked, person, household):
    shim, approval_id = asked("confirmation")
    person("approve", approval_id)
    assert shim.code("push") == 0
    assert [each["requirement"] for each in decided(household)] == ["confirmation"]


# Tickets


@requirement("trust:ticket")
def test_a_ticket_is_asked_for_and_recorded(asked, household, person):
    shim, approval_id = asked("ticket")
    told = person("approve", approval_id, code=2)
    assert "rule `ask` requires a ticket" in told
    assert "--ticket REF" in told
    assert shim.code("push") == REJECTED
    assert "--ticket" in person("approvals", approval_id)
    assert " ticket " in person("approvals")
    person("approve", approval_id, "--ticket", "OPS-17")
    assert shim.code("push") == 0
    (given,) = decided(household)
    assert (given["ticket"], given["requirement"]) == ("OPS-17", "ticket")
    (row,) = waiting(person, "--all")
    assert row["answer"]["ticket"] == "OPS-17"
    assert "ticket OPS-17" in person("approvals", approval_id)


@requirement("trust:ticket")
@pytest.mark.parametrize("ticket", ["OPS-", "ops-1", "xOPS-1", "OPS-1x", "OPS-1\n", "DEV-1"])
def test_a_ticket_must_match_the_pattern_from_end_to_end(asked, household, person, ticket):
    shim, approval_id = asked("ticket", "[approvals]\nticket_pattern = 'OPS-[0-9]+'\n")
    assert "OPS-[0-9]+" in person("approve", approval_id, code=2)
    person("approve", approval_id, "--ticket", ticket, code=2)
    assert shim.code("push") == REJECTED
    assert decided(household) == []
    person("approve", approval_id, "--ticket", "OPS-1")
    assert shim.code("push") == 0


@pytest.mark.parametrize("ticket", ["", " ", "--help", "-x", "a\x1b[2Jb", "a\u202eb"])
def test_what_is_not_a_ticket(asked, person, ticket):
    _, approval_id = asked("ticket")
    told = person("approve", approval_id, f"--ticket={ticket}", code=2)
    assert "is not a ticket" in told
    assert "\x1b" not in told


def test_a_pattern_that_cannot_be_used_accepts_nothing(asked, household, person):
    _, approval_id = asked("ticket", "[approvals]\nticket_pattern = '(?=x)'\n")
    told = person("approve", approval_id, "--ticket", "x", code=2)
    assert "`ticket_pattern` in the settings is not usable" in told
    assert decided(household) == []


CHECK = """\
import os, sys
open("asked", "a").write(sys.argv[-1] + "\\n")
print("looking it up")
if sys.argv[-1] == "OPS-2":
    print("OPS-2 is \\x1b[2J closed", file=sys.stderr)
sys.exit({"OPS-1": 0, "OPS-2": 3}.get(sys.argv[-1], 1))
"""


def checked_by(household, script=CHECK, more=""):
    household.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = household.home / "check.py"
    path.write_text(script)
    command = json.dumps([sys.executable, str(path)])
    return f"[approvals]\nticket_pattern = 'OPS-.*'\nticket_check = {command}\n{more}"


@requirement("trust:ticket")
def test_a_command_says_which_tickets_are_accepted(asked, household, person):
    """Started without a shell, with the ticket as last argument; its last line is shown."""
    shim, approval_id = asked("ticket", checked_by(household))
    told = person("approve", approval_id, "--ticket", "OPS-2", code=2)
    assert "ticket `OPS-2` was refused: OPS-2 is " in told
    assert "closed" in told
    assert "\x1b" not in told
    assert "refused: looking it up" in person(
        "approve", approval_id, "--ticket", "OPS-3; touch hacked", code=2
    )
    assert shim.code("push") == REJECTED
    person("approve", approval_id, "--ticket", "OPS-1")
    assert shim.code("push") == 0
    assert (household.home / "asked").read_text() == "OPS-2\nOPS-3; touch hacked\nOPS-1\n"
    assert not list(household.home.rglob("hacked"))
    assert [each["ticket"] for each in decided(household)] == ["OPS-1"]


def test_the_command_is_asked_neither_by_shims_nor_in_an_agent(asked, household, person):
    shim, approval_id = asked("ticket", checked_by(household))
    shim.code("push")
    told = person("approve", approval_id, "--ticket", "OPS-1", code=2, CLAUDECODE="1")
    assert "is for a person" in told
    person("approve", approval_id, "--ticket", "DEV-1", code=2)
    assert not (household.home / "asked").exists()


@requirement("trust:ticket")
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import signal; signal.pause()", "did not answer about ticket `OPS-1` within 0.2 s"),
        ("import os; os.kill(os.getpid(), 9)", "refused: exit code -9"),
        ("raise SystemExit(7)", "refused: exit code 7"),
    ],
)
def test_a_check_that_does_not_accept_refuses(asked, household, person, script, why):
    more = "ticket_check_ms = 200\n" if "pause" in script else ""
    _, approval_id = asked("ticket", checked_by(household, script, more))
    assert why in person("approve", approval_id, "--ticket", "OPS-1", code=2)
    assert decided(household) == []


def test_a_check_that_is_not_there_refuses(asked, household, person):
    (household.cwd / "check").write_text("#!/bin/sh\nexit 0\n")
    (household.cwd / "check").chmod(0o755)
    _, approval_id = asked("ticket", '[approvals]\nticket_check = ["./check"]\n')
    told = person("approve", approval_id, "--ticket", "OPS-1", code=2)
    assert "`./check` cannot be started" in told, "a file of the current directory is not ours"
    assert decided(household) == []


# Step-ups


@requirement("trust:step-up")
def test_a_step_up_needs_a_passphrase_and_says_how_to_set_one(asked, household, person):
    shim, approval_id = asked("step_up")
    told = person("approve", approval_id, code=2)
    assert "this home has no passphrase" in told
    assert "sub passphrase set" in told
    assert shim.code("push") == REJECTED
    assert decided(household) == []


@requirement("trust:step-up")
def test_a_step_up_is_answered_with_the_typed_passphrase(
    asked, household, passphrase, person_at_terminal
):
    shim, approval_id = asked("step_up")
    told = person_at_terminal("passphrase: ", "a guess", "approve", approval_id, code=2)
    assert "wrong passphrase" in told
    assert shim.code("push") == REJECTED
    told = person_at_terminal("passphrase: ", WORDS, "approve", approval_id)
    assert WORDS not in told
    assert shim.code("push") == 0
    assert [each["requirement"] for each in decided(household)] == ["step_up"]


@requirement("trust:step-up")
def test_no_script_answers_a_step_up(asked, household, passphrase, person, tmp_path):
    """Not without a terminal, and not with the right passphrase on a descriptor."""
    shim, approval_id = asked("step_up")
    assert "typed at a terminal" in person("approve", approval_id, code=2)
    file = tmp_path / "passphrase"
    file.write_text(WORDS)
    words = f"exec sub approve {approval_id} 3<{file}"
    env = household.env(SUB_PASSPHRASE_FD="3")
    sub = ["sh", "-c", words.replace("exec sub", f"exec {sys.executable} -P -m subluminal")]
    shown = typed(sub, "passphrase: ", "nonsense", env=env, cwd=str(household.cwd))
    assert (shown.code, "wrong passphrase" in shown.text) == (2, True)
    assert shim.code("push") == REJECTED
    assert decided(household) == []


# What is left to a human


@requirement("trust:human")
def test_a_human_agrees_at_a_terminal_and_no_script_does(
    asked, household, person, person_at_terminal
):
    shim, approval_id = asked("human")
    assert "no terminal to ask at" in person("approve", approval_id, code=2)
    told = person_at_terminal("[y/N]", "", "approve", approval_id, code=2)
    assert "echo/push" in told
    assert "nothing was approved" in told
    assert shim.code("push") == REJECTED
    person_at_terminal("[y/N]", "y", "approve", approval_id)
    assert shim.code("push") == 0
    assert [each["requirement"] for each in decided(household)] == ["human"]


def test_a_home_with_a_passphrase_asks_a_human_for_it_too(
    asked, household, passphrase, person_at_terminal
):
    _, approval_id = asked("human")
    told = person_at_terminal("passphrase: ", "a guess", "approve", approval_id, code=2)
    assert "wrong passphrase" in told
    assert decided(household) == []


# Grants that do not fit


@requirement("trust:grant-fits")
@pytest.mark.parametrize("require", ["ticket", "step_up", "human"])
def test_a_grant_for_the_run_does_not_pass_such_a_rule(asked, household, require):
    """Even if it was given before the policy changed, when the rule required nothing."""
    shim, _ = asked(require)
    where = places({"SUB_HOME": str(household.home)})
    issue_grant(where, "run-1", Slot("echo", "push", None, "user", "ask"), uses=None)
    assert shim.code("push") == REJECTED
    assert problems(household) == ["requirement"]
    assert len(household.executed()) == 0


@requirement("trust:grant-fits")
def test_an_approval_does_not_pass_a_rule_that_has_become_stricter(asked, household, person):
    shim, approval_id = asked("approval")
    person("approve", approval_id, "--uses", "1000")
    assert shim.code("push") == 0
    household.write_policy(asking("human"))
    wait_until(lambda: shim.code("push") == REJECTED, "the stricter policy")
    assert problems(household) == ["requirement"]


@requirement("trust:grant-fits")
def test_a_no_holds_whatever_the_rule_requires(asked, household, person):
    shim, approval_id = asked("human")
    person("deny", approval_id, "--reason", "never")
    assert "never" in shim.call("push")["error"]["message"]
    assert list(answers_dir(household).glob("*.answer"))


@requirement("trust:human", "trust:step-up")
@pytest.mark.parametrize("require", ["step_up", "human"])
def test_a_program_must_say_that_it_has_seen_the_person(asked, household, require):
    """The service behind `sub approve`, for a web page or a program's own callback."""
    shim, approval_id = asked(require)
    where, settings = places({"SUB_HOME": str(household.home)}), ApprovalSettings()
    for met in (None, Requirement.APPROVAL):
        with pytest.raises(SubluminalError, match=f"requires `{require}`, which nobody has met"):
            approve(where, approval_id, met=met, settings=settings)
    assert shim.code("push") == REJECTED
    approve(where, approval_id, met=Requirement(require), settings=settings)
    assert shim.code("push") == 0
