"""Packs at a door: asked before the lock, once, about intents as the design page describes them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.test_taint import events, tool_call
from tests.hosts import enforcer_in, host_in, previewer
from tests.packs.desk import DESK, desk_here, forget_desk
from tests.packs.installing import write
from tests.policy.bundles import text
from tests.requirements import requirement

from subluminal.canonical import args_hash, encode
from subluminal.config.places import places
from subluminal.contracts.vocabulary import Action, ReasonCode, Status, Taint
from subluminal.core.controls.approvals import Approvals
from subluminal.core.host import Host
from subluminal.core.intents import judging
from subluminal.core.intents.index import find_pack, is_current, loaded, state_of
from subluminal.core.intents.judging import CallJudge, mended_args, payload_of
from subluminal.core.rounds import Round, begin_round
from subluminal.core.ruling import CallEnding, Ruling
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.evaluation import Call
from subluminal.policy.loading import parse_bundle
from subluminal.policy.packs import KnownPack, UnknownPack
from subluminal.policy.snapshot import Snapshot
from subluminal.policy.visit import NotJudged, PackMissing


@pytest.fixture(autouse=True)
def code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The file of the installed pack's code."""
    with desk_here(monkeypatch, tmp_path / "prefix") as file:
        yield file


def asks(intent: str = "desk.pay", **changes: Any) -> dict[str, Any]:
    """A kernel rule about the tool `pay`."""
    question = {"pack": "desk", "intent": intent, "state": {"limit": 100}, **changes}
    return {
        "rule_id": "desk",
        "kind": "kernel",
        "enabled": True,
        "match": {"tool_name": {"glob": ["pay"]}},
        "severity": "warn",
        "effect": {"kernel": question},
    }


def policy(*rules: dict[str, Any], **changes: Any) -> Snapshot:
    return compile_bundle(parse_bundle(text(*rules, **changes), "p.json", find_pack).bundle)


def begin(host: Host, **args: Any) -> Ruling:
    return host.begin(tool_call("bank", "pay", **args), encode(args))


def kernel_of(home: Path) -> list[dict[str, Any]]:
    return [each["decision"].get("kernel") for each in events(home, "tool_call_decision")]


def judge(args: dict[str, Any], run_id: str = "run-1") -> CallJudge:
    return CallJudge(Call("bank", "pay", args, args_hash(args)), run_id, 0)


def ask(args: dict[str, Any], level: Taint = Taint.SYSTEM, **changes: Any) -> Any:
    (rule,) = policy(asks(**changes)).data["rules"]
    return judge(args)("user", rule, args, level)


class TestDecisions:
    @pytest.mark.parametrize(
        ("args", "kind", "reason"),
        [
            ({"amount": 5}, "EXECUTE", None),
            ({}, "REFUSE", "desk.no_amount"),
            ({"amount": 5000}, "REFUSE", "desk.too_much"),
            ({"amount": 300}, "ESCALATE", ReasonCode.HUMAN_REQUIRED),
            ({"amount": 150}, "REQUEST_CONFIRMATION", ReasonCode.CONFIRMATION_REQUIRED),
            ({"amount": 7}, "DEFER", ReasonCode.DEFERRED),
            ({"amount": 5, "to": " me "}, "REWRITE", ReasonCode.REWRITE_OFFERED),
            ({"amount": 13}, "REFUSE", "guard_panic"),
        ],
    )
    def test_each_of_the_six(self, args: dict[str, Any], kind: str, reason: str | None) -> None:
        said = ask(args)
        assert said.kernel.kind == kind
        assert (said.refusal and said.refusal.reason_code) == reason
        assert said.kernel.guard in ("teller", "name")

    def test_a_guard_cannot_end_the_process(self) -> None:
        with pytest.raises(NotJudged, match="a guard of the pack `desk` raised SystemExit"):
            ask({"amount": 14})

    def test_a_signal_is_waited_for(self) -> None:
        said = ask({"amount": 5}, state={"limit": 1, "closed": True})
        assert (said.refusal.defer.signal, said.refusal.defer.timeout_ms) == ("desk.opened", 60_000)
        assert said.kernel.guard == "opening"

    @requirement("kernel-rule:taint")
    def test_nobody_is_asked_if_the_taint_gate_refuses_anyway(self) -> None:
        """A state guard asks a person before the gate; a grant would execute UNTRUSTED."""
        said = ask({}, intent="desk.open")
        assert said.requirement is None
        assert said.kernel.refusal_code == "taint_level_insufficient"

    def test_the_deadline_holds_for_all_packs_together(self) -> None:
        assert ask({"amount": 250}).refusal.reason_code == "kernel_deadline_exceeded"
        args = {"amount": 250}
        judging_it = judge(args)
        (rule,) = policy(asks()).data["rules"]
        judging_it("user", rule, args, Taint.SYSTEM)
        other = {"amount": 5}
        late = judging_it("user", rule, other, Taint.SYSTEM)
        assert late.refusal.reason_code == "kernel_deadline_exceeded", "no time is left"


class TestIntents:
    def test_a_retry_is_the_same_intent_and_another_run_another(self) -> None:
        (rule,) = policy(asks()).data["rules"]
        args = {"amount": 5}
        hashes = [
            judge(args, run_id)("user", rule, args, Taint.SYSTEM).kernel.intent_hash
            for run_id in ("a", "a", "b")
        ]
        assert hashes[0] == hashes[1] != hashes[2]

    def test_the_model_proposes_at_untrusted(self) -> None:
        assert ask({"amount": 5}).kernel.taint is Taint.UNTRUSTED

    def test_a_run_below_trusted_adds_an_origin(self) -> None:
        system, trusted, untrusted = (ask({"amount": 5}, level) for level in Taint)
        assert system.kernel.intent_hash == trusted.kernel.intent_hash
        assert untrusted.kernel.intent_hash != trusted.kernel.intent_hash

    def test_the_same_question_is_asked_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []
        real = judging.adjudicate_with_deadline
        monkeypatch.setattr(
            judging,
            "adjudicate_with_deadline",
            lambda *given, **more: asked.append(1) or real(*given, **more),
        )
        (rule,) = policy(asks()).data["rules"]
        args = {"amount": 5}
        it = judge(args)
        answers = [it("user", rule, args, level) for level in (Taint.SYSTEM, Taint.TRUSTED)]
        assert answers[0] is answers[1]
        assert len(asked) == 1
        it("user", rule, args, Taint.UNTRUSTED)
        it("repository", rule, args, Taint.SYSTEM)
        it("user", rule, {"amount": 6}, Taint.SYSTEM)
        assert len(asked) == 4

    def test_payload_fields_come_from_arguments(self) -> None:
        assert payload_of(None, {"a": 1}) == {"a": 1}
        assert payload_of({"amount": "brl", "to": "who"}, {"brl": 3, "x": 1}) == {"amount": 3}
        assert ask({"brl": 5, "x": 1}, payload={"amount": "brl"}).refusal is None

    @pytest.mark.parametrize("value", ["\ud800", float("nan")])
    def test_arguments_that_are_no_payload_are_an_error(self, value: Any) -> None:
        (rule,) = policy(asks()).data["rules"]
        args = {"amount": 5, "to": value}
        it = CallJudge(Call("bank", "pay", args, "a" * 64), "run-1", 0)
        for _ in range(2):
            with pytest.raises(NotJudged, match="the arguments cannot be the payload of an intent"):
                it("user", rule, args, Taint.SYSTEM)
        with pytest.raises(NotJudged, match="the arguments cannot be the payload of an intent"):
            it("user", rule, dict(args), Taint.SYSTEM)


class TestRewrites:
    @requirement("kernel-rule:rewrite")
    def test_the_arguments_of_a_rewrite_are_offered(self) -> None:
        said = ask({"brl": 5, "who": " me ", "x": 1}, payload={"amount": "brl", "to": "who"})
        assert said.refusal.hint.suggested_args == {"brl": 5, "who": "me", "x": 1}

    @pytest.mark.parametrize(
        ("fields", "payload", "mended"),
        [
            (None, {"a": 2}, {"a": 2}),
            (None, [1], None),
            ({"f": "a"}, {"f": 2}, {"a": 2, "b": 3}),
            ({"f": "a"}, {}, {"b": 3}),
            ({"f": "a"}, {"f": 2, "g": 1}, None),
            ({"f": "a", "g": "a"}, {"f": 2, "g": 3}, None),
        ],
    )
    def test_a_payload_goes_back_to_arguments_or_not_at_all(
        self, fields: dict[str, str] | None, payload: Any, mended: dict[str, Any] | None
    ) -> None:
        assert mended_args(fields, {"a": 1, "b": 3}, payload) == mended

    @requirement("kernel-rule:rewrite")
    def test_a_rewrite_is_offered_and_the_offer_passes(self, tmp_path: Path) -> None:
        host = host_in(tmp_path, policy(asks()))
        offered = begin(host, amount=5, to=" me ").decision
        assert offered.reason_code == ReasonCode.REWRITE_OFFERED
        assert offered.hint is not None
        assert offered.hint.suggested_args == {"amount": 5, "to": "me"}
        assert begin(host, **offered.hint.suggested_args).is_allowed
        host.close()

    @requirement("kernel-rule:rewrite")
    def test_arguments_that_the_pack_would_not_execute_are_not_offered(
        self, tmp_path: Path, code: Path
    ) -> None:
        forget_desk()
        write(code, DESK.replace('"to": to.strip()})', '"to": to + " "})'))
        host = host_in(tmp_path, policy(asks()))
        offered = begin(host, amount=5, to=" me ").decision
        assert offered.reason_code == ReasonCode.REWRITE_OFFERED
        assert offered.hint is not None
        assert offered.hint.suggested_args is None
        assert offered.hint.retry_advice == "do not retry this call unchanged"
        host.close()

    def test_a_rewrite_that_is_no_object_is_not_offered(self, code: Path) -> None:
        forget_desk()
        write(code, DESK.replace('{**envelope.payload, "to": to.strip()}', "[1]"))
        assert ask({"amount": 5, "to": " me "}).refusal.hint.suggested_args is None


class TestPacks:
    def test_an_installed_pack_is_known(self) -> None:
        known = find_pack("desk")
        assert isinstance(known, KnownPack)
        assert known.intents == ("desk.pay", "desk.open")
        assert known.state_problem({"limit": 1}) is None
        assert known.state_problem({}) == "KeyError: 'limit'"
        missing = find_pack("disk")
        assert isinstance(missing, UnknownPack)
        assert missing == ("pack `disk` is not installed", "did you mean `desk`?")

    def test_each_call_has_a_state_of_its_own(self) -> None:
        pack = loaded("desk").pack
        given = {"limit": 1}
        assert state_of(pack, given) is not state_of(pack, given)

    def test_an_interruption_is_not_a_problem_of_the_pack(self, code: Path) -> None:
        forget_desk()
        write(code, DESK.replace('int(state["limit"])', "(_ for _ in ()).throw(KeyboardInterrupt)"))
        with pytest.raises(KeyboardInterrupt):
            state_of(loaded("desk").pack, {"limit": 1})

    @requirement("kernel-rule:changed-pack")
    def test_a_pack_that_is_not_the_snapshots_decides_nothing(self, code: Path) -> None:
        (rule,) = policy(asks()).data["rules"]
        was = loaded("desk").fingerprint
        forget_desk()
        write(code, DESK.replace("That is too much.", "No."))
        now = loaded("desk").fingerprint
        with pytest.raises(PackMissing) as refused:
            judge({})("user", rule, {}, Taint.SYSTEM)
        told = str(refused.value)
        assert told == (
            f"the pack `desk` has changed: the policy was compiled with {was[:12]}, and this"
            f" process has {now[:12]}; restart the agent"
        )
        assert is_current({"desk": now})
        assert not is_current({"desk": was})

    @requirement("kernel-rule:changed-pack")
    def test_a_pack_that_was_removed_decides_nothing(self, code: Path) -> None:
        (rule,) = policy(asks()).data["rules"]
        forget_desk()
        code.unlink()
        with pytest.raises(PackMissing, match="pack `desk`"):
            judge({})("user", rule, {}, Taint.SYSTEM)
        assert not is_current({"desk": "x"})

    def test_a_state_that_no_longer_fits_is_an_error(self, code: Path) -> None:
        (rule,) = policy(asks()).data["rules"]
        rule["effect"]["kernel"]["state"] = {}
        with pytest.raises(NotJudged, match="cannot use its state: KeyError: 'limit'"):
            judge({})("user", rule, {}, Taint.SYSTEM)


class TestDoor:
    def test_the_decision_and_its_reasons_are_on_record(self, tmp_path: Path) -> None:
        host = host_in(tmp_path, policy(asks()))
        ruling = begin(host, amount=5000)
        assert ruling.decision.action is Action.BLOCK
        assert (ruling.decision.rule_id, ruling.decision.reason_code) == ("desk", "desk.too_much")
        passed = begin(host, amount=5)
        assert passed.is_allowed
        host.close()

        refused, allowed = kernel_of(tmp_path)
        assert refused["kind"] == "REFUSE"
        assert refused["refusal_code"] == "desk.too_much"
        assert refused["guard"] == "teller"
        assert refused["fingerprint"] == loaded("desk").fingerprint
        assert refused["basis"][-1] == "business:rule_satisfied"
        assert (allowed["kind"], allowed["taint"]) == ("EXECUTE", "UNTRUSTED")
        (first, _) = events(tmp_path, "tool_call_decision")
        assert first["decision"]["taint"] == "SYSTEM"

    def test_other_tools_ask_nobody(self, tmp_path: Path) -> None:
        host = host_in(tmp_path, policy(asks()))
        assert host.begin(tool_call("bank", "read"), b"{}").is_allowed
        host.close()
        assert kernel_of(tmp_path) == [None]

    @requirement("kernel-rule:ahead")
    def test_no_guard_runs_under_the_lock_of_the_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        enforcer = enforcer_in(tmp_path, policy(asks()))
        held: list[bool] = []
        real = judging.adjudicate_with_deadline
        state = enforcer.run.state

        def noted(*given: Any, **more: Any) -> Any:
            held.append(state.locked().held)
            return real(*given, **more)

        monkeypatch.setattr(judging, "adjudicate_with_deadline", noted)
        args = {"amount": 5, "to": " me "}
        enforcer.begin(tool_call("bank", "pay", **args), encode(args))
        assert held == [False, False], "the call, and what is suggested instead"

    def test_a_stopped_run_asks_no_pack(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        host = host_in(tmp_path, policy(asks()))
        host.open_run()
        enforcer = host._open["run-1"]
        with enforcer.run.state.locked():
            enforcer.run.state.terminate("X", "over")
        monkeypatch.setattr(judging, "adjudicate_with_deadline", None)
        assert begin(host, amount=5).decision.action is Action.TERMINATE_RUN
        host.close()

    def test_a_client_asks_its_own_person_for_a_confirmation_and_no_more(
        self, tmp_path: Path
    ) -> None:
        enforcer = enforcer_in(tmp_path, policy(asks()))
        state_dir = places({"SUB_HOME": str(tmp_path)}).state
        asked = Approvals(state_dir, enforcer.run, previewer(), client_asks=True)
        enforcer.gates = enforcer.gates._replace(open_approvals=lambda: asked)
        codes = {}
        for amount in (300, 150, 5000):
            args = {"amount": amount}
            ruling = enforcer.begin(tool_call("bank", "pay", **args), encode(args))
            codes[amount] = (ruling.is_allowed, ruling.decision.reason_code)
        assert codes == {
            300: (False, ReasonCode.HUMAN_REQUIRED),
            150: (True, ReasonCode.CLIENT_ASKED),
            5000: (False, "desk.too_much"),
        }

    @requirement("kernel-rule:ahead")
    def test_a_run_that_is_lowered_meanwhile_is_asked_about_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The level is read before the lock, and another shim lowers the run."""
        enforcer = enforcer_in(tmp_path, policy(asks()))
        state = enforcer.run.state
        held: list[bool] = []
        real = judging.adjudicate_with_deadline

        def lowering(*given: Any, **more: Any) -> Any:
            held.append(state.locked().held)
            if len(held) == 1:
                with state.locked():
                    state.taint.lower(2)
            return real(*given, **more)

        monkeypatch.setattr(judging, "adjudicate_with_deadline", lowering)
        args = {"amount": 5}
        ruling = enforcer.begin(tool_call("bank", "pay", **args), encode(args))
        assert held == [False, True]
        assert ruling.is_allowed

    def test_each_call_of_a_batch_is_asked_about(self, tmp_path: Path) -> None:
        host = host_in(tmp_path, policy(asks()))
        batch = [
            (tool_call("bank", "pay", amount=amount), encode({"amount": amount}))
            for amount in (5, 5000)
        ]
        first, second = host.begin_batch(batch)
        assert first.decision.reason_code == ReasonCode.BATCH_REFUSED
        assert second.decision.reason_code == "desk.too_much"
        host.close()

    def test_a_round_of_a_call_is_asked_about_again(self, tmp_path: Path) -> None:
        enforcer = enforcer_in(tmp_path, policy(asks()))
        args = {"amount": 5}
        ruling = enforcer.begin(tool_call("bank", "pay", **args), encode(args))
        assert begin_round(Round(ruling, 2, 10, encode(args)), 32)
        enforcer.engine = enforcer_in(tmp_path / "other", policy(asks(state={"limit": 0}))).engine
        assert not begin_round(Round(ruling, 3, 10, encode(args)), 32)
        assert ruling.decision.reason_code == "desk.too_much"

    def test_a_round_of_a_call_that_met_no_level(self, tmp_path: Path) -> None:
        """The first policy did not speak of it, the reloaded one asks a pack."""
        enforcer = enforcer_in(tmp_path, policy())
        args = {"amount": 5}
        ruling = enforcer.begin(tool_call("bank", "pay", **args), encode(args))
        enforcer.engine = enforcer_in(tmp_path / "other", policy(asks())).engine
        assert begin_round(Round(ruling, 2, 10, encode(args)), 32)

    @requirement("kernel-rule:changed-pack")
    def test_a_changed_pack_refuses_every_call_of_its_rule(
        self, tmp_path: Path, code: Path
    ) -> None:
        made = policy(asks())
        forget_desk()
        write(code, DESK.replace("That is too much.", "No."))
        host = host_in(tmp_path, made)
        for _ in range(2):
            refused = begin(host, amount=5)
            assert refused.decision.action is Action.BLOCK
            assert refused.decision.reason_code == ReasonCode.EVALUATION_ERROR
            assert "the pack `desk` has changed" in refused.decision.summary
            host.finish(refused, CallEnding(Status.OK, 0))
        host.close()
        assert kernel_of(tmp_path) == [None, None]
