"""The level of a run in policies: rules, matcher, checks, lint, diff, explain, cases, promote."""

from typing import Any

import msgspec
import pytest
from tests.policy.bundles import bundle, plain, rule, tools
from tests.requirements import requirement

from subluminal.canonical import args_hash
from subluminal.contracts.bundle import Match, TaintMatch
from subluminal.contracts.identity import Identity
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import Action, Layer, Taint
from subluminal.errors import SubluminalError
from subluminal.policy.case_running import run_case
from subluminal.policy.casefile import parse_cases
from subluminal.policy.checking import semantic_misfits
from subluminal.policy.compiling import bundle_of, compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.covering import covers
from subluminal.policy.diff.diffing import diff
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.policy.explaining import as_text, explain
from subluminal.policy.lint.linting import remarks
from subluminal.policy.promoting import RefusedCall, decide, refusing_rule
from subluminal.policy.snapshot import Snapshot
from subluminal.policy.taint import level_in, lowering_to, rank_in

SYSTEM, TRUSTED, UNTRUSTED = Taint


def on(server: str) -> dict[str, Any]:
    return {"server_name": {"glob": [server]}}


WEB = rule("taint", "web", match=on("web"))
MILD = rule("taint", "mild", match=on("web"), lower_to="TRUSTED")
EXEMPT = rule("taint", "exempt", match=on("web"), lower_to="SYSTEM")
SEND = rule("deny", "send", match={**tools("send"), "taint": {"below": "TRUSTED"}})


def policy(*rules: dict[str, Any], **changes: Any) -> Snapshot:
    return compile_bundle(bundle(*rules, **changes))


class Run:
    """One run under some layers."""

    def __init__(self, *layers: Snapshot, level: Taint = SYSTEM) -> None:
        self.engine = Engine(list(zip(Layer, layers, strict=False)), Identity())
        self.counters = MemoryCounters()
        self.counters.write(lowering_to(level))

    def call(self, server: str, tool: str, **more: Any) -> Evaluation:
        asked = Call(server, tool, more.pop("args", {}), args_hash({}), **more)
        found = self.engine.evaluate(asked, self.counters, wall_ms=0, mono_ms=0)
        self.counters.write(found.updates)
        return found

    @property
    def level(self) -> Taint:
        return level_in(self.counters.read)


def test_a_forwarded_call_lowers_the_run_and_a_deny_meets_it():
    run = Run(policy(WEB, SEND))
    assert run.call("mail", "send").forwarded
    found = run.call("web", "fetch")
    assert found.forwarded
    assert found.lowered_by == "web"
    assert run.level is UNTRUSTED
    assert not run.call("mail", "send").forwarded
    assert run.call("mail", "read").lowered_by is None


def test_the_level_is_that_before_the_call():
    both = rule("taint", "send-lowers", match=tools("send"))
    run = Run(policy(both, SEND))
    assert run.call("mail", "send").forwarded
    assert not run.call("mail", "send").forwarded


@pytest.mark.parametrize(
    ("first", "second", "level"),
    [(MILD, WEB, TRUSTED), (WEB, MILD, UNTRUSTED), (EXEMPT, WEB, SYSTEM)],
)
def test_the_first_rule_counts_in_a_layer(first: Any, second: Any, level: Taint):
    run = Run(policy(first, second))
    run.call("web", "fetch")
    assert run.level is level


def test_over_layers_the_lowest_counts():
    run = Run(policy(EXEMPT), policy(MILD, policy_id="b"), policy(WEB, policy_id="c"))
    assert run.call("web", "fetch").lowered_by == "web"
    assert run.level is UNTRUSTED


def test_a_level_never_rises_by_itself():
    run = Run(policy(MILD), level=UNTRUSTED)
    run.call("web", "fetch")
    assert run.level is UNTRUSTED
    run.counters.raise_to(0)
    assert run.level is SYSTEM


def test_an_exemption_needs_every_target():
    """`curl ours; curl theirs` is not exempt because one of the hosts is ours."""
    targets = {"targets": {"host": {"glob": ["ours"]}}}
    exempt = rule("taint", "ours", match=targets, lower_to="SYSTEM")
    theirs = rule("taint", "theirs", match={"targets": {"host": {"glob": ["*"]}}})
    run = Run(policy(exempt, theirs))
    run.call("@claude", "Bash", targets=Targets(hosts=["ours"]))
    assert run.level is SYSTEM
    run.call("@claude", "Bash", targets=Targets(hosts=["ours", "theirs"]))
    assert run.level is UNTRUSTED


def test_arguments_that_were_not_read_count_against_the_call():
    keyed = rule("taint", "keyed", match={"args": {"has_keys": ["url"]}})
    run = Run(policy(keyed, defaults={"decision_on_error": "ALLOW"}))
    assert run.call("web", "fetch", args=None).forwarded
    assert run.level is UNTRUSTED
    spared = Run(
        policy(
            rule("taint", "spared", match={"args": {"has_keys": ["url"]}}, lower_to="SYSTEM"),
            defaults={"decision_on_error": "ALLOW"},
        )
    )
    spared.call("web", "fetch", args=None)
    assert spared.level is SYSTEM


def test_a_rule_that_is_passed_over_needs_no_arguments():
    """Explain said `passed over`, and the call was refused by `decision_on_error`."""
    keyed = rule("taint", "keyed", match={"args": {"has_keys": ["url"]}})
    run = Run(policy(WEB, keyed))
    assert run.call("web", "fetch", args=None).forwarded
    assert not run.call("files", "read", args=None).forwarded


def test_a_call_that_no_rule_judged_lowers_as_far_as_its_names_allow():
    engine = Run(policy(WEB, rule("taint", "t", match=tools("t"), lower_to="TRUSTED"))).engine
    assert engine.unjudged("web", "x") is UNTRUSTED
    assert engine.unjudged("s", "t") is TRUSTED
    assert engine.unjudged("s", "x") is SYSTEM
    assert engine.unjudged("s", None) is UNTRUSTED
    assert engine.unjudged("s", "\ud800") is UNTRUSTED
    assert Run().engine.unjudged("s", None) is SYSTEM


def test_resources_follow_rules_that_name_servers_only():
    tool_rule = rule("taint", "tool", match={**on("web"), **tools("fetch")})
    engine = Run(policy(tool_rule, MILD, WEB), policy(rule("tag", "t"), policy_id="b")).engine
    assert engine.read_from("web") == (TRUSTED, "mild")
    assert engine.read_from("files") == (SYSTEM, None)
    assert engine.read_from("\ud800") == (UNTRUSTED, None)
    assert Run(policy(tool_rule)).engine.read_from("web") == (SYSTEM, None)
    assert Run().engine.read_from("web") == (SYSTEM, None)


def test_only_policies_that_speak_of_the_level_ask_for_it():
    assert not Run(policy(rule("tag", "t"))).engine.asks_taint
    assert Run(policy(WEB)).engine.asks_taint
    assert Run(policy(SEND)).engine.asks_taint
    lowered = policy(defaults={"decision_on_error": "BLOCK", "taint": "TRUSTED"})
    assert Run(lowered).engine.asks_taint
    assert Run(lowered).engine.start is TRUSTED
    assert not Run(
        policy(defaults={"decision_on_error": "BLOCK", "taint": "SYSTEM"})
    ).engine.asks_taint
    assert Run(policy(WEB, SEND)).engine.tests_taint("send")
    assert not Run(policy(WEB, SEND)).engine.tests_taint("web")
    assert not Run(policy(WEB, SEND)).engine.tests_taint(None)


def test_a_rank_beyond_the_levels_is_the_lowest():
    assert rank_in(lambda _kind, _key: (99,)) == 2


def test_policies_without_it_keep_their_hash_and_format():
    assert policy(rule("deny")).data["format"] == 1
    assert "taint" not in policy(rule("deny")).data["defaults"]
    disabled = policy({**WEB, "enabled": False})
    assert disabled.data["format"] == 1
    for speaking in (
        policy(WEB),
        policy(SEND),
        policy(defaults={"decision_on_error": "BLOCK", "taint": "TRUSTED"}),
    ):
        assert speaking.data["format"] == 3
        assert compile_bundle(bundle_of(speaking)).policy_hash == speaking.policy_hash
        assert Snapshot.from_json(speaking.to_json()).policy_hash == speaking.policy_hash


@requirement("taint:below-untrusted")
def test_below_untrusted_is_an_error():
    wrong = bundle(rule("deny", match={"taint": {"below": "UNTRUSTED"}}))
    (misfit,) = semantic_misfits(wrong)
    assert misfit.path == ("rules", 0, "match", "taint", "below")
    assert misfit.message == "no level is below UNTRUSTED"


def test_covering():
    trusted, system = (Match(taint=TaintMatch(below=each)) for each in (TRUSTED, SYSTEM))
    assert covers(Match(), trusted)
    assert not covers(trusted, Match())
    assert covers(system, trusted)
    assert not covers(trusted, system)


@requirement("taint:lint")
@pytest.mark.parametrize(
    ("rules", "changes", "words"),
    [
        (
            [SEND],
            {},
            ["no enabled taint rule, and no `defaults.taint`, lowers a run below TRUSTED"],
        ),
        ([MILD, SEND], {}, ["no enabled taint rule"]),
        ([WEB, SEND], {}, []),
        ([SEND], {"defaults": {"decision_on_error": "BLOCK", "taint": "UNTRUSTED"}}, []),
        ([WEB], {}, ["lowers the run, and no enabled rule"]),
        ([WEB, MILD, SEND], {}, ["taint rule `web` above matches every call"]),
        ([{**WEB, "enabled": False}], {}, []),
        (
            [
                rule("taint", "x", match={"targets": {"opaque": True}}, lower_to="SYSTEM"),
                WEB,
                SEND,
            ],
            {},
            ["can never match: an exemption"],
        ),
    ],
)
def test_lint(rules: list[Any], changes: Any, words: list[str]):
    about = ("taint", "lowers the run", "exemption")
    found = [
        each.misfit.message
        for each in remarks(bundle(*rules, **changes), plain(*rules, **changes))
        if each.severity == "warning" and any(word in each.misfit.message for word in about)
    ]
    assert len(found) == len(words)
    for message, word in zip(found, words, strict=True):
        assert word in message


def told(old: list[Any], new: list[Any], **changes: Any) -> list[tuple[str, str]]:
    before, after = changes.pop("before", {}), changes.pop("after", {})
    found = diff(bundle(*old, **before), bundle(*new, **after))
    return [(str(change.severity), change.summary) for change in found]


BLOCK = {"decision_on_error": "BLOCK"}


@requirement("taint:diff")
@pytest.mark.parametrize(
    ("old", "new", "severity", "words"),
    [
        ([], [WEB], "warn", "added (taint)"),
        ([WEB], [], "critical", "removed (taint)"),
        ([], [EXEMPT], "critical", "added (taint)"),
        ([EXEMPT], [], "warn", "removed (taint)"),
        ([WEB], [EXEMPT, WEB], "critical", "added (taint): it comes before `web`"),
        ([EXEMPT, WEB], [WEB], "warn", "removed (taint): it comes before `web`"),
        ([WEB], [MILD, WEB], "critical", "added (taint): it comes before `web`"),
        ([MILD, WEB], [WEB], "critical", "removed (taint)"),
        ([WEB], [{**MILD, "rule_id": "web"}], "critical", "lower_to changed"),
        ([{**MILD, "rule_id": "web"}], [WEB], "warn", "lower_to changed"),
        ([WEB, MILD], [MILD, WEB], "critical", "moved above `web`, which lowers further"),
        ([MILD, WEB], [WEB, MILD], "warn", "moved above `mild`, which lowers less"),
        ([WEB], [{**WEB, "rule_id": "w"}], "info", "renamed from `web`"),
        ([WEB], [{**WEB, "match": {}}], "warn", "match widened"),
        ([{**WEB, "match": {}}], [WEB], "critical", "match narrowed"),
    ],
)
def test_less_lowering_is_critical(old: Any, new: Any, severity: str, words: str):
    (change,) = told(old, new)
    assert change[0] == severity
    assert change[1].startswith(words)


@requirement("taint:diff")
@pytest.mark.parametrize(
    ("was", "now", "severity"),
    [
        ("UNTRUSTED", "TRUSTED", "critical"),
        ("TRUSTED", "UNTRUSTED", "warn"),
        ("TRUSTED", None, "critical"),
    ],
)
def test_a_higher_start_is_critical(was: str, now: str | None, severity: str):
    before = {"defaults": {**BLOCK, "taint": was}}
    after = {"defaults": {**BLOCK, **({"taint": now} if now else {})}}
    (change,) = told([], [], before=before, after=after)
    assert change[0] == severity
    assert change[1].startswith("taint changed from")


def test_a_written_default_start_changes_nothing():
    assert told([], [], after={"defaults": {**BLOCK, "taint": "SYSTEM"}}) == []


def test_explain_shows_the_level():
    written = policy(WEB, {**WEB, "rule_id": "again"}, SEND)
    found = explain(written, Identity(), ("web", "fetch", {}), wall_ms=0)
    assert found.plain()["taint"] == {"before": "SYSTEM", "after": "UNTRUSTED"}
    assert "  the run is SYSTEM before this call, and UNTRUSTED after it" in as_text(found)
    assert [(step.result, step.note) for step in found.steps][:2] == [
        ("matched", "lowers the run to UNTRUSTED"),
        ("passed over", "a taint rule above matched"),
    ]
    exempt = rule("taint", "own", lower_to="SYSTEM")
    (step,) = explain(policy(exempt), Identity(), ("web", "fetch", {}), wall_ms=0).steps
    assert step.note == "exempts the call"
    sent = explain(written, Identity(), ("mail", "send", {}), wall_ms=0, taint=UNTRUSTED)
    assert not any("counter" in line for line in as_text(sent))
    sent = explain(written, Identity(), ("mail", "send", {}), wall_ms=0)
    assert sent.steps[2].clause == "taint"
    assert "  the run is SYSTEM before this call" in as_text(sent)
    refused = explain(written, Identity(), ("mail", "send", {}), wall_ms=0, taint=UNTRUSTED)
    assert refused.evaluation.decision.action is Action.BLOCK
    silent = explain(policy(), Identity(), ("mail", "send", {}), wall_ms=0)
    assert silent.plain()["taint"] is None


CASE = b"""
bundle: p.yaml
taint: TRUSTED
calls:
  - {server: mail, tool: send, want: {action: ALLOW, taint: TRUSTED}}
  - {server: web, tool: fetch, want: {taint: UNTRUSTED}}
  - {server: mail, tool: send, want: {action: ALLOW, taint: SYSTEM}}
"""


@requirement("taint:cases")
def test_cases_start_with_a_level_and_compare_it():
    (loaded,) = parse_cases(CASE, "cases.yaml")
    result = run_case(loaded, [(Layer.REPOSITORY, policy(WEB, SEND))])
    (failure,) = result.failures
    assert failure.call == 3
    assert [(each.field, each.wanted, each.got) for each in failure.differences] == [
        ("action", "ALLOW", "BLOCK"),
        ("taint", "SYSTEM", "UNTRUSTED"),
    ]


def test_a_case_names_a_level_that_exists():
    with pytest.raises(SubluminalError, match="unknown value `LOW`"):
        parse_cases(CASE.replace(b"taint: UNTRUSTED", b"taint: LOW"), "cases.yaml")


def test_promote_decides_at_the_level_of_the_record():
    written = policy(WEB, SEND)
    call = RefusedCall("mail", "send", {}, Identity(), 0)
    assert decide(written, call).action is Action.ALLOW
    assert decide(written, call._replace(taint=UNTRUSTED)).action is Action.BLOCK


def test_a_taint_rule_refuses_nothing_that_could_be_promoted():
    with pytest.raises(SubluminalError, match="of kind `taint`"):
        refusing_rule(bundle(WEB), "web", None)


def test_a_suggestion_is_judged_at_the_same_level():
    """Arguments that only a TRUSTED run may use are not suggested to an UNTRUSTED one."""
    fix = rule(
        "deny",
        "fix",
        match={**tools("send"), "args": {"key_equals": {"to": "all"}}},
        suggest={"to": {"set": "team"}},
        action="REJECT_WITH_HINT",
    )
    team = rule(
        "deny",
        "team",
        match={"args": {"key_equals": {"to": "team"}}, "taint": {"below": "TRUSTED"}},
    )
    for level, offered in ((SYSTEM, {"to": "team"}), (UNTRUSTED, None)):
        hint = (
            Run(policy(fix, team), level=level).call("m", "send", args={"to": "all"}).decision.hint
        )
        assert hint is not None
        assert hint.suggested_args == offered


def test_the_words_are_strict():
    with pytest.raises(msgspec.ValidationError):
        bundle(rule("taint", lower_to="LOW"))
    with pytest.raises(msgspec.ValidationError):
        bundle(rule("deny", match={"taint": {"above": "TRUSTED"}}))
