"""A real shim whose policy refuses with hints, and a ledger that has it all."""

import pytest
from tests.ledger.home import Home
from tests.shim.conftest import household
from tests.shim.household import wait_until

__all__ = ["household"]

POLICY = """\
# The house rules.
policy_id: house
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  # Writes are limited.
  - rule_id: few-writes   # really
    kind: budget
    enabled: true
    severity: warn
    match: {tool_name: {glob: ["write*"]}}
    effect: {budget: {scope: run, limit_calls: 0, on_exceed: REJECT_WITH_HINT}}

  # Long answers cost money.
  - rule_id: short
    kind: deny
    enabled: true
    severity: warn
    match: {tool_name: {glob: [echo]}, args: {numeric_range: {n: {min: 11}}}}
    effect: {action: REJECT_WITH_HINT, reason_code: TOO_LONG, message: too long, suggest: {n: {clamp_max: 10}}}

  - {rule_id: no-secrets, kind: deny, enabled: true, severity: critical, match: {args: {key_equals: {path: secret}}},
     effect: {action: REJECT_WITH_HINT, reason_code: SECRET, message: not that}}
"""  # fmt: skip


class House:
    """The policy's file, a client, and the ledger."""

    def __init__(self, household, own_home):
        own_home.mkdir(exist_ok=True)
        self.policy = own_home / "policy.yaml"
        self.policy.write_text(POLICY)
        self.household = household
        self.ledger = Home(str(own_home))
        self.client = household.start().ready()

    def refused(self, tool="echo", **args):
        """Makes a call that is refused with a hint; returns the hint's id."""
        error = self.client.call(tool, args)["error"]
        self.ingest()
        return "hint-" + error["data"]["subluminal"]["call_id"]

    def ingest(self):
        """Takes in all that was recorded, so that no command has to start a ledgerd for it."""
        events = self.household.events
        wait_until(
            lambda: len(events("tool_call_end")) == len(events("tool_call_decision")),
            "the end of every call, which is journalled when the shim is idle",
        )
        self.ledger.ingest()

    def passes(self, tool="echo", **args):
        return self.client.code(tool, args) == 0


@pytest.fixture
def house(household, own_home):
    made = House(household, own_home)
    yield made
    made.ledger.close()
