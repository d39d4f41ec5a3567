"""`sub policy …` with bundles of Agent-SPM: every command takes them, signed or not."""

import json
import os
from pathlib import Path

import pytest
from tests.adapters.policies import deny, snapshot
from tests.policy.bundles import rule, text
from tests.policy.dialects.agent_spm.spm_bundles import spm, spm_rule
from tests.replay.stage import Stage
from tests.requirements import requirement

from subluminal.contracts.vocabulary import Layer

BUNDLE = spm(
    spm_rule(id="NO_RM", match={"tool_name": ["rm", "rmdir"]}),
    spm_rule(id="ASK", match={"tool_name": "write_*"}, outcome="REQUIRE_APPROVAL"),
)
NOT_SIGNED = "the signature is missing or wrong"


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """An empty directory to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(desk):
    def put(value, name: str = "b.json") -> str:
        data = value if isinstance(value, bytes) else json.dumps(value, indent=1).encode()
        (desk / name).write_bytes(data)
        return name

    return put


@pytest.fixture
def key(desk) -> str:
    path = desk / "policy.key"
    path.write_text("not a secret at all\n")
    path.chmod(0o600)
    return str(path)


@requirement("trust:dialect-commands")
def test_lint_tells_problems_with_their_lines(sub, write):
    bad = json.loads(json.dumps(BUNDLE))
    bad["rules"][1]["when"] = {"matches_regex": "(?=x)"}
    ran = sub("policy", "lint", write(bad))
    assert ran.code == 1
    line = json.dumps(bad, indent=1).splitlines().index('    "matches_regex": "(?=x)"') + 1
    assert ran.out.startswith(f"b.json:{line}:22: error: rule `ASK`: `when.matches_regex`: invalid")
    assert sub("policy", "lint", "--strict", write(BUNDLE)) == (0, "", "1 file: no problems\n")


@requirement("trust:dialect-hash")
def test_compile_prints_the_bundle_with_the_same_hash(sub, write):
    compiled = sub("policy", "compile", write(BUNDLE))
    bundle = sub("policy", "compile", "--as", "bundle", write(BUNDLE))
    assert json.loads(bundle.out)["policy_id"] == "agent-spm"
    again = sub("policy", "compile", write(bundle.out.encode(), "ours.json"))
    assert again.out == compiled.out
    assert sub("policy", "lint", "--strict", "ours.json").code == 0


def test_a_bundle_can_be_printed_from_a_snapshot_and_from_yaml(sub, write):
    snap = write(sub("policy", "compile", write(BUNDLE)).out.encode(), "snap.json")
    from_snap = sub("policy", "compile", "--as", "bundle", snap)
    assert sub("policy", "compile", write(from_snap.out.encode(), "x.json")).out == Path(snap).read_text()  # fmt: skip
    write(b"policy_id: p\nmode: guardrails\nrules: []\n", "p.yaml")
    assert json.loads(sub("policy", "compile", "--as", "bundle", "p.yaml").out)["version"] == "1"


@requirement("trust:dialect-commands")
def test_the_language_can_be_named(sub, write):
    ours = write(text(rule("deny")), "ours.json")
    assert sub("policy", "compile", "--dialect", "pack", ours).code == 0
    assert sub("policy", "compile", "--dialect", "agent-spm", write(BUNDLE)).code == 0
    assert (
        "missing field `policy_id`" in sub("policy", "compile", "--dialect", "pack", "b.json").err
    )
    ran = sub("policy", "lint", "--dialect", "agent-spm", ours)
    assert "the file is not a bundle of Agent-SPM" in ran.out


@requirement("trust:dialect-commands")
def test_explain_names_the_rule_and_the_default(sub, write):
    given = ("policy", "explain", "--json", "--policy", write(BUNDLE), "--server", "s", "--tool")
    decision = json.loads(sub(*given, "rm").out)["decision"]
    assert (decision["action"], decision["rule_id"]) == ("BLOCK", "NO_RM")
    decision = json.loads(sub(*given, "read").out)["decision"]
    assert (decision["rule_id"], decision["reason_code"]) == ("defaults.outcome", "DEFAULT_ALLOW")


@requirement("trust:dialect-commands")
def test_cases_name_a_bundle_by_its_path_or_contain_it(sub, write):
    calls = [{"server": "s", "tool": "rm", "want": {"action": "BLOCK", "reason_code": "NO_RM"}}]
    write(BUNDLE)
    for bundle in ("b.json", BUNDLE):
        write({"bundle": bundle, "calls": calls}, "cases.yaml")
        assert sub("policy", "test", "cases.yaml").out == "1 case: 1 passed, 0 failed\n"


@requirement("trust:dialect-commands")
def test_diff_compares_languages(sub, write):
    looser = {**BUNDLE, "rules": BUNDLE["rules"][1:]}
    ran = sub("policy", "diff", "--fail-on", "critical", write(BUNDLE), write(looser, "new.json"))
    assert ran.code == 1
    assert "NO_RM" in ran.out
    ours = write(sub("policy", "compile", "--as", "bundle", "b.json").out.encode(), "ours.json")
    assert json.loads(sub("policy", "diff", "--json", "b.json", ours).out)["changes"] == []


@requirement("trust:dialect-commands")
def test_recorded_runs_are_replayed(sub, write, own_home, monkeypatch):
    made = Stage(own_home, monkeypatch)
    shim = made.shim([(Layer.USER, snapshot(deny("nothing")))])
    for tool in ("read", "rm"):
        made.call(shim, tool, {})
    made.close_shims()
    made.home.store.connection.close()
    try:
        ran = sub("policy", "replay", "--json", "--policy", write(BUNDLE), "--fail-on", "newly_blocked")  # fmt: skip
    finally:
        made.close()
    assert ran.code == 1, ran.err
    rows = [json.loads(line) for line in ran.out.splitlines()]
    changed = [row for row in rows if row.get("change") == "newly_blocked"]
    assert [(row["tool_name"], row["now"]["rule_id"]) for row in changed] == [("rm", "NO_RM")]


def test_accept_takes_a_bundle(sub, desk, write):
    (desk / ".git").mkdir()
    (desk / ".subluminal").mkdir()
    write(BUNDLE, ".subluminal/policy.yaml")
    assert "nothing to accept" in sub("policy", "accept").out


@requirement("trust:dialect-expired")
def test_commands_refuse_an_expired_bundle(sub, write):
    old = write({**BUNDLE, "expires_at": "2026-02-01T00:00:00Z"}, "old.json")
    said = "old.json:4:16: error: `expires_at`: the bundle expired at 2026-02-01T00:00:00Z\n"
    ran = sub("policy", "lint", old)
    assert (ran.code, ran.out.splitlines()[0] + "\n") == (1, said)
    for words in (["compile", old], ["explain", "--policy", old, "--server", "s", "--tool", "t"]):
        assert "the bundle expired" in sub("policy", *words).err
    # The bundle that it is renewed from is what a new one is compared with.
    assert sub("policy", "diff", old, write(BUNDLE)).code == 0
    assert "the bundle expired" in sub("policy", "diff", "b.json", old).err


# signatures


@requirement("trust:dialect-signature")
def test_a_bundle_is_signed_and_verified(sub, write, key):
    ran = sub("policy", "sign", write(BUNDLE), "--hmac-key-file", key)
    assert ran.code == 0
    signature = json.loads(ran.out)["signature"]
    assert len(signature) == 64
    assert json.loads(ran.out) == {**BUNDLE, "signature": signature}
    write(ran.out.encode(), "signed.json")
    # The same policy: a signature changes no decision.
    assert sub("policy", "compile", "signed.json", "--hmac-key-file", key).out == sub("policy", "compile", "b.json").out  # fmt: skip
    assert (
        sub("policy", "sign", "signed.json", "--hmac-key-file", key, "-o", "again.json").out == ""
    )
    assert Path("again.json").read_text() == ran.out


@requirement("trust:dialect-signature")
def test_unsigned_and_forged_bundles_are_refused_by_every_command(sub, write, key):
    write(BUNDLE)
    write({**BUNDLE, "signature": "0" * 64}, "forged.json")
    write(text(rule("deny")), "ours.json")
    for name in ("b.json", "forged.json", "ours.json"):
        signed = ("--hmac-key-file", key)
        assert NOT_SIGNED in sub("policy", "lint", name, *signed).out
        assert NOT_SIGNED in sub("policy", "compile", name, *signed).err
        call = ("--server", "s", "--tool", "t")
        assert NOT_SIGNED in sub("policy", "explain", "--policy", name, *call, *signed).err
        assert NOT_SIGNED in sub("policy", "diff", name, name, *signed).err
        assert NOT_SIGNED in sub("policy", "replay", "--policy", name, *signed).err
        write({"bundle": name, "calls": []}, "cases.yaml")
        assert NOT_SIGNED in sub("policy", "test", "cases.yaml", *signed).err


def test_a_compiled_policy_has_no_signature(sub, write, key):
    write(sub("policy", "compile", write(BUNDLE)).out.encode(), "snap.json")
    assert NOT_SIGNED in sub("policy", "compile", "snap.json", "--hmac-key-file", key).err


def test_the_settings_name_the_key(sub, write, key, own_home):
    own_home.mkdir(exist_ok=True)
    (own_home / "config.toml").write_text(f'[policy]\nhmac_key_file = "{key}"\n')
    assert NOT_SIGNED in sub("policy", "lint", write(BUNDLE)).out
    signed = write(sub("policy", "sign", "b.json", "--hmac-key-file", key).out.encode(), "s.json")
    assert sub("policy", "lint", signed).code == 0
    # A policy in our own language has no signature, and may be the user's.
    assert sub("policy", "lint", write(text(rule("deny")), "ours.json")).code == 0


@requirement("trust:dialect-signature")
def test_agent_spms_own_signatures_need_a_switch(sub, write, key):
    signed = ("--hmac-key-file", key)
    ran = sub("policy", "sign", write(BUNDLE), *signed, "--legacy-signature")
    assert ran.err == "warning: the signature of `b.json` does not cover its rules\n"
    weak = {**json.loads(ran.out), "rules": []}  # every rule is gone, and the signature still fits
    assert NOT_SIGNED in sub("policy", "lint", write(weak, "weak.json"), *signed).out
    changed = {**weak, "rules": [{**each, "outcome": "ALLOW"} for each in BUNDLE["rules"]]}
    ran = sub("policy", "lint", write(changed, "weak.json"), *signed, "--legacy-signature")
    assert NOT_SIGNED not in ran.out
    assert NOT_SIGNED in sub("policy", "lint", "weak.json", *signed).out
    assert sub("policy", "lint", "b.json", "--legacy-signature").code == 2


@pytest.mark.parametrize(
    ("mode", "content", "said"),
    [
        (0o644, "k", "can be read by others (mode 0644)"),
        (0o640, "k", "can be read by others (mode 0640)"),
        (0o600, "", "is empty"),
        (0o600, "\n", "is empty"),
    ],
)
def test_a_key_file_that_cannot_be_relied_on_is_refused(sub, write, key, mode, content, said):
    Path(key).write_text(content)
    os.chmod(key, mode)
    for words in (["sign", write(BUNDLE)], ["compile", "b.json"]):
        ran = sub("policy", *words, "--hmac-key-file", key)
        assert ran.code == 2
        assert said in ran.err
    assert "there is no key file" in sub("policy", "compile", "b.json", "--hmac-key-file", "x").err


def test_only_a_valid_bundle_is_signed(sub, write, key):
    signed = ("--hmac-key-file", key)
    assert sub("policy", "sign", write({**BUNDLE, "version": ""}), *signed).code == 2
    own = write(text(rule("deny")), "o.json")
    for words in (["sign", own, *signed], ["compile", own, "--dialect", "agent-spm"]):
        ran = sub("policy", *words)
        assert (ran.code, ran.err) == (
            2,
            "error: o.json: the file is not a bundle of Agent-SPM\n"
            "hint: it has a `policy_id`, as policies in the Pack's language do\n",
        )
    huge = write({**BUNDLE, "n": 2**60 + 1}, "huge.json")
    assert "huge.json" in sub("policy", "sign", huge, *signed).err
