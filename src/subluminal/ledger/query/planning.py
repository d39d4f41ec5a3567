"""Chooses how to find calls newest first without reading them all.

SQLite gives an index's rows in rowid order only for one value of the index. So a question about
many tools or outcomes is asked once per value, each with its own limit, and merged; the counts in
`totals` say which index has the fewest rows to look at.
"""

import re
from fnmatch import translate
from typing import NamedTuple

import apsw

from subluminal.contracts.vocabulary import Action
from subluminal.ledger.filter.fields import UNKNOWN
from subluminal.ledger.query.filters import CallFilter, has_wildcard
from subluminal.ledger.query.terms import term_conditions
from subluminal.ledger.store.rows import BUCKET_MS

MAX_LEGS = 64
"""More values than this, and it is cheaper to look at the newest calls one by one."""

Values = tuple[object, ...]


class Leg(NamedTuple):
    """A condition that one index answers in rowid order."""

    where: str
    values: Values


class Plan(NamedTuple):
    """How to find the calls: any of the legs, and all of the conditions."""

    legs: list[Leg]
    where: list[str]
    values: list[object]


NOTHING = Plan([], [], [])
EVERYTHING = Leg("1", ())


class _Total(NamedTuple):
    server: str
    tool: str
    decision: str
    status: str
    rule: str
    calls: int


def plan(connection: apsw.Connection, wanted: CallFilter) -> Plan:
    """The cheapest way to the calls of a filter that names no run and no text."""
    totals = [_Total(*row) for row in connection.execute("SELECT * FROM totals")]
    by_tool = _matching(totals, server=wanted.server, tool=wanted.tool)
    by_outcome = _matching(totals, **_outcome_patterns(wanted))
    both = [total for total in by_tool if total in set(by_outcome)]
    if not both:
        return NOTHING
    where, values = conditions(wanted, _time_span(connection, wanted))
    if wanted.rule is not None:
        return Plan([Leg("rule_id = ?", (wanted.rule,))], where, values)
    choices = [(_calls(totals), [EVERYTHING])]
    if wanted.server is not None or wanted.tool is not None:
        legs = [
            Leg("server_name = ? AND tool_name = ?", pair)
            for pair in sorted({(total.server, total.tool) for total in by_tool})
        ]
        choices.append((_calls(by_tool), legs))
    if wanted.decision is not None or wanted.status is not None:
        legs = [
            _outcome(decision, status)
            for decision, status in sorted({(one.decision, one.status) for one in by_outcome})
        ]
        choices.append((_calls(by_outcome), legs))
    usable = [choice for choice in choices if len(choice[1]) <= MAX_LEGS]
    return Plan(min(usable, key=lambda choice: choice[0])[1], where, values)


def conditions(
    wanted: CallFilter, span: tuple[int | None, int | None] = (None, None)
) -> tuple[list[str], list[object]]:
    """The filter as SQL, on its own."""
    found: list[tuple[str, object]] = []
    for column, pattern in (("server_name", wanted.server), ("tool_name", wanted.tool)):
        if pattern is not None:
            operator = "GLOB" if has_wildcard(pattern) else "="
            # SQLite's GLOB writes the complement of a set as the shell does, fnmatch with `!`.
            found.append((f"{column} {operator} ?", pattern.replace("[!", "[^")))
    for column, value in (
        ("run_id", wanted.run),
        *_outcome_patterns(wanted).items(),
        ("rule_id", wanted.rule),
        ("args_hash", wanted.args_hash),
    ):
        if value is not None:
            found.append((f"{column} = ?" if value else f"{column} IS NULL", value))
    for comparison, number in (
        ("created_at >= ?", wanted.since_ms),
        ("created_at < ?", wanted.until_ms),
        ("id >= ?", span[0]),
        ("id <= ?", span[1]),
    ):
        if number is not None:
            found.append((comparison, number))
    # The plus keeps SQLite from choosing an index of its own: the leg is chosen already.
    where = [_unindexed(each) for each, _ in found]
    values = [value for _, value in found if value != ""]
    for each, more in term_conditions(wanted.terms):
        where.append(each)
        values += more
    return where, values


def _outcome_patterns(wanted: CallFilter) -> dict[str, str | None]:
    """Decision and status. A call of unknown outcome was allowed and has no end."""
    if wanted.status == UNKNOWN and wanted.decision in (None, Action.ALLOW):
        return {"decision": Action.ALLOW, "status": ""}
    return {"decision": wanted.decision, "status": wanted.status}


def _unindexed(where: str) -> str:
    return where if where.startswith("id ") else f"+{where}"


def _matching(totals: list[_Total], **patterns: str | None) -> list[_Total]:
    tests = [
        (name, re.compile(translate(pattern)).match if has_wildcard(pattern) else pattern.__eq__)
        for name, pattern in patterns.items()
        if pattern is not None
    ]
    return [total for total in totals if all(test(getattr(total, name)) for name, test in tests)]


def _outcome(decision: str, status: str) -> Leg:
    terms = [
        (f"{column} = ?" if value else f"{column} IS NULL", value)
        for column, value in (("decision", decision), ("status", status))
    ]
    values = tuple(value for _, value in terms if value)
    return Leg(" AND ".join(where for where, _ in terms), values)


def _calls(totals: list[_Total]) -> int:
    return sum(total.calls for total in totals)


def _time_span(connection: apsw.Connection, wanted: CallFilter) -> tuple[int | None, int | None]:
    """Which ids the calls of a time span can have."""
    first = last = None
    if wanted.since_ms is not None:
        sql = "SELECT min(first_id) FROM buckets WHERE bucket >= ?"
        row = connection.execute(sql, (wanted.since_ms // BUCKET_MS,)).fetchone()
        # No such bucket: no such calls.
        first = row[0] if row and row[0] is not None else 2**62
    if wanted.until_ms is not None:
        sql = "SELECT max(last_id) FROM buckets WHERE bucket <= ?"
        row = connection.execute(sql, (wanted.until_ms // BUCKET_MS,)).fetchone()
        last = row[0] if row and row[0] is not None else 0
    return first, last
