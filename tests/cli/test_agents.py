"""`sub agents`: register, list, show, attest, verify and revoke (trust, section 1)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.process import Ledgerd
from tests.requirements import requirement
from tests.trust import token_factory as make
from tests.trust.issued import CLUSTER, GITHUB, GITHUB_CLAIMS, POD_CLAIMS
from tests.trust.token_factory import JWKS, NOW_S, jwk, token

from subluminal.clock import rfc3339
from subluminal.config.agent_environment import MARKERS
from subluminal.config.places import places

AT = rfc3339(NOW_S * 1000)
SUBJECT = "repo:acme/shop:*"


@pytest.fixture
def keys(tmp_path: Path) -> str:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(JWKS))
    return str(path)


@pytest.fixture
def fixer(sub: Any, keys: str) -> Any:
    words = (
        "--type",
        "pr_agent",
        "--trust",
        "privileged",
        "--role",
        "deployer",
        "--role",
        "reader",
    )
    issuer = ("--issuer", GITHUB, "--jwks", keys, "--subject", SUBJECT)
    done = sub("agents", "register", "fixer", *words, *issuer, "--claim", "/repository_id=1234")
    assert (done.code, done.err) == (0, "")
    return done


def row(ran: Any) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def changes(home: Path) -> list[Any]:
    """Returns the agents of every agent_changed event, in the journals of the run `operator`."""
    lines = [
        json.loads(line)
        for file in sorted((home / "journal" / "operator").glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    found = [line for line in lines if line["type"] == "agent_changed"]
    return [each["agent"] for each in sorted(found, key=lambda each: each["ts"])]


@requirement("trust:commands")
def test_a_registration_has_every_field_of_the_row(sub: Any) -> None:
    found = row(sub("agents", "register", "fixer", "--json"))
    at = found.pop("registered_at")
    assert at.endswith("Z")
    user = found.pop("registered_by")
    assert found == {
        "agent_id": "fixer",
        "name": "fixer",
        "owner": user,
        "environment": "dev",
        "agent_type": None,
        "trust_level": "basic",
        "unattested": "basic",
        "roles": [],
        "capabilities": [],
        "max_delegation_depth": None,
        "issuers": [],
        "state": "active",
    }


@requirement("trust:commands")
def test_registering_again_changes_what_is_given(sub: Any, fixer: Any, keys: str) -> None:
    before = row(sub("agents", "list", "--json"))
    options = {
        "--name": "Fixer", "--owner": "platform", "--env": "prod eu", "--type": "chat_agent", "--trust": "system",
        "--unattested": "untrusted", "--role": "reader", "--capability": "tool_call", "--max-delegation-depth": "2",
    }  # fmt: skip
    after = row(
        sub(
            "agents",
            "register",
            "fixer",
            *(word for pair in options.items() for word in pair),
            "--json",
        )
    )
    assert after == {
        **before,
        "name": "Fixer",
        "owner": "platform",
        "environment": "prod eu",
        "agent_type": "chat_agent",
        "trust_level": "system",
        "unattested": "untrusted",
        "roles": ["reader"],
        "capabilities": ["tool_call"],
        "max_delegation_depth": 2,
    }
    assert row(sub("agents", "register", "fixer", "--json")) == after
    emptied = row(sub("agents", "register", "fixer", "--role", "", "--type", "", "--json"))
    assert (emptied["roles"], emptied["agent_type"]) == ([], None)


@requirement("trust:commands")
def test_an_issuer_is_replaced_added_and_removed(sub: Any, fixer: Any, keys: str) -> None:
    (first,) = row(sub("agents", "list", "--json"))["issuers"]
    assert first["jwks"] == {"keys": [{**key, "alg": alg} for key, alg in zip((
        {name: value for name, value in each.items() if name != "use"} for each in JWKS["keys"]
    ), ("ES256", "EdDSA", "RS256"), strict=True)]}  # fmt: skip
    del first["jwks"]
    assert first == {
        "issuer": GITHUB,
        "subject": SUBJECT,
        "audience": "subluminal",
        "claims": {"/repository_id": "1234"},
    }
    again = ("--issuer", GITHUB, "--jwks", keys, "--subject", "repo:acme/*", "--audience", "ours")
    (replaced,) = row(sub("agents", "register", "fixer", *again, "--json"))["issuers"]
    assert (replaced["subject"], replaced["audience"], replaced["claims"]) == (
        "repo:acme/*",
        "ours",
        {},
    )
    pod = ("--issuer", CLUSTER, "--jwks", keys, "--subject", "system:serviceaccount:agents:fixer")
    both = row(sub("agents", "register", "fixer", *pod, "--json"))["issuers"]
    assert [each["issuer"] for each in both] == [GITHUB, CLUSTER]
    left = row(sub("agents", "register", "fixer", "--remove-issuer", GITHUB, "--json"))["issuers"]
    assert [each["issuer"] for each in left] == [CLUSTER]
    assert "no issuer" in sub("agents", "register", "fixer", "--remove-issuer", GITHUB).err


I = ("--issuer", GITHUB)  # noqa: E741
S = ("--subject", SUBJECT)


@requirement("trust:commands")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*I, "--jwks", "KEYS"), "an issuer needs `--subject`"),
        ((*I, "--jwks", "KEYS", "--subject", ""), "an issuer needs `--subject`"),
        ((*I, *S), "an issuer needs `--jwks`"),
        ((*I, "--jwks", "KEYS", "--subject", "*"), "lets every token of the issuer"),
        ((*I, "--jwks", "KEYS", "--subject", "**"), "lets every token of the issuer"),
        ((*I, "--jwks", "KEYS", "--subject", "[a"), "without a closing"),
        (("--issuer", "", "--jwks", "KEYS", *S), "exact `iss`"),
        (("--issuer", "sub-home:1", "--jwks", "KEYS", *S), "exact `iss`"),
        ((*I, "--jwks", "KEYS", *S, "--claim", "repository=a"), "starts with `/`"),
        ((*I, "--jwks", "KEYS", *S, "--claim", "/repository"), "/POINTER=VALUE"),
        ((*I, "--jwks", "KEYS", *S, "--claim", "/a~b=1"), "written `~0`"),
        ((*I, "--jwks", "missing.json", *S), "cannot read `missing.json`"),
        (S, "need `--issuer`"),
        (("--claim", "/a=b"), "need `--issuer`"),
        (("--name", ""), "must not be empty"),
        (("--max-delegation-depth", "-1"), "must not be negative"),
        (("--trust", "highest"), "invalid choice"),
    ],
)
def test_a_wrong_registration_changes_nothing(
    sub: Any, own_home: Path, keys: str, words: Any, said: str
) -> None:
    done = sub("agents", "register", "fixer", *(keys if word == "KEYS" else word for word in words))
    assert (done.code, said in done.err) == (2, True), done.err
    assert not (own_home / "state" / "agents").exists()


@pytest.mark.parametrize("agent_id", ["", "unknown", "x" * 257, "a\nb"])
def test_an_id_that_no_agent_can_have(sub: Any, agent_id: str) -> None:
    assert sub("agents", "register", agent_id).code == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ('{"keys":[],"keys":[]}', "duplicate key"),
        ("[]", "a list `keys`"),
        ('{"keys":[1]}', "is not an object"),
        ('{"keys":[]}', "no key that can verify"),
        (json.dumps({"keys": [{**jwk("a", make.EC_KEY), "d": "AA"}]}), "a private or a shared key"),
        (
            json.dumps({"keys": [{"kty": "oct", "kid": "a", "k": "AA"}]}),
            "a private or a shared key",
        ),
        (json.dumps({"keys": [jwk("a", make.EC_KEY), jwk("a", make.ED_KEY)]}), "the same `kid`"),
        (json.dumps({"keys": [jwk("a", make.SHORT_RSA_KEY)]}), "no key that can verify"),
        (json.dumps({"keys": [jwk("", make.EC_KEY)]}), "no key that can verify"),
        (json.dumps({"keys": [jwk("a", make.EC_KEY)] * 101}), "at most 100 keys"),
        (" " * (1 << 20) + "{}", "has more than"),
    ],
)
def test_a_key_set_that_cannot_be_used(sub: Any, tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content)
    done = sub("agents", "register", "fixer", *I, *S, "--jwks", str(path))
    assert (done.code, said in done.err) == (2, True), done.err


@requirement("trust:commands")
def test_agents_are_listed_by_type_and_trust(sub: Any) -> None:
    for agent_id, kind, trust in [
        ("b", "x", "verified"),
        ("a", "y", "system"),
        ("c", "x", "basic"),
    ]:
        sub("agents", "register", agent_id, "--type", kind, "--trust", trust)
    sub("agents", "revoke", "b")

    def ids(*words: str) -> list[str]:
        return [
            json.loads(line)["agent_id"]
            for line in sub("agents", "list", *words, "--json").out.splitlines()
        ]

    assert ids() == ["a", "c"]
    assert ids("--all") == ["a", "b", "c"]
    assert ids("--type", "x") == ["c"]
    assert ids("--all", "--trust-min", "verified") == ["a", "b"]
    assert sub("agents", "list", "--all").out.splitlines()[2].split() == [
        "b",
        "x",
        "verified",
        "basic",
        *_user(),
        "revoked",
    ]
    assert sub("agents", "list", "--type", "z").out == ""


def _user() -> list[str]:
    from subluminal.trust.identity.machine import local_user

    return [local_user()]


def test_a_damaged_file_is_reported(sub: Any, fixer: Any, own_home: Path) -> None:
    (own_home / "state" / "agents" / "agent-fixer").write_text("{}")
    listed = sub("agents", "list")
    assert (listed.code, listed.out) == (0, "")
    assert "does not count" in listed.err
    shown = sub("agents", "show", "fixer")
    assert "does not count" in shown.err
    assert shown.out.startswith("agent `fixer` is not registered\n")
    assert sub("agents", "attest", "fixer").code == 2
    assert row(sub("agents", "register", "fixer", "--json"))["roles"] == []


@requirement("trust:commands")
def test_an_agent_is_shown_with_its_proof_and_its_trust(
    sub: Any, fixer: Any, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(token(GITHUB_CLAIMS) + "\n")
    shown = row(sub("agents", "show", "fixer", "--token-file", str(file), "--at", AT, "--json"))
    assert shown["agent"]["agent_id"] == "fixer"
    assert shown["proof"] == {
        "kind": "attested",
        "issuer": GITHUB,
        "subject": GITHUB_CLAIMS["sub"],
        "expires_at": "2027-01-15T08:05:00.000Z",
        "problem": None,
    }
    assert shown["trust"] == {
        "base_trust": "privileged",
        "effective_trust": "privileged",
        "score": 75,
        "adjustments": [],
    }
    told = sub("agents", "show", "fixer", "--token-file", str(file), "--at", AT).out
    assert f"proof: attested by {GITHUB} as {GITHUB_CLAIMS['sub']} until" in told
    assert f"\n  proven by tokens of {GITHUB}: sub repo:" in told
    assert ", aud subluminal" in told


@requirement("trust:commands")
def test_what_lowers_trust_is_shown(sub: Any, fixer: Any) -> None:
    sub("agents", "register", "fixer", "--unattested", "system", "--max-delegation-depth", "1")
    words = ("--env", "prod", "--depth", "2", "--hour", "23", "--denials", "4")
    shown = row(sub("agents", "show", "fixer", *words, "--json"))
    assert shown["proof"]["kind"] == "none"
    assert shown["trust"] == {
        "base_trust": "privileged",
        "effective_trust": "untrusted",
        "score": 20,
        "adjustments": [
            {"reason": "no attestation in `prod`", "delta": -10},
            {"reason": "delegated 2 times, at most 1 are allowed", "delta": -25},
            {"reason": "hour 23 is before 6 or after 22", "delta": -5},
            {"reason": "4 calls in a row were refused", "delta": -15},
        ],
    }
    told = sub("agents", "show", "fixer", *words).out
    assert "trust: untrusted (20 points)\n  privileged to begin with\n  -10 no attestation" in told
    late = ("--token-file", "-", "--at", "2027-01-16T00:00:00Z", "--json")
    expired = row(sub("agents", "show", "fixer", *late, stdin=token(GITHUB_CLAIMS).encode()))
    assert expired["proof"]["problem"] == "the token has expired"
    assert expired["trust"]["adjustments"] == [
        {"reason": "the attestation has expired", "delta": -20}
    ]


@requirement("trust:commands")
def test_the_registrations_environment_counts_unless_another_is_given(sub: Any) -> None:
    sub("agents", "register", "fixer", "--env", "prod", "--trust", "basic")
    assert row(sub("agents", "show", "fixer", "--json"))["trust"]["score"] == 15
    assert row(sub("agents", "show", "fixer", "--env", "dev", "--json"))["trust"]["score"] == 25


def test_the_hour_counts_only_if_asked_for(
    sub: Any, fixer: Any, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    night = ("agents", "show", "fixer", "--at", "2026-01-31T03:00:00Z", "--json")
    assert row(sub(*night))["trust"]["adjustments"] == []
    (own_home / "config.toml").write_text("[trust]\nquiet_hours = true\n")
    assert row(sub(*night))["trust"]["adjustments"] == [
        {"reason": "hour 3 is before 6 or after 22", "delta": -5}
    ]
    assert row(sub(*night, "--hour", "12"))["trust"]["adjustments"] == []


@requirement("trust:commands")
def test_agents_that_nobody_registered_are_shown_too(sub: Any) -> None:
    shown = row(sub("agents", "show", "stranger", "--token-file", "-", "--json", stdin=b"a.b.c"))
    assert shown["agent"] is None
    assert shown["proof"]["problem"] == "the agent is not registered"
    assert (shown["trust"]["base_trust"], shown["trust"]["score"]) == ("untrusted", 0)
    assert sub("agents", "show", "stranger").out.startswith("agent `stranger` is not registered\n")


@pytest.mark.parametrize(
    "words",
    [
        ("--depth", "-1"),
        ("--denials", "-1"),
        ("--hour", "24"),
        ("--at", "noon"),
        ("--at", "2026-01-31T03:00:00"),
        ("--token-file", "missing"),
    ],
)
def test_a_wrong_question(sub: Any, words: Any) -> None:
    assert sub("agents", "show", "fixer", *words).code == 2


@requirement("trust:commands")
def test_a_token_is_verified(sub: Any, fixer: Any) -> None:
    words = ("agents", "verify", "fixer", "--token-file", "-", "--at", AT)
    good = token(GITHUB_CLAIMS).encode()
    assert row(sub(*words, "--json", stdin=good)) == {
        "valid": True,
        "issuer": GITHUB,
        "subject": GITHUB_CLAIMS["sub"],
        "expires_at": "2027-01-15T08:05:00.000Z",
        "problem": None,
    }
    assert sub(*words, stdin=good + b"\n").out.startswith(
        "valid: it proves `fixer`, by https://token"
    )
    for bad, said in [
        (token(POD_CLAIMS).encode(), "not an issuer"),
        (token(GITHUB_CLAIMS, header={"kid": "x"}).encode(), "`kid` is not in"),
        (b"\xff" * 40_000, "longer than 16384"),
        (b"", "three parts"),
    ]:
        refused = sub(*words, "--json", stdin=bad)
        assert refused.code == 1
        found = json.loads(refused.out)
        assert (found["valid"], found["issuer"], found["subject"], found["expires_at"]) == (
            False,
            None,
            None,
            None,
        )
        assert said in found["problem"]
        assert sub(*words, stdin=bad).out == f"not valid: {found['problem']}\n"
    assert (
        "new `--jwks` file"
        in sub(*words, stdin=token(GITHUB_CLAIMS, header={"kid": "x"}).encode()).err
    )
    assert sub("agents", "verify", "nobody", "--token-file", "-", stdin=good).code == 1


@requirement("trust:home-tokens")
def test_the_home_attests_an_agent(sub: Any, fixer: Any, own_home: Path) -> None:
    made = sub("agents", "attest", "fixer")
    assert (made.code, made.err) == (0, "")
    (bare,) = made.out.splitlines()
    assert bare.count(".") == 2
    found = row(
        sub("agents", "verify", "fixer", "--token-file", "-", "--json", stdin=bare.encode())
    )
    assert found["valid"]
    sub("agents", "register", "other")
    assert sub("agents", "verify", "other", "--token-file", "-", stdin=bare.encode()).code == 1
    told = row(sub("agents", "attest", "fixer", "--ttl", "2d", "--run", "run-1", "--json"))
    assert list(told) == ["token", "expires_at"]
    bound = sub("agents", "verify", "fixer", "--token-file", "-", stdin=told["token"].encode())
    assert "only in run run-1" in bound.out
    for words in (("nobody",), ("fixer", "--ttl", "soon")):
        assert sub("agents", "attest", *words).code == 2
    text = "".join(file.read_text("latin-1") for file in own_home.rglob("*") if file.is_file())
    assert bare not in text, "no file has a token"


@requirement("trust:revoked")
def test_a_revoked_id_never_returns(sub: Any, fixer: Any) -> None:
    bare = sub("agents", "attest", "fixer").out
    assert row(sub("agents", "revoke", "fixer", "--json"))["state"] == "revoked"
    for words in (("register", "fixer"), ("attest", "fixer")):
        refused = sub("agents", *words)
        assert (refused.code, "never returns" in refused.err) == (2, True)
    found = json.loads(
        sub("agents", "verify", "fixer", "--token-file", "-", "--json", stdin=bare.encode()).out
    )
    assert found["problem"] == "the agent is revoked"
    shown = sub("agents", "show", "fixer", "--token-file", "-", stdin=bare.encode())
    assert shown.out.startswith("agent `fixer` is revoked: every call of it is refused\n")
    assert "trust: untrusted (0 points)" in shown.out
    assert sub("agents", "revoke", "fixer").code == 0, "once more changes nothing"


def test_whoever_was_never_registered_cannot_be_revoked(sub: Any, fixer: Any) -> None:
    refused = sub("agents", "revoke", "fixxer")
    assert (refused.code, "did you mean `fixer`" in refused.err) == (2, True)


def test_an_agent_with_a_damaged_file_can_be_revoked(sub: Any, fixer: Any, own_home: Path) -> None:
    (own_home / "state" / "agents" / "agent-fixer").write_text("{}")
    assert sub("agents", "revoke", "fixer").code == 0
    assert sub("agents", "register", "fixer").code == 2


@requirement("trust:agent-changed")
def test_every_change_is_on_record(sub: Any, fixer: Any, own_home: Path) -> None:
    sub("agents", "register", "fixer", "--trust", "verified", "--type", "")
    sub("agents", "revoke", "fixer", "--reason", "its key leaked")
    sub("agents", "revoke", "fixer", "--reason", "again")
    sub("agents", "register", "fixer")
    (user,) = _user()
    common = {
        "agent_id": "fixer",
        "by": user,
        "unattested": "basic",
        "roles": ["deployer", "reader"],
        "issuers": [GITHUB],
    }
    assert changes(own_home) == [
        {**common, "state": "active", "trust_level": "privileged", "agent_type": "pr_agent"},
        {**common, "state": "active", "trust_level": "verified"},
        {**common, "state": "revoked", "trust_level": "verified", "reason": "its key leaked"},
    ]


@requirement("trust:agent-changed")
def test_the_record_is_ingested_shown_and_verified(sub: Any, fixer: Any, own_home: Path) -> None:
    sub("agents", "revoke", "fixer", "--reason", "its key leaked")
    told = sub("tail", "--no-follow").out
    (user,) = _user()
    assert f"AGENT      fixer: privileged, unattested basic, by {user}\n" in told
    assert f"REVOKED    fixer by {user}: its key leaked\n" in told
    daemon = Ledgerd(places(os.environ)).ready()
    try:
        daemon.has_stored(len(told.splitlines()))
        listed = sub("query", "runs", "--all", "--json").out.splitlines()
        assert [json.loads(line)["run_id"] for line in listed] == ["operator"]
        assert sub("ledger", "verify").code == 0
    finally:
        daemon.close()


PEOPLE = [("register", "fixer", "--trust", "system"), ("attest", "fixer"), ("revoke", "fixer")]


@requirement("trust:people")
@pytest.mark.parametrize("marker", ["SUB_RUN_ID", "CLAUDECODE", "CODEX_THREAD_ID", "AI_AGENT"])
@pytest.mark.parametrize("words", PEOPLE, ids=lambda words: words[0])
def test_agents_do_not_write_the_registry(
    sub: Any, fixer: Any, own_home: Path, monkeypatch: pytest.MonkeyPatch, words: Any, marker: str
) -> None:
    assert marker in [each.name for each in MARKERS]
    before = row(sub("agents", "list", "--all", "--json"))
    monkeypatch.setenv(marker, "1")
    refused = sub("agents", *words)
    assert (refused.code, refused.out) == (2, "")
    assert f"`sub agents {words[0]}` is for a person to run" in refused.err
    assert row(sub("agents", "list", "--all", "--json")) == before
    assert len(changes(own_home)) == 1


@requirement("trust:people")
@pytest.mark.parametrize("words", PEOPLE, ids=lambda words: words[0])
def test_the_passphrase_guards_the_registry(
    sub: Any, fixer: Any, monkeypatch: pytest.MonkeyPatch, words: Any
) -> None:
    def said(passphrase: str, *typed: str) -> Any:
        read, write = os.pipe()
        os.write(write, passphrase.encode())
        os.close(write)
        with monkeypatch.context() as patch:
            patch.setenv("SUB_PASSPHRASE_FD", str(read))
            return sub(*typed)

    assert said("correct horse", "passphrase", "set").code == 0
    assert said("guess", "agents", *words).code == 2
    assert sub("agents", *words).code == 2
    assert said("correct horse", "agents", *words).code == 0


def test_anybody_may_ask(sub: Any, fixer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    assert sub("agents", "list").code == sub("agents", "show", "fixer").code == 0
    verified = sub(
        "agents",
        "verify",
        "fixer",
        "--token-file",
        "-",
        "--at",
        AT,
        stdin=token(GITHUB_CLAIMS).encode(),
    )
    assert verified.code == 0


WITHOUT = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from subluminal.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


@requirement("trust:no-extra")
@pytest.mark.parametrize("missing", ["joserfc", "joserfc,cryptography"])
def test_without_the_extra_no_token_is_accepted(sub: Any, fixer: Any, missing: str) -> None:
    home_token = sub("agents", "attest", "fixer").out

    def without(given: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHOUT, missing, *words]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False)

    for given, at in ((token(GITHUB_CLAIMS), ("--at", AT)), (home_token, ())):
        words = ("agents", "verify", "fixer", "--token-file", "-", *at)
        refused = without(given, *words)
        assert (refused.returncode, refused.stdout) == (
            1,
            "not valid: the library that verifies tokens is missing\n",
        )
        assert "pip install 'subluminal[trust]'" in refused.stderr
    assert without("", "agents", "list").returncode == 0
    attested = without("", "agents", "attest", "fixer")
    assert attested.returncode == (2 if "cryptography" in missing else 0)
