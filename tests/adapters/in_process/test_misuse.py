"""What packs, states, handlers, ledgers and old code do wrong: refused or raised, and on record."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.adapters.in_process.conftest import Till
from tests.adapters.in_process.paying import KIND, paying
from tests.adapters.in_process.test_door import audits, decisions
from tests.adapters.policies import bundle, deny
from tests.adapters.records import calls_of
from tests.requirements import requirement

from subluminal.errors import NotExecuted, SubluminalError
from subluminal.kernel import Execute, MemoryExecutionLedger, Refuse, RuntimeContext


class Wordless(Exception):
    """An exception that cannot describe itself."""

    def __str__(self) -> str:
        raise RuntimeError


class Failing(MemoryExecutionLedger):
    """A ledger of the agent's own, which fails in one of its methods."""

    def __init__(self, method: str) -> None:
        super().__init__()
        setattr(self, method, self._fail)

    def _fail(self, *_args: Any) -> Any:
        raise ConnectionError("the database is gone")


def ended(till: Till) -> list[dict[str, Any]]:
    """The calls of the run; each of them has an end."""
    calls = calls_of(till.events())
    assert all(call[-1]["type"] == "tool_call_end" for call in calls)
    return [call[-1] for call in calls]


def a_cycle() -> dict[str, Any]:
    state: dict[str, Any] = {}
    state["again"] = state
    return state


@requirement("kernel:bad-input")
@pytest.mark.parametrize(
    "state",
    [{"x": math.nan}, {"x": "\ud800"}, {"x": 1 << 80}, {1: 2}, {"x": {1, 2}}, object(), a_cycle()],
    ids=["nan", "surrogate", "big", "key", "set", "object", "cycle"],
)
def test_a_state_that_json_cannot_hold_has_no_hash(till: Till, state: Any):
    assert till.execute("EXECUTE", state=state).action == "ALLOW"
    (audit,) = audits(till.events())
    assert audit["metadata"] == {"state_hash": None}


@requirement("kernel:unknown")
def test_a_handler_whose_error_has_no_words(till: Till):
    def fail(_envelope: Any) -> None:
        raise Wordless

    till.on_pay = fail
    with pytest.raises(Wordless):
        till.execute("EXECUTE")
    (end,) = ended(till)
    assert end["error"]["message"].startswith("Wordless: ")


@requirement("kernel:executions-out-of-reach")
@pytest.mark.parametrize("method", ["check", "claim"])
def test_a_ledger_that_fails_before_the_handler_refuses(till: Till, method: str):
    till.open(executions=Failing(method))
    done = till.execute("EXECUTE")
    assert (done.reason_code, till.paid) == ("EXECUTIONS_UNAVAILABLE", [])
    assert "the database is gone" in done.message
    assert len(ended(till)) == 1


def test_a_ledger_that_fails_after_the_handler_loses_no_result(till: Till):
    till.open(executions=Failing("finish"))
    assert till.execute("EXECUTE").result == {"ok": True}
    assert till.execute("EXECUTE").reason_code == "ledger_replay_suppressed"
    assert len(ended(till)) == 2


def test_a_claim_that_cannot_be_released_stays(till: Till):
    till.write_policy(bundle(deny(KIND)))
    till.open(executions=Failing("release"))
    assert till.execute("EXECUTE").reason_code == "DENYLIST_MATCH"
    assert till.execute("EXECUTE").reason_code == "ledger_replay_suppressed"
    assert len(ended(till)) == 2


@requirement("kernel:not-executed")
def test_not_executed_is_raised_whatever_the_ledger_does(till: Till):
    def nothing(_envelope: Any) -> None:
        raise NotExecuted("no account")

    till.on_pay = nothing
    till.open(executions=Failing("release"))
    with pytest.raises(NotExecuted):
        till.execute("EXECUTE")
    events = till.events()
    assert [call[-1]["status"] for call in calls_of(events)] == ["CANCELLED"]
    told = [event["health"] for event in events if event["type"] == "shim_health"]
    assert any("the database is gone" in each.get("detail", "") for each in told)


def fails() -> bool:
    raise RuntimeError("no scope")


@requirement("kernel:rollout")
@pytest.mark.parametrize(
    "legacy",
    [fails, lambda: Refuse(None, ()), lambda: Execute("x"), lambda: 1],
    ids=["raises", "refusal", "basis", "truthy"],
)
@pytest.mark.parametrize("stage", ["", KIND])
def test_old_code_that_fails_refuses(
    till: Till, monkeypatch: pytest.MonkeyPatch, legacy: Callable[[], Any], stage: str
):
    monkeypatch.setenv("SUB_KERNEL_SHADOW", stage)
    done = till.execute("EXECUTE", legacy=legacy)
    assert (done.action, done.reason_code, till.paid) == ("BLOCK", "LEGACY_REFUSED", [])
    (decided,) = decisions(till.events())
    assert ("kernel" in decided) is bool(stage)


@requirement("kernel:bad-input")
@pytest.mark.parametrize("deadline", [math.nan, "soon", 10**400, []])
def test_a_deadline_that_is_no_number(till: Till, deadline: Any):
    with pytest.raises(SubluminalError, match="deadline_ms"):
        till.execute("EXECUTE", deadline_ms=deadline)
    assert till.paid == []


@pytest.mark.parametrize("deadline", [0, -1])
def test_a_deadline_that_is_over_refuses(till: Till, deadline: float):
    done = till.execute("EXECUTE", deadline_ms=deadline)
    assert (done.reason_code, till.paid) == ("kernel_deadline_exceeded", [])


@requirement("kernel:bad-input")
def test_a_kind_that_utf8_cannot_hold(till: Till):
    done = till.execute("EXECUTE", kind="pay\ud800")
    assert (done.reason_code, till.paid) == ("EVALUATION_ERROR", [])
    assert len(ended(till)) == 1


def test_deciding_says_that_nothing_was_executed(till: Till):
    done = till.door.decide(KIND, {"amount": 15}, state={}, nonce="n")
    assert (done.action, done.executed) == ("ALLOW", False)
    assert done.message == "To be executed with changed arguments: capped at 10."
    assert till.execute("REWRITE", "n").executed is True


def test_a_handler_may_close_the_door(till: Till):
    till.on_pay = lambda _envelope: till.door.close()
    assert till.execute("EXECUTE", "n").executed is True
    assert len(ended(till)) == 1
    assert till.execute("EXECUTE", "n").reason_code == "ledger_replay_suppressed"


def test_a_closed_door_executes_nothing(till: Till):
    door = till.door
    door.close()
    with pytest.raises(SubluminalError, match="closed"):
        till.execute("EXECUTE")
    assert till.paid == []


@pytest.mark.parametrize("pack", [None, 5, Failing])
def test_what_is_no_pack_does_not_open(till: Till, pack: Any):
    till.pack = pack
    with pytest.raises(SubluminalError, match="neither a Pack"):
        till.open()


class Later:
    async def __call__(self, _envelope: Any) -> None:
        """Never runs."""


def test_a_coroutine_is_no_result(till: Till):
    with pytest.raises(SubluminalError, match="coroutine"):
        till.execute("EXECUTE", "a", handler=Later())
    till.on_pay = Later()
    with pytest.raises(SubluminalError, match="coroutine"):
        till.execute("EXECUTE", "b")
    hit = till.execute("EXECUTE", "b").ledger_hit
    assert hit is not None
    assert hit.status == "unknown"


class Meddler:
    """A guard and a sink: keeps the payload, and changes it after the decision."""

    def __init__(self, amount: Any) -> None:
        self._amount = amount
        self._payload: dict[str, Any] = {}

    def guard(self, envelope: Any, _state: Any) -> None:
        self._payload = envelope.payload

    def record_decision(self, _event: Any) -> None:
        self._payload["amount"] = self._amount

    def __getattr__(self, _name: str) -> Callable[[Any], None]:
        return lambda _event: None


@requirement("kernel:bad-input")
@pytest.mark.parametrize("amount", [99, object()])
def test_what_was_decided_runs_whoever_changes_it_later(till: Till, amount: Any):
    meddler = Meddler(amount)
    till.pack = paying(state_guards=(meddler.guard,))
    till.open(context=RuntimeContext(metrics=meddler))
    assert till.execute("EXECUTE", "n").action == "ALLOW"
    assert till.paid == [5]
    ((start, *_),) = calls_of(till.events())
    assert start["call"]["preview"]["args_preview"] == '{"amount":5}'
