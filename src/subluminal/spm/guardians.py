"""`guardian`: watches how an agent behaves. Its limits are rules; what it kills for is counted."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from subluminal.contracts.counters import CellKind
from subluminal.operator.stopping import Target, stop
from subluminal.spm.doors import Door
from subluminal.spm.hooks import Counting
from subluminal.spm.rules import RulePlugin, deny_rule, rate_rule, rule_of
from subluminal.spm.types import AgentActionRequest, Decision
from subluminal.spm.watching import by_program

_VIOLATIONS = frozenset({"FREQUENCY_SPIKE", "SUSPICIOUS_SEQUENCE", "OFF_HOURS"})
_PAIR = CellKind.PAIR
_WHOLE_DAY = (0, 24)


class Guardian(RulePlugin, Counting):
    """Refuses what looks like an agent that was taken over, and stops the agent if it goes on."""

    def __init__(self, rules: Sequence[dict[str, Any]], kill_after: int | None) -> None:
        super().__init__("guardian", rules)
        self._kill_after = kill_after

    def take(self, door: Door, request: AgentActionRequest) -> None:
        """Leaves the decision to the rules."""

    def ended(
        self, door: Door, request: AgentActionRequest, decision: Decision | None, *, allowed: bool
    ) -> None:
        """Counts a violation, and stops the agent after too many."""
        if self._kill_after is None or allowed or decision is None:
            return
        if decision.reasons[0].code not in _VIOLATIONS:
            return
        agent_id = request.agent.agent_id
        key = sha256(b"spm guardian\0" + agent_id.encode()).digest()[:16]
        with door.counters() as counters:
            number = sum(counters.read(_PAIR, key)) + 1
            is_over = number >= self._kill_after
            counters.write([(_PAIR, key, (0 if is_over else number,))])
        if is_over:
            reason = by_program(f"AUTO_KILL: {number} violations in run {door.run_id}")
            stop(door.host.places, Target("agent", agent_id), reason=reason)


def guardian(
    *,
    max_per_minute: int | None = None,
    sequences: Iterable[Sequence[str]] = (),
    utc_hours: tuple[int, int] | None = None,
    kill_after: int | None = None,
) -> Guardian:
    """Watches how an agent behaves.

    Refuses calls that come too fast (FREQUENCY_SPIKE), the call of a run that completes one of the
    `sequences` of tools, whatever lies between (SUSPICIOUS_SEQUENCE), and calls outside of
    `utc_hours` (OFF_HOURS). After `kill_after` such refusals the agent is stopped at every door, as
    by `kill_switch().kill`.
    """
    rules = []
    if max_per_minute is not None:
        rules.append(rate_rule("FREQUENCY_SPIKE", "agent", max_per_minute))
    for number, pattern in enumerate(sequences):
        effect = {"sequence": {"pattern": list(pattern), "on_match": "BLOCK"}}
        rules.append(rule_of(f"SUSPICIOUS_SEQUENCE:{number}", "sequence", effect, "critical"))
    if utc_hours is not None and tuple(utc_hours) != _WHOLE_DAY:
        start, end = utc_hours
        message = f"the agent works from {start}:00 to {end}:00 UTC"
        free = [[end % 24, start or 24]]
        rules.append(deny_rule("OFF_HOURS", message, time={"utc_hours": free}))
    if not rules and utc_hours is None:
        raise TypeError("give max_per_minute, sequences or utc_hours")
    if kill_after is not None and kill_after < 1:
        raise ValueError("kill_after must be at least 1")
    return Guardian(rules, kill_after)
