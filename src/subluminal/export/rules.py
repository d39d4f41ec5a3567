"""What each rule did in a run: the calls that it decided, and those among them that broke it."""

from typing import Any, NamedTuple

from msgspec import Struct

from subluminal.export.policies import UsedPolicies
from subluminal.export.violations import Violation


class _Key(NamedTuple):
    policy_hash: str
    rule_id: str


class RuleRow(Struct, kw_only=True):
    """One rule of one policy."""

    policy_id: str
    policy_hash: str
    rule_id: str
    kind: str | None = None
    """None where the policy itself is not on record"""
    severity: str
    message: str | None = None
    calls: int = 0
    violations: int = 0
    failures: int = 0
    """violations that reports show in red"""


class RuleCounts:
    """Decisions by rule."""

    def __init__(self) -> None:
        self._rows: dict[_Key, RuleRow] = {}

    def add(self, decision: dict[str, Any], violation: Violation | None) -> None:
        """Takes in one decision and what was wrong with it."""
        made = decision.get("would_be") or decision
        if made["rule_id"] is None:
            return
        policy = decision["policy"]
        key = _Key(policy["policy_hash"], made["rule_id"])
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = RuleRow(
                policy_id=policy["policy_id"], severity=made["severity"], **key._asdict()
            )
        row.calls += 1
        row.violations += violation is not None
        row.failures += violation is not None and violation.is_failure

    def rows(self, policies: UsedPolicies) -> list[RuleRow]:
        """Every rule of every policy, in their order; then those that are known by their acts."""
        acted: dict[_Key, list[RuleRow]] = {}
        for row in self._rows.values():
            owner = policies.owner(row.policy_hash, row.rule_id)
            acted.setdefault(_Key(owner, row.rule_id), []).append(row)
        found = [
            RuleRow(
                policy_id=policy.policy_id,
                policy_hash=policy.policy_hash,
                rule_id=rule["rule_id"],
                kind=rule["kind"],
                severity=rule["severity"],
                message=rule["effect"].get("message"),
                calls=sum(row.calls for row in rows),
                violations=sum(row.violations for row in rows),
                failures=sum(row.failures for row in rows),
            )
            for policy in policies.all()
            for rule in policy.rules
            for rows in [acted.pop(_Key(policy.policy_hash, rule["rule_id"]), [])]
        ]
        return found + [row for _, rows in sorted(acted.items()) for row in rows]
