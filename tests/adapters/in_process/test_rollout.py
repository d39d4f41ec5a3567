"""Staged rollout: who decides in which stage, and what is on record of it."""

from typing import Any

import pytest
from tests.adapters.in_process.conftest import Till
from tests.adapters.in_process.paying import KIND
from tests.adapters.in_process.test_door import audits, decisions
from tests.adapters.policies import bundle, deny
from tests.requirements import requirement

from subluminal.kernel import Refuse, Rollout, RuntimeContext, ShadowMetric, refuse


@requirement("kernel:rollout")
@pytest.mark.parametrize("legacy", [True, False])
def test_off_leaves_the_decision_to_the_old_code(till: Till, legacy: bool):
    """Without a list, no intent is under the kernel as long as there is old code."""
    done = till.execute("REFUSE", legacy=lambda: legacy)
    assert (done.action, done.decision) == ("ALLOW" if legacy else "BLOCK", None)
    assert done.reason_code == ("DEFAULT_ALLOW" if legacy else "LEGACY_REFUSED")
    events = till.events()
    assert "kernel" not in decisions(events)[0]
    assert audits(events) == []


@requirement("kernel:rollout")
def test_shadow_records_both(till: Till, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SUB_KERNEL_SHADOW", f"other, {KIND}")
    assert till.execute("REFUSE", legacy=lambda: True).action == "ALLOW"
    assert till.execute("EXECUTE", legacy=lambda: False).reason_code == "LEGACY_REFUSED"
    assert till.execute("EXECUTE", "again", legacy=lambda: True).action == "ALLOW"
    assert till.paid == [105, 5]
    events = till.events()
    kernels = [each["kernel"] for each in decisions(events)]
    assert [each["kind"] for each in kernels] == ["REFUSE", "EXECUTE", "EXECUTE"]
    assert [each["divergence"] for each in kernels] == [
        "DECISION_KIND",
        "DECISION_KIND",
        "BASIS_ONLY",
    ]
    assert [each["decision"]["kind"] for each in audits(events)] == ["REFUSE", "EXECUTE", "EXECUTE"]


@requirement("kernel:rollout")
def test_enforce_does_not_ask_the_old_code(till: Till, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SUB_KERNEL_ENFORCE", "*")

    def never() -> bool:
        raise AssertionError

    assert till.execute("REFUSE", legacy=never).reason_code == "pay.too_much"
    assert "divergence" not in decisions(till.events())[0]["kernel"]


def test_a_decision_of_the_old_code_has_its_words(till: Till):
    said = Refuse(refuse("AUTH", "no.scope", "You may not."), ())
    done = till.execute("EXECUTE", legacy=lambda: said)
    assert (done.action, done.reason_code) == ("BLOCK", "no.scope")


def test_policies_hold_in_every_stage(till: Till):
    till.write_policy(bundle(deny("pay.*")))
    assert till.execute("EXECUTE", legacy=lambda: True).reason_code == "DENYLIST_MATCH"
    assert till.paid == []


def test_nothing_is_claimed_while_the_old_code_decides(till: Till):
    till.execute("EXECUTE", "n", legacy=lambda: True)
    till.execute("EXECUTE", "n", legacy=lambda: True)
    assert till.paid == [5, 5]


def test_the_lists_and_sinks_of_a_context(till: Till):
    told: list[ShadowMetric] = []

    class Sink:
        def record_shadow_divergence(self, event: Any) -> None:
            told.append(event)

    rollout = Rollout(shadow=frozenset({KIND}))
    till.open(context=RuntimeContext(rollout=rollout, shadow=Sink()))  # type: ignore[arg-type]
    till.execute("REWRITE", legacy=lambda: True)
    assert [each.divergence for each in told] == ["PAYLOAD_REWRITE"]
    assert till.paid == [15]


def test_words_that_are_nearly_an_intent_are_on_record(till: Till, monkeypatch: pytest.MonkeyPatch):
    """The lists are for all packs of an environment, so other words may be right."""
    monkeypatch.setenv("SUB_KERNEL_ENFORCE", " pay.owt ,mail.send, pay.in")
    till.execute("EXECUTE", legacy=lambda: False)
    details = [event["health"].get("detail", "") for event in till.events() if "health" in event]
    assert [each for each in details if "rollout" in each] == [
        "rollout: enforce_config_typo: `pay.owt`: did you mean `pay.out`?"
    ]


def test_a_context_stays_as_it_was(till: Till, monkeypatch: pytest.MonkeyPatch):
    """It may be the context of several doors."""
    context = RuntimeContext()
    till.open(context=context)
    assert context.rollout is None
    monkeypatch.setenv("SUB_KERNEL_ENFORCE", KIND)
    till.open(context=context)
    assert till.execute("REFUSE", legacy=lambda: True).reason_code == "pay.too_much"
