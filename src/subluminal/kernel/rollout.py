"""Staged rollout: which intents the kernel enforces, which it shadows, and which it leaves.

Lists and switches come from a mapping of variables that the caller hands in.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from subluminal.kernel.adjudication import adjudicate
from subluminal.kernel.decisions import DECISIONS, Decision, DecisionKind, Rewrite
from subluminal.kernel.envelope import IntentEnvelope
from subluminal.kernel.observing import MetricsSink, ShadowMetric, observed
from subluminal.kernel.policies import PolicyBundle
from subluminal.kernel.refusals import Kill, kind_of, stated

_ALL = "*"
_ON = frozenset({"1", "true", "yes", "on"})


class RolloutMode(StrEnum):
    """How far an intent is under the kernel."""

    OFF = "off"
    """the old code decides"""
    SHADOW = "shadow"
    """the old code decides, and the kernel is asked too"""
    ENFORCE = "enforce"
    """the kernel decides"""


class Rollout(Struct, frozen=True):
    """The intents under the kernel; `*` stands for all of them."""

    shadow: frozenset[str] = frozenset()
    enforce: frozenset[str] = frozenset()

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str],
        shadow_var: str = "SUB_KERNEL_SHADOW",
        enforce_var: str = "SUB_KERNEL_ENFORCE",
    ) -> "Rollout":
        """Reads both lists: words with commas between them, or `*`."""
        return cls(_words(environ, shadow_var), _words(environ, enforce_var))

    def mode_of(self, kind: str) -> RolloutMode:
        """Returns how far a kind of intent is. To enforce is more than to shadow."""
        if kind in self.enforce or _ALL in self.enforce:
            return RolloutMode.ENFORCE
        if kind in self.shadow or _ALL in self.shadow:
            return RolloutMode.SHADOW
        return RolloutMode.OFF

    def unknown(self, kinds: Iterable[str]) -> list[str]:
        """Returns the listed words that are not among these kinds: they are misspelt."""
        return sorted((self.shadow | self.enforce) - {_ALL, *kinds})


def _words(environ: Mapping[str, str], name: str) -> frozenset[str]:
    return frozenset(word.strip() for word in environ.get(name, "").split(",")) - {""}


def kill_from_env(
    environ: Mapping[str, str], var: str = "SUB_KILL_SWITCH", *, at: str
) -> Kill | None:
    """Returns the switch if the variable is 1, true, yes or on; None if it is not."""
    if environ.get(var, "").strip().lower() not in _ON:
        return None
    return Kill(f"{var} is set", at)


class Divergence(StrEnum):
    """How the kernel differs from the old code."""

    NONE = "NONE"
    BASIS_ONLY = "BASIS_ONLY"
    """the same outcome; the kernel has reasons for it"""
    DECISION_KIND = "DECISION_KIND"
    """one of the two executes"""
    PAYLOAD_REWRITE = "PAYLOAD_REWRITE"
    """the kernel would execute something else"""


class ShadowResult(Struct, frozen=True):
    """What the old code said, what the kernel says, and how they differ."""

    legacy: bool | Decision
    decision: Decision
    divergence: Divergence


def adjudicate_with_shadow(
    envelope: IntentEnvelope,
    state: Any,
    policy: PolicyBundle,
    *,
    legacy: Callable[[], bool | Decision],
    kill: Kill | None = None,
    metrics: MetricsSink | None = None,
) -> ShadowResult:
    """Asks the old code and the kernel. The old code's answer is the one that acts."""
    said = legacy()
    decision = adjudicate(envelope, state, policy, kill=kill)
    divergence = classify_divergence(said, decision)
    if divergence is not Divergence.NONE:
        event = ShadowMetric(kind_of(envelope), divergence, stated(envelope, "intent_hash"))
        observed(metrics, lambda sink: sink.record_shadow_divergence(event))
    return ShadowResult(said, decision, divergence)


def classify_divergence(legacy: bool | Decision, decision: Decision) -> Divergence:
    """Compares an answer of the old code (may it execute?) with a decision of the kernel."""
    if legacy == decision:
        return Divergence.NONE
    if type(decision) is Rewrite:
        return Divergence.PAYLOAD_REWRITE
    if isinstance(legacy, DECISIONS):
        did_execute = legacy.kind is DecisionKind.EXECUTE
    else:
        did_execute = legacy is True
    if did_execute != (decision.kind is DecisionKind.EXECUTE):
        return Divergence.DECISION_KIND
    return Divergence.BASIS_ONLY if decision.basis else Divergence.NONE
