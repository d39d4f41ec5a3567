"""Attacks that succeed on Agent-SPM, one for each of its known bugs, and what they meet here.

Forged rules under a valid signature are in test_signing. The formats for a SOC, which can be forged
there by a `|` or a line end in a field, are not ours.
"""

import pytest
from tests.policy.dialects.agent_spm.spm_bundles import load, spm, spm_rule
from tests.policy.dialects.agent_spm.upstream import Request, decide
from tests.requirements import requirement

from subluminal.core.targets.reading import targets_of
from subluminal.policy.case_running import run_case
from subluminal.policy.casefile import parse_cases
from subluminal.policy.compiling import compile_bundle

UPSTREAM: frozenset[str] = frozenset()


def failures(text: str):
    (case,) = parse_cases(text.encode(), "attack.yaml")
    layers = [(layer, compile_bundle(policy.bundle)) for layer, policy in case.policies]

    def read(server, tool, args, cwd):
        return targets_of(server, tool, args, cwd=cwd)

    return run_case(case, layers, read).failures


SKIPPED = spm(spm_rule(match={"tool_name": "*"}, when={"matches_regex": "(drop|truncate)+ table"}))


@requirement("trust:dialect-agrees")
def test_a_deny_whose_pattern_looks_dangerous_is_not_open():
    """Fail-open there: the pattern is skipped, and with it the DENY."""
    asked = Request("query", {"sql": "DROP TABLE users"})
    bundle = spm(spm_rule(match={"tool_name": "*"}, when={"matches_regex": "(x|y)+z"}))
    assert decide(bundle, Request("query", {"sql": "xyz"}), UPSTREAM)[0] == "ALLOW"
    text = f"""
      bundle: {SKIPPED}
      calls: [{{server: s, tool: query, args: {{sql: {asked.args["sql"]}}}, want: {{action: BLOCK}}}}]
    """
    assert failures(text) == []


ESCALATION = spm(
    spm_rule(
        id="PAY", match={"tool_name": "pay", "trust_level_min": "privileged"}, outcome="ALLOW"
    ),
    spm_rule(
        id="ROLE", match={"tool_name": "read", "agent_roles_any": ["finance"]}, outcome="ALLOW"
    ),
    default="DENY",
)


@requirement("trust:dialect-agrees")
def test_a_caller_cannot_promote_itself():
    """There what the caller says of its trust and roles wins over the registry."""
    there = Request("pay", {}, trust_level="system", roles=["finance"])
    assert decide(ESCALATION, there, UPSTREAM) == ("ALLOW", "PAY")
    text = f"""
      bundle: {ESCALATION}
      identity: {{registered: true, trust_level: basic}}
      calls:
        - {{server: s, tool: pay, claims: {{trust_level: system}}, want: {{action: BLOCK}}}}
        - {{server: s, tool: read, claims: {{roles: [finance]}}, want: {{action: BLOCK}}}}
    """
    assert failures(text) == []


@pytest.mark.parametrize("between", [1, 3])
def test_harmless_calls_do_not_hide_a_sequence(between: int):
    """There the last calls are compared, so that one call between hides the pattern."""
    calls = "\n".join(
        "        - {server: s, tool: list, want: {action: ALLOW}}" for _ in range(between)
    )
    text = f"""
      bundle:
        policy_id: p
        mode: guardrails
        rules:
          - {{rule_id: leak, kind: sequence, effect: {{sequence: {{pattern: [read_secrets, http_request], on_match: BLOCK}}}}}}
      calls:
        - {{server: s, tool: read_secrets, want: {{action: ALLOW}}}}
{calls}
        - {{server: s, tool: http_request, want: {{action: BLOCK, rule_id: leak}}}}
    """
    assert failures(text) == []


@pytest.mark.parametrize("path", ["/tmpfoo", "/tmp/../etc/passwd", "/etc/passwd"])
def test_a_sandbox_ends_at_its_directory(path: str):
    """There `/tmp` is compared as a prefix of the text."""
    text = f"""
      bundle:
        policy_id: p
        mode: guardrails
        rules:
          - {{rule_id: sandbox, kind: deny, match: {{targets: {{path: {{outside: [/tmp]}}}}}}}}
      calls:
        - {{server: "@claude", tool: Read, args: {{file_path: /tmp/a}}, want: {{action: ALLOW}}}}
        - {{server: "@claude", tool: Read, args: {{file_path: {path}}}, want: {{rule_id: sandbox}}}}
    """
    assert failures(text) == []


def test_a_rule_with_a_misspelt_condition_is_not_wider_than_meant():
    """There `contain_any` is ignored, and the ALLOW holds for every call."""
    bundle = spm(
        spm_rule(match={"tool_name": "*"}, when={"contain_any": ["safe"]}, outcome="ALLOW")
    )
    assert decide(bundle, Request("rm", {}), UPSTREAM)[0] == "ALLOW"
    with pytest.raises(Exception, match="unknown field `contain_any`"):
        load(bundle)
