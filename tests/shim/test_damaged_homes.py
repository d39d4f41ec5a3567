"""Homes, settings and states that somebody has damaged: refused or survived, with a sentence."""

import os
import pathlib
import shutil
import signal

import pytest
from tests.processes import wait_until
from tests.shim.household import budget, policy
from tests.shim.test_shared_runs import leave

from subluminal.config.places import places
from subluminal.contracts.identity import Identity
from subluminal.core.runs.tidying import tidy
from subluminal.errors import SubluminalError
from subluminal.operator.running.record import RunRecord
from subluminal.operator.running.stamping import Stamp
from subluminal.wiring import open_host

ENDED, BLOCKED = -32084, -32081


def state_of(household, run="run-1"):
    return household.home / "state" / "runs" / run


def told(answer):
    ours = answer["error"]["data"]["subluminal"]
    return ours["action"], ours["reason_code"]


class TestHome:
    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o702], ids=oct)
    @pytest.mark.parametrize("place", ["", "state", "journal"])
    def test_others_can_write_there(self, household, person, mode, place):
        household.write_policy(policy())
        directory = household.home / place
        directory.mkdir(exist_ok=True, mode=0o700)
        directory.chmod(mode)
        shim = household.start()
        assert shim.wait() == 1
        assert (
            f"error: other users can write to `{directory}` (mode {mode:04o})" in shim.err.decode()
        )
        assert f"`chmod 700 {directory}`" in shim.err.decode()
        assert household.executed() == []
        said = person("query", code=2)
        assert said.startswith("error: other users can write to")
        assert "other users can write" in person("run", "--", "true", code=2)
        directory.chmod(0o700)
        assert household.start().ready().code() == 0

    @pytest.mark.parametrize("name", ["config.toml", "policy.yaml"])
    @pytest.mark.parametrize(("home", "mode"), [(0o755, 0o646), (0o750, 0o660)], ids=oct)
    def test_others_can_write_a_file_that_decides(self, household, person, name, home, mode):
        """Whoever writes `config.toml` approves commands for secrets."""
        household.write_policy(policy())
        file = household.home / name
        file.touch()
        file.chmod(mode)
        household.home.chmod(home)
        shim = household.start()
        assert shim.wait() == 1
        sentence = f"other users can write to `{file}` (mode {mode:04o})"
        assert sentence in shim.err.decode()
        assert household.executed() == []
        assert sentence in person("query", code=2)
        assert sentence in person("doctor", code=1, all_output=True)
        household.home.chmod(0o700)
        assert household.start().ready().code() == 0, "nobody else can enter the home"

    def test_a_file_that_decides_belongs_to_another_user(self, household):
        household.write_policy(policy())
        file = household.home / "policy.yaml"
        os.chown(file, 12345, 12345)
        household.home.chmod(0o755)
        shim = household.start()
        assert shim.wait() == 1
        assert f"other users can write to `{file}`" in shim.err.decode()

    def test_it_belongs_to_another_user(self, household, person):
        if os.geteuid() != 0:
            pytest.fail("these tests run as root, which can give a directory away")
        household.write_policy(policy())
        os.chown(household.home, 12345, 12345)
        shim = household.start()
        assert shim.wait() == 1
        assert b"belongs to another user" in shim.err
        assert b"SUB_HOME" in shim.err
        assert "belongs to another user" in person("approvals", code=2)

    def test_an_agent_cannot_take_the_kill_switch_away(self, household, person):
        shim = household.start().ready()
        assert shim.code() == 0
        household.home.chmod(0o777)
        person("kill", "run-1")
        assert shim.code() == ENDED
        assert '"ok":false' in person("doctor", "--json", code=1, all_output=True)
        leave(shim)


class TestPipes:
    """A pipe in place of a file must not make anybody wait."""

    def test_settings(self, household, person):
        household.write_policy(policy())
        os.mkfifo(household.home / "config.toml")
        shim = household.start()
        assert shim.wait() == 1
        assert b"config.toml`: it is not a regular file" in shim.err
        assert "not a regular file" in person("secrets", "list", code=2)

    def test_settings_of_a_living_shim(self, household):
        household.hurry()
        shim = household.start().ready()
        (household.home / "config.toml").unlink()
        os.mkfifo(household.home / "config.toml")
        told = household.wait_event("shim_health", health__state="degraded")
        assert "not a regular file" in told["health"]["detail"]
        assert shim.code() == 0
        leave(shim)

    @pytest.mark.parametrize("name", ["policy.yaml", "state/host_id", "state/seal.key"])
    def test_other_files_of_the_home(self, household, name):
        (household.home / "state").mkdir(parents=True, mode=0o700)
        os.mkfifo(household.home / name)
        shim = household.start().ready()
        assert shim.code() in (0, BLOCKED)
        leave(shim)

    def test_the_note_of_a_process(self, household):
        """Its name is the pid of a process that has yet to start."""
        notes = household.home / "state" / "processes"
        notes.mkdir(parents=True, mode=0o700)
        first = household.start().ready()
        for pid in range(first.pid + 1, first.pid + 400):
            os.mkfifo(notes / str(pid))
        shim = household.start().ready()
        assert shim.code() == 0
        leave(first, shim)

    def test_client_configurations(self, household, person, tmp_path):
        (tmp_path / "user" / ".codex").mkdir(parents=True)
        os.mkfifo(tmp_path / "user" / ".codex" / "config.toml")
        os.mkfifo(tmp_path / "user" / ".claude.json")
        for client in ("claude", "codex"):
            said = person(
                "import", client, "--dry-run", code=2, all_output=True, HOME=tmp_path / "user"
            )
            assert "not a regular file" in said


DAMAGES = {
    "emptied": lambda path: os.truncate(path, 0),
    "cut": lambda path: os.truncate(path, 5000),
    "overwritten": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "zeroed": lambda path: zero(path, path.stat().st_size),
}


def zero(path, size):
    with open(path, "r+b") as file:
        file.write(bytes(size))


class TestStateOfALivingShim:
    @pytest.mark.parametrize("damage", DAMAGES)
    @pytest.mark.parametrize(("on_error", "code"), [("BLOCK", BLOCKED), ("ALLOW", 0)])
    def test_every_call_gets_decision_on_error(self, household, damage, on_error, code):
        household.write_policy(policy(budget(9), on_error=on_error))
        shim, other = household.start().ready(), household.start().ready()
        assert shim.code() == 0
        # A shim that is just counting an event in a file that is cut at this moment is ended by the
        # system (SIGBUS); nothing in Python can prevent that.
        household.wait_event("tool_call_end")
        DAMAGES[damage](state_of(household))
        for each in (shim, other, shim):
            answer = each.call()
            assert answer.get("error", {}).get("code", 0) == code
            if code:
                assert told(answer) == ("BLOCK", "EVALUATION_ERROR")
                assert "the run's counters are unavailable" in answer["error"]["message"]
        shim.close()
        other.close()
        assert (shim.wait(), other.wait()) == (0, 0)
        household.wait_empty()

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_a_run_that_a_rule_ended_stays_ended(self, household, damage):
        household.write_policy(policy(budget(0, "TERMINATE_RUN"), on_error="ALLOW"))
        shim = household.start().ready()
        assert shim.code() == ENDED
        assert shim.code() == ENDED
        DAMAGES[damage](state_of(household))
        assert shim.code() == ENDED
        leave(shim)

    @pytest.mark.parametrize("size", [0, 4])
    def test_the_number_of_the_kill_switch(self, household, person, size):
        shim = household.start().ready()
        for _ in range(40):
            assert shim.code() == 0
            os.truncate(household.home / "state" / "kill" / "generation", size)
            wait_until(lambda: shim.code() == 0, "a call")
        person("kill", "run-1")
        wait_until(lambda: shim.code() == ENDED, "the stop")
        leave(shim)

    def test_sub_run_survives_it(self, household, person):
        state = household.home / "state" / "runs"
        said = person(
            *("run", "--", "sh", "-c", f"for f in {state}/*; do : > $f; done; exit 3"),
            code=3,
            all_output=True,
        )
        assert "bug" not in said
        assert household.events("run_end")[0]["run"]["status"] == "FAILED"

    def test_sub_revive_mends_it(self, household, person):
        household.write_policy(policy(budget(2)))
        shim = household.start().ready()
        assert [shim.code(), shim.code(), shim.code()] == [0, 0, BLOCKED]
        leave(shim)
        os.truncate(state_of(household), 0)
        again = household.start().ready()
        assert told(again.call()) == ("BLOCK", "EVALUATION_ERROR")
        assert "start from zero" in person("revive", "run-1", all_output=True)
        wait_until(lambda: again.code() == 0, "the new state")
        leave(again)
        assert "is not stopped" in person("revive", "run-1", code=2)


class TestRemovedState:
    """It is no new budget: the run is refused until a person revives it (shared-runs)."""

    @pytest.fixture
    def spent(self, household):
        household.write_policy(policy(budget(2)))
        shim = household.start().ready()
        assert [shim.code(), shim.code(), shim.code()] == [0, 0, BLOCKED]
        leave(shim)
        state_of(household).unlink()
        return household

    def test_the_run_is_refused_and_another_one_is_not(self, spent):
        shim, other = spent.start().ready(), spent.start(run="run-2").ready()
        answer = shim.call()
        assert answer["error"]["code"] == ENDED
        assert told(answer) == ("TERMINATE_RUN", "STATE_LOST")
        assert "the state of this run was removed" in answer["error"]["message"]
        assert other.code() == 0
        assert not state_of(spent).exists()
        leave(shim, other)
        assert len(spent.executed()) == 3
        assert spent.start().ready().code() == ENDED, "the refusals are no way around it"

    @pytest.mark.parametrize("mode", ["observe", "none"])
    def test_in_every_mode(self, spent, mode):
        spent.write_policy(policy().replace("guardrails", "observe"))
        if mode == "none":
            (spent.home / "policy.yaml").unlink()
        assert told(spent.start().ready().call()) == ("TERMINATE_RUN", "STATE_LOST")

    def test_a_person_revives_it(self, spent, person):
        shim = spent.start().ready()
        assert shim.code() == ENDED
        assert "is for a person" in person("revive", "run-1", code=2, CLAUDECODE="1")
        said = person("revive", "run-1", "--reason", "I cleaned up", all_output=True)
        assert "start from zero" in said
        wait_until(lambda: shim.code() == 0, "the run to go on")
        leave(shim)
        switch = spent.events("kill_switch")[-1]["switch"]
        assert (switch["state"], switch["reason"]) == ("revived", "I cleaned up")
        starts = [e["call"]["seq"] for e in spent.events("tool_call_start") if e["call"]["seq"]]
        assert sorted(starts) == list(range(1, len(starts) + 1)), "no seq stands twice"
        assert len(spent.events("run_start")) == 1
        totals = spent.run_end()["summary"]
        assert totals["calls_total"] >= 4, "the totals of the run go on"

    def test_a_run_that_a_rule_ended_stays_ended(self, household, person):
        household.write_policy(policy(budget(0, "TERMINATE_RUN")))
        shim = household.start().ready()
        assert shim.code() == ENDED
        leave(shim)
        state_of(household).unlink()
        person("revive", "run-1")
        again = household.start().ready()
        assert told(again.call()) == ("TERMINATE_RUN", "RUN_TERMINATED")
        leave(again)

    def test_a_shim_that_is_killed_does_not_make_a_new_state(self, household):
        """Its warden and ledgerd close the run, and must not open it anew."""
        household.write_policy(policy(budget(1)))
        shim = household.start().ready()
        assert shim.code() == 0
        state_of(household).unlink()
        shim.kill(signal.SIGKILL)
        shim.wait()
        household.wait_empty()
        assert not state_of(household).exists()
        assert told(household.start().ready().call()) == ("TERMINATE_RUN", "STATE_LOST")

    def test_a_living_shim_keeps_its_budget(self, household):
        household.write_policy(policy(budget(2)))
        shim = household.start().ready()
        assert shim.code() == 0
        state_of(household).unlink()
        assert [shim.code(), shim.code()] == [0, BLOCKED]
        leave(shim)

    def test_journals_that_were_copied_from_elsewhere(self, spent, person, tmp_path):
        """A fresh machine, or a CI cache without the state."""
        home = tmp_path / "fresh"
        home.mkdir(mode=0o700)
        shutil.copytree(spent.home / "journal", home / "journal")
        (home / "journal").chmod(0o700)
        shim = spent.start(SUB_HOME=str(home)).ready()
        assert told(shim.call()) == ("TERMINATE_RUN", "STATE_LOST")
        person("revive", "run-1", SUB_HOME=str(home))
        wait_until(lambda: shim.code() == 0, "the run to go on")

    def test_runs_that_start_at_the_same_time_are_not_taken_for_lost(self, household):
        shims = [household.start() for _ in range(6)]
        assert [shim.ready().code() for shim in shims] == [0] * 6
        leave(*shims)

    def test_a_full_disk_at_the_start_is_not_a_lost_state(self, household, person):
        """The journal was written, the state could not be: that run has counted nothing."""
        runs = household.home / "state" / "runs"
        runs.parent.mkdir(parents=True, mode=0o700)
        runs.write_text("in the way")
        shim = household.start().ready()
        assert shim.code() == 0
        runs.unlink()
        wait_until(lambda: shim.code() == 0 and state_of(household).exists(), "a state")
        leave(shim)

    def test_sub_run_refuses_it(self, spent):
        """With the same sentence, before the agent starts."""
        where = places({"SUB_HOME": str(spent.home)})
        stamp = Stamp("run-1", Identity(), {})
        with pytest.raises(SubluminalError, match="it was removed") as refused:
            RunRecord.open(open_host, where, stamp, None, str(spent.cwd))
        assert refused.value.hint.startswith("`sub revive run-1`")


def test_pruning_leaves_the_state_of_a_run_that_has_journals(household):
    """Otherwise a session that is resumed after a month would be refused."""
    shim = household.start().ready()
    assert shim.code() == 0
    leave(shim)
    tidy(places({"SUB_HOME": str(household.home)}), keep_ms=-(10**9))
    assert state_of(household).exists()
    for file in pathlib.Path(household.home / "journal" / "run-1").iterdir():
        file.unlink()
    tidy(places({"SUB_HOME": str(household.home)}), keep_ms=-(10**9))
    assert not state_of(household).exists()
    again = household.start().ready()
    assert again.code() == 0
    leave(again)
