"""Policies of a shim: layers, cold start, cache, reload, and what a repository cannot do."""

import json
import os
import re
import stat
import subprocess
import sys
import time

import pytest
from tests.requirements import requirement
from tests.shim.household import SUB, budget, deny, policy, wait_until

BLOCKED = -32081


def repository_file(household):
    (household.cwd / ".git").mkdir(exist_ok=True)
    return household.cwd / ".subluminal" / "policy.yaml"


def loads(household):
    return [
        (event["load"]["layer"], event["load"]["ok"])
        for event in sorted(household.events("policy_loaded"), key=lambda event: event["ts"])
    ]


def soon(shim, tool, code):
    """A change is in force within a second plus the time of the compiler."""
    wait_until(lambda: shim.code(tool, {"t": time.monotonic()}) == code, f"{tool} gives {code}")


def test_no_policy_observes(household):
    shim = household.start().ready()
    assert shim.code("rm") == 0
    start = household.wait_event("run_start")
    assert (start["run"]["mode"], start["run"]["policy"]["policy_id"]) == ("observe", "none")
    (decided,) = household.events("tool_call_decision")
    assert decided["decision"]["policy"] == start["run"]["policy"]
    assert re.fullmatch("[0-9a-f]{64}", start["run"]["policy"]["policy_hash"])


def test_a_load_tells_the_policy_whole(household):
    """The policy that decided is in the record, so it can be evaluated again."""
    path = household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm") == BLOCKED
    event = household.wait_event("policy_loaded")
    command = [*SUB, "policy", "compile", str(path)]
    compiled = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert event["snapshot"] == json.loads(compiled)
    assert event["snapshot"]["policy_hash"] == event["policy"]["policy_hash"]


def test_all_layers_hold_and_the_strictest_wins(household):
    household.write_policy(policy(deny("rm"), policy_id="user"))
    household.write_policy(policy(deny("push"), policy_id="repository"), repository_file(household))
    shim = household.start().ready()
    assert [shim.code(tool) for tool in ("rm", "push", "echo")] == [BLOCKED, BLOCKED, 0]
    decisions = [event["decision"] for event in household.events("tool_call_decision")]
    assert [each["policy"]["policy_id"] for each in decisions[:2]] == ["user", "repository"]
    assert [each["layer"] for each in decisions[0]["policies"]] == ["user", "repository"]


@pytest.mark.parametrize("way", ["--policy", "SUB_POLICY"])
def test_a_named_policy_replaces_the_repository_s_only(household, way):
    household.write_policy(policy(deny("rm"), policy_id="user"))
    household.write_policy(policy(deny("push")), repository_file(household))
    named = household.write_policy(policy(deny("pull")), household.tmp_path / "named.yaml")
    more = {"words": ("--policy", str(named))} if way == "--policy" else {way: str(named)}
    shim = household.start(**more).ready()
    assert [shim.code(t) for t in ("rm", "push", "pull")] == [BLOCKED, 0, BLOCKED]


def test_a_named_policy_that_is_missing_refuses(household):
    shim = household.start(words=("--policy", "nowhere.yaml")).ready()
    error = shim.call("echo")["error"]
    assert error["code"] == BLOCKED
    assert "nowhere.yaml` is not in force: there is no such file" in error["message"]
    household.write_policy(policy(), household.cwd / "nowhere.yaml")
    soon(shim, "echo", 0)


def test_a_policy_that_somebody_else_owns_is_not_ours(household):
    path = household.write_policy(policy(deny("rm")), repository_file(household))
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)
        shim = household.start().ready()
        assert shim.code("rm") == 0
        os.chown(path, 0, 0)
    shim = household.start(run="run-2").ready()
    assert shim.code("rm") == BLOCKED


def test_the_user_s_policy_is_not_the_repository_s_too(household):
    """Below the user's home directory, outside of any repository."""
    household.home = household.cwd / ".subluminal"
    household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm") == BLOCKED
    assert loads(household) == [("user", True)]


def test_a_cold_start_holds_only_tool_calls(household):
    """The compiler is stopped: `initialize` passes, the call waits for its decision (fast-start)."""
    household.write_policy(policy(deny("rm")))
    shim = household.start(PYTHONPATH=str(slow_compiler(household))).ready()
    refused, passed = shim.ask("rm"), shim.ask("echo")
    assert "result" in shim.answer(shim.send("tools/list"))
    assert household.executed() == []
    (household.tmp_path / "go").touch()
    assert shim.answer(refused)["error"]["code"] == BLOCKED
    assert "result" in shim.answer(passed)


def slow_compiler(household):
    """A place to import from that makes the compiler wait for a file."""
    place = household.tmp_path / "place"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if 'compile_helper' in ' '.join(sys.orig_argv):\n"
        f"    while not os.path.exists({str(household.tmp_path / 'go')!r}):\n"
        "        signal.sigtimedwait([], 0.01)\n"
    )
    return place


def test_a_compiler_that_takes_too_long_refuses_until_it_is_done(household):
    household.write_policy(policy(deny("rm")))
    shim = household.start(PYTHONPATH=str(slow_compiler(household))).ready()
    begin = time.monotonic()
    error = shim.call("echo")["error"]
    assert 4.5 < time.monotonic() - begin < 10, "held for five seconds"
    assert "it is still being compiled" in error["message"]
    (household.tmp_path / "go").touch()
    soon(shim, "echo", 0)
    assert shim.code("rm") == BLOCKED


def test_a_compiler_does_not_outlive_its_shim(household):
    household.write_policy(policy(deny("rm")))
    shim = household.start(PYTHONPATH=str(slow_compiler(household))).ready()
    shim.ask("echo")
    shim.swallowed().process.send_signal(15)
    assert shim.wait() == 128 + 15
    assert household.alive() == []
    assert household.executed() == [], "what was never decided was never forwarded"
    assert household.status() == "CANCELLED"


def test_input_that_ends_during_a_cold_start_is_still_decided(household):
    household.write_policy(policy(deny("rm")))
    shim = household.start()
    refused, passed = shim.ask("rm"), shim.ask("echo")
    shim.close()
    assert shim.wait() == 0
    answers = shim.all_answers()
    assert answers[refused]["error"]["code"] == BLOCKED
    assert "result" in answers[passed]
    assert household.status() == "SUCCEEDED"


def modules_of(household, tool="rm", **env):
    """Returns every module that a shim imports in its life."""
    script = (
        "import sys\nfrom subluminal.cli.main import main\ncode = main(sys.argv[1:])\n"
        "sys.stderr.write('MODULES ' + ' '.join(sys.modules))\nsys.exit(code)\n"
    )
    argv = [sys.executable, "-c", script, "shim", "stdio", "--server", "echo", "--"]
    ran = subprocess.run(
        [*argv, *household.server()],
        input=b'{"id":1,"method":"tools/call","params":{"name":"%b"}}\n' % tool.encode(),
        capture_output=True,
        env=household.env(**env),
        timeout=20,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stderr.decode().partition("MODULES ")[2].split()


HEAVY = {"yaml", "asyncio", "logging", "argparse", "http", "urllib.request", "ssl"}


def test_no_shim_loads_yaml_cold_or_warm(household):
    household.write_policy(policy(deny("rm")))
    for _ in ("cold", "warm"):
        modules = modules_of(household)
        assert "subluminal.policy.evaluation" in modules
        assert HEAVY & set(modules) == set()
        assert "subluminal.policy.loading" not in modules


def cached(household):
    return list((household.home / "cache" / "policies").iterdir())


def test_a_warm_start_uses_the_cache(household):
    """With a compiler that never answers, only the cache can."""
    household.write_policy(policy(deny("rm")))
    assert household.start().ready().code("rm") == BLOCKED
    [entry] = cached(household)
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    warm = household.start(PYTHONPATH=str(slow_compiler(household))).ready()
    begin = time.monotonic()
    assert warm.code("rm") == BLOCKED
    assert time.monotonic() - begin < 4


@pytest.mark.parametrize("damage", ["edited", "foreign", "empty"])
def test_a_cache_that_this_home_did_not_write_is_not_used(household, damage):
    household.write_policy(policy(deny("rm")))
    assert household.start().ready().code("rm") == BLOCKED
    [entry] = cached(household)
    sealed = entry.read_bytes()
    if damage == "edited":
        entry.write_bytes(sealed.replace(b'"rm"', b'"xx"'))
    elif damage == "empty":
        entry.write_bytes(b"")
    else:
        (household.home / "state" / "seal.key").write_bytes(b"k" * 32)
    assert household.start(run="run-2").ready().code("rm") == BLOCKED
    assert cached(household)[0].read_bytes() != b""


@requirement("2.6:reload")
def test_a_changed_policy_is_in_force_within_a_second(household):
    path = household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm") == BLOCKED
    household.write_policy(policy(deny("push")))
    soon(shim, "push", BLOCKED)
    assert shim.code("rm") == 0
    # In place, with the same size: only the time differs.
    path.write_text(policy(deny("pull")))
    soon(shim, "pull", BLOCKED)
    assert loads(household) == [("user", True)] * 3


def test_a_shim_without_traffic_reloads_too(household):
    household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("echo") == 0
    household.write_policy(policy(deny("push")))
    begin = time.monotonic()
    wait_until(lambda: len(loads(household)) == 2, "a second load")
    assert time.monotonic() - begin < 2.5, "a second, on a busy machine"


def test_a_policy_that_becomes_invalid_leaves_the_old_one(household):
    path = household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm") == BLOCKED
    path.write_text("policy_id: [")
    refused = household.wait_event("policy_loaded", load__ok=False)
    assert refused["load"]["problem"]
    assert "snapshot" not in refused
    assert [shim.code("rm"), shim.code("echo")] == [BLOCKED, 0]
    path.unlink()
    assert [shim.code("rm"), shim.code("echo")] == [BLOCKED, 0]
    household.write_policy(policy(deny("rm")))
    wait_until(lambda: loads(household)[-1] == ("user", True), "the good one again")


def test_a_policy_that_is_read_while_it_is_written_does_not_come_into_force(household):
    """Half a file is a policy with fewer rules; the old one stays in force until the file is whole."""
    path = household.write_policy(policy(deny("one"), deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm") == BLOCKED
    other = policy(deny("two"), deny("rm"))
    cut = other.index("  - {rule_id: no-rm")
    for _ in range(6):
        with open(path, "w") as file:
            file.write(other[:cut])
            file.flush()
            before = len(household.events("tool_call_decision"))
            until = time.monotonic() + 0.1  # several looks of a shim under traffic
            while time.monotonic() < until:
                assert shim.code("rm") == BLOCKED
            assert len(household.events("tool_call_decision")) > before
            file.write(other[cut:])
        assert shim.code("rm") == BLOCKED
    soon(shim, "two", BLOCKED)
    assert [shim.code("rm"), shim.code("one")] == [BLOCKED, 0]
    # Replaced, again and again, as editors do: one of the two holds, always whole.
    for number in range(40):
        household.write_policy(policy(deny("one" if number % 2 else "two"), deny("rm")))
        assert shim.code("rm") == BLOCKED
    soon(shim, "one", BLOCKED)
    assert shim.code("two") == 0


def test_a_deleted_policy_stays_in_force(household):
    path = household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm") == BLOCKED
    path.unlink()
    until = time.monotonic() + 0.8
    while time.monotonic() < until:
        assert shim.code("rm") == BLOCKED


def test_a_policy_that_never_compiled_refuses_every_call(household):
    path = household.write_policy("policy_id: p\nversoin: 1\n")
    shim = household.start().ready()
    error = shim.call("echo")["error"]
    assert error["code"] == BLOCKED
    assert "is not in force" in error["message"]
    assert f"`sub policy lint {path}`" in error["message"]
    assert household.executed() == []
    assert loads(household) == [("user", False)]
    household.write_policy(policy())
    soon(shim, "echo", 0)


def test_a_pipe_in_a_policy_s_place_does_not_stop_the_shim(household):
    household.home.mkdir(exist_ok=True)
    os.mkfifo(household.home / "policy.yaml")
    shim = household.start().ready()
    assert "it is not a regular file" in shim.call("echo")["error"]["message"]


def test_a_repository_cannot_loosen_a_run(household):
    """First seen and current both hold: tightening at once, loosening not (policy-layers)."""
    path = household.write_policy(policy(deny("rm")), repository_file(household))
    shim = household.start().ready()
    assert shim.code("rm") == BLOCKED
    household.write_policy(policy(deny("push")), path)
    soon(shim, "push", BLOCKED)
    assert shim.code("rm") == BLOCKED, "what the run first saw"
    path.unlink()
    late = household.start().ready()
    assert late.code("rm") == BLOCKED, "also for a shim that never saw the file"
    other = household.start(run="run-2").ready()
    assert other.code("rm") == 0, "another run begins with what is there"


def test_a_budget_under_two_versions_counts_each_call_once(household):
    path = household.write_policy(policy(budget(5)), repository_file(household))
    shim = household.start().ready()
    assert shim.code("echo", {"n": 0}) == 0
    household.write_policy(policy(budget(50), deny("rm")), path)
    wait_until(lambda: len(loads(household)) == 2, "the second version")
    codes = [shim.code("echo", {"n": n}) for n in range(1, 7)]
    assert codes == [0, 0, 0, 0, BLOCKED, BLOCKED]


def test_a_policy_that_appears_in_a_repository_tightens_at_once(household):
    path = repository_file(household)
    shim = household.start().ready()
    assert shim.code("rm") == 0
    household.write_policy(policy(deny("rm")), path)
    soon(shim, "rm", BLOCKED)
    household.write_policy(policy(), path)
    wait_until(lambda: len(loads(household)) == 2, "the loosened one")
    assert shim.code("rm") == BLOCKED


def test_a_person_accepts_a_loosened_policy(household):
    path = household.write_policy(policy(deny("rm")), repository_file(household))
    shim = household.start().ready()
    assert shim.code("rm") == BLOCKED
    household.write_policy(policy(), path)
    wait_until(lambda: len(loads(household)) == 2, "the loosened one")
    assert shim.code("rm") == BLOCKED
    argv = [*SUB, "policy", "accept", "--json"]
    inside = household.env(SUB_RUN_ID="run-1")
    assert subprocess.run(argv, cwd=household.cwd, env=inside, capture_output=True).returncode == 2
    plain = {
        k: v for k, v in household.env().items() if k not in ("AI_AGENT", "AGENT", "CLAUDECODE")
    }
    ran = subprocess.run(argv, cwd=household.cwd, env=plain, capture_output=True)
    assert json.loads(ran.stdout)["runs_accepted"] == 1, ran.stderr
    soon(shim, "rm", 0)


def test_the_compiler_imports_nothing_from_the_client_s_directory(household):
    """A repository may contain a `yaml.py` or a `subluminal`; neither is imported."""
    for name in ("yaml.py", "msgspec.py", "subluminal/__init__.py"):
        path = household.cwd / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"open({str(household.tmp_path / 'ran')!r}, 'w')\nraise SystemExit(1)\n")
    household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm") == BLOCKED
    shim.kill()
    household.wait_event("run_end")
    household.wait_empty()
    assert not (household.tmp_path / "ran").exists()


def test_a_repository_in_a_directory_that_is_not_valid_utf8(household):
    household.cwd = type(household.cwd)(os.fsdecode(os.fsencode(household.cwd) + b"\xe9"))
    household.cwd.mkdir()
    household.write_policy(policy(deny("rm")), repository_file(household))
    shim = household.start(SUB_AGENT_ID=os.fsdecode(b"\xff")).ready()
    assert [shim.code("rm"), shim.code("ls")] == [BLOCKED, 0]
    (load,) = household.events("policy_loaded")
    assert r"\udce9" in load["load"]["file"]
    assert load["workload"]["repo_path"].endswith(r"\udce9")
