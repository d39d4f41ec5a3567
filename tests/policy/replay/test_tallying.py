"""Totals of replayed calls, and the sentence of a backtest."""

import msgspec
from tests.policy.bundles import bundle, rule, tools
from tests.policy.replay.runs import Record

from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Env, Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.replay.comparing import Change
from subluminal.policy.replay.hidden_args import PartialArgs
from subluminal.policy.replay.tallying import Backtest, Tally

NO_PUSH = rule("deny", "no-push", match=tools("push"))
WRITES = rule("tag", "writes", match=tools("push", "put"))
BEFORE = compile_bundle(bundle(WRITES, NO_PUSH))
AFTER = compile_bundle(bundle(WRITES, rule("deny", "no-pull", match=tools("pull"))))


def test_a_tally_counts_calls_runs_and_what_depends():
    record = Record((Layer.USER, BEFORE))
    for tool in ("push", "pull", "x"):
        record.call(tool)
    rows, run, _ = record.replay(AFTER)
    tally = Tally()
    for row in rows:
        tally.add(row)
    tally.add_run(run)
    assert tally.plain() == {
        "runs": 1,
        "calls": 3,
        "same": 1,
        "newly_blocked": 1,
        "newly_allowed": 1,
        "changed": 0,
        "undetermined": 0,
        "depending": 2,
        "unrecorded": 0,
        "replaced_others": 0,
    }


def backtest_of(
    record: Record, before=BEFORE, after=AFTER, env: Env = Env.DEV, into: Backtest | None = None
) -> Backtest:
    record.items = [
        msgspec.structs.replace(item, identity=Identity(env=env))
        if isinstance(item, msgspec.Struct)
        else item
        for item in record.items
    ]
    found = into or Backtest()
    pairs = zip(record.replay(before)[0], record.replay(after)[0], strict=True)
    for then, now in pairs:
        found.add(then, now)
    return found


def recorded(*tools_called: str) -> Record:
    record = Record()
    for tool in tools_called:
        record.call(tool)
    return record


def test_a_backtest_tells_what_a_change_would_have_done():
    found = backtest_of(recorded("push", "push", "pull", "x"), env=Env.PROD)
    backtest_of(recorded("push"), env=Env.DEV, into=found)
    assert found.sentence() == (
        "would have allowed 3 past calls, 2 of them writes in prod, 1 of them writes in dev"
        " and would have refused 1 past call"
    )
    assert found.count(Change.NEWLY_ALLOWED, writes=True) == 3
    assert found.count(Change.NEWLY_BLOCKED, writes=True) == 0
    assert found.plain() == {
        "calls": 5,
        "newly_allowed": 3,
        "newly_allowed_writes": {"dev": 1, "prod": 2},
        "newly_blocked": 1,
        "newly_blocked_writes": {},
        "changed": 0,
        "undetermined": 0,
        "sentence": found.sentence(),
    }


def test_a_backtest_of_nothing_says_so():
    assert backtest_of(recorded("x"), after=BEFORE).sentence() == (
        "would have changed nothing for 1 past call"
    )


def test_a_backtest_counts_undetermined_calls():
    record = Record()
    record.call("x", on_record=PartialArgs({}, lambda _key: True))
    asking = compile_bundle(bundle(rule("deny", match={"args": {"has_keys": ["a"]}})))
    for pair in ((BEFORE, asking), (asking, BEFORE)):
        found = backtest_of(record, *pair)
        assert found.sentence().endswith("; 1 call cannot be determined: the record is incomplete")
