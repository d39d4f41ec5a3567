"""The fields that a case's `want` may name, and how each is read off an evaluation."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from subluminal.policy.evaluation import Evaluation
from subluminal.policy.predicates import same_value

Reader = Callable[[Evaluation], Any]


def _decision(name: str) -> Reader:
    return lambda evaluation: getattr(evaluation.decision, name)


def _hint(name: str) -> Reader:
    return lambda evaluation: getattr(evaluation.decision.hint, name, None)


def _terminate(name: str) -> Reader:
    return lambda evaluation: getattr(evaluation.decision.terminate, name, None)


WANTS: dict[str, Reader] = {
    **{
        name: _decision(name)
        for name in ("action", "rule_id", "reason_code", "severity", "summary", "backoff_ms")
    },
    **{name: _hint(name) for name in ("hint_text", "suggested_args", "retry_advice", "hint_kind")},
    **{name: _terminate(name) for name in ("terminate_code", "terminate_message")},
    "would_be": lambda evaluation: evaluation.would_be,
    "forwarded": lambda evaluation: evaluation.forwarded,
    "risk_classes": lambda evaluation: sorted(evaluation.risk_classes),
    "policy_id": lambda evaluation: evaluation.policy.policy_id,
    "policy_version": lambda evaluation: evaluation.policy.policy_version,
}


class Difference(NamedTuple):
    """One field that is not as wanted."""

    field: str
    wanted: Any
    got: Any


def differences(want: dict[str, Any], evaluation: Evaluation) -> list[Difference]:
    """Returns the named fields that came out otherwise."""
    found = []
    for name, wanted in want.items():
        got = msgspec.to_builtins(WANTS[name](evaluation))
        if name == "would_be":
            got = _asked(wanted, got)
        if name == "risk_classes" and isinstance(wanted, list):
            wanted = sorted(wanted, key=str)
        if not same_value(wanted, got):
            found.append(Difference(name, wanted, got))
    return found


def _asked(wanted: Any, got: Any) -> Any:
    """Of an observed refusal, the action alone or the fields that are asked for."""
    if got is None or not isinstance(wanted, str | dict):
        return got
    return got["action"] if isinstance(wanted, str) else {name: got.get(name) for name in wanted}
