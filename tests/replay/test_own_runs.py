"""The policy that was in force, replayed over its own runs, gives zero differences (issue 10)."""

import os
import random
from typing import Any

import pytest
from tests.differential import generated
from tests.differential.driving import compiled, identity_of
from tests.replay.stage import Stage

from subluminal.core.controls.approval_files import Slot
from subluminal.ledger.query.replaying import LedgerReplay
from subluminal.policy.replay.comparing import Change

RUNS = 25
SECRET = "ghp_" + "aB3d" * 9
RECORDS: list[dict[str, Any]] = [{}, {}, {}, {"record": "off"}, {"max_bytes": 9}]


def layers_of(choose: generated.Chooser) -> list[tuple[str, dict[str, Any]]]:
    """As `generated.layers`, but with a policy_id of its own for each layer."""
    found = generated.layers(choose)
    for number, (_, bundle) in enumerate(found):
        bundle["policy_id"] = f"p{number}"
    return found


def args_of(choose: generated.Chooser) -> dict[str, Any] | None:
    args = generated.args(choose)
    if args is not None and choose.rarely(4):
        args = {**args, choose.one(generated.KEYS): f"the key is {SECRET}"}
    return args


def answer(stage: Stage, choose: generated.Chooser, run_id: str, layers: list[Any]) -> None:
    """A person approves, denies, lifts a rule for the run, stops the run, or lets it go on."""
    slots = stage.waiting(run_id)
    if slots and choose.below(2):
        approve = bool(choose.below(3))
        grant = {"uses": 1 + choose.below(2), "ttl_ms": choose.one([50, 3_600_000])}
        stage.answer(run_id, choose.one(slots), approve=approve, **(grant if approve else {}))
    rules = [(layer, rule) for layer, each in layers for rule in each.data["rules"]]
    if rules and choose.rarely(8):
        layer, rule = choose.one(rules)
        server, tool = choose.one(generated.SERVERS), choose.one(generated.TOOLS)
        slot = Slot(server, tool, None, layer.value, rule["rule_id"])
        stage.answer(run_id, slot, approve=True, uses=choose.one([None, 1, 2]))
    if choose.rarely(30):
        stage.stop(run_id, choose.one(["run", "all"]))
    elif choose.below(2):
        stage.revive(run_id)


def play(stage: Stage, seed: int, run_id: str) -> list[Any]:
    """A run of random calls over three shims, with ends in any order; returns its layers."""
    choose = generated.seeded(seed)
    layers = compiled(layers_of(choose))
    identity = identity_of(generated.identity(choose))
    record = choose.one(RECORDS)
    shims = [stage.shim(layers, identity, run_id=run_id, **record) for _ in range(3)]
    waiting: list[Any] = []
    calls: list[Any] = []
    people = bool(choose.below(2))
    for _ in range(5 + choose.below(25)):
        stage.clock.go(choose.one(generated.PAUSES_MS))
        if people:
            answer(stage, choose, run_id, layers)
        elif choose.rarely(20):  # by which answers and calls are put in order
            stage.clock.wall_ns += (choose.below(3) - 1) * 3_600_000_000_000
        # A shim reads the clock before it gets the lock, so time seems to go back a little.
        late = choose.below(3) * 300_000 if choose.rarely() else 0
        shim = choose.one(shims)
        stage.clock.mono_ns -= late
        made = (choose.one(generated.SERVERS), choose.one(generated.TOOLS), args_of(choose))
        if people and calls and choose.below(3):
            made = choose.one(calls[-3:])  # a retry, which may have been approved since
        calls.append(made)
        server, tool, args = made
        context = {} if args is not None else {"args_stream_hash": "ab" * 32}
        ruling = stage.begin(shim, server, tool, args, **context)
        stage.clock.mono_ns += late
        status = choose.one(["OK", "ERROR", "TIMEOUT", "CANCELLED"])
        if ruling.is_allowed:
            waiting.append((shim, ruling, status))
        random.Random(seed).shuffle(waiting)
        while waiting and choose.below(2):
            stage.clock.go(choose.one([0, 0.4, 1, 6]))
            stage.end(*waiting.pop())
    stage.revive(run_id)
    for each in waiting[1:]:  # one may never end
        stage.end(*each)
    return layers


@pytest.mark.parametrize("block", range(6 if os.environ.get("TORTURE") else 2))
def test_zero_differences(stage: Stage, block: int):
    """Every layer of every run, all rule kinds, whatever is left of the arguments on record."""
    layers = {}
    for number in range(RUNS):
        run_id = f"run-{number}"
        layers[run_id] = play(stage, block * RUNS + number, run_id)
        stage.close_shims()
    reader = stage.home.reader()
    codes = set()
    for run_id, placed in layers.items():
        for layer, snapshot in placed:
            for wanted in (layer, None):
                replay = LedgerReplay(reader, snapshot, layer=wanted)
                rows = list(replay.rows([run_id]))
                assert rows
                codes |= {str(row.now.reason_code) for row in rows if row.now}
                different = [row.plain() for row in rows if row.change is not Change.SAME]
                assert not different
                assert not any(row.depends_on for row in rows)
                assert not replay.layering.missing
    assert len(codes) >= 8
