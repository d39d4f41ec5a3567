"""Hundreds of secrets through a real shim: not one is in any byte that we write (Pack 6.4, unprintable-secrets).

Injected from the environment and from the file store, echoed by the server in results, errors,
nested JSON, base64, split frames, stderr, environment dumps and huge payloads.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.records.redaction.canaries import leaks, make_canaries
from tests.requirements import requirement

from subluminal.config.places import places
from subluminal.config.settings import SecretsSettings
from subluminal.secrets.file_store import FileStore
from subluminal.secrets.value import SecretValue

SERVER = Path(__file__).with_name("leaky_server.py")
WAYS = [
    "raw",
    "json",
    "nested",
    "base64",
    "base64_wrapped",
    "url",
    "hex",
    "environment",
    "huge",
    "far",
    "structured",
    "failing",
    "error",
    "echo",
]
ALL = [c for c in make_canaries(200, seed=5) if "\n" not in c.reveal() and len(c.reveal()) < 500]

GROUPS = 5
"""Shims that share the canaries: one server with hundreds of secrets would be another test."""


def binding(index: int, source: str) -> str:
    return (
        f'[[servers.leaky.secret_bindings]]\ninject_as = "CANARY_{index}"\n'
        f'secret_ref = "{"REF" if source == "env" else "ref"}_{index}"\nsource = "{source}"\n'
    )


class Shim:
    """`sub shim stdio` in front of the leaky server, spoken to line by line."""

    def __init__(self, environ: dict[str, str], err: Path) -> None:
        shim = [sys.executable, "-m", "subluminal", "shim", "stdio", "--server", "leaky", "--"]
        self._err = err
        with err.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*shim, sys.executable, str(SERVER)],
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self._id = 0

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self._err.read_bytes()[-2000:]
        reply: dict[str, Any] = json.loads(line)
        return reply

    def close(self) -> bytes:
        self.process.communicate(timeout=30)
        return self._err.read_bytes()


@pytest.fixture(params=range(GROUPS))
def canaries(request: pytest.FixtureRequest) -> list[SecretValue]:
    return ALL[request.param :: GROUPS]


@pytest.fixture
def environ(own_home: Path, canaries: list[SecretValue]) -> dict[str, str]:
    own_home.mkdir(parents=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "CODEX", "AI_AGENT"))}
    env["ANTHROPIC_API_KEY"] = "client-own-credential-0815"
    parts = [f"[servers.leaky]\ncommand = {json.dumps([sys.executable, str(SERVER)])}\n"]
    store = FileStore(places(env), SecretsSettings(keychain_wait_ms=1))
    for index, canary in enumerate(canaries):
        if index % 10:
            env[f"REF_{index}"] = canary.reveal()
            parts.append(binding(index, "env"))
        else:
            store.write(f"ref_{index}", canary.reveal(), "2026-11-15T12:00:00.000Z")
            parts.append(binding(index, "file"))
    (own_home / "config.toml").write_text("\n".join(parts))
    return env


@pytest.fixture
def shim(environ: dict[str, str], tmp_path: Path) -> Iterator[Shim]:
    running = Shim(environ, tmp_path / "err")
    yield running
    if running.process.poll() is None:
        running.process.kill()
    running.process.communicate(timeout=30)


def written(home: Path) -> Iterator[tuple[Path, bytes]]:
    for path in home.rglob("*"):
        # The store is where they belong, and config.toml holds no value.
        if path.is_file() and path.parent.name != "secrets":
            yield path, path.read_bytes()


def named(index: int, canary: SecretValue) -> str:
    return f"CANARY_{index} = {canary!r}"


@requirement("001-7.4:injected")
@requirement("6.4:no-leak", "4.1:not-logged")
def test_no_canary_is_in_any_byte_that_we_write(
    shim: Shim, own_home: Path, canaries: list[SecretValue]
) -> None:
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    shim.ask("initialize", params)
    assert len(shim.ask("tools/list", {})["result"]["tools"]) == len(canaries)
    upstream_sent: dict[str, Any] = {}
    for index, canary in enumerate(canaries):
        variable = {"variable": f"CANARY_{index}"}
        for way in (WAYS[index % len(WAYS)], WAYS[(index * 5 + 3) % len(WAYS)]):
            upstream_sent[way] = shim.ask("tools/call", {"name": way, "arguments": variable})
        # An agent that has found a secret by itself and sends it: arguments leak as well.
        shim.ask(
            "tools/call", {"name": "echo", "arguments": {"note": canary.reveal(), "n": [index]}}
        )
        # So may what it calls a tool, and what it says about the call.
        meta = {"callId": canary.reveal(), "traceparent": canary.reveal()}
        shim.ask("tools/call", {"name": f"x{canary.reveal()}", "arguments": {}, "_meta": meta})
    shim.ask("tools/call", {"name": "echo", "arguments": {"k": "client-own-credential-0815"}})
    environment = upstream_sent["environment"]["result"]["content"][0]["text"]
    err = shim.close()

    assert "client-own-credential" not in environment
    assert "REF_1=" not in environment
    assert "CANARY_1=" in environment
    # Forwarded bytes are the server's own: redaction never touched them.
    assert canaries[1].reveal() in environment

    files = dict(written(own_home))
    journal = b"".join(data for path, data in files.items() if path.suffix == ".jsonl")
    assert journal.count(b'"tool_call_end"') == 4 * len(canaries) + 1
    assert journal.count(b'"secret_injection"') == len(canaries)
    assert journal.count(b'"tools_listed"') == 1
    assert journal.count(b"[REDACTED:") >= 2 * len(canaries)
    for path, data in files.items():
        assert b"client-own-credential" not in data
        for index, canary in enumerate(canaries):
            assert not leaks(data, canary), (path.name, named(index, canary))
    ours = b"\n".join(
        line for line in err.splitlines() if line.startswith((b"sub", b"error", b"hint"))
    )
    for index, canary in enumerate(canaries):
        assert not leaks(ours, canary), named(index, canary)
    for line in journal.splitlines():
        event = json.loads(line)
        for preview in (event.get("preview"), event.get("call", {}).get("preview")):
            text = (preview or {}).get("args_preview") or (preview or {}).get("result_preview")
            if text and not preview["truncated"]:
                json.loads(text)


@requirement("4.1:injected")
@pytest.mark.parametrize("canaries", [0], indirect=True)
def test_a_missing_secret_stops_the_server_before_it_starts(
    environ: dict[str, str], own_home: Path, tmp_path: Path
) -> None:
    gone = environ.pop("REF_7")
    running = Shim(environ, tmp_path / "err")
    err = running.close()
    assert running.process.returncode != 0
    assert (
        b"secret `REF_7` (env) for `CANARY_7` of server `leaky`: variable `REF_7` is not set" in err
    )
    journal = b"".join(data for path, data in written(own_home) if path.suffix == ".jsonl")
    failed = [
        json.loads(line)["injection"] for line in journal.splitlines() if b'"success":false' in line
    ]
    assert [injection["inject_as"] for injection in failed] == ["CANARY_7"]
    assert gone.encode() not in err + journal


REFUSING = """\
policy_id: refusing
version: "1"
mode: control
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  - rule_id: small
    kind: deny
    enabled: true
    match: {args: {numeric_range: {n: {min: 10}}}}
    severity: warn
    effect:
      action: BLOCK
      reason_code: TOO_MANY
      message: n is too large
      suggest: {n: {clamp_max: 9}}
  - rule_id: ask
    kind: deny
    enabled: true
    match: {args: {has_keys: [ask]}}
    severity: warn
    effect: {action: BLOCK, reason_code: ASK, message: ask, require: approval}
"""


@requirement("6.4:no-leak")
def test_no_refusal_of_ours_repeats_a_secret(
    environ: dict[str, str], own_home: Path, tmp_path: Path, canaries: list[SecretValue]
) -> None:
    """The suggested arguments are the call's own, and an agent may have put anything there."""
    (own_home / "policy.yaml").write_text(REFUSING)
    shim = Shim(environ, tmp_path / "err")
    shim.ask("initialize", {"protocolVersion": "2025-06-18"})
    for index, canary in enumerate(canaries):
        arguments = {"note": canary.reveal(), canary.reveal(): [canary.reveal()], "n": 50}
        reply = shim.ask("tools/call", {"name": "echo", "arguments": arguments})
        assert reply["error"]["code"] == -32083
        hint = reply["error"]["data"]["subluminal"]["hint"]
        assert hint["suggested_args"]["n"] == 9
        told = json.dumps(reply["error"], ensure_ascii=False).encode()
        assert not leaks(told, canary), named(index, canary)
        for arguments in ({"n": 50}, {"ask": 1}):
            reply = shim.ask("tools/call", {"name": canary.reveal(), "arguments": arguments})
            assert reply["error"]["code"] == -32083
            told = json.dumps(reply["error"], ensure_ascii=False).encode()
            assert not leaks(told, canary), named(index, canary)
    shim.close()
    for path, data in written(own_home):
        for index, canary in enumerate(canaries):
            assert not leaks(data, canary), (path.name, named(index, canary))
