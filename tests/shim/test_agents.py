"""Who acts, through real shims: what proves an agent, what takes the proof away, what leaks not."""

import hashlib
import json
import pathlib

import pytest
from tests.adapters.records import require_valid
from tests.processes import wait_until
from tests.requirements import requirement

from subluminal.core.acting.attested import issuers_of
from subluminal.core.controls.agents import standing
from subluminal.system.processes import commands

PROVEN = """\
policy_id: p
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  - {rule_id: proven, kind: allow, enabled: true, severity: info,
     match: {trust_level_min: privileged}, effect: {}}
  - {rule_id: others, kind: deny, enabled: true, severity: warn, match: {},
     effect: {action: BLOCK, reason_code: DENIED, message: not you}}
"""
BLOCK = -32081


@pytest.fixture
def fixer(person):
    """A registered agent that is trusted far, once it has proven itself."""
    person("agents", "register", "fixer", "--type", "pr_agent", "--trust", "privileged")
    return "fixer"


@pytest.fixture
def proven(household):
    household.write_policy(PROVEN)


def token(person, *words):
    return person("agents", "attest", "fixer", *words).strip()


def agent_of(event):
    return event.get("run", event)["agent"]


def servers(household):
    """The processes of echo servers."""
    alive = set(household.alive())
    known = commands().items()
    return [pid for pid, words in known if pid in alive and words[1:2] == [b"-I"]]


def files_with(household, text):
    """Files of the home and of the place that contain a text."""
    found = []
    for path in [*household.home.rglob("*"), *household.cwd.rglob("*")]:
        if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes():
            found.append(path)
    return found


class TestAttested:
    @requirement("trust:run-attested")
    def test_a_token_proves_the_agent_and_a_bare_name_does_not(
        self, household, person, fixer, proven
    ):
        attested = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=token(person))
        bare = household.start(SUB_AGENT_ID=fixer, run="run-2")
        assert attested.code() == 0
        assert bare.code() == BLOCK
        known = {event["run_id"]: agent_of(event) for event in household.events("run_start")}
        one, other = known["run-1"], known["run-2"]
        assert (one["trust_level"], one["agent_type"], one["registered"]) == (
            "privileged",
            "pr_agent",
            True,
        )
        assert one["proof"]["kind"] == "attested"
        assert one["proof"]["subject"] == "fixer"
        assert one["proof"]["issuer"].startswith("sub-home:")
        assert (other["trust_level"], other["agent_type"]) == ("basic", None)
        assert other["proof"] == {"kind": "none"}

    @requirement("trust:run-tokens")
    def test_the_token_is_in_no_file_and_in_no_servers_environment(
        self, household, person, fixer, proven
    ):
        shown = token(person)
        shim = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=shown)
        assert shim.code(args={"text": f"my token is {shown}"}) == 0
        assert "result" in shim.call(args={"text": shown.split(".")[2]})
        (server,) = servers(household)
        environ = pathlib.Path(f"/proc/{server}/environ").read_bytes()
        assert b"SUB_AGENT_ID" in environ
        assert b"SUB_ATTESTATION" not in environ
        shim.close()
        shim.wait()
        assert files_with(household, shown) == []
        assert files_with(household, shown.split(".")[1]) == []
        assert "[REDACTED:SUB_ATTESTATION]" in json.dumps(household.events("tool_call_start")[0])

    def test_pass_env_does_not_give_it_to_a_server(self, household, person, fixer, proven):
        config = '[servers.echo]\npass_env = ["SUB_ATTESTATION", "SUB_ATTESTATION_FILE"]\n'
        household.home.mkdir(parents=True, exist_ok=True)
        (household.home / "config.toml").write_text(config)
        (household.home / "config.toml").chmod(0o600)
        shim = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=token(person))
        assert shim.code() == 0
        (server,) = servers(household)
        assert b"SUB_ATTESTATION" not in pathlib.Path(f"/proc/{server}/environ").read_bytes()

    def test_what_was_verified_is_kept_and_needs_no_second_process(
        self, household, person, fixer, proven
    ):
        shown = token(person)
        assert household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=shown).code() == 0
        (kept,) = (household.home / "cache" / "attestations").iterdir()
        # The home's key is gone: nobody could verify the token again.
        (household.home / "state" / "keys" / "home.pem").unlink()
        again = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=shown, run="run-2")
        assert again.code() == 0
        kept.write_bytes(kept.read_bytes().replace(b"fixer", b"admin"))
        edited = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=shown, run="run-3")
        assert edited.code() == BLOCK

    @requirement("trust:forgeries")
    def test_a_kept_proof_that_was_copied_proves_no_other_token(
        self, household, person, fixer, proven
    ):
        assert household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=token(person)).code() == 0
        (kept,) = (household.home / "cache" / "attestations").iterdir()
        known = standing(str(household.home / "state"), fixer).registration
        key = issuers_of(known).encode() + b"\0rubbish"
        copy = kept.with_name(f"{hashlib.sha256(key).hexdigest()}.json")
        copy.write_bytes(kept.read_bytes())
        forged = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION="rubbish", run="run-2")
        assert forged.code() == BLOCK

    @pytest.mark.parametrize("case", ["another agent", "rubbish", "unregistered", "another run"])
    def test_a_token_that_does_not_prove_the_agent(self, household, person, fixer, proven, case):
        person("agents", "register", "other", "--trust", "system")
        shown, name = token(person), fixer
        if case == "another agent":
            name = "other"
        elif case == "rubbish":
            shown = shown[:-4] + "AAAA"
        elif case == "unregistered":
            name = "stranger"
        else:
            shown = token(person, "--run", "run-9")
        shim = household.start(SUB_AGENT_ID=name, SUB_ATTESTATION=shown)
        assert shim.code() == BLOCK
        (start,) = household.events("run_start")
        assert agent_of(start)["proof"]["kind"] == "none"
        assert agent_of(start)["proof"]["problem"]
        assert files_with(household, shown) == []

    @requirement("trust:run-rotated")
    def test_a_token_file_is_read_again(self, household, person, fixer, proven):
        file = household.tmp_path / "token"
        shim = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION_FILE=str(file))
        assert shim.code() == BLOCK, "there is no file yet"
        shown = token(person)
        file.write_text(shown + "\n")
        wait_until(lambda: shim.code() == 0, "the new token to count")
        event = household.wait_event("agent_resolved", agent__proof__kind="attested")
        assert event["agent"]["trust_level"] == "privileged"
        assert shim.code(args={"text": shown}) == 0
        file.write_text("rubbish")
        wait_until(lambda: shim.code() == BLOCK, "the rubbish to count")
        file.write_text(token(person, "--ttl", "2h"))
        wait_until(lambda: shim.code() == 0, "the next token to count")
        assert files_with(household, shown) == []

    @requirement("trust:run-expiry")
    def test_a_proof_that_expires_while_a_shim_runs(self, household, person, fixer, proven):
        for number, ttl in enumerate(("4s", "12s", "25s")):
            # On a busy machine, a token may expire before the shim has verified it.
            shown = token(person, "--ttl", ttl)
            run = f"run-{number}"
            shim = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=shown, run=run)
            if shim.code() == 0:
                break
        wait_until(lambda: shim.code() == BLOCK, "the token to expire")
        (event,) = household.events("agent_resolved", run)
        assert event["agent"]["proof"] == {"kind": "none", "problem": "the token has expired"}
        assert event["seq"] >= 1

    def test_an_agent_that_is_registered_anew_with_other_issuers(
        self, household, person, fixer, proven
    ):
        """What was proven by the old issuers is void until it is verified again."""
        shim = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=token(person))
        assert shim.code() == 0
        person("agents", "register", "fixer", "--trust", "basic")
        wait_until(lambda: shim.code() == BLOCK, "the new registration to count")
        person("agents", "register", "fixer", "--trust", "privileged")
        wait_until(lambda: shim.code() == 0, "the next registration to count")
        levels = [agent_of(e)["trust_level"] for e in household.events("agent_resolved")]
        assert levels == ["basic", "privileged"]


class TestWithoutRules:
    @requirement("trust:run-unasked")
    def test_nothing_is_read_and_nothing_said_while_no_rule_asks(self, household, person, fixer):
        shim = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=token(person))
        assert shim.code() == 0
        (start,) = household.events("run_start")
        assert "agent" not in start["run"]
        assert not (household.home / "cache" / "attestations").exists()
        household.write_policy(PROVEN)
        event = household.wait_event("agent_resolved", agent__proof__kind="attested")
        assert event["agent"]["agent_id"] == "fixer"
        assert shim.code() == 0

    @requirement("trust:run-revoked")
    def test_a_revoked_agent_is_refused_in_a_running_shim_policy_or_none(
        self, household, person, fixer
    ):
        shims = [
            household.start(SUB_AGENT_ID=fixer),
            household.start(SUB_AGENT_ID=fixer, run="run-2"),
        ]
        other = household.start(SUB_AGENT_ID="other", run="run-3")
        assert [shim.code() for shim in (*shims, other)] == [0, 0, 0]
        person("agents", "revoke", "fixer", "--reason", "leaked")
        for shim in shims:
            error = shim.call()["error"]
            assert error["code"] == BLOCK
            assert error["data"]["subluminal"]["reason_code"] == "AGENT_REVOKED"
        assert other.code() == 0
        assert household.start(SUB_AGENT_ID=fixer, run="run-4").code() == BLOCK
        (decided,) = household.events("tool_call_decision", "run-4")
        assert decided["decision"]["explain"]["reason_code"] == "AGENT_REVOKED"
        told = person("show", "run-4").rstrip()
        assert told.endswith("AGENT_REVOKED")

    def test_a_batch_of_a_revoked_agent(self, household, person, fixer):
        shim = household.start(SUB_AGENT_ID=fixer)
        assert shim.code() == 0
        person("agents", "revoke", "fixer")
        call = {"method": "tools/call", "params": {"name": "echo", "arguments": {}}}
        batch = [{"jsonrpc": "2.0", "id": f"b{n}", **call} for n in (1, 2)]
        shim.write(json.dumps(batch).encode() + b"\n")
        codes = [shim.answer(f"b{n}")["error"]["code"] for n in (1, 2)]
        assert codes == [BLOCK, BLOCK]


class TestTold:
    @requirement("house:schemas")
    def test_every_event_of_two_shims_is_valid(self, household, person, fixer, proven):
        first = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=token(person))
        assert first.code() == 0
        second = household.start(SUB_AGENT_ID=fixer)
        assert second.code() == BLOCK
        for event in household.events():
            require_valid(event)
        (joined,) = household.events("agent_resolved")
        assert joined["seq"] == 1
        require_valid({**joined, "seq": 0})

    def test_show_says_how_far_an_agent_was_trusted(self, household, person, fixer, proven):
        shim = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION=token(person))
        assert shim.code() == 0
        shim.close()
        shim.wait()
        told = person("show", "run-1")
        assert "privileged; attested by sub-home:" in told
        assert json.loads(person("show", "run-1", "--json"))["run"]["agent"]["registered"] is True
        bare = household.start(SUB_AGENT_ID="stranger", SUB_ATTESTATION="a.b.c", run="run-2")
        bare.code()
        bare.close()
        bare.wait()
        told = person("show", "run-2")
        assert "untrusted: no active registration; no proof; a token was refused:" in told

    def test_doctor_finds_refused_tokens_and_revoked_agents(self, household, person, fixer, proven):
        def checks(code, **environ):
            said = json.loads(person("doctor", "--json", code=code, all_output=True, **environ))
            return {each["name"]: each for each in said["checks"]}

        good = {"SUB_AGENT_ID": fixer, "SUB_ATTESTATION": token(person)}
        assert "attested by sub-home:" in checks(0, **good)["attestation"]["detail"]
        bad = checks(1, SUB_AGENT_ID=fixer, SUB_ATTESTATION="a.b.c")["attestation"]
        assert (bad["ok"], "is refused" in bad["detail"]) == (False, True)
        shim = household.start(SUB_AGENT_ID=fixer, SUB_ATTESTATION="a.b.c")
        shim.code()
        assert "the token of `fixer` is refused" in checks(1)["agents"]["detail"]
        person("agents", "revoke", fixer)
        assert "is revoked" in checks(1)["agents"]["detail"]
