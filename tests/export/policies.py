"""policy_loaded events with a real snapshot in them."""

import json

from subluminal.policy.compiling import compile_bundle
from subluminal.policy.loading import parse_bundle

RULE = """\
  - {{rule_id: {rule_id}, kind: deny, enabled: true, severity: critical, match: {{}},
     effect: {{action: BLOCK, reason_code: NO, message: not here}}}}
"""


def text_of(*rules, policy_id="p"):
    return (
        f'policy_id: {policy_id}\nversion: "1"\nmode: guardrails\n'
        "defaults: {decision_on_error: BLOCK}\nselectors: {}\nrules:\n"
        + "".join(RULE.format(rule_id=rule) for rule in rules)
    )


def loaded(shim, *rules, policy_id="p", layer="repository", file="/repo/policy.yaml"):
    """Writes that a policy with these rules came into force; returns its snapshot."""
    snapshot = compile_bundle(
        parse_bundle(text_of(*rules, policy_id=policy_id).encode(), "p").bundle
    )
    ref = snapshot.ref
    shim.emit(
        "policy_loaded",
        policy={
            "policy_id": ref.policy_id,
            "policy_version": ref.policy_version,
            "policy_hash": ref.policy_hash,
        },
        load={"layer": layer, "ok": True, "mode": "guardrails", "file": file},
        snapshot=json.loads(snapshot.to_json()),
    )
    return snapshot
