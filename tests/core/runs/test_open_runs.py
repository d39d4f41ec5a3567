"""The runs of one process: entered, mended, left (shared-runs)."""

import json
from pathlib import Path

import pytest
from tests.core.crowd import call
from tests.policy.bundles import bundle, rule

from subluminal.config.places import Places, encode_name, places
from subluminal.config.settings import RedactSettings, Settings
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Client, Env, Layer, ReasonCode, RunStatus
from subluminal.core.enforcer import Enforcer
from subluminal.core.host import Host
from subluminal.core.live_settings import LiveSettings
from subluminal.core.policies.layer import Load
from subluminal.core.policies.watching import Policies
from subluminal.core.records import policy_loads
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction.redactor import redactor_for
from subluminal.core.runs import open_runs as module
from subluminal.core.runs.open_runs import MAX_RUNS, Parts
from subluminal.policy.compiling import compile_bundle
from subluminal.state.errors import StateUnusable

WHO = Identity(agent_id="a", client=Client.CUSTOM, env=Env.DEV)


@pytest.fixture
def where(tmp_path: Path) -> Places:
    return places({"SUB_HOME": str(tmp_path / "home")})


@pytest.fixture
def host(where: Places, tmp_path: Path) -> Host:
    previewer = Previewer(
        redactor_for(RedactSettings(), []), record_mode="off", max_bytes=1, full_bytes=1
    )
    policies = Policies(where, WHO, str(tmp_path), None)
    parts = Parts(where, WHO, policies, previewer)
    return Host(parts, LiveSettings(where.settings, Settings()), run_id="run")


def enter(host: Host, run_id: str) -> Enforcer:
    """Enters a run as its first call does."""
    return host._runs.enforcer(run_id)


def block_journal(where: Places) -> Path:
    """Puts a file where the journals of `run` belong."""
    blocker = Path(where.journal) / "run"
    blocker.parent.mkdir(parents=True)
    blocker.write_text("in the way")
    return blocker


def kinds(where: Places, run_id: str) -> list[str]:
    directory = Path(where.journal) / encode_name(run_id)
    lines = [line for path in sorted(directory.iterdir()) for line in path.read_text().splitlines()]
    return [json.loads(line)["type"] for line in lines]


def test_a_run_is_entered_once_and_hears_what_was_told_before(where: Places, host: Host) -> None:
    host.tell(lambda run: run.health("spawned"))
    assert enter(host, "a/b") is enter(host, "a/b")
    host.tell(lambda run: run.health("alive"))
    enter(host, "other")
    host.leave(None)
    host.health("exited")
    host.close()
    expected = ["run_start", "shim_health", "shim_health", "run_end", "shim_health"]
    assert kinds(where, "a/b") == kinds(where, "other") == expected
    assert not (Path(where.state) / "processes").exists() or not list(
        (Path(where.state) / "processes").iterdir()
    )


@pytest.mark.parametrize(("limit", "is_told"), [(1 << 20, True), (64, False)])
def test_a_policy_that_is_too_large_is_named_only(
    where: Places, host: Host, monkeypatch: pytest.MonkeyPatch, limit: int, is_told: bool
) -> None:
    monkeypatch.setattr(policy_loads, "MAX_POLICY_EVENT_BYTES", limit)
    snapshot = compile_bundle(bundle(rule("deny")))
    monkeypatch.setattr(
        Policies, "poll", lambda *_, **__: [Load(Layer.USER, "policy.yaml", snapshot)]
    )
    enter(host, "run")
    host.tick(0)
    directory = Path(where.journal) / "run"
    lines = [line for path in directory.iterdir() for line in path.read_text().splitlines()]
    (event,) = [json.loads(line) for line in lines if '"policy_loaded"' in line]
    assert event["policy"]["policy_hash"] == snapshot.policy_hash
    assert ("snapshot" in event) is is_told
    host.leave(None)
    host.close()


def test_the_oldest_idle_run_makes_room(where: Places, host: Host) -> None:
    busy = enter(host, "run-0")
    busy.open_calls += 1
    for n in range(1, MAX_RUNS + 1):
        enter(host, f"run-{n}")
    assert len(host._open) == MAX_RUNS
    assert enter(host, "run-0") is busy
    assert kinds(where, "run-1")[-1] == "run_end"
    assert kinds(where, "run-2")[-1] != "run_end"
    host.leave(RunStatus.CANCELLED)
    host.close()


def test_a_journal_that_cannot_be_opened_is_tried_again(
    where: Places, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MEND_EVERY_MS", 0)
    blocker = block_journal(where)
    before = enter(host, "run")
    assert not before.run.health("alive")
    assert enter(host, "run") is before
    blocker.unlink()
    after = enter(host, "run")
    assert after is not before
    assert enter(host, "run") is after
    assert after.run.health("alive")
    host.leave(None)
    host.close()
    assert kinds(where, "run")[-1] == "run_end"


def test_a_state_that_is_damaged_is_tried_again(
    where: Places, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MEND_EVERY_MS", 0)
    sound = enter(host, "other").run.state.path
    damaged = Path(sound).with_name(Path(sound).name.replace("other", "run"))
    damaged.write_text("damaged")
    before = enter(host, "run")
    assert not before.run.is_entered
    damaged.unlink()
    assert enter(host, "run").run.is_entered
    host.leave(None)
    host.close()


def test_one_report_per_bug(where: Places, host: Host) -> None:
    enter(host, "run")
    for _ in range(3):
        try:
            raise KeyError("x")
        except KeyError as bug:
            host.report_bug(bug)
    host.leave(None)
    host.close()
    assert len(list(Path(where.reports).iterdir())) == 1
    assert kinds(where, "run").count("shim_health") == 1


def test_a_state_that_breaks_while_deciding_is_not_reported_as_a_bug(
    where: Places, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, a full disk keeps the file from growing: decision_on_error, and no bug report."""

    def break_down() -> int:
        raise StateUnusable("state", "no space left on device")

    enforcer = enter(host, "run")
    monkeypatch.setattr(enforcer.run.state, "take_seq", break_down)
    ruling = enforcer.begin(call(), b"{}")
    assert ruling.decision.reason_code == ReasonCode.EVALUATION_ERROR
    assert ruling.is_allowed, "no policy: observed"
    enforcer.begin_undecidable(call(), ReasonCode.AMBIGUOUS_MESSAGE, "two ways")
    host.leave(None)
    host.close()
    assert not Path(where.reports).exists()


def test_mending_a_run_whose_state_stays_damaged_leaves_nothing_behind(
    where: Places, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MEND_EVERY_MS", 0)
    sound = enter(host, "other").run.state.path
    Path(sound).with_name(Path(sound).name.replace("other", "run")).write_text("damaged")
    enter(host, "run")
    views = len(host._runs.kill_switch._views)
    for _ in range(5):
        enter(host, "run")
    assert len(list((Path(where.journal) / "run").iterdir())) == 1
    assert len(host._runs.kill_switch._views) == views
    host.close()


def test_a_partial_run_that_makes_room_is_forgotten(
    where: Places, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_RUNS", 1)
    block_journal(where)
    enter(host, "run")
    assert host._partial == {"run"}
    enter(host, "other")
    assert host._partial == set(), "else every call takes the slow way"
    host.close()
