"""Shows the three contracts and the hash: `.venv/bin/python examples/contracts_walk.py`.

Nothing is mocked: this uses the types, the canonical JSON and the schemas of the product.
"""

import json
import sys
import textwrap
from pathlib import Path

import msgspec

from subluminal.canonical import AmbiguousJSON, Profile, args_hash, encode, parse
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.codec import decode_event
from subluminal.contracts.decision import Decision, Hint
from subluminal.contracts.shape import misfits
from subluminal.contracts.vocabulary import Action, HintKind, Severity


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def chapter(title: str, why: str) -> None:
    say(f"\n== {title} ==\n{textwrap.fill(why, 88)}\n")


def the_hash() -> str:
    chapter(
        "One call, one hash",
        "A tool call's arguments have one canonical form, so that every program that sees the call "
        "computes the same args_hash, however the arguments are spelt.",
    )
    for text in (
        b'{"branch":"main","force":true,"n":1.0}',
        b'{ "n":1, "force":true, "branch":"main" }',
    ):
        args = parse(text).value
        say(f"  {text.decode()}\n    -> {encode(args).decode()}\n    -> {args_hash(args)}")
    say("\n  Numbers keep their exact value, even if a double cannot hold it:")
    say(f"    pack {encode(parse(b'[9007199254740993,0.10,1E400]').value).decode()}")
    say("\n  Text that two parsers may read differently is refused:")
    for text in (b'{"path":"/tmp","path":"/etc"}', b"NaN", b'"\\ud800"'):
        try:
            encode(parse(text).value, Profile.PACK)
        except AmbiguousJSON as error:
            say(f"    {text.decode():<32} {error}")
    return args_hash({"branch": "main", "force": True, "n": 1})


def contract_a(hashed: str) -> None:
    chapter(
        "Contract A: events",
        "Every tool call leaves three events, one JSON object per line. Readers ignore fields and "
        "types that they do not know.",
    )
    line = {
        "type": "tool_call_start",
        "v": "0.1.0",
        "ts": "2025-12-15T12:34:56.789Z",
        "run_id": "r-1",
        "agent_id": "fixer",
        "client": "claude",
        "env": "dev",
        "source": {"host_id": "h", "proc_id": "p", "shim_id": "s"},
        "call": {
            "call_id": "c-1",
            "server_name": "git",
            "tool_name": "push",
            "args_hash": hashed,
            "transport": "mcp_stdio",
            "bytes_in": 120,
            "seq": 1,
            "preview": {"truncated": False},
        },
        "from_the_future": True,
    }
    event = decode_event(json.dumps(line).encode())
    assert event is not None
    say(f"  {msgspec.json.encode(event).decode()}")


def contract_b() -> None:
    chapter(
        "Contract B: the policy bundle",
        "Bundles are read strictly: all mistakes are reported together, with suggestions.",
    )
    bundle = {
        "policy_id": "demo",
        "version": "1",
        "mode": "guardrail",
        "defaults": {"decision_on_error": "BLOCK"},
        "selectors": {},
        "rules": [{"rule_id": "no-force", "kind": "denny", "enabled": True}],
    }
    for misfit in misfits(bundle, Bundle):
        say(f"  {'.'.join(map(str, misfit.path)):<14} {misfit.message}; {misfit.hint}")


def contract_c() -> None:
    chapter(
        "Contract C: the decision",
        "A refusal tells the agent what to do instead.",
    )
    decision = Decision(
        action=Action.REJECT_WITH_HINT,
        rule_id="no-force",
        severity=Severity.WARN,
        reason_code="FORCE_PUSH",
        summary="force pushes to main are not allowed",
        hint=Hint(
            hint_text="push without force",
            suggested_args={"branch": "main"},
            hint_kind=HintKind.ARG_FIX,
        ),
    )
    say(textwrap.indent(json.dumps(msgspec.to_builtins(decision), indent=2), "  "))


def main() -> None:
    hashed = the_hash()
    contract_a(hashed)
    contract_b()
    contract_c()
    schemas = sorted(file.name for file in (Path(__file__).parents[1] / "schema").iterdir())
    chapter("Schemas", "The same contracts for other languages, generated from the types.")
    say("  schema/" + "\n  schema/".join(schemas))
    say('\nNext: echo \'{"b":2,"a":1.0}\' | .venv/bin/sub canonical --hash')


if __name__ == "__main__":
    main()
