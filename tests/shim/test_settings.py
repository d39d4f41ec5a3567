"""Settings that change while shims run: whole or not at all, within a second, and recorded."""

import pytest
from tests.shim.household import deny, policy, wait_until
from tests.shim.test_shared_runs import leave

PACK_CODE, MCP_CODE = -32081, -31081


def write(household, text):
    """Replaces the file as an editor does."""
    household.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = household.home / "config.new"
    aside.write_text(text)
    aside.replace(household.home / "config.toml")


def last_preview(household, member="args_preview"):
    starts = household.events("tool_call_start")
    return starts[-1]["call"]["preview"].get(member)


def details(household, state):
    return [
        event["health"].get("detail", "")
        for event in household.events("shim_health")
        if event["health"]["state"] == state
    ]


def test_settings_that_appear_come_into_force(household):
    """Codes, what is recorded, what is masked: all from one file, at once."""
    household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm", {"text": "word-1234"}) == PACK_CODE
    assert "word-1234" in last_preview(household)
    write(
        household,
        '[shim]\ncodes = "mcp"\n[[redact.patterns]]\nname = "word"\npattern = "word-[0-9]+"\n',
    )
    wait_until(lambda: shim.code("rm") == MCP_CODE, "the new codes")
    shim.code("echo", {"text": "word-1234"})
    assert "word-1234" not in last_preview(household)
    assert "[REDACTED:word]" in last_preview(household)
    write(household, '[record]\nmode = "off"\n')
    wait_until(lambda: shim.code("rm") == PACK_CODE, "the old codes")
    shim.code("echo", {"text": "word-1234"})
    assert last_preview(household) is None
    leave(shim)
    assert len([each for each in details(household, "alive") if "read again" in each]) == 2


@pytest.mark.parametrize(
    "broken",
    [
        '[shim]\ncodes = "mpc"\n',
        "[shim\n",
        '[[redact.patterns]]\nname = "x"\npattern = "("\n',
        "\x00",
    ],
)
def test_settings_that_are_wrong_stay_out(household, broken):
    """The last good settings stay, and the record says why; once corrected, the new ones apply."""
    write(household, '[shim]\ncodes = "mcp"\n')
    household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm") == MCP_CODE
    write(household, broken)
    wait_until(lambda: details(household, "degraded"), "the shim's word")
    assert shim.code("rm") == MCP_CODE
    write(household, '[shim]\ncodes = "pack"\n')
    wait_until(lambda: shim.code("rm") == PACK_CODE, "the mended settings")
    leave(shim)
    (told,) = details(household, "degraded")
    assert "stay as they were" in told


def test_settings_that_go_away_change_nothing(household):
    write(household, '[shim]\ncodes = "mcp"\n')
    household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code("rm") == MCP_CODE
    (household.home / "config.toml").unlink()
    household.write_policy(policy(deny("rm"), deny("mv")))
    wait_until(lambda: shim.code("mv") == MCP_CODE, "the policy's change, seen at the same look")
    leave(shim)


def test_a_shim_with_no_traffic_sees_them_too(household):
    shim = household.start().ready()
    write(household, "[limits]\nmax_preview_bytes = 4\n")
    wait_until(lambda: details(household, "alive"), "the shim's word")
    shim.code("echo", {"text": "a long one"})
    assert len(last_preview(household)) <= 4
    leave(shim)


def test_a_call_timeout_holds_for_the_next_call(household):
    shim = household.start().ready()
    shim.ask("hang")
    write(household, "[servers.echo]\ncall_timeout_ms = 1\n")
    wait_until(lambda: details(household, "alive"), "the shim's word")
    shim.ask("hang")
    wait_until(lambda: ("TIMEOUT", "timeout") in household.ends(), "the timeout")
    leave(shim)
    assert sorted(status for status, _ in household.ends()) == ["CANCELLED", "TIMEOUT"]


def test_what_a_server_is_given_at_its_start_waits_for_the_next(household):
    shim = household.start().ready()
    write(
        household,
        '[[servers.echo.secret_bindings]]\ninject_as = "T"\nsecret_ref = "t"\nsource = "env"\n',
    )
    wait_until(lambda: details(household, "alive"), "the shim's word")
    assert "starts again" in details(household, "alive")[-1]
    assert shim.code() == 0
    leave(shim)
