"""The outcome of calls in SQL, made from the tables of `policy.outcomes`.

The ledger stores no outcome: it follows from columns that `sub ledger verify` proves. So a ledger
of any earlier version has outcomes too, and nothing has to be migrated.
"""

from subluminal.contracts.vocabulary import Action, Outcome
from subluminal.ledger.filter.language import Filter, terms_of
from subluminal.policy.outcomes import BY_ACTION, BY_REASON, REFUSING, outcome_of


def outcome_sql(prefix: str) -> str:
    """The outcome of a call as an SQL expression. `prefix` stands before column names."""
    refused = " ".join(f"WHEN '{code}' THEN '{outcome}'" for code, outcome in BY_REASON.items())
    by_reason = f"CASE {prefix}reason_code {refused} ELSE '{Outcome.DENY}' END"
    granted = f"{prefix}id IN (SELECT id FROM grant_uses)"
    passed = f"CASE WHEN {granted} THEN '{Outcome.APPROVED}' ELSE '{Outcome.ALLOW}' END"
    cases: dict[str, str] = {
        Action.ALLOW: passed,
        **dict.fromkeys(REFUSING, by_reason),
        **{action: f"'{outcome}'" for action, outcome in BY_ACTION.items()},
    }
    whens = " ".join(f"WHEN '{action}' THEN {then}" for action, then in cases.items())
    return f"(CASE {prefix}decision {whens} END)"


def possible_actions(terms: Filter) -> set[str] | None:
    """The actions that calls with the wanted outcomes can have; None if no outcome is asked for."""
    asked = [set(term.values) for term in terms_of(terms, "outcome") if not term.negated]
    if not asked:
        return None
    wanted = set.intersection(*asked)
    return {action for action in Action if not wanted.isdisjoint(_outcomes(action))}


def _outcomes(action: Action) -> set[Outcome | None]:
    """Every outcome that an action can have."""
    codes = [*BY_REASON, ""]
    return {outcome_of(action, code, has_grant=grant) for code in codes for grant in (False, True)}
