"""Who acts under `sub run`: launched agents, their tokens, and agents that start agents."""

import json
import sys

import pytest
from tests.requirements import requirement
from tests.shim.conftest import person as person
from tests.shim.household import SUB
from tests.shim.test_agents import PROVEN, agent_of, files_with

from subluminal.system import PLAIN_POSIX

PYTHON = [sys.executable, "-I", "-S", "-c"]
SHOW = "import json,os;print(json.dumps(dict(os.environ)))"
CLEARED = ["env", "-i"]
NOT_IN_PROD = """\
policy_id: p
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  - {rule_id: not-in-prod, kind: deny, enabled: true, severity: warn, match: {environment: [prod]},
     effect: {action: BLOCK, reason_code: DENIED, message: not in prod}}
"""


@pytest.fixture
def household(runner):
    return runner


@pytest.fixture
def fixer(person):
    person("agents", "register", "fixer", "--trust", "privileged", "--role", "deployer")
    return "fixer"


@pytest.fixture
def proven(runner):
    runner.write_policy(PROVEN)


def said(out):
    """What the agents of a test printed: each tool, and 0 or the code of its refusal."""
    return [line.split() for line in out.splitlines()]


def clear(runner, command):
    """A command in an empty environment; only the home is known, as by `--home`."""
    names = ("SUB_HOME", "SUB_TEST_TOKEN", PLAIN_POSIX)
    kept = {name: value for name, value in runner.env().items() if name in names}
    return [*CLEARED, *(f"{name}={value}" for name, value in kept.items()), *command]


def started(runner):
    """The agents of all runs, by the name of the agent, as run_start has them."""
    found = [agent_of(event) for event in runner.events("run_start")]
    return {each["agent_id"]: each for each in found}


class TestLaunched:
    @requirement("trust:run-launched")
    def test_the_seal_outlives_a_cleared_environment(self, runner, person, fixer, proven):
        command = clear(runner, runner.agent("exit=0", "echo"))
        code, out, err = runner.run("--agent-id", fixer, command=command)
        assert (code, said(out)) == (0, [["echo", "0"]]), err
        (start,) = runner.events("run_start")
        assert agent_of(start)["proof"] == {"kind": "launched"}
        assert {event["run_id"] for event in runner.events("tool_call_start")} == {start["run_id"]}
        assert {event["agent_id"] for event in runner.events("tool_call_start")} == {"fixer"}
        assert list((runner.home / "state" / "launches").iterdir()) == []

    @requirement("trust:run-launched")
    def test_names_in_the_environment_prove_nothing(self, runner, person, fixer, proven):
        """Not even those of a launched run that is still running."""
        running = runner.start_run(
            "--agent-id", fixer, "--run-id", "r1", command=runner.agent("hang", "echo")
        )
        assert running.stdout.readline() == "echo 0\n"
        stranger = runner.start(SUB_AGENT_ID=fixer, run="r1")
        assert stranger.code() != 0
        running.terminate()

    def test_without_agent_id_the_name_is_only_said(self, runner, person, fixer, proven):
        env = {**runner.env(), "SUB_AGENT_ID": fixer}
        _, out, _ = runner.run(command=runner.agent("exit=0", "echo"), env=env)
        assert said(out) == [["echo", "-32081"]]
        assert started(runner)["fixer"]["proof"] == {"kind": "none"}

    def test_another_name_in_the_environment_changes_nothing(self, runner, person, fixer, proven):
        person("agents", "register", "intern", "--trust", "basic")
        command = ["env", "SUB_AGENT_ID=fixer", *runner.agent("exit=0", "echo")]
        _, out, _ = runner.run("--agent-id", "intern", command=command)
        assert said(out) == [["echo", "-32081"]]

    def test_a_launch_that_was_edited_or_copied_does_not_count(self, runner, person, fixer, proven):
        person("agents", "register", "intern", "--trust", "basic")
        edit = (
            "import os,pathlib;"
            f"d=pathlib.Path({str(runner.home / 'state' / 'launches')!r});"
            "f,=d.iterdir();f.write_bytes(f.read_bytes().replace(b'intern',b'fixer'))"
        )
        agent = runner.agent("exit=0", "echo")
        both = ["sh", "-c", '"$0" -c "$1" && shift && exec "$@"', sys.executable, edit, *agent]
        _, out, _ = runner.run("--agent-id", "intern", command=both)
        assert said(out) == [["echo", "-32081"]]

    @requirement("trust:run-environment")
    @pytest.mark.parametrize("change", ["cleared", "SUB_ENV=dev"])
    def test_the_environment_of_a_launch_is_not_lost(self, runner, person, fixer, change):
        """An agent chooses the variables of its servers; it must not leave `prod` by that."""
        runner.write_policy(NOT_IN_PROD)
        agent = runner.agent("exit=0", "echo")
        command = clear(runner, agent) if change == "cleared" else ["env", change, *agent]
        _, out, err = runner.run("--agent-id", fixer, "--env", "prod", command=command)
        assert said(out) == [["echo", "-32081"]], err
        (start,) = runner.events("tool_call_start")
        assert (start["env"], start["agent_id"]) == ("prod", "fixer")

    @requirement("trust:claims-tighten")
    def test_another_environment_of_a_server_is_a_claim(self, runner, person, fixer):
        runner.write_policy(NOT_IN_PROD)
        command = ["env", "SUB_ENV=prod", *runner.agent("exit=0", "echo")]
        _, out, err = runner.run("--agent-id", fixer, "--env", "dev", command=command)
        assert said(out) == [["echo", "-32081"]], err
        (start,) = runner.events("tool_call_start")
        assert start["env"] == "dev"
        assert start["call"]["given"]["claims"] == {"environment": "prod"}

    def test_prod_costs_trust_whatever_the_environment_says(self, runner, person, fixer, proven):
        """A privileged agent without an attestation is less in `prod`."""
        agent = runner.agent("exit=0", "echo")
        for command in (agent, ["env", "SUB_ENV=dev", *agent]):
            _, out, _ = runner.run("--agent-id", fixer, "--env", "prod", command=command)
            assert said(out) == [["echo", "-32081"]]
        inner = [*SUB, "run", "--agent-id", fixer, "--env", "dev", "--", *agent]
        _, out, _ = runner.run("--agent-id", fixer, "--env", "prod", command=inner)
        assert said(out) == [["echo", "-32081"]], "trusted no further than the agent above"


class TestTokens:
    @requirement("trust:run-tokens")
    def test_a_token_is_sealed_with_the_run_and_goes_no_further(
        self, runner, person, fixer, proven
    ):
        token = person("agents", "attest", fixer).strip()
        env = {**runner.env(), "SUB_ATTESTATION": token}
        _, out, _ = runner.run("--agent-id", fixer, command=[*PYTHON, SHOW], env=env)
        assert "SUB_ATTESTATION" not in json.loads(out)
        proof = started(runner)["fixer"]["proof"]
        assert (proof["kind"], proof["subject"]) == ("attested", "fixer")
        assert files_with(runner, token) == []

    def test_a_token_that_is_refused_is_told(self, runner, person, fixer, proven):
        env = {**runner.env(), "SUB_ATTESTATION": "a.b.c"}
        code, out, err = runner.run(
            "--agent-id", fixer, command=runner.agent("exit=0", "echo"), env=env
        )
        assert (code, said(out)) == (0, [["echo", "0"]]), "it is launched all the same"
        assert "the agent's token is refused" in err
        assert "a.b.c" not in err

    @pytest.mark.parametrize("text", [None, "\n"])
    def test_a_file_without_a_token_is_told(self, runner, person, fixer, proven, text):
        file = runner.tmp_path / "token"
        if text is not None:
            file.write_text(text)
        env = {**runner.env(), "SUB_ATTESTATION_FILE": str(file), "SUB_AGENT_ID": fixer}
        _, out, err = runner.run(command=runner.agent("exit=0", "echo"), env=env)
        assert said(out) == [["echo", "-32081"]]
        said_why = "is empty" if text else "cannot be read: no such file or directory"
        assert f"the agent's token is refused: the token's file {said_why}" in err

    def test_shims_read_the_file_themselves(self, runner, person, fixer, proven):
        file = runner.tmp_path / "token"
        file.write_text(person("agents", "attest", fixer))
        env = {**runner.env(), "SUB_ATTESTATION_FILE": str(file), "SUB_AGENT_ID": fixer}
        _, out, _ = runner.run(command=runner.agent("exit=0", "echo"), env=env)
        assert said(out) == [["echo", "0"]]


class TestDelegation:
    @requirement("trust:run-delegated")
    @pytest.mark.parametrize("hides", [False, True], ids=["plainly", "without its environment"])
    def test_nested_runs_pass_on_no_more_than_they_have(self, runner, person, fixer, proven, hides):
        person("agents", "register", "intern", "--trust", "basic", "--role", "reader")
        agent = runner.agent("exit=0", "echo")
        inner = [*SUB, "run", "--agent-id", fixer, "--", *agent]
        if hides:
            inner = clear(runner, inner)
        code, out, err = runner.run("--agent-id", "intern", command=inner)
        assert (code, said(out)) == (0, [["echo", "-32081"]]), err
        found = started(runner)
        assert found["intern"]["delegation_depth"] == 0
        delegated = found["fixer"]
        assert (delegated["delegation_depth"], delegated["trust_level"]) == (1, "basic")
        assert delegated["proof"] == {"kind": "launched"}
        assert delegated["roles"] == []
        (above,) = [e["run_id"] for e in runner.events("run_start") if e["agent_id"] == "intern"]
        (below,) = [e for e in runner.events("run_start") if e["agent_id"] == "fixer"]
        assert below["run"]["meta"]["parent_run_id"] == above

    @pytest.mark.parametrize(
        "how", ["f.unlink()", "f.write_bytes(b'')"], ids=["removed", "damaged"]
    )
    def test_an_agent_without_its_launch_is_not_the_agent_above(
        self, runner, person, fixer, proven, how
    ):
        """The agent can change the files of the home."""
        change = (
            "import os,pathlib;"
            f"d=pathlib.Path({str(runner.home / 'state' / 'launches')!r});"
            f"f=max(d.iterdir(),key=lambda f:f.stat().st_mtime_ns);{how}"
        )
        agent = clear(runner, runner.agent("exit=0", "echo"))
        both = ["sh", "-c", '"$0" -c "$1" && shift && exec "$@"', sys.executable, change, *agent]
        inner = [*SUB, "run", "--agent-id", "intern", "--", *both]
        _, out, err = runner.run("--agent-id", fixer, command=inner)
        assert said(out) == [["echo", "-32081"]], err

    def test_three_agents_deep(self, runner, person, fixer, proven):
        command = runner.agent("exit=0", "echo")
        for _ in range(2):
            command = [*SUB, "run", "--agent-id", fixer, "--", *command]
        _, out, _ = runner.run("--agent-id", fixer, command=command)
        assert said(out) == [["echo", "0"]], "each is trusted as far as the one above"
        depths = [agent_of(event)["delegation_depth"] for event in runner.events("run_start")]
        assert sorted(depths) == [0, 1, 2]

    def test_an_agent_of_a_client_without_a_run(self, runner, person, fixer, proven):
        """Its marker says that an agent runs the command, and nobody knows that agent."""
        env = {**runner.env(), "CLAUDECODE": "1"}
        _, out, _ = runner.run("--agent-id", fixer, command=runner.agent("exit=0", "echo"), env=env)
        assert said(out) == [["echo", "-32081"]]
        assert started(runner)["fixer"]["delegation_depth"] == 1

    @requirement("trust:run-revoked")
    def test_a_revoked_agent_stops_those_that_it_started(self, runner, person, fixer):
        person("agents", "register", "lead", "--trust", "privileged")
        person("agents", "revoke", "lead")
        command = [*SUB, "run", "--agent-id", fixer, "--", *runner.agent("exit=0", "echo")]
        _, out, _ = runner.run("--agent-id", "lead", command=command)
        assert said(out) == [["echo", "-32081"]]


def test_the_registry_is_not_for_agents(runner, person, fixer):
    """Inside of an agent's environment, nobody registers, attests or revokes."""
    for words in (["register", "evil"], ["attest", "fixer"], ["revoke", "fixer"]):
        code, out, err = runner.run("--agent-id", fixer, command=[*SUB, "agents", *words])
        assert code != 0
        assert "is for a person to run" in err
        assert not out
    assert "active" in person("agents", "show", "fixer", "--json")
