"""Targets on the path of a call: read only if a rule asks, recorded with secrets masked."""

import subprocess
import sys

import msgspec
import pytest
from tests.adapters.policies import rule, snapshot
from tests.adapters.records import events_of
from tests.hosts import enforcer_in

from subluminal.canonical import args_hash, encode
from subluminal.config.settings import ServerSettings, Settings, TargetSettings
from subluminal.contracts.call import ToolCall
from subluminal.contracts.targets import PathTarget, Targets
from subluminal.contracts.vocabulary import Transport
from subluminal.core.batches import begin_batch
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction.redactor import Redactor
from subluminal.core.targets.source import TargetSource
from subluminal.secrets.value import SecretValue


def deny(rule_id, match):
    effect = {"action": "BLOCK", "reason_code": "NO", "message": "not this"}
    return rule(rule_id, "deny", effect, **match)


FORCE = snapshot(deny("no-force", {"targets": {"argv": {"glob": ["git push*--force*"]}}}))


def call(line, tool="Bash", cwd="/code/repo"):
    args = {"command": line}
    return ToolCall(
        server_name="@claude",
        tool_name=tool,
        args=args,
        args_hash=args_hash(args),
        bytes_in=10,
        transport=Transport.UNKNOWN,
        cwd=cwd,
    )


def begun(enforcer, asked):
    return enforcer.begin(asked, encode(asked.args))


def starts(enforcer, home):
    enforcer.flush()
    enforcer.run.leave()
    enforcer.run.close()
    return [event["call"] for event in events_of(home) if event["type"] == "tool_call_start"]


def test_a_call_is_refused_by_what_it_touches(own_home):
    enforcer = enforcer_in(own_home, FORCE)
    assert not begun(enforcer, call("git push --force")).is_allowed
    assert begun(enforcer, call("git push")).is_allowed
    first, second = starts(enforcer, own_home)
    assert first["targets"]["commands"] == [["git", "push", "--force"]]
    assert second["targets"] == {"commands": [["git", "push"]], "roots": ["/code/repo"]}


def test_a_batch_is_refused_by_what_one_call_touches(own_home):
    enforcer = enforcer_in(own_home, FORCE)
    lines = ("git status", "git push --force")
    rulings = begin_batch(enforcer, [(call(line), encode({"command": line})) for line in lines])
    assert [ruling.is_allowed for ruling in rulings] == [False, False]
    assert [each["targets"]["commands"] for each in starts(enforcer, own_home)] == [
        [["git", "status"]],
        [["git", "push", "--force"]],
    ]


def test_nothing_is_read_if_no_rule_for_the_tool_asks(own_home, monkeypatch):
    monkeypatch.setattr(TargetSource, "read", lambda *_: pytest.fail("targets were read"))
    other = snapshot(deny("x", {"tool_name": {"glob": ["Read"]}, "targets": {"opaque": True}}))
    for policies in ((), (snapshot(deny("x", {"tool_name": {"glob": ["y"]}})),), (other,)):
        home = own_home / str(len(policies)) / str(id(policies))
        enforcer = enforcer_in(home, *policies)
        assert begun(enforcer, call("git push --force")).is_allowed
        assert "targets" not in starts(enforcer, home)[0]


def test_the_parser_is_loaded_only_for_lines_that_need_it():
    """The path of a call stays light (fast-start)."""
    code = (
        "import sys\n"
        "import subluminal.core.enforcer\n"
        "assert 'subluminal.core.targets.reading' not in sys.modules\n"
        "from subluminal.core.targets.reading import targets_of\n"
        "targets_of('@claude', 'Bash', {'command': 'git push && ls'}, cwd='/')\n"
        "assert 'tree_sitter' not in sys.modules\n"
        "targets_of('@claude', 'Bash', {'command': 'echo $X'}, cwd='/')\n"
        "assert 'tree_sitter' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_settings_in_force_say_which_arguments_are_targets(own_home):
    source = TargetSource(Settings())
    asked = call("git push")
    assert source.read(asked).commands == [["git", "push"]]
    own = ServerSettings(targets={"Bash": TargetSettings(path="command", access="read")})
    source.adopt(Settings(servers={"@claude": own}))
    assert source.read(asked).paths == [PathTarget("/code/repo/git push", "read")]
    assert source.read(call("ls", cwd=None)).roots
    too_large = ToolCall(
        server_name="@claude",
        tool_name="Bash",
        args=None,
        args_hash="",
        bytes_in=1,
        transport=Transport.UNKNOWN,
    )
    assert source.read(too_large) is None


def previewer(mode="metadata"):
    redactor = Redactor([SecretValue("pin", "t0ken-Value-123")])
    return Previewer(redactor, record_mode=mode, max_bytes=100, full_bytes=100)


def test_secrets_are_masked_in_recorded_targets():
    found = Targets(
        commands=[["curl", "-H", "t0ken-Value-123", "x"], ["ls"]],
        paths=[PathTarget("/t0ken-Value-123", "read")],
        hosts=["a"],
        opaque=True,
        why=["`t0ken-Value-123`"],
        roots=["/r"],
    )
    shown = previewer().targets(found)
    assert b"t0ken" not in encode_all(shown)
    assert (shown.masked, shown.opaque, shown.commands[1]) == (True, True, ["ls"])
    assert not previewer().targets(Targets(commands=[["ls"]])).masked


def test_without_previews_only_opaque_is_recorded():
    found = Targets(commands=[["ls"]], opaque=True, why=["x"])
    assert previewer("off").targets(found) == Targets(opaque=True, masked=True)


def encode_all(targets):
    return msgspec.json.encode(targets)
