"""Kernel rules over real shims: what the model sees of each decision of an installed pack."""

import json

import pytest
from tests.packs.desk import DESK, desk_environment
from tests.packs.installing import write
from tests.requirements import requirement
from tests.shim.household import deny, policy, wait_until
from tests.shim.test_policies import HEAVY, modules_of

POLICY = """\
policy_id: bank
mode: guardrails
rules:
  - rule_id: desk
    kind: kernel
    match: {{tool_name: {{glob: [pay]}}}}
    effect:
      kernel:
        pack: desk
        intent: desk.pay
        payload: {{amount: amount, to: to}}
        state: {{limit: 100{state}}}
"""


@pytest.fixture
def desk(household, tmp_path):
    """The variables with which processes of the household find the pack."""
    return desk_environment(tmp_path / "userbase")


def start(household, desk, state=""):
    household.write_policy(POLICY.format(state=state))
    return household.start(**desk).ready()


ASKED = (
    " A person has been asked: tell your user, go on with other work, and retry the same call with"
    " the same arguments once it is approved; this is approval APPROVAL."
)
SEEN = [
    ({"amount": 5000}, "Blocked by policy (rule desk): the pack desk refuses this call: That is too much."),
    ({"amount": 13}, "Blocked by policy (rule desk): the pack desk refuses this call: This action is temporarily unavailable."),
    ({"amount": 300}, "Rejected by policy (rule desk): the pack desk leaves this to a supervisor: A supervisor pays this." + ASKED),
    ({"amount": 150}, "Rejected by policy (rule desk): a person must confirm this call: Pay it?" + ASKED),
    ({"amount": 7}, "Throttled by policy (rule desk): the pack desk lets this call pass later. Retry after 1500 ms."),
    (
        {"amount": 5, "to": " me "},
        "Rejected by policy (rule desk): the pack desk would change this call: The name has spaces around it."
        ' Suggested arguments: {"amount":5,"to":"me"}. Retry with the suggested arguments.',
    ),
]  # fmt: skip


def message(answer, person, desk):
    text = answer["error"]["message"]
    for line in person("approvals", "--json", **desk).splitlines():
        text = text.replace(json.loads(line)["approval_id"], "APPROVAL")
    return text


def test_what_the_model_sees_of_each_decision(household, desk, person):
    shim = start(household, desk)
    assert "result" in shim.call("pay", {"amount": 5, "to": "me"})
    seen = [(args, message(shim.call("pay", args), person, desk)) for args, _ in SEEN]
    assert seen == SEEN
    assert len(household.executed()) == 1


def test_what_the_model_sees_of_a_signal_that_is_waited_for(household, desk, person):
    shim = start(household, desk, state=", closed: true")
    answer = shim.call("pay", {"amount": 5})
    assert message(answer, person, desk) == (
        "Rejected by policy (rule desk): the pack desk waits for the signal `desk.opened`. Go on"
        " with other work, and retry the same call after the signal."
    )
    data = answer["error"]["data"]["subluminal"]
    assert data["reason_code"] == "SIGNAL_REQUIRED"
    assert data["defer"] == {"signal": "desk.opened", "timeout_ms": 60_000}
    (event,) = household.events("tool_call_decision")
    assert event["decision"]["defer"] == data["defer"]


@requirement("kernel-rule:grants")
def test_what_a_pack_leaves_to_a_person_passes_once_the_person_agrees(
    household, desk, person, person_at_terminal
):
    shim = start(household, desk)
    assert shim.code("pay", {"amount": 300}) != 0
    assert shim.code("pay", {"amount": 5000}) != 0
    (row,) = (json.loads(line) for line in person("approvals", "--json", **desk).splitlines())
    assert (row["rule_id"], row["requirement"]) == ("desk", "human")
    person_at_terminal("[y/N]", "y", "approve", row["approval_id"], **desk)
    assert shim.code("pay", {"amount": 300}) == 0
    assert shim.code("pay", {"amount": 301}) != 0, "the grant is for one call"
    passed = household.events("tool_call_decision")[2]["decision"]
    assert passed["explain"]["reason_code"] == "APPROVAL_GRANTED"
    assert passed["kernel"]["kind"] == "ESCALATE"
    assert passed["grant"]["approver"]


@requirement("kernel-rule:rewrite")
def test_a_rewrite_is_offered_never_applied_and_passes_when_it_is_taken(household, desk):
    shim = start(household, desk)
    refused = shim.call("pay", {"amount": 5, "to": " me "})["error"]
    assert household.executed() == []
    offered = refused["data"]["subluminal"]["hint"]["suggested_args"]
    assert offered == {"amount": 5, "to": "me"}
    assert shim.code("pay", offered) == 0


def test_what_was_recorded_replays_without_a_difference(
    household, desk, person, person_at_terminal, tmp_path
):
    shim = start(household, desk)
    for args, _ in SEEN:
        shim.call("pay", args)
    assert shim.code("pay", {"amount": 5}) == 0
    (row, _) = (json.loads(line) for line in person("approvals", "--json", **desk).splitlines())
    person_at_terminal("[y/N]", "y", "approve", row["approval_id"], **desk)
    shim.call("pay", {"amount": 300})
    shim.close()
    shim.wait()
    path = household.home / "policy.yaml"
    stricter = tmp_path / "stricter.yaml"
    stricter.write_text(POLICY.format(state="").replace("limit: 100", "limit: 1"))

    def replay(file, **env):
        out = person("policy", "replay", "--policy", str(file), "--json", "--all", **env)
        return [json.loads(line) for line in out.splitlines()][:-1]

    try:
        rows = replay(path, **desk)
        assert [each for each in rows if each["change"] != "same"] == []
        rows = replay(stricter, **desk)
        assert {"newly_blocked", "changed"} <= {each["change"] for each in rows}
        snapshot = tmp_path / "stricter.json"
        snapshot.write_text(person("policy", "compile", str(stricter), **desk))
        rows = replay(snapshot)
        assert {(each["change"], each.get("doubt")) for each in rows} == {("undetermined", "pack")}
    finally:
        person("ledgerd", "stop")


@requirement("kernel-rule:changed-pack")
def test_a_pack_that_changes_under_a_running_shim_decides_nothing(household, desk, tmp_path):
    shim = start(household, desk)
    assert shim.code("pay", {"amount": 5}) == 0
    (code,) = (tmp_path / "userbase").rglob("desk_pack/__init__.py")
    write(code, DESK.replace("That is too much.", "Less, please."))
    assert shim.code("pay", {"amount": 6}) == 0, "the loaded code is that of the snapshot"
    household.write_policy(POLICY.format(state="").replace("limit: 100", "limit: 99"))
    household.wait_event("policy_loaded", policy__policy_version="1", load__ok=True)

    def refused():
        return shim.call("pay", {"amount": 5000})["error"]["message"]

    wait_until(lambda: "has changed" in refused(), "the new policy")
    told = refused()
    assert told.startswith(
        "Blocked by policy (rule desk): the policy could not be evaluated: the pack `desk` has changed"
    )
    assert told.endswith("restart the agent.")
    new = household.start(**desk).ready()
    assert new.call("pay", {"amount": 5000})["error"]["message"].endswith("Less, please.")


@requirement("kernel-rule:changed-pack")
def test_a_cached_policy_of_an_older_pack_is_not_used_at_the_start(household, desk, tmp_path):
    assert start(household, desk).code("pay", {"amount": 5}) == 0
    (code,) = (tmp_path / "userbase").rglob("desk_pack/__init__.py")
    write(code, DESK.replace("That is too much.", "Less, please."))
    new = household.start(**desk).ready()
    assert new.call("pay", {"amount": 5000})["error"]["message"].endswith("Less, please.")
    code.unlink()
    gone = household.start(**desk).ready()
    assert "pack `desk`" in gone.call("pay", {"amount": 5})["error"]["message"]


def test_the_commands_know_installed_packs(household, desk, person):
    path = str(household.write_policy(POLICY.format(state="")))
    assert person("policy", "lint", path, **desk) == ""
    told = person("policy", "lint", path, code=1, all_output=True)
    assert "pack `desk` is not installed" in told
    words = ("policy", "explain", "--policy", path, "--server", "bank", "--tool", "pay")
    told = person(*words, "--args", '{"amount": 5000}', **desk)
    assert "pack desk 1.0.0, asked by rule `desk` about desk.pay: REFUSE" in told
    assert "  business: match (teller)" in told
    plain = json.loads(person(*words, "--args", '{"amount": 5}', "--json", **desk))
    assert plain["packs"][0]["steps"][-1] == {
        "phase": "business",
        "outcome": "match",
        "guard": "name",
    }
    case = household.cwd / "cases.yaml"
    case.write_text(
        f"bundle: {path}\ncalls:\n"
        "  - {server: bank, tool: pay, args: {amount: 5000}, want: {action: BLOCK}}\n"
        "  - {server: bank, tool: pay, args: {amount: 5}, want: {action: ALLOW}}\n"
    )
    assert person("policy", "test", str(case), **desk) == "1 case: 1 passed, 0 failed\n"


@requirement("kernel-rule:unused")
def test_without_a_kernel_rule_no_kernel_and_no_pack_is_loaded(household, desk):
    """fast-start: what is unused costs nothing; YAML is never loaded."""
    rooms = ("subluminal.kernel", "subluminal.core.intents", "importlib.metadata", "desk_pack")

    def loaded(tool):
        modules = modules_of(household, tool, **desk)
        assert not HEAVY & set(modules)
        return {room for room in rooms for name in modules if name.startswith(room)}

    household.write_policy(policy(deny("rm")))
    assert [loaded("rm") for _ in ("cold", "warm")] == [set(), set()]
    household.write_policy(POLICY.format(state=""))
    assert loaded("pay") == set(rooms)


def test_a_kernel_rule_cannot_be_promoted_in_either_way(household, desk, person):
    shim = start(household, desk)
    assert shim.code("pay", {"amount": 300}) != 0
    hint = household.events("tool_call_decision")[0]["call"]["call_id"]
    path = str(household.home / "policy.yaml")
    try:
        for way in (["--session"], ["--to", path, "--args", "any", "--yes"]):
            told = person("promote", hint, *way, code=2, **desk)
            assert "rule `desk` leaves the decision to the pack `desk`" in told
            assert "`sub approve`" in told
    finally:
        person("ledgerd", "stop")
