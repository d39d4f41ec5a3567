"""The pack conforms, and decides as its scenarios say."""

import json
from pathlib import Path

import pytest
from acme_refunds import PACK

from subluminal.kernel import (
    IntentActor,
    Scenario,
    adjudicate,
    assert_pack_conformance,
    build_envelope,
    check_pack,
)

FILES = sorted((Path(__file__).parents[1] / "scenarios").glob("*.json"))
ALL = [json.loads(path.read_text("utf-8")) for path in FILES]


def test_it_conforms():
    assert_pack_conformance(PACK)
    probes = [
        Scenario(row["intent"]["kind"], row["intent"]["payload"], row["state"]) for row in ALL
    ]
    assert [result for result in check_pack(PACK, scenarios=probes) if not result.passed] == []


@pytest.mark.parametrize("scenario", ALL, ids=[path.stem for path in FILES])
def test_it_decides_as_its_scenarios_say(scenario):
    intent = scenario["intent"]
    actor = IntentActor(intent["actor"]["principal"], intent["actor"]["sessionId"])
    envelope = build_envelope(
        intent["kind"],
        intent["payload"],
        actor=actor,
        taint=intent["taint"],
        nonce=intent["nonce"],
        created_at="2026-01-01T00:00:00Z",
    )
    decision = adjudicate(envelope, scenario["state"], PACK.policy)
    assert decision.kind == scenario["expected"]["kind"]
