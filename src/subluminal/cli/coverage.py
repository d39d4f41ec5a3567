"""Which rules the cases of `sub policy test` have reached."""

from typing import Any

from subluminal.policy.snapshot import Snapshot


class Coverage:
    """Rules by policy, and whether any call matched them. Disabled rules are in no snapshot."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._rules: dict[str, dict[str, bool]] = {}

    def add(self, name: str, snapshot: Snapshot, matched: set[tuple[str, str]]) -> None:
        """Takes what one case reached. Equal policies count as one."""
        key = snapshot.policy_hash
        self._names.setdefault(key, name)
        rules = self._rules.setdefault(
            key, {rule["rule_id"]: False for rule in snapshot.data["rules"]}
        )
        for rule_id in rules:
            rules[rule_id] = rules[rule_id] or (key, rule_id) in matched

    def rows(self) -> list[dict[str, Any]]:
        """One row a policy, in the order of their first case."""
        return [
            {
                "policy": self._names[key],
                "rules": len(rules),
                "matched": sum(rules.values()),
                "never_matched": [rule_id for rule_id, hit in rules.items() if not hit],
            }
            for key, rules in self._rules.items()
        ]
