"""The engine of a door that asks a pack about every call: pack and policy layers decide together.

All of them are asked, and the strictest decision wins; on a tie it is the pack's. If all allow, the
decision is the policy's own. The modes of policies do not weaken the pack: it always enforces.
Pure: the door has asked the pack before, and brings the answer as `Call.judgement`.
"""

from collections.abc import Sequence

from subluminal.contracts.agents import AgentFacts
from subluminal.contracts.counters import Counters
from subluminal.contracts.decision import Decision, LayeredPolicyRef, PolicyRef
from subluminal.contracts.gate import Gate
from subluminal.contracts.identity import Identity
from subluminal.contracts.intents import Judgement
from subluminal.contracts.vocabulary import (
    TAINT_RANK,
    Action,
    Layer,
    Mode,
    ReasonCode,
)
from subluminal.policy.evaluation import Engine, Evaluation
from subluminal.policy.layer_answers import combine
from subluminal.policy.program import DEFAULT_ALLOW
from subluminal.policy.refusing import PackRefusal, blocked, granted
from subluminal.policy.snapshot import Snapshot
from subluminal.policy.taint import rank_in
from subluminal.policy.tracing import Step
from subluminal.policy.visit import Call, Visit

_PACK = Layer.PACK
_NOT_ASKED = "the pack was not asked about this call"
_LOWERED = "the level of the run fell while the pack decided; try again"


class PackEngine(Engine):
    """A pack, and all policy layers of a run."""

    def __init__(
        self,
        layers: Sequence[tuple[Layer, Snapshot]],
        identity: Identity,
        gates: Sequence[Gate] = (),
        agent: AgentFacts = AgentFacts(),  # noqa: B008 - frozen
        *,
        pack: PolicyRef,
    ) -> None:
        super().__init__(layers, identity, gates, agent)
        self._pack = pack
        self.asks_kernel = self.asks_ahead = True
        first = LayeredPolicyRef(
            layer=_PACK,
            policy_id=pack.policy_id,
            policy_version=pack.policy_version,
            policy_hash=pack.policy_hash,
        )
        self.policies = [first, *self.policies]

    def evaluate(
        self,
        call: Call,
        counters: Counters,
        *,
        wall_ms: int,
        mono_ms: int,
        steps: list[Step] | None = None,
    ) -> Evaluation:
        """Decides one call. The layers are evaluated and count whatever the pack says."""
        by_policy = super().evaluate(call, counters, wall_ms=wall_ms, mono_ms=mono_ms, steps=steps)
        visit = Visit(call, call.args, counters.read, wall_ms, mono_ms)
        said = call.judgement
        if said is None:
            decision = blocked(ReasonCode.EVALUATION_ERROR, _NOT_ASKED)
        elif said.level is not None and rank_in(counters.read) > TAINT_RANK[said.level]:
            decision = blocked(ReasonCode.EVALUATION_ERROR, _LOWERED)
        else:
            decision = _decided(said, visit)
        by_pack = Evaluation(decision, self._pack, decision.action is Action.ALLOW, (visit,))
        has_opinion = not by_pack.forwarded or visit.grants_used
        best = combine([by_pack, by_policy] if has_opinion else [by_policy, by_pack])
        best.kernel = None if said is None else said.kernel
        return best

    def failure(self, call: Call, reason_code: ReasonCode, summary: str) -> Evaluation:
        """Refuses a call that could not be decided or recorded, whatever the policies say."""
        by_pack = Evaluation(blocked(reason_code, summary), self._pack, False, ())
        return combine([by_pack, super().failure(call, reason_code, summary)])

    def refusal(self, decision: Decision) -> Evaluation:
        """Wraps a refusal that neither the pack nor a rule made."""
        policy = self._all[0].ref if self._all else self._pack
        return Evaluation(decision, policy, False, ())

    @property
    def mode(self) -> Mode:
        """The strictest mode of the layers that apply, and at least that of the pack."""
        return max(super().mode, Mode.GUARDRAILS, key=list(Mode).index)


def _decided(said: Judgement, visit: Visit) -> Decision:
    """Returns the pack's decision, with the answer of a person if there is one."""
    if said.refusal is None:
        return DEFAULT_ALLOW
    if said.requirement is not None:
        key = (_PACK.value, visit.call.tool_name)
        if said.is_answered and key in visit.call.granted:
            visit.grants_used = (key,)
            return granted(said.refusal, said.refusal.summary)
        visit.refused_by = PackRefusal(key, said.refusal, said.requirement)
    return said.refusal
