"""Rules that ask who acts, compared with the same rules without these matchers.

All matchers hold, so both policies decide by the same 50 rules; four of them count calls. The third
policy belongs to an agent that loses trust after refusals in a row, so that the run counts them.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from bench.bundles import bundle_of
from bench.harness import Result, interleaved
from bench.policy import SMALL, decider, rules_of
from bench.rivals.rules import TOOL, refusals
from subluminal.contracts.agents import AgentFacts
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Env, Layer, TrustLevel
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.evaluation import Engine

BAR_SLOWER = 1.1
MATCHERS: dict[str, Any] = {
    "environment": ["ci", "prod"],
    "agent_type": ["pr_agent"],
    "trust_level_min": "verified",
    "agent_roles_any": ["fix", "review"],
    "registered": True,
    "delegation_depth_min": 0,
}


def measure() -> Iterator[Result]:
    """Runs all measurements, in turns and in one run."""
    plain = decider(_engine({}, TrustLevel.VERIFIED), TOOL)
    settled = decider(_engine(MATCHERS, TrustLevel.VERIFIED), TOOL)
    counting = decider(_engine(MATCHERS, TrustLevel.BASIC), TOOL)
    without, asking, counted = interleaved([plain, settled, counting], rounds=120, number=200)
    for name, seconds in (("50 rules that ask who acts", asking), ("and count refusals", counted)):
        detail = f"{seconds * 1e6:.2f} us against {without * 1e6:.2f} us"
        yield Result(f"identity, {name}, over none", seconds / without, BAR_SLOWER, False, detail)


def _engine(matchers: dict[str, Any], after_denials: TrustLevel) -> Engine:
    rules = rules_of(refusals(SMALL - 4))
    for rule in rules:
        rule["match"] |= matchers
    snapshot = compile_bundle(msgspec.convert(bundle_of(rules, env=["dev", "ci"]), Bundle))
    facts = AgentFacts(
        registered=True,
        agent_type="pr_agent",
        trust_level=TrustLevel.VERIFIED,
        trust_after_denials=after_denials,
        roles=("fix",),
    )
    return Engine([(Layer.USER, snapshot)], Identity(env=Env.CI), agent=facts)
