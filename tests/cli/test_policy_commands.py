"""`sub policy …` as its users meet it: exit code, stdout, stderr. No traceback, whatever the input."""

import json
import os
from pathlib import Path

import pytest
from tests.policy.bundles import plain, rule, text, tools

from subluminal.canonical import digest

EXAMPLES = Path(__file__).parents[2] / "examples" / "policies"
POLICIES = [
    path
    for path in sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("*.json")])
    if ".cases." not in path.name
]


class Answer:
    """What a command said."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        assert "Traceback" not in out + err
        assert code != 70

    @property
    def rows(self) -> list[dict]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def sub(sub, tmp_path, monkeypatch):
    """Runs `sub policy …` in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: bytes = b"") -> Answer:
        return Answer(*sub("policy", *words, stdin=stdin))

    return run


@pytest.fixture
def write(tmp_path):
    """Writes a bundle or text into the directory."""

    def put(name: str, *rules: dict, body: str | None = None, **changes) -> str:
        data = body.encode() if body is not None else text(*rules, **changes)
        (tmp_path / name).write_bytes(data)
        return name

    return put


# lint


def test_lint_is_content_with_a_sound_policy(sub, write):
    answer = sub("lint", write("p.json", rule("deny")))
    assert (answer.code, answer.out, answer.err) == (0, "", "1 file: no problems\n")


def test_lint_tells_place_message_and_hint_and_fails(sub, write):
    body = "\n".join(["policy_id: p", 'version: "1"', "mode: guard", "defaults: {decision_on_error: BLOCK}", "selectors: {}", "rules: []"])  # fmt: skip
    answer = sub("lint", write("p.yaml", body=body))
    assert answer.code == 1
    assert answer.out == (
        "p.yaml:3:7: error: `mode`: unknown value `guard`\n  hint: did you mean `guardrails`?\n"
    )
    assert answer.err == "1 file: 1 error\n"


def test_lint_warnings_fail_only_when_strict(sub, write):
    name = write("p.json", rule("allow"), rule("deny"))
    assert sub("lint", name).code == 0
    assert sub("lint", "--strict", name).code == 1


def test_lint_notes_never_fail(sub, write):
    answer = sub("lint", "--strict", write("p.json", rule("deny", enabled=False)))
    assert (answer.code, answer.err) == (0, "1 file: 1 note\n")


def test_lint_prints_one_object_a_problem(sub, write):
    one, two = write("a.json", rule("pin")), write("b.json", rule("allow"), rule("deny"))
    answer = sub("lint", "--json", one, two)
    assert [(row["file"], row["severity"]) for row in answer.rows] == [
        ("a.json", "error"),
        ("b.json", "warning"),
    ]
    assert set(answer.rows[0]) == {"file", "line", "column", "severity", "message", "hint"}


def test_lint_reads_stdin_and_snapshots(sub, write):
    answer = sub("lint", "-", stdin=b"x: 1")
    assert answer.code == 1
    assert answer.out.startswith("<stdin>:1:1: error: ")
    sub("compile", write("p.json", rule("deny")), "-o", "s.json")
    assert sub("lint", "s.json").code == 0


def test_hostile_text_does_not_reach_the_terminal(sub, write):
    answer = sub("lint", write("p.json", rule("deny", "\x1b[31m\u202e", action="ALLOW")))
    assert answer.code == 1
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out


# compile


def test_compile_prints_the_snapshot_with_its_hash(sub, write):
    answer = sub("compile", write("p.json", rule("deny")))
    (snapshot,) = answer.rows
    assert len(snapshot["policy_hash"]) == 64
    assert snapshot["rules"][0]["effect"]["require"] is None


def test_compile_of_a_snapshot_gives_it_back(sub, write, tmp_path):
    assert sub("compile", write("p.json", rule("deny")), "-o", "s.json").out == ""
    assert (tmp_path / "s.json").stat().st_mode & 0o777 == 0o644
    assert sub("compile", "s.json").out == (tmp_path / "s.json").read_text()


def test_compile_writes_nothing_when_the_bundle_is_broken(sub, write, tmp_path):
    (tmp_path / "s.json").write_text("old")
    answer = sub("compile", write("p.json", rule("pin")), "-o", "s.json")
    assert answer.code == 2
    assert (tmp_path / "s.json").read_text() == "old"


@pytest.mark.parametrize("target", ["nowhere/s.json", "there"])
def test_compile_says_what_it_cannot_write(sub, write, tmp_path, target):
    (tmp_path / "there").mkdir()
    answer = sub("compile", write("p.json", rule("deny")), "-o", target)
    assert answer.code == 2
    assert answer.err.startswith(f"error: cannot write `{target}`: ")
    assert sorted(os.listdir(tmp_path)) == ["p.json", "there"]


# explain


def test_explain_shows_the_decision_and_its_steps(sub, write):
    name = write("p.json", rule("allow", match=tools("x")), rule("budget", limit_calls=1))
    answer = sub("explain", "--policy", name, "--server", "s", "--tool", "t", "--repeat", "2")
    assert answer.code == 0
    assert answer.out.splitlines() == [
        "BLOCK by rule `budget` (BUDGET_EXCEEDED, warn)",
        "  the budget of 1 call in this run is spent",
        "",
        "rules, in order:",
        "    1. allow (allow): no match: `tool_name` does not match",
        "    2. budget (budget): matched, BLOCK (the budget of 1 call in this run is spent); counter [1, 1] -> [2, 2]",
    ]


def test_explain_json_has_decision_and_steps(sub, write):
    name = write("p.json", rule("deny", match={"args": {"key_equals": {"n": 1}}}))
    (row,) = sub("explain", "--policy", name, "--server", "s", "--tool", "t", "--args", '{"n":1.0}', "--json").rows  # fmt: skip
    assert row["decision"]["action"] == "BLOCK"
    assert row["steps"][0]["result"] == "matched"


def test_explain_asks_for_this_identity_and_time(sub, write):
    selectors = {
        "env": ["ci"],
        "agent_id": ["a"],
        "client": ["codex"],
        "workload": {"branch": ["b"]},
    }
    name = write("p.json", rule("deny", match={"time": {"weekdays": ["sat"]}}), selectors=selectors)
    who = ["--env", "ci", "--agent-id", "a", "--client", "codex", "--principal", "me", "--workload", '{"branch":"b"}']  # fmt: skip
    call = ["explain", "--policy", name, "--server", "s", "--tool", "t"]
    assert "POLICY_NOT_APPLICABLE" in sub(*call).out
    assert sub(*call, *who, "--at", "2026-01-31T09:00:00Z").out.startswith("BLOCK")
    assert sub(*call, *who, "--at", "2026-01-30T09:00:00Z").out.startswith("ALLOW")


def test_explain_takes_a_snapshot(sub, write):
    sub("compile", write("p.json", rule("deny")), "-o", "s.json")
    assert sub("explain", "--policy", "s.json", "--server", "s", "--tool", "t").out.startswith(
        "BLOCK"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--args", "[]"], "`--args` must be a JSON object"),
        (["--args", '{"a":1,"a":2}'], "`--args`: duplicate key 'a'"),
        (["--args", "{"], "`--args`: not JSON"),
        (["--args", '"\udcff"'], "`--args`: "),
        (["--workload", '{"brnch":1}'], "`--workload`: unknown field `brnch`"),
        (["--at", "noon"], "`--at`: `noon` is not a time with a time zone"),
        (["--repeat", "0"], "`--repeat` must be between 1 and 10000"),
        (["--client", "moon"], "argument --client"),
    ],
)
def test_explain_refuses_what_it_cannot_read(sub, write, words, message):
    answer = sub("explain", "--policy", write("p.json"), "--server", "s", "--tool", "t", *words)
    assert answer.code == 2
    assert answer.err.startswith(f"error: {message}")
    assert "hint: " in answer.err or "--repeat" in answer.err


# test


CASES = """\
note: one is enough
bundle: p.json
calls:
  - {server: git, tool: push, want: {action: ALLOW}}
  - {server: git, tool: push, want: {action: ALLOW, rule_id: x}}
---
note: reads
bundle: p.json
calls:
  - {server: git, tool: log, want: {action: ALLOW}}
"""


@pytest.fixture
def cases(write):
    write("p.json", rule("budget", limit_calls=1), rule("deny", match=tools("never")))
    return write("c.yaml", body=CASES)


def test_a_failed_case_names_file_note_call_wanted_and_got(sub, cases):
    answer = sub("test", cases)
    assert answer.code == 1
    assert answer.out.splitlines() == [
        "FAIL c.yaml:1: case `one is enough`: call 2 (git/push)",
        '     action: wanted "ALLOW", got "BLOCK"',
        '     rule_id: wanted "x", got "budget"',
        "2 cases: 1 passed, 1 failed",
    ]


def test_coverage_names_the_rules_that_no_call_matched(sub, cases):
    answer = sub("test", "--coverage", cases)
    assert answer.out.splitlines()[-3:] == [
        "p.json: 1 of 2 rules matched",
        "     never matched: deny",
        "2 cases: 1 passed, 1 failed",
    ]


def test_cases_as_json(sub, cases):
    rows = sub("test", "--json", "--coverage", cases).rows
    assert rows[0]["failures"][0]["call"] == 2
    assert rows[1] == {"file": "c.yaml", "line": 7, "note": "reads", "passed": True, "failures": []}
    assert rows[2]["coverage"]["never_matched"] == ["deny"]
    assert rows[3] == {"summary": {"files": 1, "cases": 2, "passed": 1, "failed": 1}}


def test_a_bundle_is_found_beside_its_case_file(sub, write, tmp_path):
    (tmp_path / "deep").mkdir()
    write("deep/p.json", rule("deny"))
    name = write("deep/c.yaml", body="{bundle: p.json, calls: [{server: s, tool: t, want: {action: BLOCK}}]}")  # fmt: skip
    assert sub("test", name).code == 0


def test_cases_from_stdin_and_inline_bundles_and_snapshots(sub, write):
    sub("compile", write("p.json", rule("deny")), "-o", "s.json")
    inline = json.dumps(plain(rule("deny")))
    call = "calls: [{server: s, tool: t, want: {action: BLOCK}}]"
    given = f"bundle: s.json\n{call}\n---\nbundle: {inline}\n{call}\n"
    answer = sub("test", "--coverage", "-", stdin=given.encode())
    assert (answer.code, answer.out.splitlines()[-1]) == (0, "2 cases: 2 passed, 0 failed")


def test_a_broken_case_file_is_no_failed_case(sub, write):
    answer = sub("test", write("c.yaml", body="{bundle: p.yaml, calls: [{server: s}]}"))
    assert answer.code == 2
    assert answer.err.startswith("error: c.yaml:1:26: case 1: call 1: missing field `tool`")


def test_a_case_whose_bundle_is_missing_or_broken_is_bad_input(sub, write):
    name = write("c.yaml", body="{bundle: p.yaml, calls: []}")
    assert sub("test", name).err.startswith("error: cannot read `p.yaml`: no such file")
    write("p.yaml", body="a: 1")
    assert sub("test", name).code == 2


# diff


def test_diff_says_what_loosens_and_fails_on_request(sub, write):
    old, new = write("a.json", rule("deny")), write("b.json")
    answer = sub("diff", old, new)
    assert (answer.code, answer.out) == (
        0,
        "`p` `1`: 1 critical\n  critical  rule `deny`: removed (deny)\n",
    )
    assert sub("diff", old, new, "--fail-on", "critical").code == 1
    assert sub("diff", old, new, "--fail-on", "info").code == 1
    assert sub("diff", new, old, "--fail-on", "critical").code == 0
    assert sub("diff", old, old, "--fail-on", "info").code == 0


def test_diff_as_markdown_and_json(sub, write):
    old, new = write("a.json", rule("deny")), write("b.json")
    assert sub("diff", old, new, "--format", "markdown").out.startswith("### Policy `p` `1`\n")
    for words in (["--format", "json"], ["--json"]):
        (row,) = sub("diff", old, new, *words).rows
        assert row["severity"] == "critical"
        assert row["changes"][0]["rule_id"] == "deny"


def test_diff_takes_snapshots(sub, write):
    sub(
        "compile",
        write("p.json", rule("deny", match=tools("a?b", "c*", "*d", "[e]", "f"))),
        "-o",
        "s.json",
    )
    assert sub("diff", "p.json", "s.json").out == "`p` `1`: no changes\n"
    assert sub("diff", "s.json", "s.json").out == "`p` `1`: no changes\n"
    assert "removed (deny)" in sub("diff", "s.json", write("q.json")).out


def test_a_forged_snapshot_is_refused_by_every_command(sub, tmp_path):
    forged = {"format": 1, "policy_id": "p", "version": "1", "mode": "guardrails", "rules": [{}]}
    forged["policy_hash"] = digest(forged)
    (tmp_path / "s.json").write_text(json.dumps(forged))
    for words in COMMANDS.values():
        answer = sub(*[word.replace("FILE", "s.json") for word in words])
        assert answer.code in (1, 2)


# every command


COMMANDS = {
    "lint": ["lint", "FILE"],
    "compile": ["compile", "FILE"],
    "explain": ["explain", "--server", "s", "--tool", "t", "--policy", "FILE"],
    "test": ["test", "FILE"],
    "diff": ["diff", "FILE", "FILE"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_file_is_told_with_the_nearest_name(sub, write, command):
    write("policy.yaml", body="")
    answer = sub(*[word.replace("FILE", "polcy.yaml") for word in COMMANDS[command]])
    assert (answer.code, answer.err) == (
        2,
        "error: cannot read `polcy.yaml`: no such file or directory\n"
        "hint: did you mean `policy.yaml`?\n",
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["there", "nowhere/x", "a\0b", "locked", ""])
def test_what_cannot_be_read_is_told(sub, tmp_path, command, name):
    (tmp_path / "there").mkdir()
    answer = sub(*[word.replace("FILE", name) for word in COMMANDS[command]])
    assert answer.code == 2
    assert answer.err.startswith("error: cannot read `")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x00", b"\xff\xfe", b"[", b"{", b"- - -", b"*", b"a: *b", b"&a [*a]", b"{}", b"[]", b"null", b'"x"', b"[" * 9999,
        b'{"policy_hash": 1}', b'{"policy_hash": "x", "format": 1}', b'{"policy_hash": "x",}', b"policy_hash: x",
    ],
)  # fmt: skip
def test_broken_input_never_ends_in_a_traceback(sub, tmp_path, command, data):
    (tmp_path / "f").write_bytes(data)
    answer = sub(*[word.replace("FILE", "f") for word in COMMANDS[command]])
    assert answer.code in (1, 2)
    assert "error" in answer.out + answer.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(sub, command):
    answer = sub(command, "--help")
    assert answer.code == 0
    assert f"example:\n  sub policy {command} " in answer.out


def test_the_group_lists_its_commands(sub):
    assert [word for word in COMMANDS if f"  {word} " not in sub().out] == []


# examples


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_an_example_lints_clean_and_its_cases_reach_every_rule(sub, path):
    # A policy that only observes has a note about that.
    assert sub("lint", "--strict", str(path)).err in ("1 file: no problems\n", "1 file: 1 note\n")
    answer = sub("test", "--json", "--coverage", str(path.with_suffix(".cases.yaml")))
    assert answer.code == 0
    (coverage,) = [row["coverage"] for row in answer.rows if "coverage" in row]
    assert coverage["never_matched"] == []


def test_the_promised_examples_are_there():
    assert [path.stem for path in POLICIES] == [
        "after-the-web", "agent-shell", "agent-spm", "careful-writes", "ci-fixer", "ci-strict", "data-loss",
        "guardian-engineering", "guardian-finance", "guardian-soc", "listed-commands", "loop-guard", "prod-freeze",
        "read-only",
    ]  # fmt: skip


def test_explain_shows_what_a_call_touches(sub, own_home, tmp_path):
    """doors, section 1: `sub policy explain --json` shows `targets`, by the settings in force."""
    policy = str(EXAMPLES / "agent-shell.yaml")
    given = ("explain", "--policy", policy, "--cwd", str(tmp_path), "--json")
    args = '{"command": "echo x > /etc/motd"}'
    answer = sub(*given, "--server", "@claude", "--tool", "Bash", "--args", args)
    (row,) = answer.rows
    assert row["decision"]["rule_id"] == "no-writes-outside"
    assert row["targets"] == {
        "commands": [["echo", "x"]],
        "paths": [{"path": "/etc/motd", "access": "write"}],
        "hosts": [],
        "opaque": False,
        "why": [],
        "roots": [str(tmp_path)],
    }
    own_home.mkdir()
    (own_home / "config.toml").write_text('[servers.files.targets]\nput = {path = "to"}\n')
    call = ("--server", "files", "--tool", "put", "--args", '{"to": "/etc/motd"}')
    assert sub(*given, *call).rows[0]["decision"]["rule_id"] == "no-writes-outside"
    assert "opaque:" in sub(*given[:-1], "--server", "@claude", "--tool", "Bash").out


# Who acts


def test_explain_takes_every_fact_and_everything_that_a_program_says(sub, write):
    match = {
        "environment": ["staging"],
        "agent_type": ["pr_agent"],
        "trust_level_min": "verified",
        "agent_roles_any": ["fix"],
        "registered": True,
        "delegation_depth_min": 1,
        "tool_provider": ["langchain"],
        "data_labels_any": ["pii"],
        "context": {"key_equals": {"ticket": "T1"}},
    }
    name = write("p.json", rule("deny", match=match))
    given = [
        *("--env", "staging", "--agent-type", "pr_agent", "--trust-level", "verified"),
        *("--role", "x", "--role", "fix", "--registered", "--delegation-depth", "1"),
        *("--provider", "langchain", "--label", "pii", "--context", '{"ticket": "T1"}'),
    ]
    call = ["explain", "--policy", name, "--server", "s", "--tool", "t", "--json"]
    (row,) = sub(*call, *given).rows
    assert row["decision"]["rule_id"] == "deny"
    assert row["on_facts"] is None
    (row,) = sub(*call).rows
    assert row["decision"]["action"] == "ALLOW"
    assert row["steps"][0]["note"] == "the environment is dev"


def test_explain_says_what_claims_changed(sub, write):
    rules = [
        rule("deny", match={"environment": ["prod"]}),
        rule("deny", "off", enabled=False),
        rule("allow"),
    ]
    call = ["explain", "--policy", write("p.json", *rules), "--server", "s", "--tool", "t"]
    answer = sub(*call, "--claims", '{"environment": "prod"}')
    assert answer.out.splitlines() == [
        "BLOCK by rule `deny` (NO, warn)",
        "  not this",
        "  because of what the caller claims: without that it is ALLOW",
        "",
        "rules, in order:",
        "    1. deny (deny): no match: `environment` does not match (the environment is dev)",
        "    2. off (deny): disabled",
        "    3. allow (allow): matched, ALLOW (fine)",
        "",
        "rules, if what the caller claims were true:",
        "    1. deny (deny): matched, BLOCK (not this)",
        "    2. off (deny): disabled",
        "    3. allow (allow): passed over (a rule above settled access)",
    ]
    (row,) = sub(*call, "--claims", '{"environment": "prod"}', "--json").rows
    assert row["on_facts"]["action"] == "ALLOW"
    assert [step["claimed"] for step in row["steps"]] == [False] * 3 + [True] * 3


def test_explain_counts_refusals_in_a_row(sub, write):
    rules = [
        rule("deny", match={"trust_level_min": "verified"}),
        rule("deny", "lost"),
    ]
    words = ["explain", "--policy", write("p.json", *rules), "--server", "s", "--tool", "t"]
    words += ["--trust-level", "verified", "--trust-after-denials", "basic", "--json"]
    for repeat, rule_id in (("4", "deny"), ("5", "lost")):
        (row,) = sub(*words, "--repeat", repeat).rows
        assert row["decision"]["rule_id"] == rule_id


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--claims", "[]"), "`--claims` must be a JSON object"),
        (("--claims", '{"registered": true}'), "`--claims`: unknown field `registered`"),
        (("--context", "x"), "`--context`: "),
        (("--delegation-depth", "-1"), "`--delegation-depth` must be at least 0"),
    ],
)
def test_explain_refuses_facts_that_it_cannot_read(sub, write, words, message):
    answer = sub("explain", "--policy", write("p.json"), "--server", "s", "--tool", "t", *words)
    assert answer.code == 2
    assert message in answer.err
