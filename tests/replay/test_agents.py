"""Replay of policies that ask who acts, from runs that the real enforcer recorded."""

import msgspec
import pytest
from tests.adapters.policies import rule, snapshot
from tests.adapters.records import calls_of, events_of
from tests.hosts import enforcer_in
from tests.ledger.home import Home
from tests.replay.stage import Stage
from tests.requirements import requirement

from subluminal.canonical import args_hash, encode
from subluminal.contracts.agents import AgentFacts, AgentResolved, Claims, Proof
from subluminal.contracts.call import BUILT_IN, MCP, Given, ToolCall
from subluminal.contracts.events import AgentResolvedAgain
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Env, Layer, ProofKind, Transport, TrustLevel
from subluminal.ledger.query.recorded_agents import agent_of
from subluminal.ledger.query.recorded_runs import RunReader
from subluminal.ledger.query.replaying import LedgerReplay, backtest
from subluminal.policy.evaluation import Engine
from subluminal.policy.replay.comparing import Doubt
from subluminal.policy.replay.recorded import RecordedAgent, recorded_agent
from subluminal.policy.replay.recorded_given import given_on_record, provider_of

USER = Layer.USER
SECRET = "ghp_" + "aB3d" * 9
EMPTY = snapshot()


def deny(rule_id="no", tool=None, **match):
    names = {} if tool is None else {"tool_name": {"glob": [tool]}}
    effect = {"action": "BLOCK", "reason_code": "NO", "message": "no"}
    return rule(rule_id, "deny", effect, **names, **match)


def resolved(**changes):
    fields = {
        "agent_id": "fixer",
        "environment": "staging",
        "registered": True,
        "agent_type": "pr_agent",
        "trust_level": TrustLevel.VERIFIED,
        "trust_after_denials": TrustLevel.BASIC,
        "roles": ["fix"],
        "delegation_depth": 0,
        "proof": Proof(kind=ProofKind.LAUNCHED),
    }
    return AgentResolved(**{**fields, **changes})


def resolve(shim, layers, agent, seq=0):
    """Puts facts in force and on record, as a run does."""
    facts = recorded_agent(agent)
    identity = msgspec.structs.replace(shim.run.identity, environment=agent.environment)
    shim.engine = Engine(layers, identity, agent=facts.facts)
    shim.run.emit(AgentResolvedAgain, agent=agent, seq=seq)


def changes(rows):
    return [row.change.value for row in rows]


def say(stage, shim, tool="put", **given):
    provider = given.pop("provider", MCP)
    stage.clock.go(1)
    call = ToolCall(
        server_name="git",
        tool_name=tool,
        args={},
        args_hash=args_hash({}),
        bytes_in=2,
        transport=Transport.IN_PROCESS,
        provider=provider,
        given=Given(**given) if given else None,
    )
    return shim.begin(call, encode({}))


@requirement("trust:replay-facts")
def test_facts_come_from_the_record_and_hold_from_there_on(stage: Stage):
    layers = [(USER, snapshot(deny(trust_level_min="verified", environment=["staging"])))]
    shim = stage.shim(layers)
    resolve(shim, layers, resolved())
    stage.call(shim, "a", {})
    resolve(shim, layers, resolved(trust_level=TrustLevel.BASIC), seq=1)
    stage.call(shim, "b", {})
    rows, _ = stage.replay(layers[0][1])
    assert [row.call.decision.said.action for row in rows] == ["BLOCK", "ALLOW"]
    assert changes(rows) == ["same", "same"]
    again = LedgerReplay(stage.home.reader(), snapshot(deny(trust_level_min="basic")))
    assert changes(list(again.rows())) == ["same", "newly_blocked"]


@requirement("trust:replay-facts")
def test_without_facts_only_calls_of_which_a_rule_asks_are_undetermined(stage: Stage):
    shim = stage.shim([(USER, EMPTY)], Identity(env=Env.CI))
    for tool in ("put", "get"):
        stage.call(shim, tool, {})
    rows, _ = stage.replay(snapshot(deny(registered=False, tool="put")))
    assert changes(rows) == ["undetermined", "same"]
    assert rows[0].doubt is Doubt.AGENT
    by_env = LedgerReplay(stage.home.reader(), snapshot(deny(environment=["ci"], tool="put")))
    assert changes(list(by_env.rows())) == ["newly_blocked", "same"]


def test_an_environment_of_another_name_is_not_in_old_records(stage: Stage):
    shim = stage.shim([(USER, EMPTY)], Identity(env=Env.UNKNOWN))
    stage.call(shim, "put", {})
    rows, _ = stage.replay(snapshot(deny(environment=["staging"])))
    assert [(row.change, row.doubt) for row in rows] == [("undetermined", Doubt.AGENT)]


def test_refusals_in_a_row_are_counted_again(stage: Stage):
    own = snapshot(
        deny("rm", tool="rm"),
        rule(
            "ok",
            "allow",
            {"action": "ALLOW", "reason_code": "OK", "message": "m"},
            trust_level_min="verified",
        ),
        deny("else"),
    )
    layers = [(USER, own)]
    first, second = stage.shim(layers), stage.shim(layers)
    for shim in (first, second):
        resolve(shim, layers, resolved())
    actions = []
    for number in range(9):
        shim = (first, second)[number % 2]  # both shims count together
        tool = "rm" if number < 4 else "put"
        actions.append(stage.call(shim, tool, {}).is_allowed)
    assert actions == [False] * 9
    rows, _ = stage.replay(own)
    assert changes(rows) == ["same"] * 9
    assert [row.now.rule_id for row in rows] == ["rm"] * 4 + ["else"] * 5


@requirement("trust:given-on-record", "trust:replay-facts")
def test_what_a_program_said_is_replayed(stage: Stage):
    own = snapshot(
        deny("labels", data_labels_any=["pii"]),
        deny("context", context={"key_equals": {"ticket": "T1"}}),
        deny("provider", tool_provider=["langchain"]),
        deny("claims", environment=["prod"]),
    )
    shim = stage.shim([(USER, own)], Identity(env=Env.CI))
    said = [
        {"labels": frozenset({"pii", "x"})},
        {"context": {"ticket": "T1", "more": [1]}},
        {"provider": "langchain"},
        {"claims": Claims(environment="prod")},
        {"claims": Claims(environment="dev"), "context": {"ticket": "T2"}},
    ]
    for given in said:
        say(stage, shim, **given)
    rows, _ = stage.replay(own)
    assert changes(rows) == ["same"] * 5
    assert [row.now.rule_id for row in rows] == ["labels", "context", "provider", "claims", None]


@pytest.mark.parametrize(
    ("given", "candidate", "doubt"),
    [
        ({"labels": frozenset({SECRET})}, deny(data_labels_any=["pii"]), Doubt.GIVEN),
        ({"labels": frozenset({SECRET})}, deny(tool="other", data_labels_any=["pii"]), None),
        ({"context": {"a": SECRET}}, deny(context={"has_keys": ["a"]}), Doubt.GIVEN),
        ({"context": {"a": SECRET}}, deny(context={"has_keys": ["b"]}), None),
        ({"context": {"a": "x" * 99_000}}, deny(context={"has_keys": ["a"]}), Doubt.GIVEN),
        ({"claims": Claims(roles=(SECRET,))}, deny(agent_roles_any=["x"]), Doubt.GIVEN),
        ({"user_input": "rm -rf"}, deny(text={"any_of": ["rm"]}), Doubt.GIVEN),
    ],
)
def test_what_the_record_hides_is_undetermined_where_a_rule_asks(stage, given, candidate, doubt):
    layers = [(USER, EMPTY)]
    shim = stage.shim(layers)
    resolve(shim, layers, resolved())
    say(stage, shim, **given)
    rows, _ = stage.replay(snapshot(candidate))
    assert [row.doubt for row in rows] == [doubt]
    stage_rows = backtest(stage.home.reader(), snapshot(candidate), EMPTY)
    assert stage_rows.calls == 1


def test_previews_that_are_off_hide_the_context(stage: Stage):
    shim = stage.shim([(USER, EMPTY)], record="off")
    say(stage, shim, context={"a": 1}, labels=frozenset({"pii"}))
    rows, _ = stage.replay(
        snapshot(deny("a", context={"has_keys": ["a"]}), deny("b", data_labels_any=["pii"]))
    )
    assert [row.doubt for row in rows] == [Doubt.GIVEN]


class TestRecord:
    """What stands in the event, through a real enforcer."""

    def started(self, home, provider=MCP, given=None):
        enforcer = enforcer_in(home)
        call = ToolCall(
            server_name="s",
            tool_name="t",
            args={},
            args_hash=args_hash({}),
            bytes_in=2,
            transport=Transport.IN_PROCESS,
            provider=provider,
            given=given,
        )
        enforcer.begin(call, b"{}")
        enforcer.flush()
        enforcer.run.leave()
        enforcer.run.close()
        ((start, *_),) = calls_of(events_of(home))
        return start["call"]

    def test_nothing_is_written_for_an_mcp_server(self, own_home):
        assert not {"provider", "given"} & self.started(own_home).keys()

    @requirement("trust:given-on-record")
    def test_secrets_are_masked_and_the_users_text_is_a_hash(self, own_home):
        given = Given(
            labels=frozenset({"b", "a"}),
            context={"key": SECRET, "n": 1},
            user_input=f"use {SECRET}",
            claims=Claims(environment=SECRET, agent_type="x", roles=("r", SECRET)),
        )
        call = self.started(own_home, f"x {SECRET}", given)
        text = msgspec.json.encode(call).decode()
        assert SECRET not in text
        assert call["given"]["labels"] == ["a", "b"]
        assert call["given"]["redacted"] == ["context", "claims"]
        assert call["given"]["claims"]["agent_type"] == "x"
        assert len(call["given"]["user_input_hash"]) == 64

    def test_a_context_without_a_json_form_is_left_out(self, own_home):
        call = self.started(own_home, BUILT_IN, Given(context={"a": object()}))
        assert call["given"] == {}
        assert call["provider"] == "built-in"


class TestReading:
    def test_a_given_that_this_version_cannot_read_hides_everything(self):
        given, hidden = given_on_record(b'{"labels": 5}')
        assert given.labels == frozenset()
        assert {"data_labels_any", "environment", "registered", "text"} <= hidden

    def test_nothing_was_said(self):
        assert given_on_record(b"") == (None, frozenset())

    @pytest.mark.parametrize(
        ("told", "transport", "server", "provider"),
        [
            (None, "mcp_stdio", "git", MCP),
            (None, "agent_hook", "@claude", BUILT_IN),
            (None, "in_process", "kyc", BUILT_IN),
            ("langchain", "in_process", "kyc", "langchain"),
        ],
    )
    def test_earlier_versions_did_not_record_the_provider(self, told, transport, server, provider):
        assert provider_of(told, transport, server) == provider

    def test_facts_of_run_start_and_facts_that_cannot_be_read(self, home: Home):
        agent = msgspec.to_builtins(resolved())
        bodies = [
            ("run_start", {"run": {"agent": agent}}),
            ("agent_resolved", {"agent": {"trust_level": "divine"}, "seq": 3}),
            ("agent_resolved", {"agent": {**agent, "roles": []}, "seq": 5}),
            ("run_start", {"run": {}}),
        ]
        lines = [
            msgspec.json.encode({"type": kind, "ts": "2026-01-01T00:00:00.000Z", **body})
            for kind, body in bodies
        ]
        connection = home.store.connection
        connection.execute("INSERT INTO shims VALUES (99, 'other', 'theirs', 1, 9, x'00', NULL)")
        connection.execute(
            "INSERT INTO segments VALUES (99, 99, 1, 9, 999, x'00', x'00', 0, 0, ?)",
            (b"\n".join(lines),),
        )
        found = list(RunReader(home.reader()).items("theirs"))
        facts = AgentFacts(
            registered=True,
            agent_type="pr_agent",
            trust_level=TrustLevel.VERIFIED,
            trust_after_denials=TrustLevel.BASIC,
            roles=("fix",),
        )
        assert found == [
            RecordedAgent("staging", facts),
            RecordedAgent("staging", msgspec.structs.replace(facts, roles=())),
        ]

    def test_the_facts_of_one_call(self, stage: Stage):
        layers = [(USER, EMPTY)]
        shim = stage.shim(layers)
        connection = stage.home.reader
        stage.call(shim, "a", {})
        resolve(shim, layers, resolved(), seq=1)
        stage.call(shim, "b", {})
        resolve(shim, layers, resolved(environment="prod"), seq=2)
        stage.call(shim, "c", {})
        stage.close_shims()
        found = [agent_of(connection(), "run", seq) for seq in (1, 2, 3)]
        assert [None if each is None else each.environment for each in found] == [
            None,
            "staging",
            "prod",
        ]

    def test_facts_in_damaged_segments_are_not_on_record(self, home: Home):
        connection = home.store.connection
        connection.execute("INSERT INTO shims VALUES (99, 'other', 'theirs', 1, 9, x'00', NULL)")
        connection.execute(
            "INSERT INTO segments VALUES (99, 99, 1, 9, 999, x'00', x'00', 0, 0, ?)",
            (b'{"type": 5, "x": "run_start"}',),
        )
        assert agent_of(home.reader(), "theirs", 9) is None
