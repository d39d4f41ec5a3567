"""A hook lowers the run as a shim does, and each meets what the other brought."""

import pytest
from tests.requirements import requirement

POLICY = """\
policy_id: after-the-web
mode: guardrails
rules:
  - {rule_id: web, kind: taint, match: {tool_name: {glob: [WebFetch, web_fetch, fetch]}}, effect: {taint: {lower_to: UNTRUSTED}}}
  - rule_id: no-send
    kind: deny
    match: {server_name: {glob: [echo]}, taint: {below: TRUSTED}}
    effect: {action: BLOCK, reason_code: AFTER_WEB, message: this run has read the web}
  - rule_id: no-shell
    kind: deny
    match: {tool_name: {glob: [Bash, run_shell_command]}, taint: {below: TRUSTED}}
    effect: {action: BLOCK, reason_code: AFTER_WEB, message: this run has read the web}
"""


@requirement("taint:shared")
@pytest.mark.parametrize(
    ("client", "fetch", "shell"),
    [("claude", "WebFetch", "Bash"), ("gemini", "web_fetch", "run_shell_command")],
)
def test_what_a_hook_forwards_a_shim_meets(start, household, client, fetch, shell):
    household.write_policy(POLICY)
    agent = start(client)
    server = agent.start_server().ready()
    command = {"command": "ls"}
    assert agent.before(shell, command, "t0").is_nothing
    agent.after(shell, command, "t0")
    args = {"url": "https://example.com", "prompt": "read https://example.com"}
    assert agent.before(fetch, args, "t1").is_nothing
    agent.after(fetch, args, "t1")
    assert not agent.before(shell, command, "t2").is_nothing
    assert "error" in server.call("echo", {})
    (changed,) = household.events("taint_changed")
    assert changed["taint"]["server_name"] == f"@{client}"
    assert changed["taint"]["tool_name"] == fetch
    server.close()
    agent.end()
