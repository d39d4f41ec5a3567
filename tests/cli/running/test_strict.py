"""`sub run --strict` and `--fail-on`: a run that broke policy fails, one without policy too."""

import os
import shlex
import sys

import pytest
from tests.requirements import requirement
from tests.shim.household import budget, deny, policy

PYTHON = [sys.executable, "-I", "-S", "-c"]
FORGER = """
import glob, json, os
lines = [(path, open(path).readline()) for path in glob.glob(os.environ["SUB_HOME"] + "/journal/*/*")]
first, line = next(pair for pair in lines if "run_start" in pair[1])
start = json.loads(line)
start["run"]["meta"] = {}
start["source"] |= {"shim_id": "zz", "n": 0}
with open(os.path.dirname(first) + "/zz.jsonl", "w") as forged:
    forged.write(json.dumps(start) + chr(10))
    forged.write(json.dumps({"type": "run_end", "source": {"shim_id": "zz"}}) + chr(10))
"""
SLOW = """\
  - {rule_id: slow, kind: rate_limit, enabled: true, severity: info, match: {},
     effect: {rate_limit: {scope: run, capacity: 1, refill_tokens: 1, refill_period_ms: 3600000,
                           on_limit: THROTTLE, backoff_ms: 1000}}}
"""


UNKNOWN = (
    f"sub: `{os.path.basename(sys.executable)}` is not a client that `sub import` knows, so servers that it started without a "
    "shim were not noticed\n"
)


def told(err):
    """What `sub` says of the verdict; the server says goodbye on the same stream."""
    head, unknown, rest = err.removeprefix("bye\n").partition(UNKNOWN)
    assert unknown, "`sub` says what it could not know"
    return head + rest


def test_a_run_that_keeps_to_the_policy_ends_as_its_agent_does(runner):
    runner.write_policy(policy(deny("fail")))
    code, _, err = runner.run("--strict", command=runner.agent("exit=0", "echo"))
    assert (code, told(err)) == (0, "sub: the run kept to its policy\n")
    code, _, _ = runner.run("--strict", command=runner.agent("exit=7", "echo"))
    assert code == 7


@requirement("001-16H:strict")
@pytest.mark.parametrize("ending", ["exit=0", "exit=7"])
def test_a_refused_call_fails_it_after_the_agent_ended(runner, ending):
    runner.write_policy(policy(deny("fail")))
    code, out, err = runner.run("--strict", command=runner.agent(ending, "echo", "fail", "echo"))
    assert code == 3
    assert out.split() == ["echo", "0", "fail", "-32081", "echo", "0"]
    assert told(err) == (
        "error: this run violated policy: 1 violation\n"
        "  call 2: echo/fail: BLOCK by `no-fail` (warn): not that\n"
    )
    assert runner.events("run_end")[0]["run"]["status"] == (
        "SUCCEEDED" if ending == "exit=0" else "FAILED"
    )


@pytest.mark.parametrize("mode", ["control", "guardrails"])
def test_hints_and_terminations_count_too(runner, mode):
    runner.write_policy(
        policy(budget(1, "TERMINATE_RUN"), deny("fail")).replace("guardrails", mode)
    )
    code, _, err = runner.run("--strict", command=runner.agent("exit=0", "fail", "echo"))
    assert code == 3
    assert "2 violations; the run was terminated" in err


def test_many_violations_are_told_in_short(runner):
    runner.write_policy(policy(deny("echo")))
    _, _, err = runner.run("--strict", command=runner.agent("exit=0", *["echo"] * 13))
    lines = told(err).splitlines()
    assert lines[0].endswith("13 violations")
    assert (len(lines), lines[-1]) == (12, "  and 3 more")


def test_throttled_calls_fail_it_only_where_asked(runner):
    runner.write_policy(policy(deny("fail")) + SLOW)
    agent = runner.agent("exit=0", "echo", "echo")
    code, _, err = runner.run("--strict", command=agent)
    assert (code, told(err)) == (0, "sub: the run kept to its policy; 1 violation tolerated\n")
    assert runner.run("--strict=throttle", command=agent)[0] == 3


@pytest.mark.parametrize("words", [["--strict=odd"], ["--strict", "odd"]])
def test_what_is_no_strictness(runner, words):
    code, _, err = runner.run(*words, command=["true"])
    assert (code, err.splitlines()[0]) == (
        2,
        "error: argument --strict: `odd` is not `throttle`; put `--` before the agent",
    )


def test_without_the_flag_nothing_changes(runner):
    runner.write_policy(policy(deny("echo")))
    assert runner.run(command=runner.agent("exit=0", "echo"))[0] == 0


class TestWithoutAPolicy:
    """Nothing is allowed for want of one: known beforehand, nothing runs."""

    def refused(self, runner, *words, **popen):
        code, out, err = runner.run(*words, command=[*PYTHON, "print(1)"], **popen)
        assert (code, out) == (2, "")
        assert runner.events() == []
        return err

    def test_nothing_is_left_of_it(self, runner):
        self.refused(runner, "--strict", "--artifact", "out")
        assert list((runner.cwd / "out").iterdir()) == []

    def test_missing(self, runner):
        assert self.refused(runner, "--strict") == (
            "error: --strict needs a policy, and there is none\n"
            "hint: give one with --policy, or put it into `.subluminal/policy.yaml`\n"
        )

    def test_named_but_not_there(self, runner):
        assert "there is no such file" in self.refused(runner, "--strict", "--policy", "no.yaml")

    def test_not_compiling(self, runner):
        (runner.cwd / "bad.yaml").write_text("rules: 7\n")
        assert "bad.yaml" in self.refused(runner, "--strict", "--policy", "bad.yaml")

    def test_not_applicable(self, runner):
        prod = policy(deny("echo")).replace("selectors: {}", "selectors: {env: [prod]}")
        runner.write_policy(prod)
        err = self.refused(runner, "--strict", "--env", "ci")
        assert "selectors of `p` do not match this run" in err
        assert "env ci" in err

    def test_a_named_policy_must_be_the_one_that_applies(self, runner):
        """That the user's own applies is no comfort to whoever asked for another."""
        runner.write_policy(policy(deny("echo")))
        prod = policy(deny("fail")).replace("selectors: {}", "selectors: {env: [prod]}")
        runner.write_policy(prod, runner.cwd / "prod.yaml")
        assert "do not match" in self.refused(runner, "--strict", "--policy", "prod.yaml")

    def test_an_agent_that_leaves_its_policy_fails_the_run(self, runner):
        """It calls itself another, whom the selectors do not name."""
        ours = policy(deny("fail")).replace("selectors: {}", "selectors: {env: [ci]}")
        runner.write_policy(ours)
        agent = runner.agent("exit=0", "echo")
        code, out, err = runner.run(
            "--strict", "--env", "ci", command=["env", "SUB_ENV=dev", *agent]
        )
        assert (code, out) == (3, "echo 0\n")
        assert "call 1: echo/echo: ungoverned by `POLICY_NOT_APPLICABLE` (info)" in err
        assert runner.run("--strict", "--env", "ci", command=agent)[0] == 0


class TestTampering:
    """What an agent does to its record does not turn into a verdict for it."""

    def run(self, runner, deed):
        runner.write_policy(policy(deny("fail")))
        agent = shlex.join(runner.agent("exit=0", "fail", "echo", "echo"))
        return runner.run("--strict", command=["sh", "-c", f"{agent}; {deed}"])

    def test_a_record_that_is_gone(self, runner):
        code, _, err = self.run(runner, 'rm -r "$SUB_HOME/journal"')
        assert code == 3
        assert "the record lacks its run_start or run_end event" in err

    def test_a_shims_record_that_is_gone(self, runner):
        code, _, err = self.run(runner, 'rm $(grep -l tool_call "$SUB_HOME"/journal/*/*.jsonl)')
        assert code == 3
        assert "missing from the record: 3 calls" in err

    def test_a_decision_that_was_rewritten(self, runner):
        code, _, err = self.run(runner, 'sed -i s/BLOCK/ALLOW/ "$SUB_HOME"/journal/*/*.jsonl')
        assert code == 3
        assert "was changed" in err

    def test_a_beginning_without_demands(self, runner):
        """And a line that only looks like an event."""
        code, _, err = self.run(runner, shlex.join([*PYTHON, FORGER]))
        assert code == 3
        assert "1 violation; 1 line of the record cannot be read" in err


class TestFailOn:
    """`--fail-on SEVERITY`, with and without --strict."""

    @pytest.mark.parametrize(("severity", "code"), [("info", 3), ("warn", 3), ("critical", 0)])
    def test_decisions_of_that_severity_or_above(self, runner, severity, code):
        runner.write_policy(policy(deny("fail")))
        agent = runner.agent("exit=0", "echo", "fail")
        assert runner.run("--fail-on", severity, command=agent)[0] == code

    @pytest.mark.parametrize(("severity", "code"), [("warn", 3), ("critical", 0)])
    def test_in_observe_mode_too(self, runner, severity, code):
        runner.write_policy(policy(deny("fail")).replace("guardrails", "observe"))
        agent = runner.agent("exit=0", "echo", "fail")
        got, out, _ = runner.run("--strict", "--fail-on", severity, command=agent)
        assert (got, out.split()) == (code, ["echo", "0", "fail", "0"])

    def test_a_run_without_policy_has_no_severities(self, runner):
        assert runner.run("--fail-on", "info", command=runner.agent("exit=0", "echo"))[0] == 0
