"""A pack and a judge for tests of `policy`, which knows neither: the arguments say the answer."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET
from tests.policy.bundles import bundle

from subluminal.contracts.bundle import Bundle
from subluminal.contracts.decision import Decision, Deferral, Hint
from subluminal.contracts.intents import Judgement, KernelDecision
from subluminal.contracts.vocabulary import Action, Requirement, Severity, Taint
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.packs import KnownPack, UnknownPack, with_versions
from subluminal.policy.snapshot import Snapshot
from subluminal.policy.visit import Call, NotJudged, PackMissing

FINGERPRINT = "d" * 64
DESK = KnownPack("1.0.0", FINGERPRINT, ("desk.pay", "desk.close"))


def find_desk(name: str) -> KnownPack | UnknownPack:
    """Finds the pack `desk`."""
    return DESK if name == "desk" else UnknownPack(f"pack `{name}` is not installed", "is it?")


def filled(*rules: dict[str, Any], **changes: Any) -> Bundle:
    """A bundle whose kernel rules name the pack as it is installed."""
    return with_versions(bundle(*rules, **changes), find_desk)


def policy(*rules: dict[str, Any], **changes: Any) -> Snapshot:
    """A compiled bundle."""
    return compile_bundle(filled(*rules, **changes))


_REASONS = {
    "REFUSE": (Action.BLOCK, "desk.no"),
    "ESCALATE": (Action.REJECT_WITH_HINT, "HUMAN_REQUIRED"),
    "REQUEST_CONFIRMATION": (Action.REJECT_WITH_HINT, "CONFIRMATION_REQUIRED"),
    "DEFER": (Action.REJECT_WITH_HINT, "SIGNAL_REQUIRED"),
    "WAIT": (Action.THROTTLE, "DEFERRED"),
    "REWRITE": (Action.REJECT_WITH_HINT, "REWRITE_OFFERED"),
}
_ASKS = {"ESCALATE": Requirement.HUMAN, "REQUEST_CONFIRMATION": Requirement.CONFIRMATION}


def judgement(kind: str, suggested: dict[str, Any] | None = None) -> Judgement:
    """What a pack says."""
    kernel = KernelDecision(
        pack="desk",
        version="1.0.0",
        fingerprint=FINGERPRINT,
        intent_kind="desk.pay",
        intent_hash="a" * 64,
        kind="DEFER" if kind == "WAIT" else kind,
        basis=["business:rule_satisfied"],
        guard="teller" if kind == "REFUSE" else UNSET,
        taint=Taint.UNTRUSTED,
    )
    if kind == "EXECUTE":
        return Judgement(refusal=None, kernel=kernel)
    action, code = _REASONS[kind]
    refusal = Decision(
        action=action,
        rule_id=None,
        severity=Severity.INFO,
        reason_code=code,
        summary=f"the desk says {kind}",
        backoff_ms=500 if action is Action.THROTTLE else None,
        hint=None
        if action is Action.THROTTLE
        else Hint(hint_text="at the desk", retry_advice="later", suggested_args=suggested),
        defer=Deferral(signal="opening", timeout_ms=9) if kind == "DEFER" else None,
    )
    return Judgement(refusal=refusal, requirement=_ASKS.get(kind), kernel=kernel)


class Teller:
    """A judge that says what the arguments tell it to: `say`, and `then` for a REWRITE."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, Any], Taint]] = []

    def __call__(
        self, layer: str, rule: Mapping[str, Any], args: dict[str, Any], level: Taint
    ) -> Judgement:
        self.asked.append((layer, rule["rule_id"], args, level))
        said = args.get(rule["rule_id"], args.get("say", "EXECUTE"))
        if said == "BROKEN":
            raise NotJudged("the desk is on fire")
        if said == "GONE":
            raise PackMissing("the desk is gone")
        return judgement(said, args.get("then"))


def teller_of(_call: Call, _run_id: str, _wall_ms: int) -> Teller:
    """A `policy.visit.JudgeOf`."""
    return Teller()
