"""Packs: a policy with its planner and the words that it may use, and whether it keeps to them.

`assert_pack_conformance` looks at the shape of a pack before it is used. `with_basis_audit` watches
a pack while it decides, and tells a sink about words that the pack did not declare. It changes
nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from subluminal.errors import PackConformanceError
from subluminal.kernel.basis import KERNEL_REFUSAL_CODES, Basis, is_known_basis
from subluminal.kernel.decisions import DECISIONS, Decision, Defer, Refuse, Rewrite
from subluminal.kernel.envelope import IntentEnvelope
from subluminal.kernel.observing import MetricsSink, SinkFailure, observed
from subluminal.kernel.planning import CapabilityPlanner
from subluminal.kernel.policies import Guard, PolicyBundle, guard_name, named, unnamed
from subluminal.kernel.refusals import told
from subluminal.kernel.taint import RANK

PACK_CONTRACT = "v0"


class Pack(Struct, frozen=True):
    """What somebody publishes: intents, their policy, and what a model may see of them."""

    id: str
    version: str
    intents: Sequence[str]
    policy: PolicyBundle
    planner: CapabilityPlanner
    basis_codes: Sequence[str]
    """the codes of its refusals"""
    contract: str = PACK_CONTRACT
    signals: Sequence[str] = ()
    """what its DEFERs wait for"""
    handlers: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    rehydrate_state: Callable[[Any], Any] | None = None
    """makes the state from JSON"""
    dump_state: Callable[[Any], Any] | None = None
    """makes JSON from the state"""


def assert_pack_conformance(pack: Pack, *, allow_default_execute: bool = False) -> None:
    """Raises PackConformanceError with everything that is wrong with a pack's shape."""
    problems = list(_shape_problems(pack))
    if getattr(pack.policy, "default", None) == "EXECUTE" and not allow_default_execute:
        problems.append("its default is EXECUTE, which needs `allow_default_execute`")
    if problems:
        raise PackConformanceError(told(pack.id), problems)


def _shape_problems(pack: Pack) -> Iterator[str]:
    for name in ("id", "version"):
        text = getattr(pack, name)
        if not isinstance(text, str) or not text:
            yield f"its {name} is empty"
    if pack.contract != PACK_CONTRACT:
        yield f"its contract is not {PACK_CONTRACT}"
    for name in ("intents", "basis_codes"):
        yield from _list_problems(name, getattr(pack, name))
        if not getattr(pack, name):
            yield f"its {name} are empty"
    yield from _list_problems("signals", pack.signals)
    policy: Any = pack.policy
    if not isinstance(policy, PolicyBundle):
        yield "it has no policy"
    elif policy.default not in ("EXECUTE", "REFUSE"):
        yield "its default is neither EXECUTE nor REFUSE"
    if not callable(getattr(pack.planner, "plan", None)):
        yield "it has no planner"


def _list_problems(name: str, words: Any) -> Iterator[str]:
    if not isinstance(words, list | tuple | set | frozenset):
        yield f"its {name} are not a list"
    elif not all(isinstance(word, str) and word for word in words):
        yield f"its {name} are not all words"
    elif len(set(words)) != len(words):
        yield f"its {name} are not unique"


def with_basis_audit(pack: Pack, metrics: MetricsSink) -> Pack:
    """Returns the pack with every guard watched. Decisions and names of guards stay as they are."""

    def report(drift: SinkFailure) -> None:
        observed(metrics, lambda sink: sink.record_sink_failure(drift))

    def watched(guard: Guard) -> Guard:
        def asked(envelope: IntentEnvelope, state: Any) -> Decision | None:
            decision = guard(envelope, state)
            for error_class, detail in _drifts(pack, envelope, decision):
                report(SinkFailure(f"pack:{pack.id}", error_class, detail))
            return decision

        name = guard_name(guard)
        return unnamed(asked) if name is None else named(name, asked)

    policy = msgspec.structs.replace(
        pack.policy,
        state_guards=tuple(map(watched, pack.policy.state_guards)),
        auth_guards=tuple(map(watched, pack.policy.auth_guards)),
        business=tuple(map(watched, pack.policy.business)),
    )
    return msgspec.structs.replace(pack, policy=policy)


def _drifts(pack: Pack, envelope: IntentEnvelope, decision: Any) -> Iterator[tuple[str, str]]:
    """Yields what a decision has that its pack did not declare. Takes anything: guards may err."""
    if not isinstance(decision, DECISIONS):
        return
    reasons: Any = decision.basis
    for reason in reasons if isinstance(reasons, tuple | list) else ():
        if not isinstance(reason, Basis) or not is_known_basis(reason):
            yield "basis_vocabulary_drift", told(reason)
    match decision:
        case Refuse(refusal=refusal):
            code = getattr(refusal, "code", None)
            if code not in (*pack.basis_codes, *KERNEL_REFUSAL_CODES):
                yield "basis_code_drift", told(code)
        case Defer(signal=signal):
            if signal not in pack.signals:
                yield "defer_signal_drift", told(signal)
        case Rewrite(rewritten=rewritten):
            level = getattr(rewritten, "taint", None)
            if RANK.get(str(level), 0) > RANK.get(str(envelope.taint), 0):
                yield "rewrite_taint_regression", f"{told(envelope.taint)} became {told(level)}"
