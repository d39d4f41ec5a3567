"""The filter language as SQL over `tool_calls` and `runs`, and text as a full-text query."""

from subluminal.contracts.vocabulary import Action, ErrorClass, Status
from subluminal.ledger.filter.fields import (
    CALL_FIELDS,
    INTENT_FIELDS,
    RUN_FIELDS,
    RUNNING,
    UNKNOWN,
    Kind,
)
from subluminal.ledger.filter.language import Filter, Term
from subluminal.ledger.query.outcomes import outcome_sql
from subluminal.ledger.query.questions import InvalidQuery, has_wildcard

MAX_WORDS = 16

Condition = tuple[str, list[object]]
"""SQL, and the values of its parameters"""

_CALL_COLUMNS = {
    "run": "run_id",
    "server": "server_name",
    "tool": "tool_name",
    "decision": "decision",
    "status": "status",
    "rule": "rule_id",
    "reason": "reason_code",
    "severity": "severity",
    "would_be": "would_be",
    "taint": "taint",
    "latency": "latency_ms",
    "bytes_in": "bytes_in",
    "bytes_out": "bytes_out",
    "seq": "seq",
    "call": "call_id",
    "retry_of": "retry_of",
    "hash": "args_hash",
    "error": "error_class",
    "since": "created_at",
    "until": "created_at",
}
_OF_THE_RUN = {
    "agent": "agent_id",
    "client": "client",
    "env": "env",
    "principal": "principal",
}
_OF_THE_INTENT = {
    "pack": "pack",
    "intent": "intent_kind",
    "intent_hash": "intent_hash",
    "kernel": "decision_kind",
}
_INTENT_COLUMNS = {
    **_OF_THE_INTENT,
    "run": "run_id",
    "call": "call_id",
    "refusal": "refusal_code",
    "guard": "guard",
    "nonce": "nonce",
    "principal": "principal",
    "taint": "taint",
    "since": "created_at",
    "until": "created_at",
}
_RUN_COLUMNS = {
    **_OF_THE_RUN,
    "run": "run_id",
    "status": "status",
    "policy": "policy_id",
    "calls": "calls",
    "since": "started_at",
    "until": "started_at",
    "parent": "json_extract(metadata_json, '$.parent_run_id')",
}


def term_conditions(terms: Filter, prefix: str = "") -> list[Condition]:
    """Conditions on calls. `prefix` stands before column names, such as `c.`."""
    return [_call_condition(term, prefix) for term in terms]


def intent_conditions(terms: Filter) -> list[Condition]:
    """Conditions on intents `i`, joined with their calls `c`."""
    found = []
    for term in terms:
        column = _INTENT_COLUMNS.get(term.field)
        if column is None:
            found.append(_call_condition(term, "c."))
        else:
            found.append(_compared(term, f"i.{column}", INTENT_FIELDS[term.field].kind))
    return found


def run_conditions(terms: Filter) -> list[Condition]:
    """Conditions on runs."""
    found = []
    for term in terms:
        kind = RUN_FIELDS[term.field].kind
        if term.field == "meta":
            found.append(_meta_condition(term))
        else:
            found.append(_compared(term, _RUN_COLUMNS[term.field], kind, absent=RUNNING))
    return found


def _meta_condition(term: Term) -> Condition:
    """Compares `KEY=VALUE` with every member of the run's meta."""
    where, values = _compared(term._replace(negated=False), "key || '=' || value", Kind.NAME)
    any_of = f"EXISTS (SELECT 1 FROM json_each(metadata_json) WHERE {where})"
    return f"metadata_json IS NOT NULL AND {'NOT ' if term.negated else ''}{any_of}", values


def match_expression(text: str) -> str:
    """A full-text query: all words must occur, "quoted words" as a phrase, `word*` as a prefix.

    Every word is quoted, so no text can act as query syntax.
    """
    parts = text.split('"')
    terms: list[str] = []
    for index, part in enumerate(parts):
        if index % 2:
            terms += [_quoted(part)] if part.strip() else []
        else:
            terms += [_word(word) for word in part.split()]
    if not terms:
        raise InvalidQuery("the text to search for is empty")
    if len(terms) > MAX_WORDS:
        raise InvalidQuery(f"more than {MAX_WORDS} words to search for")
    return " ".join(terms)


def _word(word: str) -> str:
    stem = word.rstrip("*")
    if not stem:
        raise InvalidQuery("`*` alone finds nothing", hint="put letters before it")
    return _quoted(stem) + ("*" if stem != word else "")


def _quoted(text: str) -> str:
    return '"' + text.replace("\0", " ") + '"'


def _call_condition(term: Term, prefix: str) -> Condition:
    # The plus keeps SQLite from choosing an index: `planning` has chosen one already.
    kind = CALL_FIELDS[term.field].kind
    if term.field in _OF_THE_RUN:
        where, values = _compared(term, _OF_THE_RUN[term.field], kind)
        return f"+{prefix}run_id IN (SELECT run_id FROM runs WHERE {where})", values
    if term.field in _OF_THE_INTENT:
        where, values = _compared(term, _OF_THE_INTENT[term.field], kind)
        return f"+{prefix}id IN (SELECT id FROM intents WHERE {where})", values
    if term.field == "outcome":
        return _compared(term, outcome_sql(prefix or "tool_calls."), kind)
    if kind is Kind.TEXT:
        words = " OR ".join(f"({match_expression(f'{value}')})" for value in term.values)
        operator = "NOT IN" if term.negated else "IN"
        return f"+{prefix}id {operator} (SELECT rowid FROM search WHERE search MATCH ?)", [words]
    return _compared(term, f"+{prefix}{_CALL_COLUMNS[term.field]}", kind, absent=UNKNOWN)


def _compared(term: Term, column: str, kind: Kind, absent: str = "") -> Condition:
    """Compares a column with a term's values. NULL matches neither the term nor its negation.

    `absent` is the word that stands for NULL itself.
    """
    parts: list[str] = []
    values: list[object] = []
    for value in term.values:
        if kind is Kind.WORD and value == absent:
            parts.append(_absent(column, absent))
            continue
        operator = _operator(term.operator, kind, value)
        parts.append(f"{column} {operator} ?")
        values.append(value.replace("[!", "[^") if isinstance(value, str) else value)
    where = " OR ".join(parts)
    return (f"NOT ({where})" if term.negated else f"({where})"), values


def _absent(column: str, word: str) -> str:
    return (
        unknown_outcome(column.removesuffix("status")) if word == UNKNOWN else f"{column} IS NULL"
    )


def unknown_outcome(prefix: str) -> str:
    """The condition on calls with the status UNKNOWN. `prefix` stands before column names."""
    status, decision, error = (f"{prefix}{name}" for name in ("status", "decision", "error_class"))
    lost = f"{status} = '{Status.ERROR}' AND {error} IS '{ErrorClass.UNKNOWN}'"
    return f"({decision} = '{Action.ALLOW}' AND ({status} IS NULL OR ({lost})))"


def _operator(operator: str, kind: Kind, value: str | int) -> str:
    if operator != ":":
        return operator
    return "GLOB" if kind is Kind.NAME and has_wildcard(str(value)) else "="
