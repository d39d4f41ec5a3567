"""A bundle of Agent-SPM in a layer of a shim: enforced, and only if it is signed where it must be."""

import json
import time

import pytest
from tests.policy.dialects.agent_spm.spm_bundles import spm, spm_rule
from tests.requirements import requirement
from tests.shim.household import deny, policy, wait_until

from subluminal.clock import now, rfc3339
from subluminal.policy.dialects.agent_spm.signing import signature_of

BLOCKED, HINTED = -32081, -32083
KEY = b"the household's key"
BUNDLE = spm(
    spm_rule(id="NO_RM", match={"tool_name": "rm"}),
    spm_rule(id="ASK", match={"tool_name": "push*"}, outcome="REQUIRE_APPROVAL"),
)


def signed(value=BUNDLE, key=KEY):
    return {**value, "signature": signature_of(value, key)}


def repository_file(household):
    (household.cwd / ".git").mkdir(exist_ok=True)
    return household.cwd / ".subluminal" / "policy.yaml"


@pytest.fixture
def key(household, own_home):
    """The settings of a home that demands signatures."""
    own_home.mkdir(exist_ok=True)
    path = own_home / "policy.key"
    path.write_bytes(KEY + b"\n")
    path.chmod(0o600)
    (own_home / "config.toml").write_text(f'[policy]\nhmac_key_file = "{path}"\n')
    return path


def refused_text(shim, tool="read"):
    return shim.call(tool)["error"]["message"]


@requirement("trust:dialect-layers")
@pytest.mark.parametrize("layer", ["user", "repository", "explicit"])
def test_every_layer_takes_a_bundle(household, layer):
    text, env = json.dumps(BUNDLE), {}
    if layer == "user":
        household.write_policy(text)
    elif layer == "repository":
        household.write_policy(text, repository_file(household))
    else:
        household.write_policy(text, household.cwd / "bundle.json")
        env = {"SUB_POLICY": "bundle.json"}
    shim = household.start(**env).ready()
    assert [shim.code(tool) for tool in ("rm", "push_main", "read")] == [BLOCKED, HINTED, 0]
    events = [each["decision"] for each in household.events("tool_call_decision")]
    assert [(each["rule_id"], each["explain"]["reason_code"]) for each in events] == [
        ("NO_RM", "NO_RM"),
        ("ASK", "APPROVAL_REQUIRED"),
        ("defaults.outcome", "DEFAULT_ALLOW"),
    ]


def test_a_bundle_that_is_wrong_refuses_every_call(household):
    household.write_policy(json.dumps({**BUNDLE, "rules": [spm_rule(when={"matches": "x"})]}))
    shim = household.start().ready()
    assert "unknown field `matches`" in refused_text(shim)


def test_a_bundle_that_expires_refuses_every_call_from_then_on(household):
    """Agent-SPM looks at the date once, when it loads the bundle."""
    end_ms = now().wall_ms + 4_000
    household.write_policy(json.dumps({**BUNDLE, "expires_at": rfc3339(end_ms)}))
    shim = household.start().ready()
    assert shim.code("read") == 0 or now().wall_ms > end_ms
    wait_until(lambda: shim.code("read", {"t": time.monotonic()}) == BLOCKED, "the policy is over")
    last = household.events("tool_call_decision")[-1]["decision"]
    assert last["explain"]["reason_code"] == "POLICY_EXPIRED"


@requirement("trust:dialect-signed-layers")
def test_a_signed_bundle_comes_into_force(household, key):
    household.write_policy(json.dumps(signed()))
    household.write_policy(json.dumps(signed()), repository_file(household))
    shim = household.start().ready()
    assert [shim.code(tool) for tool in ("rm", "read")] == [BLOCKED, 0]


@requirement("trust:dialect-signed-layers")
@pytest.mark.parametrize(
    "value", [BUNDLE, signed(key=b"other"), {**signed(), "rules": []}], ids=["none", "key", "rules"]
)
def test_an_unsigned_or_forged_bundle_refuses_every_call(household, key, value):
    household.write_policy(json.dumps(value))
    shim = household.start().ready()
    assert "the signature is missing or wrong" in refused_text(shim)


@requirement("trust:dialect-signed-layers")
def test_another_language_is_no_way_round_the_signature(household, key, person):
    """Whoever edits the repository cannot replace its bundle by a policy without a signature."""
    household.write_policy(policy(), repository_file(household))
    assert "the signature is missing or wrong" in refused_text(household.start().ready())
    household.write_policy(policy(), household.cwd / "empty.yaml")
    compiled = household.cwd / "empty.json"
    person("policy", "compile", "empty.yaml", "-o", str(compiled))
    shim = household.start(SUB_POLICY=str(compiled)).ready()
    assert "the signature is missing or wrong" in refused_text(shim)


def test_the_users_own_policy_may_have_no_signature(household, key):
    """It lies beside the settings that name the key."""
    household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert [shim.code(tool) for tool in ("rm", "read")] == [BLOCKED, 0]


@requirement("trust:dialect-signed-layers")
def test_the_cache_does_not_answer_for_a_text_that_nobody_verified(household, own_home):
    """The same bundle was compiled while no signature was demanded."""
    household.write_policy(json.dumps(BUNDLE))
    assert household.start().ready().code("read") == 0
    path = own_home / "k"
    path.write_bytes(KEY)
    path.chmod(0o600)
    (own_home / "config.toml").write_text(f'[policy]\nhmac_key_file = "{path}"\n')
    assert "the signature is missing or wrong" in refused_text(household.start().ready())


def test_a_key_that_others_can_read_or_that_is_gone_refuses_every_call(household, key):
    household.write_policy(json.dumps(signed()))
    key.chmod(0o644)
    assert "can be read by others" in refused_text(household.start().ready())
    key.unlink()
    assert "there is no key file" in refused_text(household.start().ready())


def test_a_forged_change_does_not_replace_the_policy_in_force(household, key):
    path = household.write_policy(json.dumps(signed()))
    shim = household.start().ready()
    assert shim.code("rm") == BLOCKED
    household.write_policy(json.dumps({**signed(), "rules": []}), path)
    wait_until(
        lambda: any(not each["load"]["ok"] for each in household.events("policy_loaded")),
        "the change is refused",
    )
    assert shim.code("rm", {"t": time.monotonic()}) == BLOCKED


def test_sub_run_demands_the_signature_before_the_agent_starts(household, key, person):
    household.write_policy(json.dumps(BUNDLE), repository_file(household))
    said = person("run", "--strict", "--", "touch", "started", code=2)
    assert "the signature is missing or wrong" in said
    assert not (household.cwd / "started").exists()


def test_doctor_tells_what_is_wrong(household, key, person):
    household.write_policy(json.dumps(BUNDLE))
    assert "the signature is missing or wrong" in person("doctor", code=1, all_output=True)
    household.write_policy(json.dumps(signed()))
    assert "agent-spm 0.1.0, guardrails, 3 rules" in person("doctor", code=1, all_output=True)
