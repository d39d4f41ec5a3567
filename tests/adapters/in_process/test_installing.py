"""`install_pack`: checks, watches drift, and gives sinks to those who have none."""

import json
from typing import Any

import pytest
from tests.adapters.in_process.paying import KIND, paying
from tests.requirements import requirement

from subluminal.errors import PackConformanceError
from subluminal.kernel import (
    Defer,
    IntentActor,
    MemoryExecutionLedger,
    RuntimeContext,
    adjudicate_and_audit,
    build_envelope,
)
from subluminal.sdk import install_pack


class Clock:
    def now_iso(self) -> str:
        return "2026-01-01T00:00:00.000Z"

    def mono_ms(self) -> float:
        return 0.0


class Kept:
    def emit(self, record: Any) -> None:
        self.record = record


@requirement("003:install-pack")
def test_what_nobody_takes_goes_to_stderr(capsys: pytest.CaptureFixture[str]):
    def odd(_envelope: Any, _state: Any) -> Any:
        return Defer("unheard.of", 1, ())

    pack, context = install_pack(paying(state_guards=(odd,)), allow_default_execute=True)
    envelope = build_envelope(
        KIND,
        {"amount": 1},
        actor=IntentActor("llm", "s"),
        taint="UNTRUSTED",
        nonce="n",
        created_at="2026-01-01T00:00:00.000Z",
    )
    ledger = MemoryExecutionLedger()
    adjudicate_and_audit(
        envelope, {}, pack.policy, sink=Kept(), clock=Clock(), ledger=ledger, context=context
    )
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = [line.split(" ", 2) for line in shown.err.splitlines()]
    assert {line[0] for line in lines} == {"[subluminal-kernel]"}
    told = {line[1]: json.loads(line[2]) for line in lines}
    assert told.keys() == {"ledger_op", "decision", "sink_failure", "outcome"}
    assert told["sink_failure"]["errorClass"] == "defer_signal_drift"
    assert told["outcome"]["decisionKind"] == "DEFER"


def test_a_context_keeps_its_own_sinks():
    class Sink:
        """Takes anything."""

    sink: Any = Sink()
    given = RuntimeContext(id="t", metrics=sink, learning=sink)
    _, context = install_pack(paying(), given, allow_default_execute=True)
    assert (context.id, context.metrics, context.learning, context.shadow) == ("t", *[sink] * 3)


def test_a_default_of_execute_needs_a_word():
    with pytest.raises(PackConformanceError, match="allow_default_execute"):
        install_pack(paying())
