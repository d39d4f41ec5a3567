"""The level of a run on the path of its calls (kernel.md, section 3)."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.hosts import host_in
from tests.policy.bundles import plain, rule
from tests.requirements import requirement

from subluminal.canonical import args_hash
from subluminal.config.places import places
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import (
    TAINT_RANK,
    Action,
    ReasonCode,
    Status,
    Taint,
    Transport,
)
from subluminal.core.host import Host
from subluminal.core.ruling import CallEnding
from subluminal.core.runs.names import journal_dir
from subluminal.core.runs.opening import Sharing
from subluminal.journal.reading import files_in, lines_of
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.snapshot import Snapshot
from subluminal.state.run_state import RunState

WEB = rule("taint", "web", match={"server_name": {"glob": ["web"]}})
SEND = rule(
    "deny",
    "send",
    match={"tool_name": {"glob": ["send"]}, "taint": {"below": "TRUSTED"}},
    message="nothing is sent",
)


def policy(*rules: dict[str, Any], **changes: Any) -> Snapshot:
    bundle = msgspec.convert(plain(*rules, **changes), Bundle)
    return compile_bundle(bundle)


def tool_call(server: str, tool: str, **args: Any) -> ToolCall:
    return ToolCall(
        server_name=server,
        tool_name=tool,
        args=args,
        args_hash=args_hash(args),
        bytes_in=100,
        transport=Transport.MCP_STDIO,
    )


def make(host: Host, server: str, tool: str, **args: Any) -> Action:
    ruling = host.begin(tool_call(server, tool, **args), b"{}")
    host.finish(ruling, CallEnding(Status.OK, 2))
    return ruling.decision.action


def events(home: Path, kind: str) -> list[dict[str, Any]]:
    where = places({"SUB_HOME": str(home)})
    lines = lines_of(sorted(files_in(journal_dir(where, "run-1"), "")))
    found = [msgspec.json.decode(line) for line in lines]
    return [each for each in found if each["type"] == kind]


def level(home: Path) -> Taint:
    state_dir = places({"SUB_HOME": str(home)}).state
    with RunState.open(state_dir, "run-1", threads=True) as state:
        return state.taint_state().level


@requirement("taint:match", "taint:events")
def test_after_the_web_nothing_is_sent(tmp_path: Path) -> None:
    host = host_in(tmp_path, policy(WEB, SEND))
    assert make(host, "mail", "send") is Action.ALLOW
    assert make(host, "web", "fetch", url="x") is Action.ALLOW
    ruling = host.begin(tool_call("mail", "send"), b"{}")
    assert ruling.decision.action is Action.BLOCK
    assert ruling.decision.summary == "nothing is sent; UNTRUSTED since call 2 (web/fetch)"
    host.close()
    (changed,) = events(tmp_path, "taint_changed")
    assert changed["taint"] == {
        "from": "SYSTEM",
        "to": "UNTRUSTED",
        "seq": 2,
        "by": "rule",
        "rule_id": "web",
        "server_name": "web",
        "tool_name": "fetch",
    }
    assert [each["decision"]["taint"] for each in events(tmp_path, "tool_call_decision")] == [
        "SYSTEM",
        "SYSTEM",
        "UNTRUSTED",
    ]
    assert events(tmp_path, "run_start")[0]["run"]["taint"] == "SYSTEM"


@requirement("taint:match")
@pytest.mark.parametrize(
    ("below", "refused"),
    [("TRUSTED", [False, False, True]), ("SYSTEM", [False, True, True])],
)
def test_below_means_lower_than_that(tmp_path: Path, below: str, refused: list[bool]) -> None:
    asking = rule("deny", "asking", match={"taint": {"below": below}})
    host = host_in(tmp_path, policy(asking))
    found = []
    for each in Taint:
        host.lower_taint(each, source="text")
        found.append(make(host, "mail", "send") is Action.BLOCK)
    assert found == refused
    host.close()


@requirement("taint:shared")
def test_every_shim_of_the_run_meets_the_level(tmp_path: Path) -> None:
    one, other = (host_in(tmp_path, policy(WEB, SEND)) for _ in range(2))
    assert make(one, "web", "fetch") is Action.ALLOW
    assert make(other, "mail", "send") is Action.BLOCK
    one.close()
    other.close()
    again = host_in(tmp_path, policy(WEB, SEND))
    assert make(again, "mail", "send") is Action.BLOCK
    again.close()
    assert len(events(tmp_path, "taint_changed")) == 1


@requirement("taint:forwarded")
def test_a_refused_call_lowers_nothing(tmp_path: Path) -> None:
    host = host_in(tmp_path, policy(rule("deny", "no-web", match=WEB["match"]), WEB, SEND))
    assert make(host, "web", "fetch") is Action.BLOCK
    assert make(host, "mail", "send") is Action.ALLOW
    host.close()


@requirement("taint:events")
def test_a_policy_without_taint_writes_nothing_about_it(tmp_path: Path) -> None:
    host = host_in(tmp_path, policy(rule("tag", "t")))
    make(host, "web", "fetch")
    host.close()
    assert "taint" not in events(tmp_path, "run_start")[0]["run"]
    assert "taint" not in events(tmp_path, "tool_call_decision")[0]["decision"]
    assert level(tmp_path) is Taint.SYSTEM


@requirement("taint:forwarded")
@pytest.mark.parametrize("mode", ["observe", "guardrails"])
def test_observe_mode_lowers_too(tmp_path: Path, mode: str) -> None:
    host = host_in(tmp_path, policy(WEB, SEND, mode=mode))
    make(host, "web", "fetch")
    ruling = host.begin(tool_call("mail", "send"), b"{}")
    assert ruling.is_allowed == (mode == "observe")
    assert ruling.decision.summary.endswith("UNTRUSTED since call 1 (web/fetch)")
    host.close()


@requirement("taint:layers")
def test_the_lowest_of_all_layers_holds(tmp_path: Path) -> None:
    mild = policy(rule("taint", "mild", lower_to="TRUSTED"), policy_id="mild")
    strict = policy(rule("taint", "strict"), policy_id="strict")
    host = host_in(tmp_path, strict, mild)
    make(host, "web", "fetch")
    host.close()
    assert level(tmp_path) is Taint.UNTRUSTED
    (changed,) = events(tmp_path, "taint_changed")
    assert changed["taint"]["rule_id"] == "strict"


@requirement("taint:first-rule")
def test_system_exempts(tmp_path: Path) -> None:
    exempt = rule("taint", "own", lower_to="SYSTEM", match={"tool_name": {"glob": ["docs"]}})
    host = host_in(tmp_path, policy(exempt, WEB, SEND))
    make(host, "web", "docs")
    assert level(tmp_path) is Taint.SYSTEM
    make(host, "web", "fetch")
    assert level(tmp_path) is Taint.UNTRUSTED
    host.close()


@requirement("taint:start")
def test_a_run_starts_as_its_policy_says(tmp_path: Path) -> None:
    defaults = {"decision_on_error": "BLOCK", "taint": "UNTRUSTED"}
    host = host_in(tmp_path, policy(SEND, defaults=defaults))
    ruling = host.begin(tool_call("mail", "send"), b"{}")
    assert not ruling.is_allowed
    assert "UNTRUSTED since the start (the run starts so)" in ruling.decision.summary
    host.close()
    assert events(tmp_path, "run_start")[0]["run"]["taint"] == "UNTRUSTED"
    assert not events(tmp_path, "taint_changed")


def test_a_person_raises_the_level_and_a_new_shim_keeps_it(tmp_path: Path) -> None:
    defaults = {"decision_on_error": "BLOCK", "taint": "UNTRUSTED"}
    host = host_in(tmp_path, policy(SEND, defaults=defaults))
    assert make(host, "mail", "send") is Action.BLOCK
    state_dir = places({"SUB_HOME": str(tmp_path)}).state
    with RunState.open(state_dir, "run-1", threads=True) as state, state.locked():
        state.taint.put(TAINT_RANK[Taint.TRUSTED])
    second = host_in(tmp_path, policy(SEND, defaults=defaults))
    assert make(second, "mail", "send") is Action.ALLOW
    host.close()
    second.close()


def test_a_call_that_nobody_could_judge_lowers_the_run(tmp_path: Path) -> None:
    defaults = {"decision_on_error": "ALLOW"}
    host = host_in(tmp_path, policy(WEB, SEND, defaults=defaults))
    call = tool_call("web", "?")
    ruling = host.begin_undecidable(call, ReasonCode.AMBIGUOUS_MESSAGE, "two ways")
    assert ruling.is_allowed
    assert make(host, "mail", "send") is Action.BLOCK
    host.close()
    (changed,) = events(tmp_path, "taint_changed")
    assert changed["taint"]["reason"] == "no rule could judge the call"


def test_a_batch_meets_what_its_own_calls_lower(tmp_path: Path) -> None:
    host = host_in(tmp_path, policy(WEB, SEND))
    batch = [(tool_call("web", "fetch"), b"{}"), (tool_call("mail", "send"), b"{}")]
    first, second = host.begin_batch(batch)
    assert not first.is_allowed
    assert not second.is_allowed
    assert level(tmp_path) is Taint.SYSTEM  # nothing was forwarded
    (passed,) = host.begin_batch(batch[:1])
    assert passed.is_allowed
    assert level(tmp_path) is Taint.UNTRUSTED
    host.close()
    (changed,) = events(tmp_path, "taint_changed")
    assert changed["taint"]["seq"] == 3


@requirement("taint:resources")
def test_a_resource_lowers_where_a_rule_names_servers_only(tmp_path: Path) -> None:
    tool_only = rule("taint", "tools", match={"tool_name": {"glob": ["fetch"]}})
    host = host_in(tmp_path, policy(tool_only, WEB, SEND))
    host.read_from("files", "resources/read")
    assert level(tmp_path) is Taint.SYSTEM
    host.read_from("web", "resources/read")
    assert make(host, "mail", "send") is Action.BLOCK
    host.close()
    (changed,) = events(tmp_path, "taint_changed")
    assert changed["taint"]["tool_name"] == "resources/read"
    assert changed["taint"]["rule_id"] == "web"


def crowd(home: Path, size: int, calls: int) -> list[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.core.tainted", str(home), str(calls)]
    pipe = subprocess.PIPE
    made = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(size)]
    for each in made:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    return made


@requirement("taint:shared")
def test_eight_shims_race_one_lowering(own_home: Path) -> None:
    """One of them lowers the run and says so; each meets it from its next call on."""
    shims = crowd(own_home, 8, 3)
    for each in shims:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    for each in shims:
        ranks = each.communicate(timeout=60)[0].split()
        assert len(ranks) == 3
        assert ranks[1:] == ["2", "2"]
        assert each.returncode == 0
    assert level(own_home) is Taint.UNTRUSTED
    (changed,) = events(own_home, "taint_changed")
    decided = {
        each["call"]["call_id"]: each["decision"]["taint"]
        for each in events(own_home, "tool_call_decision")
    }
    seqs = {each["call"]["seq"]: each["call"] for each in events(own_home, "tool_call_start")}
    assert sorted(seqs) == list(range(1, 33))
    for seq, call in seqs.items():
        is_after = seq > changed["taint"]["seq"]
        assert decided[call["call_id"]] == ("UNTRUSTED" if is_after else "SYSTEM")


@requirement("taint:never-rises")
@pytest.mark.parametrize("lines", [1, 3, 4, 6, 7, 8])
def test_a_killed_shim_leaves_a_level_that_is_as_low(own_home: Path, lines: int) -> None:
    (shim,) = crowd(own_home, 1, 0)
    assert shim.stdin is not None
    assert shim.stdout is not None
    shim.stdin.write("\n")
    shim.stdin.flush()
    seen = [int(shim.stdout.readline()) for _ in range(lines)]
    shim.kill()
    rest = shim.communicate()[0].split()
    seen += [int(each) for each in rest if each in ("0", "1", "2")]
    assert seen == sorted(seen)
    assert TAINT_RANK[level(own_home)] >= seen[-1]
    again = host_in(own_home, policy(WEB, SEND))
    make(again, "files", "read")
    again.close()
    assert TAINT_RANK[level(own_home)] >= seen[-1]
    for change in events(own_home, "taint_changed"):
        assert TAINT_RANK[level(own_home)] >= TAINT_RANK[Taint(change["taint"]["to"])]


def test_a_call_that_is_handed_over_lowers_once(own_home: Path) -> None:
    """A person raises the level in between: the second door does not lower it again."""
    hook, stdio = (host_in(own_home, policy(WEB, SEND)) for _ in range(2))
    make(stdio, "files", "read")
    asked = msgspec.structs.replace(
        tool_call("web", "fetch"), transport=Transport.AGENT_HOOK, context={"client_call_id": "1"}
    )
    hook.offer(hook.begin(asked, b"{}"))
    assert level(own_home) is Taint.UNTRUSTED
    state_dir = places({"SUB_HOME": str(own_home)}).state
    with RunState.open(state_dir, "run-1", threads=True) as state, state.locked():
        state.taint.put(TAINT_RANK[Taint.TRUSTED])
    ruling = stdio.begin(msgspec.structs.replace(asked, transport=Transport.MCP_STDIO), b"{}")
    assert ruling.handed is not None
    assert ruling.handed.taken
    assert level(own_home) is Taint.TRUSTED
    stdio.finish(ruling, CallEnding(Status.OK, 2))
    hook.close()
    stdio.close()
    assert len(events(own_home, "taint_changed")) == 1


def test_a_secret_in_the_name_of_a_tool_is_masked(tmp_path: Path) -> None:
    secret = "ghp_" + "aB3d" * 9
    host = host_in(tmp_path, policy(WEB, SEND))
    make(host, "web", secret)
    make(host, "mail", "send")
    host.close()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_a_further_round_is_judged_by_the_level_before_its_call(tmp_path: Path) -> None:
    own = rule(
        "deny", "own", match={"server_name": {"glob": ["web"]}, "taint": {"below": "TRUSTED"}}
    )
    host = host_in(tmp_path, policy(WEB, own))
    ruling = host.begin(tool_call("web", "fetch"), b"{}")
    assert host.begin_round(ruling, 2, 10, b"{}")
    assert make(host, "web", "fetch") is Action.BLOCK
    host.close()


def test_threads_share_the_level(tmp_path: Path) -> None:
    host = host_in(tmp_path, policy(WEB, SEND), sharing=Sharing(threads=True))
    host.read_from("web", "prompts/get")
    assert make(host, "mail", "send") is Action.BLOCK
    host.close()
