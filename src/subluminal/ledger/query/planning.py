"""Chooses the access path to calls: how to find a page, newest first, without reading all calls.

Every index ends with the time, so SQLite returns its rows in the order of time, but only for one
value of the index. So a question about many tools or results is asked once per value (a leg), each
with its own limit, and the answers are merged. The counts in `totals` tell which index has the
fewest rows to read. A result here is a pair of decision and status.
"""

import re
from fnmatch import translate
from typing import NamedTuple

import apsw

from subluminal.contracts.vocabulary import Action, Status
from subluminal.ledger.filter.fields import UNKNOWN
from subluminal.ledger.query.outcomes import possible_actions
from subluminal.ledger.query.questions import CallFilter, has_wildcard
from subluminal.ledger.query.terms import term_conditions, unknown_outcome

MAX_LEGS = 64
"""With more values than this, reading the newest calls one by one is cheaper."""

Values = tuple[object, ...]


class Leg(NamedTuple):
    """A condition whose rows one index returns in the order of time."""

    by_index: str
    where: str
    values: Values


class AccessPath(NamedTuple):
    """How to find calls: they match any of the legs, and all of the conditions."""

    legs: list[Leg]
    where: list[str]
    values: list[object]


NOTHING = AccessPath([], [], [])
EVERYTHING = Leg("calls_by_time", "1", ())


class _Total(NamedTuple):
    server: str
    tool: str
    decision: str
    status: str
    rule: str
    calls: int


def choose_path(connection: apsw.Connection, wanted: CallFilter) -> AccessPath:
    """The cheapest access path for a filter without run and text."""
    if wanted.args_hash is not None:
        leg = Leg("calls_by_args", "args_hash = ?", (wanted.args_hash,))
        return AccessPath([leg], *conditions(wanted, by_time=True))
    totals = [_Total(*row) for row in connection.execute("SELECT * FROM totals")]
    by_tool = _matching(totals, server=wanted.server, tool=wanted.tool)
    by_result = _of_result(totals, wanted)
    actions = possible_actions(wanted.terms)
    if actions is not None:
        by_result = [total for total in by_result if total.decision in actions]
    both = [total for total in by_tool if total in set(by_result)]
    if not both:
        return NOTHING
    where, values = conditions(wanted, by_time=True)
    if wanted.rule is not None:
        leg = Leg("calls_by_rule", "rule_id = ?", (wanted.rule,))
        return AccessPath([leg], where, values)
    choices = [(_calls(totals), [EVERYTHING])]
    if wanted.server is not None or wanted.tool is not None:
        legs = [
            Leg("calls_by_tool", "server_name = ? AND tool_name = ?", pair)
            for pair in sorted({(total.server, total.tool) for total in by_tool})
        ]
        choices.append((_calls(by_tool), legs))
    if wanted.decision is not None or wanted.status is not None or actions is not None:
        legs = [
            _result_leg(decision, status)
            for decision, status in sorted({(one.decision, one.status) for one in by_result})
        ]
        choices.append((_calls(by_result), legs))
    usable = [choice for choice in choices if len(choice[1]) <= MAX_LEGS]
    return AccessPath(min(usable, key=lambda choice: choice[0])[1], where, values)


def conditions(wanted: CallFilter, *, by_time: bool = False) -> tuple[list[str], list[object]]:
    """A filter as SQL: conditions, and the values of their parameters.

    With `by_time`, SQLite may find the filter's time span with an index.
    """
    found: list[tuple[str, object]] = []
    for column, pattern in (("server_name", wanted.server), ("tool_name", wanted.tool)):
        if pattern is not None:
            operator = "GLOB" if has_wildcard(pattern) else "="
            # GLOB negates a set of characters with `^`, fnmatch with `!`.
            found.append((f"{column} {operator} ?", pattern.replace("[!", "[^")))
    for column, value in (
        ("run_id", wanted.run),
        ("decision", wanted.decision),
        ("status", None if wanted.status == UNKNOWN else wanted.status),
        ("rule_id", wanted.rule),
        ("args_hash", wanted.args_hash),
    ):
        if value is not None:
            found.append((f"{column} = ?" if value else f"{column} IS NULL", value))
    for comparison, number in (
        ("created_at >= ?", wanted.since_ms),
        ("created_at < ?", wanted.until_ms),
    ):
        if number is not None:
            found.append((comparison, number))
    # The plus keeps SQLite from choosing an index: the leg has chosen one already.
    where = [each if by_time and "created_at" in each else f"+{each}" for each, _ in found]
    values = [value for _, value in found if value != ""]
    if wanted.status == UNKNOWN:
        where.append(unknown_outcome("+"))
    for each, more in term_conditions(wanted.terms):
        where.append(each)
        values += more
    return where, values


def _of_result(totals: list[_Total], wanted: CallFilter) -> list[_Total]:
    """The counts with the decision and status that a filter asks for."""
    if wanted.status != UNKNOWN:
        return _matching(totals, decision=wanted.decision, status=wanted.status)
    may_be = [total for total in totals if total.status in ("", Status.ERROR)]
    allowed = _matching(may_be, decision=Action.ALLOW)
    return _matching(allowed, decision=wanted.decision)


def _matching(totals: list[_Total], **patterns: str | None) -> list[_Total]:
    tests = [
        (name, re.compile(translate(pattern)).match if has_wildcard(pattern) else pattern.__eq__)
        for name, pattern in patterns.items()
        if pattern is not None
    ]
    return [total for total in totals if all(test(getattr(total, name)) for name, test in tests)]


def _result_leg(decision: str, status: str) -> Leg:
    terms = [
        (f"{column} = ?" if value else f"{column} IS NULL", value)
        for column, value in (("decision", decision), ("status", status))
    ]
    values = tuple(value for _, value in terms if value)
    return Leg("calls_by_outcome", " AND ".join(where for where, _ in terms), values)


def _calls(totals: list[_Total]) -> int:
    return sum(total.calls for total in totals)
