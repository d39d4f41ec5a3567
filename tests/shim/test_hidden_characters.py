"""What an agent puts into names reaches no terminal and no CI page as it is (local-is-not-trusted)."""

import json
import os
import pty
import subprocess
from xml.etree import ElementTree

import pytest
from tests.processes import wait_until
from tests.shim.household import SUB, deny, policy
from tests.shim.test_shared_runs import leave

EVIL = "rm\x9b31m\x7f\u202egnp\u2066\u200f\u061c\u2028x"
HIDDEN = [*EVIL.encode().decode()[2:3], "\x7f", "\u202e", "\u2066", "\u200f", "\u061c", "\u2028"]


@pytest.fixture
def hostile(household):
    """A run in which an agent called, and was refused, a tool with such a name."""
    household.write_policy(policy(deny("rm*")))
    shim = household.start(SUB_AGENT_ID=EVIL).ready()
    household.wait_event("policy_loaded")
    assert shim.code(EVIL, {EVIL: EVIL}) == -32081
    leave(shim)
    return household


def strings_in(value):
    if isinstance(value, dict):
        return [*map(strings_in, value.values()), *value]
    return [strings_in(each) for each in value] if isinstance(value, list) else value


COMMANDS = [
    ["query", "--json"],
    ["query", "runs", "--json"],
    ["tail", "--no-follow", "--json"],
    ["show", "run-1", "--json"],
    ["export", "run", "run-1", "--json"],
    ["export", "run", "run-1", "--format", "sarif"],
    ["export", "run", "run-1", "--format", "junit"],
    ["export", "run", "run-1", "--format", "summary"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_printed_text_has_no_hidden_characters(hostile, person, words):
    printed = person(*words)
    assert not [char for char in HIDDEN if char in printed], ascii(printed)
    if "--json" in words:
        values = [json.loads(line) for line in printed.splitlines()]
        assert EVIL in str(strings_in(values)) or ascii(EVIL)[1:-1] in ascii(strings_in(values))
    if "sarif" in words:
        assert ascii(EVIL)[1:-1] in ascii(strings_in(json.loads(printed)))
    if "junit" in words:
        assert "\\u202e" in ElementTree.tostring(ElementTree.fromstring(printed)).decode()


@pytest.mark.parametrize("words", [["export", "run", "run-1"]], ids=" ".join)
def test_events_are_exact_in_a_pipe_and_harmless_on_a_terminal(hostile, person, words):
    """The chain's hashes cover the bytes of an event, so a pipe gets them as they are."""
    assert "\u202e" in person(*words)
    reader, terminal = pty.openpty()
    process = subprocess.Popen([*SUB, *words], stdout=terminal, env=hostile.env(), cwd=hostile.cwd)
    os.close(terminal)
    printed = b""

    def at_end():
        nonlocal printed
        try:
            piece = os.read(reader, 65536)
        except OSError:  # the other side is closed
            return True
        printed += piece
        return not piece

    wait_until(at_end, "the end of the output")
    process.wait(20)
    os.close(reader)
    text = printed.decode()
    assert not [char for char in HIDDEN if char in text], ascii(text)
    assert "\\u202e" in text
