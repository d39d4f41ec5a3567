"""The text of a refusal that the model reads, in the same words at every door (visible-hints).

Most clients show the model nothing else, so it says in a few sentences what happened, what to do
instead, with which arguments, when to retry, and what to keep to.
"""

from typing import Any

from msgspec import UNSET

from subluminal.contracts.control import KILLED
from subluminal.contracts.decision import Decision, Hint
from subluminal.contracts.templates import encode_json
from subluminal.contracts.vocabulary import Action, ReasonCode

_NOT_A_POLICYS = (
    ReasonCode.KILL_SWITCH,
    ReasonCode.APPROVAL_DENIED,
    ReasonCode.APPROVAL_TIMEOUT,
    ReasonCode.PLUGIN_ERROR,
    ReasonCode.BATCH_REFUSED,
    ReasonCode.ROUNDS_EXCEEDED,
    ReasonCode.SERVER_UNREACHABLE,
    ReasonCode.STATE_LOST,
)
"""Reasons of refusals that a person or the protocol made; the summary says which."""
_MAX_SHOWN_ARGS = 2_000
"""Suggested arguments longer than this are shown as changes only; `error.data` has all of them."""


def message_of(decision: Decision, args: dict[str, Any] | None = None) -> str:
    """Returns the text for the model: summary, hint, suggested arguments, advice, in that order."""
    said = _sentence(_opening(decision))
    hint = decision.hint
    if hint is not None:
        if hint.hint_text not in said:
            said += f" {_sentence(hint.hint_text)}"
        said += _shown_args(hint, args or {})
        if hint.retry_advice:
            said += f" {_sentence(hint.retry_advice)}"
    elif decision.action is Action.THROTTLE:
        said += f" Retry after {decision.backoff_ms} ms."
    elif decision.action is Action.TERMINATE_RUN:
        said += " Stop: every further call of this run is refused."
    return said + _shown_constraints(decision)


def _shown_constraints(decision: Decision) -> str:
    if decision.constraints is None:
        return ""
    text = encode_json(decision.constraints).decode()
    return f" Keep to: {text}." if len(text) <= _MAX_SHOWN_ARGS else ""


def _opening(decision: Decision) -> str:
    word = {
        Action.BLOCK: "Blocked by policy",
        Action.THROTTLE: "Throttled by policy",
        Action.REJECT_WITH_HINT: "Rejected by policy",
        Action.TERMINATE_RUN: "Run ended by policy",
    }[decision.action]
    if not _is_a_policys(decision):
        word = word.removesuffix(" by policy")
    rule = f" (rule {decision.rule_id})" if decision.rule_id else ""
    return f"{word}{rule}: {decision.summary}"


def _is_a_policys(decision: Decision) -> bool:
    """Returns True if a policy refused the call, and not a person or the protocol."""
    ended = decision.terminate
    is_killed = ended is not None and ended.terminate_code == KILLED
    return decision.reason_code not in _NOT_A_POLICYS and not is_killed


def _shown_args(hint: Hint, args: dict[str, Any]) -> str:
    if hint.suggested_args is None:
        return ""
    text = encode_json(hint.suggested_args).decode()
    if hint.partial is True:
        text = f"your own with {text}"
    elif len(text) > _MAX_SHOWN_ARGS:
        text = _shown_change(hint.suggested_args, args)
    return f" Suggested arguments: {text}." if 0 < len(text) <= _MAX_SHOWN_ARGS else ""


def _shown_change(suggested: dict[str, Any], args: dict[str, Any]) -> str:
    """Returns how suggested arguments differ from the agent's own."""
    gone = [encode_json(key).decode() for key in args if key not in suggested]
    new = {key: value for key, value in suggested.items() if args.get(key, UNSET) != value}
    parts = [f"with {encode_json(new).decode()}"] if new else []
    parts += ["without " + ", ".join(gone)] if gone else []
    return f"your own {' and '.join(parts)}" if parts else ""


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
