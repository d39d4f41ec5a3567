"""`sub promote HINT --to FILE`: the edit, what a person sees of it, and when it is refused."""

import json
import os

import pytest
from tests.cli.promoting.conftest import POLICY
from tests.policy.dialects.agent_spm.spm_bundles import spm, spm_rule
from tests.requirements import requirement
from tests.shim.household import wait_until

from subluminal.cli.commands import promote

EXCEPTION = """\
  - rule_id: short-exception
    description: "promoted from {hint} by {user}, {day}"
    kind: allow
    enabled: true
    severity: info
    match:
      server_name: {{glob: [echo]}}
      tool_name: {{glob: [echo]}}
      args: {{key_equals: {{{args}}}}}
    effect: {{action: ALLOW, reason_code: PROMOTED, message: "an exception to short"}}

"""


@pytest.fixture(autouse=True)
def maria(monkeypatch):
    monkeypatch.setattr("subluminal.trust.identity.machine.local_user", lambda: "maria")


def written(text, hint, args):
    """The policy's text without the exception; what was added must be it."""
    head, _, rest = text.partition("  - rule_id: short-exception\n")
    block, _, tail = rest.partition("  # Long answers")
    block = "  - rule_id: short-exception\n" + block
    day = block.partition("maria, ")[2][:10]
    assert block == EXCEPTION.format(hint=hint, user="maria", day=day, args=args)
    return head + "  # Long answers" + tail


@requirement("001-10.3:promote")
def test_the_exception_is_written_above_the_rule_and_the_running_shim_takes_it(sub, house):
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--to", str(house.policy), "--yes")
    assert ran.code == 0, ran.err
    assert written(house.policy.read_text(), hint, '"n": 500, path: a') == POLICY
    assert "+  - rule_id: short-exception" in ran.out
    assert "critical  rule `short-exception`: " in ran.out
    assert "backtest: would have allowed 1 past call\n" in ran.out
    assert "Wrote rule `short-exception` into" in ran.err
    wait_until(lambda: house.passes(path="a", n=500), "the shim takes the new policy")
    assert not house.passes(path="b", n=500)
    assert not house.passes(path="a", n=501)
    assert not house.passes(path="secret", n=1)


@pytest.mark.parametrize(
    ("options", "args"),
    [
        (["--args", "exact"], {"key_equals": {"n": 500, "path": "a"}}),
        (["--args", "keys"], {"key_equals": {"n": 500}}),
        (["--key", "path"], {"key_equals": {"path": "a"}}),
        (["--args", "any"], None),
    ],
)
def test_how_far_it_reaches(sub, house, options, args):
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--to", str(house.policy), "--dry-run", "--json", *options)
    told = json.loads(ran.out)
    assert told["rule"]["match"].get("args") == args
    assert (told["hint_id"], told["severity"], told["written"]) == (hint, "critical", False)
    assert told["backtest"]["newly_allowed"] == 1
    assert "+  - rule_id: short-exception\n" in told["diff"]
    assert house.policy.read_text() == POLICY
    # A path that is known tells that the later rule is about another.
    assert told["also_passed"] == ([] if args and "path" in args["key_equals"] else ["no-secrets"])


def test_a_later_rule_that_no_longer_sees_the_calls_is_warned_of(sub, house):
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--to", str(house.policy), "--dry-run", "--args", "keys")
    assert ran.err == (
        "warning: these calls also bypass `no-secrets`\n"
        "hint: an allow shields from every deny below it\n"
    )


def test_the_end_of_a_call_s_id_is_enough_and_an_unknown_one_is_told(sub, house):
    first = house.refused(path="a", n=500)
    house.refused(path="b", n=500)
    to = ("--to", str(house.policy), "--dry-run")
    assert sub("promote", first[-6:], *to).code == 0
    assert sub("promote", "nothing", *to) == (
        2,
        "",
        "error: there is no hint `nothing`\nhint: `sub hints` lists the hints\n",
    )
    house.client.call("echo", {"n": 1})
    house.ingest()
    passed = first.removeprefix("hint-").rpartition(".")[0] + ".3"
    assert "was not given a hint" in sub("promote", passed, *to).err


def test_where_nobody_can_be_asked_it_must_be_said(sub, house):
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--to", str(house.policy))
    assert ran.code == 2
    assert ran.err.endswith(
        "error: there is no terminal to ask at, so nothing was changed\nhint: use `--yes` or `--dry-run`\n"
    )
    assert house.policy.read_text() == POLICY


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"n\n", 2), (b"\n", 2), (b"", 2)])
def test_a_person_is_asked_and_silence_is_no(sub, house, monkeypatch, answer, code):
    hint = house.refused(path="a", n=500)
    monkeypatch.setattr(promote, "is_at_terminal", lambda: True)
    ran = sub("promote", hint, "--to", str(house.policy), stdin=answer)
    assert ran.code == code
    assert "write this into the policy? [y/N] " in ran.err
    assert ("nothing was changed" in ran.err) == (code == 2)
    assert (house.policy.read_text() == POLICY) == (code == 2)


def test_a_file_that_changed_meanwhile_is_not_overwritten(sub, house, monkeypatch):
    hint = house.refused(path="a", n=500)
    edited = POLICY.replace("# The house rules.", "# Mine!")
    monkeypatch.setattr(promote, "is_at_terminal", lambda: bool(house.policy.write_text(edited)))
    ran = sub("promote", hint, "--to", str(house.policy), stdin=b"y\n")
    assert ran.code == 2
    assert "another program changed `" in ran.err
    assert house.policy.read_text() == edited


def test_mode_and_link_stay(sub, house, tmp_path):
    hint = house.refused(path="a", n=500)
    house.policy.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(house.policy)
    assert sub("promote", hint, "--to", str(link), "--yes").code == 0
    assert link.is_symlink()
    assert house.policy.stat().st_mode & 0o777 == 0o640
    assert "short-exception" in house.policy.read_text()
    assert sorted(os.listdir(tmp_path)) == sorted({"link.yaml", "work", "executed"})


def test_a_policy_in_json(sub, house, tmp_path):
    from subluminal.policy.loading import parse_bundle

    hint = house.refused(path="a", n=500)
    file = tmp_path / "policy.json"
    value = parse_bundle(POLICY.encode(), "p").value
    file.write_text(json.dumps(value, indent=2))
    assert sub("promote", hint, "--to", str(file), "--yes").code == 0
    rules = json.loads(file.read_text())["rules"]
    assert [rule["rule_id"] for rule in rules] == ["few-writes", "short-exception", "short", "no-secrets"]  # fmt: skip
    del rules[1]
    assert json.dumps({**value, "rules": rules}, indent=2) == json.dumps(value, indent=2)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (("rule_id: short\n", "rule_id: brief\n"), [], "policy `house` has no rule `short`"),
        (("kind: deny\n    enabled: true", "kind: deny\n    enabled: false"), [], "rule `short` is disabled"),
        (("min: 11", "min: 900"), [], "policy `house` already allows this call"),
        (("mode: guardrails", "mode: observe"), [], "policy `house` is in observe mode"),
        (("selectors: {}", "selectors: {agent_id: [other]}"), [], "does not apply to the run of this call"),
        (("  # Long", "  - {rule_id: none, kind: deny, enabled: true, severity: warn, match: {}, effect: {action: BLOCK, reason_code: N, message: m}}\n  # Long"), [], "this call is now refused by another rule, `none`"),
        (('"write*"', '"*"'), [], "now refused by another rule, `few-writes`"),
        (("  # Long", "  # Long"), ["--rule-id", "no-secrets"], "duplicate rule_id"),
        (("  # Long", "  # Long"), ["--key", "nope"], "the call has no argument `nope`"),
        (("rules:", "rulez:"), [], "unknown field `rulez`"),
    ],
)  # fmt: skip
def test_what_would_not_help_or_not_compile_is_refused_and_the_file_stays(
    sub, house, change, options, message
):
    hint = house.refused(path="a", n=500)
    assert change[0] in POLICY
    text = POLICY.replace(*change)
    house.policy.write_text(text)
    ran = sub("promote", hint, "--to", str(house.policy), "--yes", *options)
    assert ran.code == 2
    assert message in ran.err
    assert house.policy.read_text() == text


def test_the_number_of_a_limit_is_changed_and_the_running_shim_takes_it(sub, house):
    hint = house.refused("write_file", path="a")
    ran = sub("promote", hint, "--to", str(house.policy), "--set", "limit_calls=100000", "--yes")
    assert ran.code == 0, ran.err
    assert house.policy.read_text() == POLICY.replace("limit_calls: 0", "limit_calls: 100000")
    assert "-    effect: {budget: {scope: run, limit_calls: 0, " in ran.out
    assert "+    effect: {budget: {scope: run, limit_calls: 100000, " in ran.out
    assert "critical  rule `few-writes`: limit_calls raised from `0` to `100000`" in ran.out
    assert "backtest: would have allowed 1 past call\n" in ran.out
    assert f"Changed rule `few-writes` in `{house.policy}`: limit_calls 0 to 100000." in ran.err
    assert "warning" not in ran.err
    wait_until(lambda: house.passes("write_file", path="a"), "the shim takes the new policy")


def test_the_number_of_a_limit_is_doubled_unless_a_person_chooses(sub, house):
    house.refused("write_file", path="a")
    hint = house.refused("write_file", path="b")
    ran = sub("promote", hint, "--to", str(house.policy), "--dry-run")
    assert "limit_calls raised from `0` to `1`" in ran.out
    assert "To choose the numbers, use `--set FIELD=N`." in ran.err
    assert "this call would still be refused, by rule `few-writes`" in ran.err
    assert "choose larger numbers with `--set`" in ran.err
    told = json.loads(sub("promote", hint, "--to", str(house.policy), "--dry-run", "--json").out)
    assert (told["rule"], told["written"]) == (None, False)
    assert told["numbers"] == [{"field": "limit_calls", "old": 0, "new": 1}]
    assert told["backtest"]["newly_allowed"] == 1
    assert house.policy.read_text() == POLICY


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "limit_cals=9"], "has no number `limit_cals`"),
        (["--set", "limit_calls=-1"], "is not FIELD=N"),
        (["--set", "limit_calls"], "is not FIELD=N"),
        (["--set", "limit_calls=9999999999999"], "must be at most"),
        (["--args", "any"], "an exception does not shield from it"),
        (["--key", "path"], "an exception does not shield from it"),
        (["--rule-id", "x"], "an exception does not shield from it"),
    ],
)
def test_a_limit_takes_only_its_own_numbers(sub, house, words, message):
    hint = house.refused("write_file", path="a")
    ran = sub("promote", hint, "--to", str(house.policy), "--yes", *words)
    assert ran.code == 2
    assert message in ran.err
    assert house.policy.read_text() == POLICY


def test_an_exception_has_no_numbers(sub, house):
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--to", str(house.policy), "--set", "limit_calls=1", "--yes")
    assert ran.code == 2
    assert "rule `short` has no numbers" in ran.err


def test_a_limit_that_only_observes_is_not_changed(sub, house):
    hint = house.refused("write_file", path="a")
    house.policy.write_text(POLICY.replace("mode: guardrails", "mode: observe"))
    ran = sub("promote", hint, "--to", str(house.policy), "--yes")
    assert "is in observe mode and refuses no calls" in ran.err


def test_a_call_without_arguments_and_a_rule_that_looks_at_none(sub, house):
    house.policy.write_text(POLICY.replace(", args: {numeric_range: {n: {min: 11}}}", "").replace(", suggest: {n: {clamp_max: 10}}", ""))  # fmt: skip
    wait_until(lambda: not house.passes(n=1), "the policy is taken")
    bare = house.refused()
    to = ("--to", str(house.policy), "--dry-run")
    assert "confirm that with `--args any`" in sub("promote", bare, *to).err
    with_args = house.refused(path="a")
    assert (
        "rule `short` looks at no argument" in sub("promote", with_args, *to, "--args", "keys").err
    )
    assert sub("promote", bare, *to, "--args", "any").code == 0


def test_arguments_that_were_masked_cannot_be_named(sub, house):
    hint = house.refused(path="ghp_" + "a" * 36, n=500)
    to = ("--to", str(house.policy), "--dry-run")
    ran = sub("promote", hint, *to)
    assert ran.code == 2
    assert "were masked or cut" in ran.err
    assert "`--args any` allows every call of this tool" in ran.err
    ran = sub("promote", hint, *to, "--args", "any")
    assert ran.code == 0
    assert "it is not proven that this call would pass" in ran.err


def test_what_an_agent_sent_is_shown_and_not_executed(sub, house):
    """In the terminal, and in the file that an editor opens."""
    evil = "\x1b[31m\u202egnp\r"
    hint = house.refused(path=evil, n=500)
    ran = sub("promote", hint, "--to", str(house.policy), "--yes")
    assert ran.code == 0, ran.err
    for char in "\x1b\u202e\r":
        assert char not in ran.out
        assert char not in house.policy.read_text()
    wait_until(lambda: house.passes(path=evil, n=500), "the exception holds")


def test_a_compiled_policy_is_not_edited(sub, house, tmp_path):
    hint = house.refused(path="a", n=500)
    compiled = tmp_path / "policy.json"
    sub("policy", "compile", str(house.policy), "-o", str(compiled))
    assert "is a compiled policy" in sub("promote", hint, "--to", str(compiled), "--yes").err


def test_a_bundle_of_agent_spm_is_not_edited(sub, house, tmp_path):
    hint = house.refused(path="a", n=500)
    other = tmp_path / "bundle.json"
    other.write_text(json.dumps(spm(spm_rule())))
    ran = sub("promote", hint, "--to", str(other), "--yes")
    assert ran.code == 2
    assert "is a bundle of Agent-SPM, which `sub promote` cannot edit" in ran.err
    assert other.read_text() == json.dumps(spm(spm_rule()))


def test_no_agent_promotes(sub, house, monkeypatch):
    hint = house.refused(path="a", n=500)
    monkeypatch.setenv("CLAUDECODE", "1")
    ran = sub("promote", hint, "--to", str(house.policy), "--yes")
    assert ran.code == 2
    assert "`sub promote` is for a person" in ran.err
    assert house.policy.read_text() == POLICY


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "one of the arguments --session --to is required"),
        (["--session", "--yes"], "`--yes` can only be used with `--to FILE`"),
        (["--session", "--args", "any"], "`--args` can only be used with `--to FILE`"),
        (["--session", "--set", "limit_calls=1"], "`--set` can only be used with `--to FILE`"),
        (["--to", "p.yaml", "--ttl", "1h"], "`--ttl` can only be used with `--session`"),
        (["--to", "p.yaml", "--key", "a", "--args", "any"], "`--key` and `--args` cannot be used together"),
    ],
)  # fmt: skip
def test_options_of_the_other_way_are_refused(sub, words, message):
    ran = sub("promote", "x", *words)
    assert ran.code == 2
    assert message in ran.err


def test_another_layer_that_refuses_too_is_told(sub, house):
    """An exception in one policy does not reach another (policy-layers)."""
    repository = house.household.cwd
    (repository / ".git").mkdir()
    (repository / ".subluminal").mkdir()
    theirs = POLICY.replace("policy_id: house", "policy_id: team").replace("short", "brief")
    (repository / ".subluminal" / "policy.yaml").write_text(theirs)
    house.client = house.household.start(run="run-2").ready()
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--to", str(house.policy), "--dry-run", "--json")
    assert json.loads(ran.out)["still_refused_by"] == ["rule `brief` of `team` (repository)"]
    assert ran.err == (
        "warning: rule `brief` of `team` (repository) refuses this call too\n"
        "hint: the strictest layer decides\n"
    )
