"""Coverage of rules over several cases."""

from tests.policy.bundles import bundle, rule

from subluminal.cli.commands.policy_test import Coverage
from subluminal.policy.compiling import compile_bundle


def test_a_rule_that_any_case_reached_is_covered():
    snapshot = compile_bundle(bundle(rule("allow"), rule("tag"), rule("deny", enabled=False)))
    coverage = Coverage()
    coverage.add("first", snapshot, {(snapshot.policy_hash, "tag")})
    coverage.add("second", snapshot, {("another policy", "allow")})
    assert coverage.rows() == [
        {"policy": "first", "rules": 2, "matched": 1, "never_matched": ["allow"]}
    ]
