"""Counts calls by their values (facets) and over time (histogram), without scanning them.

The counts come from rollups by the minute, so the ends of a time span are rounded to minutes. Only
a question about a run, a text, a hash or other terms has to scan calls.
"""

import re
from collections.abc import Callable, Iterable
from fnmatch import translate

import apsw

from subluminal.ledger.ingest.rows import BUCKET_MS
from subluminal.ledger.query.planning import conditions
from subluminal.ledger.query.questions import CallFilter, InvalidQuery, has_wildcard
from subluminal.ledger.query.records import Bar, Facets, Histogram
from subluminal.ledger.query.terms import match_expression

DIMENSIONS = ("server", "tool", "decision", "status", "rule")
MAX_BARS = 1_000
"""Bars of a histogram, at most."""
MAX_VALUES = 200
"""Values listed per facet: the most frequent ones."""

_KEYS = "server_name, tool_name, decision, status, rule_id"
_CALL_KEYS = "server_name, tool_name, ifnull(decision, ''), ifnull(status, ''), ifnull(rule_id, '')"

Counted = tuple[tuple[str, ...], int]


def count_facets(connection: apsw.Connection, wanted: CallFilter) -> Facets:
    """Counts the values of every dimension."""
    counted = _counted(connection, wanted)
    tests = [_test(getattr(wanted, name)) for name in DIMENSIONS]
    counts: list[dict[str, int]] = [{} for _ in DIMENSIONS]
    total = 0
    for key, calls in counted:
        failed = [index for index, test in enumerate(tests) if not test(key[index])]
        if not failed:
            total += calls
        for index, facet in enumerate(counts):
            if not failed or failed == [index]:
                facet[key[index]] = facet.get(key[index], 0) + calls
    return Facets(total, *map(_most_frequent, counts))


def _counted(connection: apsw.Connection, wanted: CallFilter) -> Iterable[Counted]:
    """Counts calls by their five dimensions, filtered only by what is not a dimension."""
    is_plain = wanted.text is None and wanted.args_hash is None and not wanted.terms
    if wanted.run is not None or not is_plain:
        sql, values = _count_calls(wanted)
    elif wanted.since_ms is None and wanted.until_ms is None:
        sql, values = f"SELECT {_KEYS}, calls FROM totals", []
    else:
        where, values = _span(wanted)
        sql = f"SELECT {_KEYS}, sum(calls) FROM rollups WHERE {where} GROUP BY 1, 2, 3, 4, 5"
    for row in connection.execute(sql, values):
        yield row[:-1], row[-1]


def _count_calls(wanted: CallFilter) -> tuple[str, list[object]]:
    rest = CallFilter(
        run=wanted.run,
        args_hash=wanted.args_hash,
        since_ms=wanted.since_ms,
        until_ms=wanted.until_ms,
        terms=wanted.terms,
    )
    where, values = conditions(rest)
    source = "tool_calls"
    if wanted.text is not None:
        source = "search CROSS JOIN tool_calls ON id = search.rowid"
        where, values = ["search MATCH ?", *where], [match_expression(wanted.text), *values]
    elif wanted.run is not None:
        where[where.index("+run_id = ?")] = "run_id = ?"
    elif wanted.args_hash is not None:
        where[where.index("+args_hash = ?")] = "args_hash = ?"
    terms = " AND ".join(where) or "1"
    sql = f"SELECT {_CALL_KEYS}, count(*) FROM {source} WHERE {terms} GROUP BY 1, 2, 3, 4, 5"
    return sql, values


def count_histogram(connection: apsw.Connection, wanted: CallFilter, bar_ms: int) -> Histogram:
    """Counts by time and decision, in bars of whole minutes."""
    if wanted.text is not None or wanted.args_hash is not None:
        raise InvalidQuery(
            "a histogram cannot be filtered by text or hash",
            hint="leave out `text` and `args_hash`",
        )
    step = max(1, -(-bar_ms // BUCKET_MS))
    if wanted.run is not None or wanted.terms:
        where, values = conditions(wanted)
        if wanted.run is not None:
            where[where.index("+run_id = ?")] = "run_id = ?"
        sql = (
            f"SELECT created_at / {BUCKET_MS * step}, ifnull(decision, ''), count(*) "
            f"FROM tool_calls WHERE {' AND '.join(where) or '1'} GROUP BY 1, 2 ORDER BY 1 DESC"
        )
    else:
        span, values = _span(wanted)
        terms = [span]
        for column, pattern in zip(_KEYS.split(", "), DIMENSIONS, strict=True):
            value = getattr(wanted, pattern)
            if value is not None:
                terms.append(f"{column} {'GLOB' if has_wildcard(value) else '='} ?")
                values.append(value)
        sql = (
            f"SELECT bucket / {step}, decision, sum(calls) FROM rollups "
            f"WHERE {' AND '.join(terms)} GROUP BY 1, 2 ORDER BY 1 DESC"
        )
    bars: dict[int, dict[str, int]] = {}
    for number, decision, calls in connection.execute(sql, values):
        if number not in bars and len(bars) == MAX_BARS:
            raise InvalidQuery(
                f"the histogram has more than {MAX_BARS} bars", hint="raise `bar_ms`"
            )
        bars.setdefault(number, {})[decision] = calls
    width = BUCKET_MS * step
    return Histogram(width, [Bar(number * width, bars[number]) for number in sorted(bars)])


def _span(wanted: CallFilter) -> tuple[str, list[object]]:
    terms, values = ["1"], list[object]()
    if wanted.since_ms is not None:
        terms.append("bucket >= ?")
        values.append(wanted.since_ms // BUCKET_MS)
    if wanted.until_ms is not None:
        terms.append("bucket <= ?")
        values.append((wanted.until_ms - 1) // BUCKET_MS)
    return " AND ".join(terms), values


def _test(pattern: str | None) -> Callable[[str], object]:
    if pattern is None:
        return lambda value: True
    if has_wildcard(pattern):
        return re.compile(translate(pattern)).match
    return pattern.__eq__


def _most_frequent(counts: dict[str, int]) -> dict[str, int]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(ranked[:MAX_VALUES])
