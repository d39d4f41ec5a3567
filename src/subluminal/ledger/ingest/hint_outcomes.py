"""What came of a hint, judged by the next decided call of the same tool in the same run.

Pure: ingest, migrations and verify all judge with it. docs/concepts/hints.md explains it to users.
"""

from collections.abc import Container, Iterable, Iterator
from enum import StrEnum
from itertools import chain, pairwise

from subluminal.canonical import args_hash, parse
from subluminal.contracts.vocabulary import Action
from subluminal.errors import AmbiguousJSON
from subluminal.ledger.ingest.rows import Call

OrderKey = tuple[int, int, int]
"""start time in milliseconds, sequence number, row id"""


class HintOutcome(StrEnum):
    """What the agent did after a hint."""

    FOLLOWED = "followed"
    """its next call had the suggested arguments, was allowed, or passed the rule that refused"""
    RETRIED = "retried"
    """its next call was refused: with the same arguments, or by the same rule"""
    GAVE_UP = "gave_up"
    """the run ended without another call"""
    PENDING = "pending"


def order_key(call: Call) -> OrderKey:
    """Sort key of a call within its run: start time, then sequence number."""
    return call.created_at, call.seq or 0, call.id


def judge(
    args: str,
    rule_id: str | None,
    next_args: str,
    next_decision: str,
    next_rule_id: str | None,
    suggested_json: str | None,
) -> str:
    """The outcome of a hint, given the hinted call and the next call of that tool."""
    if next_decision == Action.ALLOW or next_args == _hash(suggested_json):
        return HintOutcome.FOLLOWED
    passed_the_rule = next_args != args and next_rule_id != rule_id
    return HintOutcome.FOLLOWED if passed_the_rule else HintOutcome.RETRIED


def unanswered(hinted_at: int, ended_at: int | None) -> str:
    """The outcome of a hint that no call followed. A run that was reopened has not ended yet."""
    has_ended = ended_at is not None and ended_at >= hinted_at
    return HintOutcome.GAVE_UP if has_ended else HintOutcome.PENDING


def answers(calls: Iterable[Call], hinted: Container[int]) -> Iterator[tuple[Call, Call | None]]:
    """Pairs every hinted call with the next call of its tool, or None.

    `calls` are the decided calls of a run, sorted by tool, then by `order_key`.
    """
    for call, following in pairwise(chain(calls, [None])):
        if call is not None and call.id in hinted:
            is_same_tool = following is not None and tool_of(following) == tool_of(call)
            yield call, following if is_same_tool else None


def tool_of(call: Call) -> tuple[str, str]:
    """Server name and tool name of a call."""
    return call.server_name, call.tool_name


def _hash(suggested_json: str | None) -> str | None:
    if suggested_json is None:
        return None
    try:
        value = parse(suggested_json.encode()).value
        return args_hash(value) if isinstance(value, dict) else None
    except AmbiguousJSON:
        return None
