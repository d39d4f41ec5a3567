"""Rule kind `kernel`: an installed pack decides, in its place among allow and deny rules. Additive.

EXECUTE has no opinion: the rules below go on. Every other answer settles access and refuses the
call. A person's grant answers what the pack asks a person; other refusals stand. The pack itself is
asked by a Judge (`core.intents.judging`), because `policy` knows no pack.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from subluminal.contracts.decision import Decision
from subluminal.contracts.intents import Judgement
from subluminal.policy.refusing import PackRefusal, granted
from subluminal.policy.rules.entry import Condition, Entry, Subject
from subluminal.policy.taint import level_in
from subluminal.policy.visit import NotInspected, NotJudged, Visit


class KernelEntry(Entry):
    """A `kernel` rule."""

    __slots__ = ("_passes", "_rule", "_tests_taint", "grant_key")

    is_access = True

    def __init__(
        self,
        index: int,
        rule: dict[str, Any],
        condition: Condition | None,
        subject: Subject,
        passes: Callable[[dict[str, Any], Visit], bool],
    ) -> None:
        super().__init__(index, rule, condition)
        self._rule = rule
        self._passes = passes
        self._tests_taint = "taint" in rule["match"]
        self.grant_key = (subject.layer, self.rule_id)
        """(layer, rule_id), to which a grant is bound besides the call"""

    def visit(self, visit: Visit) -> Decision | None:
        """Returns the pack's objection, or the person's answer to it; None if it has none."""
        if visit.args is None:
            raise NotInspected
        said = self.ask(visit.args, visit)
        if said.refusal is None:
            visit.kernel = visit.kernel or said.kernel
            return None
        visit.kernel = said.kernel
        refusal = replace(said.refusal, rule_id=self.rule_id, severity=self.severity)
        if said.requirement is not None:
            if self.grant_key in visit.call.granted:
                visit.grants_used += (self.grant_key,)
                return granted(refusal, refusal.summary)
            asking = PackRefusal(self.grant_key, refusal, said.requirement, self._tests_taint)
            visit.refused_by = asking
        visit.access_settled = True
        return self._with_passing_args(refusal, visit)

    def ask(self, args: dict[str, Any], visit: Visit) -> Judgement:
        """Returns what the pack says about a call with these arguments. Raises NotJudged."""
        judge = visit.call.judge
        if judge is None:
            raise NotJudged("nobody here can ask a pack")
        return judge(self.grant_key[0], self._rule, args, level_in(visit.read))

    def _with_passing_args(self, refusal: Decision, visit: Visit) -> Decision:
        """Returns a refusal that suggests no arguments that another rule would refuse."""
        hint = refusal.hint
        if hint is None or hint.suggested_args is None:
            return refusal
        if self._passes(hint.suggested_args, visit):
            return refusal
        advice = "do not retry this call unchanged"
        return replace(refusal, hint=replace(hint, suggested_args=None, retry_advice=advice))
