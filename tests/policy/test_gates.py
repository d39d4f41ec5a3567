"""Gates before the policy layers: one list for decisions, explain and replay (contracts.gate)."""

import pytest
from msgspec.structs import replace
from tests.adapters.records import calls_of, events_of
from tests.core.crowd import call, one_call
from tests.hosts import host_in
from tests.policy.bundles import bundle, rule, tools

from subluminal.contracts.decision import Decision, PolicyRef
from subluminal.contracts.gate import Settled
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Layer, Severity
from subluminal.core.controls.stops import set_stop
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.explaining import explain
from subluminal.policy.replay.layering import Layering

WHO = Identity()
DENY_RM = compile_bundle(bundle(rule("deny", match=tools("rm"))))
OWN = PolicyRef(policy_id="plugin", policy_version="1", policy_hash="c" * 64)


class Bouncer:
    """Settles the calls of one tool, and leaves the others to whoever comes next."""

    def __init__(self, name: str, tool: str, action: Action) -> None:
        self.name = name
        self._tool = tool
        self._action = action
        self.asked: list[str] = []

    def ask(self, call, counters, *, wall_ms, mono_ms):
        self.asked.append(call.tool_name)
        if call.tool_name != self._tool:
            return None
        decision = Decision(
            action=self._action,
            rule_id=None,
            severity=Severity.WARN,
            reason_code="BOUNCED",
            summary=f"{self.name} settled it",
        )
        return Settled(decision, OWN)


def gates():
    return [Bouncer("first", "a", Action.BLOCK), Bouncer("second", "rm", Action.ALLOW)]


def decided(engine, tool):
    found = engine.evaluate(Call("s", tool, {}, "0" * 64), MemoryCounters(), wall_ms=0, mono_ms=0)
    return found.decision.action, found.decision.reason_code, found.forwarded


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("a", (Action.BLOCK, "BOUNCED", False)),
        ("rm", (Action.ALLOW, "BOUNCED", True)),
        ("other", (Action.ALLOW, "DEFAULT_ALLOW", True)),
    ],
)
def test_the_first_gate_that_answers_settles_the_call(tool, expected):
    engine = Engine([(Layer.USER, DENY_RM)], WHO, gates())
    assert decided(engine, tool) == expected


def test_a_gate_behind_one_that_answered_is_not_asked():
    first, second = both = gates()
    decided(Engine([(Layer.USER, DENY_RM)], WHO, both), "a")
    assert (first.asked, second.asked) == (["a"], [])


def test_explain_shows_each_gate_that_was_asked():
    asked = explain(DENY_RM, WHO, ("s", "rm", {}), wall_ms=0, gates=gates())
    assert [(step.rule_id, step.result, step.action) for step in asked.steps] == [
        ("first", "no match", None),
        ("second", "matched", "ALLOW"),
    ]
    assert asked.evaluation.policy == OWN
    unsettled = explain(DENY_RM, WHO, ("s", "x", {}), wall_ms=0, gates=gates())
    assert [step.layer for step in unsettled.steps] == ["plugins", "plugins", "repository"]


def test_replay_asks_the_same_gates():
    layering = Layering(DENY_RM, lambda _hash: None, gates=gates())
    setting = layering.setting(WHO, (), None)
    assert decided(setting.engine, "a")[1] == "BOUNCED"
    assert decided(setting.engine, "rm")[0] is Action.ALLOW


def test_a_door_meets_the_same_gates_behind_the_stops(own_home):
    host = host_in(own_home, DENY_RM, gates=gates())
    ruling = host.begin(replace(call(), tool_name="a"), b"{}")
    assert (ruling.decision.action, ruling.policy) == (Action.BLOCK, OWN)
    assert one_call(host)
    set_stop(host.places.state, "tool", "probe/a", by="op", reason="", hard=False)
    assert host.begin(replace(call(), tool_name="a"), b"{}").decision.reason_code == "KILL_SWITCH"
    host.close()
    first = calls_of(events_of(own_home))[0]
    assert first[1]["decision"]["policy"]["policy_id"] == "plugin"
