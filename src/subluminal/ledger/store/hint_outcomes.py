"""What came of a hint, judged by the next decided call of the same tool in the same run.

Pure: ingest, migrations and verify judge alike. In words for people: docs/concepts/hints.md.
"""

from collections.abc import Container, Iterable, Iterator
from enum import StrEnum
from itertools import chain, pairwise

from subluminal.canonical import args_hash, parse
from subluminal.contracts.vocabulary import Action
from subluminal.errors import AmbiguousJSON
from subluminal.ledger.store.rows import Call

Place = tuple[int, int, int]


class Outcome(StrEnum):
    """What the agent made of a hint."""

    FOLLOWED = "followed"
    """its next call had the suggested arguments, or got past the rule"""
    RETRIED = "retried"
    """its next call was refused again: unchanged, or by the same rule"""
    GAVE_UP = "gave_up"
    """the run ended without another call"""
    PENDING = "pending"


def place(call: Call) -> Place:
    """Where a call stands among those of its run: by time, then as its run counts."""
    return call.created_at, call.seq or 0, call.id


def judge(
    args: str,
    rule_id: str | None,
    next_args: str,
    next_decision: str,
    next_rule_id: str | None,
    suggested_json: str | None,
) -> str:
    """What came of a hint whose call was followed by another one of that tool."""
    if next_decision == Action.ALLOW or next_args == _hash(suggested_json):
        return Outcome.FOLLOWED
    is_past_the_rule = next_args != args and next_rule_id != rule_id
    return Outcome.FOLLOWED if is_past_the_rule else Outcome.RETRIED


def unanswered(hinted_at: int, ended_at: int | None) -> str:
    """What came of a hint that no call followed. A run that is reopened has not ended yet."""
    has_ended = ended_at is not None and ended_at >= hinted_at
    return Outcome.GAVE_UP if has_ended else Outcome.PENDING


def answers(calls: Iterable[Call], hinted: Container[int]) -> Iterator[tuple[Call, Call | None]]:
    """Every hinted call with the call that followed it; `calls` are decided, by tool, in order."""
    for call, following in pairwise(chain(calls, [None])):
        if call is not None and call.id in hinted:
            is_answer = following is not None and tool_of(following) == tool_of(call)
            yield call, following if is_answer else None


def tool_of(call: Call) -> tuple[str, str]:
    """The tool that a call is for."""
    return call.server_name, call.tool_name


def _hash(suggested_json: str | None) -> str | None:
    if suggested_json is None:
        return None
    try:
        value = parse(suggested_json.encode()).value
        return args_hash(value) if isinstance(value, dict) else None
    except AmbiguousJSON:
        return None
