"""Proves that stored policies follow from the events, and that their rules match their hash."""

from hashlib import sha256

import apsw
from msgspec import UNSET, Struct

from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.events import Event, PolicyLoaded, RunStart
from subluminal.ledger.ingest.deriving_runs import PolicyKey, policy_key, rules_of, run_start_ms
from subluminal.ledger.proof.findings import Report
from subluminal.timestamps import parse_rfc3339

_STORED = "SELECT policy_id, version, rules_hash, mode, created_at, rules_json FROM policy_versions"


class _Told(Struct):
    """What the events say of one policy."""

    first: int
    modes: set[str | None]
    has_rules: bool = False


class PolicyProof:
    """Collects what events say of policies, then compares it with the stored rows."""

    def __init__(self) -> None:
        self._told: dict[PolicyKey, _Told] = {}

    def feed(self, events: list[Event]) -> None:
        """Takes events in any order."""
        for event in events:
            if isinstance(event, RunStart):
                self._see(event.run.policy, run_start_ms(event), event.run.mode)
            elif isinstance(event, PolicyLoaded) and event.load.ok and event.policy is not UNSET:
                mode = None if event.load.mode is UNSET else event.load.mode
                told = self._see(event.policy, parse_rfc3339(event.ts), mode)
                told.has_rules = told.has_rules or _has_rules(event, event.policy)

    def _see(self, policy: PolicyRef, at_ms: int, mode: str | None) -> _Told:
        told = self._told.setdefault(policy_key(policy), _Told(at_ms, set()))
        told.first = min(told.first, at_ms)
        if mode is not None:
            told.modes.add(mode)
        return told

    def compare(self, connection: apsw.Connection, report: Report) -> None:
        """Reports policies that are missing, changed, or without an event.

        After retention dropped events, a row may say more than the events that are left.
        """
        stored = {(str(r[0]), str(r[1]), str(r[2])): r[3:] for r in connection.execute(_STORED)}
        for key in sorted(self._told.keys() - stored.keys()):
            report.add("policy_versions", _where(key), "the row is missing")
        for key in sorted(stored):
            mode, at_ms, rules = stored[key]
            problem = _rules_problem(key, rules, self._told.get(key))
            if problem is None and not report.dropped_events:
                problem = _problem(self._told.get(key), mode, at_ms, rules)
            if problem is not None:
                report.add("policy_versions", _where(key), problem)


def _has_rules(event: PolicyLoaded, policy: PolicyRef) -> bool:
    return event.snapshot is not UNSET and rules_of(event.snapshot, policy.policy_hash) is not None


def _rules_problem(key: PolicyKey, rules: object, told: _Told | None) -> str | None:
    if rules is None:
        should_have = told is not None and told.has_rules
        return "`rules_json` is empty; the events have the rules" if should_have else None
    if sha256(str(rules).encode("utf-8", "surrogatepass")).hexdigest() != key[2]:
        return "`rules_json` does not have the hash `rules_hash`"
    return None


def _problem(told: _Told | None, mode: object, at_ms: object, rules: object) -> str | None:
    if told is None:
        return "there is no event for it"
    facts = (
        ("mode", mode in (told.modes or {None})),
        ("created_at", at_ms == told.first),
        ("rules_json", rules is None or told.has_rules),
    )
    wrong = next((name for name, holds in facts if not holds), None)
    return None if wrong is None else f"`{wrong}` is not what the events say"


def _where(key: PolicyKey) -> str:
    return f"policy `{key[0]}` version `{key[1]}`"
