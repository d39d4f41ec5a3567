"""A second kernel, slow and plain, written from seed 003 and the reference page.

It knows guards as data: what each one says about an envelope. It shares no code with the kernel,
hashes with the `rfc8785` package, and says what a decision must look like: kind, reasons and code.
"""

import hashlib
import unicodedata
from typing import Any, NamedTuple

import rfc8785

RANKS = ["UNTRUSTED", "TRUSTED", "SYSTEM"]


class Said(NamedTuple):
    """A decision, as far as the oracle knows it."""

    kind: str
    reasons: tuple[str, ...]
    code: str | None = None


class Opinion(NamedTuple):
    """What a guard does: `says` is one of the words below."""

    says: str
    word: str = ""


def normal(value: Any) -> Any:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [normal(member) for member in value]
    if isinstance(value, dict):
        return {normal(name): normal(member) for name, member in value.items()}
    return value


def intent_hash(wire: dict[str, Any]) -> str:
    covered = ("version", "kind", "payload", "nonce", "actor", "taint", "resourceRefs", "origin")
    return hashlib.sha256(
        rfc8785.dumps(normal({name: wire[name] for name in covered if name in wire}))
    ).hexdigest()


def levels_in(value: Any) -> list[str]:
    found = []
    if isinstance(value, dict):
        if "value" in value and value.get("taint") in RANKS:
            found.append(value["taint"])
        for member in value.values():
            found += levels_in(member)
    if isinstance(value, list):
        for member in value:
            found += levels_in(member)
    return found


def adjudicate(wire: dict[str, Any], policy: dict[str, Any], killed: bool) -> Said:
    """`policy`: state, auth and business as lists of opinions, minimum, clean, default."""
    if killed:
        return Said("REFUSE", ("kill:active",), "kill_switch_active")
    if wire["version"] != 2:
        return Said("REFUSE", ("schema:version_unsupported",), "schema_version_unsupported")
    if wire["intentHash"] != intent_hash(wire):
        reasons = ("schema:version_supported", "schema:intent_hash_mismatch")
        return Said("REFUSE", reasons, "intent_hash_mismatch")
    return asked_in_order(wire, policy)


def asked_in_order(wire: dict[str, Any], policy: dict[str, Any]) -> Said:
    passed = ["schema:version_supported"]
    gate = taint_gate(wire, policy)
    for phase, pass_reason in (
        ("state", "state:transition_valid"),
        ("taint", "taint:level_permitted"),
        ("auth", "auth:scope_sufficient"),
        ("business", "business:rule_satisfied"),
    ):
        if phase == "taint":
            if gate is not None:
                return refused_by(gate, passed)
            passed.append(pass_reason)
            continue
        for opinion in policy[phase]:
            if opinion.says == "nothing":
                continue
            # UNTRUSTED never executes when the policy demands more, whoever says EXECUTE.
            if opinion.says == "EXECUTE" and phase == "state" and gate is not None:
                return refused_by(gate, passed)
            return said_by(opinion, passed)
        passed.append(pass_reason)
    if policy["default"] == "EXECUTE":
        return Said("EXECUTE", tuple(passed))
    return Said("REFUSE", tuple(passed), "default_deny")


def taint_gate(wire: dict[str, Any], policy: dict[str, Any]) -> str | None:
    """The reason why the level or the origin is not good enough."""
    if policy["minimum"] not in RANKS:
        return "kernel:guard_panic"
    levels = [wire["taint"], *levels_in(wire["payload"])]
    if min(map(RANKS.index, levels)) < RANKS.index(policy["minimum"]):
        return "taint:level_insufficient"
    if policy["clean"] and wire.get("origin") in ("Retrieved", "ExternalAPI"):
        return "taint:propagation_violation"
    return None


def refused_by(gate: str, passed: list[str]) -> Said:
    code = "guard_panic" if gate == "kernel:guard_panic" else "taint_level_insufficient"
    return Said("REFUSE", (*passed, gate), code)


def said_by(opinion: Opinion, passed: list[str]) -> Said:
    if opinion.says in ("raise", "nonsense", "another intent", "change"):
        return Said("REFUSE", (*passed, "kernel:guard_panic"), "guard_panic")
    if opinion.says == "raise taint":
        return Said("REFUSE", (*passed, "taint:propagation_violation"), "taint_level_insufficient")
    if opinion.says == "wrong hash":
        return Said("REFUSE", (*passed, "schema:intent_hash_mismatch"), "intent_hash_mismatch")
    reasons = (*passed, "business:rule_satisfied")
    return Said(opinion.says, reasons, opinion.word if opinion.says == "REFUSE" else None)
