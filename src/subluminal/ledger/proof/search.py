"""Proves the search index: it is built again from the previews, and both are compared.

The index may run behind: calls after `search_done`, and those in `search_again`, are left out.
"""

from collections.abc import Iterator

import apsw

from subluminal.ledger.proof.findings import MAX_FINDINGS, Report
from subluminal.ledger.store.counting import SEARCH_DONE, read_counter

# As in the migrations. Never the text in the ledger's own schema, which somebody may have changed.
_INDEX = (
    "CREATE VIRTUAL TABLE search USING fts5 "
    "(args, result, content = '', contentless_delete = 1, detail = full)"
)
_TEXTS = (
    "SELECT id, args_preview, result_preview FROM previews WHERE id <= ? "
    "AND id NOT IN (SELECT id FROM search_again) AND (args_preview <> '' OR result_preview <> '')"
)
_VOCABULARY = "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, search, instance)"
_TERMS = (
    "SELECT term, group_concat(doc || ' ' || col || ' ' || offset) FROM temp.vocabulary "
    "{where} GROUP BY term ORDER BY term"
)
_INDEXED = "WHERE doc NOT IN (SELECT id FROM search_again)"

Term = tuple[str, str]
"""a word, and its places: each is a row id, a column and an offset; joined by commas"""


def check_search(connection: apsw.Connection, report: Report) -> None:
    """Reports every call whose words in the index are not those of its previews."""
    done = read_counter(connection, SEARCH_DONE)
    wrong = sorted(_differing(connection, done))
    for number in wrong[:MAX_FINDINGS]:
        row = connection.execute("SELECT call_id FROM tool_calls WHERE id = ?", (number,))
        found = row.fetchone()
        where = f"row {number}" if found is None else f"call `{found[0]}`"
        report.add("search", where, "the words in the index are not those of the previews")


def _differing(connection: apsw.Connection, done: int) -> set[int]:
    """The row ids of calls that are indexed differently."""
    again = _index_again(connection, done)
    may_not_write = connection.pragma("query_only")
    try:
        # A virtual table of its own kind is needed to read an index. It is temporary.
        connection.pragma("query_only", False)
        connection.execute(_VOCABULARY)
        stored = connection.execute(_TERMS.format(where=_INDEXED))
        told = again.execute(_TERMS.format(where=""))
        return _different(iter(stored), iter(told))
    finally:
        connection.execute("DROP TABLE IF EXISTS temp.vocabulary")
        connection.pragma("query_only", bool(may_not_write))
        again.close()


def _index_again(connection: apsw.Connection, done: int) -> apsw.Connection:
    """Builds the index again in a temporary database, in memory or on disk."""
    made = apsw.Connection("")
    made.execute(_INDEX)
    made.execute(_VOCABULARY)
    with made:
        made.executemany(
            "INSERT INTO search (rowid, args, result) VALUES (?, ?, ?)",
            connection.execute(_TEXTS, (done,)),
        )
    return made


def _different(stored: Iterator[Term], told: Iterator[Term]) -> set[int]:
    """The row ids in the places of words that differ. Both sides are sorted by word."""
    wrong: set[int] = set()
    one, two = next(stored, None), next(told, None)
    while (one or two) and len(wrong) < MAX_FINDINGS:
        if one == two:
            one, two = next(stored, None), next(told, None)
        elif two is None or (one is not None and one[0] < two[0]):
            wrong |= _rows({*one[1].split(",")} if one else set())
            one = next(stored, None)
        elif one is None or two[0] < one[0]:
            wrong |= _rows({*two[1].split(",")})
            two = next(told, None)
        else:
            wrong |= _rows({*one[1].split(",")} ^ {*two[1].split(",")})
            one, two = next(stored, None), next(told, None)
    return wrong


def _rows(places: set[str]) -> set[int]:
    return {int(place.partition(" ")[0]) for place in places}
