"""What an exception would have done to the calls on record."""

from subluminal.cli.promoting.hinted import Hinted
from subluminal.cli.promoting.planning import Plan
from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.errors import UsageError
from subluminal.ledger.database import open_reader
from subluminal.ledger.filter_values import InvalidValue
from subluminal.ledger.filtering import make_term
from subluminal.ledger.query.replaying import backtest
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.replay.tallying import Backtest

DEFAULT_SINCE = "30d"


def backtest_plan(places: Places, plan: Plan, hinted: Hinted, since: str | None) -> Backtest:
    """Replays what was recorded since then, by the policy before and by the one after."""
    old, new = compile_bundle(plan.old), compile_bundle(plan.new)
    connection = open_reader(places.ledger)
    try:
        return backtest(connection, old, new, layer=hinted.layer, since_ms=_since_ms(since))
    finally:
        connection.close()


def _since_ms(text: str | None) -> int:
    try:
        term = make_term("since", text or DEFAULT_SINCE, now_ms=now().wall_ms)
    except InvalidValue as error:
        raise UsageError(f"`--since`: {error}", hint=error.hint) from None
    return int(term.values[0])
