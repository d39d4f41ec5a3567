"""What every ledger that outlives its process does (kernel contract, section 2), on both engines."""

import os
import threading
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
from tests.adapters.in_process.executions.claimants import Claimant, entry, hash_of, hot_loop, race
from tests.kernel.making import FakeClock, Records, envelope, policy
from tests.requirements import requirement

from subluminal.adapters.in_process.executions import KeptExecutions, open_executions
from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.kernel.auditing import adjudicate_and_audit
from subluminal.kernel.executions import ExecutionStatus

CLAIMED, DONE, UNKNOWN = ExecutionStatus.CLAIMED, ExecutionStatus.DONE, ExecutionStatus.UNKNOWN
Opener = Callable[[str], KeptExecutions]


def test_a_claim_is_found_by_everybody(
    ledger: KeptExecutions, opened: Opener, setting: str
) -> None:
    mine = entry("one", resource_version="v7")
    assert ledger.check(mine.intent_hash) is None
    assert ledger.claim(mine) is None
    other = opened(setting)
    assert other.check(mine.intent_hash) == mine
    assert other.claim(entry("one", session_id="another")) == mine
    assert ledger.claim(mine) == mine


def test_an_end_is_kept(ledger: KeptExecutions, opened: Opener, setting: str) -> None:
    for name, status in (("a", DONE), ("b", UNKNOWN)):
        ledger.claim(entry(name))
        ledger.finish(hash_of(name), status)
        held = opened(setting).claim(entry(name))
        assert held == msgspec.structs.replace(entry(name), status=status)


def test_what_was_released_can_be_claimed(ledger: KeptExecutions) -> None:
    ledger.claim(entry("one"))
    ledger.release(hash_of("one"))
    ledger.release(hash_of("one"))
    assert ledger.check(hash_of("one")) is None
    assert ledger.claim(entry("one")) is None


def test_only_a_claim_can_end(ledger: KeptExecutions) -> None:
    with pytest.raises(SubluminalError, match="was not claimed by this process"):
        ledger.finish(hash_of("one"), DONE)
    ledger.claim(entry("one"))
    ledger.finish(hash_of("one"), DONE)
    with pytest.raises(SubluminalError, match="was not claimed by this process"):
        ledger.finish(hash_of("one"), UNKNOWN)
    ledger.release(hash_of("one"))
    found = ledger.check(hash_of("one"))
    assert found is not None
    assert found.status is DONE


def test_a_claim_of_another_process_cannot_be_ended(
    ledger: KeptExecutions, setting: str, home: Places
) -> None:
    with Claimant(setting, home, "one") as other:
        other.reach("claimed")
        ledger.release(hash_of("one"))
        with pytest.raises(SubluminalError, match="was not claimed by this process"):
            ledger.finish(hash_of("one"), DONE)
        found = ledger.check(hash_of("one"))
        assert found is not None
        assert found.status is CLAIMED


@requirement("kernel:one-execution")
def test_the_kernel_executes_once(ledger: KeptExecutions, opened: Opener, setting: str) -> None:
    """`adjudicate_and_audit` with this ledger, in three places one after the other."""
    intent, told = envelope(), []
    for each in (ledger, ledger, opened(setting)):
        done = adjudicate_and_audit(
            intent, None, policy(default="EXECUTE"), sink=Records(), clock=FakeClock(), ledger=each
        )
        hit = done.ledger_hit
        told.append((done.decision.kind, hit and hit.status))
        if hit is None:
            each.finish(intent.intent_hash, DONE)
    assert told == [("EXECUTE", None), ("REFUSE", DONE), ("REFUSE", DONE)]


def test_a_sink_that_fails_releases_the_claim(ledger: KeptExecutions) -> None:
    intent, broken = envelope(), Records(OSError("no room"))
    rules = policy(default="EXECUTE")
    with pytest.raises(OSError, match="no room"):
        adjudicate_and_audit(intent, None, rules, sink=broken, clock=FakeClock(), ledger=ledger)
    assert ledger.check(intent.intent_hash) is None


@requirement("kernel:one-execution")
def test_of_16_processes_one_gets_the_claim(
    ledger: KeptExecutions, setting: str, home: Places
) -> None:
    told = race(setting, home, processes=16)
    winners = [each["session"] for each in told if each["held"] is None]
    assert len(winners) == 1
    assert {each["held"] for each in told if each["held"]} == set(winners)
    found = ledger.check(hash_of("race"))
    assert found is not None
    assert found.session_id == winners[0]


@requirement("kernel:one-execution")
def test_of_16_threads_one_gets_the_claim(ledger: KeptExecutions) -> None:
    together, told = threading.Barrier(16), []

    def claim(number: int) -> None:
        together.wait()
        told.append((number, ledger.claim(entry("race", session_id=str(number)))))

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for number, held in told if held is None]
    assert {held.session_id for _, held in told if held} == {str(winner)}


def test_a_process_that_claims_all_the_time_does_not_starve_others(
    ledger: KeptExecutions, setting: str, home: Places
) -> None:
    with hot_loop(setting, home):
        for number in range(30):
            assert ledger.check(hash_of(str(number))) is None
            assert ledger.claim(entry(str(number))) is None
            ledger.finish(hash_of(str(number)), DONE)


def test_forked_children_share_a_ledger_that_was_open_before(
    ledger: KeptExecutions, setting: str, opened: Opener
) -> None:
    """Each child claims its own hash and the common one; threads of the parent claim meanwhile."""
    stop, failed = threading.Event(), []

    def claim_on() -> None:
        try:
            for number in range(1000):
                if stop.is_set():
                    return
                ledger.claim(entry(f"parent {number}"))
        except SubluminalError as error:
            failed.append(error)

    thread = threading.Thread(target=claim_on)
    thread.start()
    codes = Counter[int]()
    children = [_forked(ledger, number) for number in range(6)]
    for child in children:
        codes[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
    stop.set()
    thread.join()
    assert codes == {10: 1, 11: 5}
    assert failed == []
    assert ledger.claim(entry("after")) is None
    known = {each.session_id: each.status for each in opened(setting).entries(None, 2000)}
    assert all(known[f"child {number}"] is UNKNOWN for number in range(6))
    assert known["test"] is CLAIMED


def _forked(ledger: KeptExecutions, number: int) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        session = f"child {number}"
        own = ledger.claim(entry(session, session_id=session))
        common = ledger.claim(entry("common", session_id=session))
        code = (10 if common is None else 11) if own is None else 2
    finally:
        os._exit(code)


def test_a_child_does_not_end_what_its_parent_claimed(ledger: KeptExecutions) -> None:
    ledger.claim(entry("one"))
    child = os.fork()
    if not child:
        code = 1
        try:
            ledger.release(hash_of("one"))
            try:
                ledger.finish(hash_of("one"), DONE)
            except SubluminalError:
                code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ledger.finish(hash_of("one"), DONE)


def test_a_child_that_lives_on_does_not_keep_its_dead_parent_alive(
    ledger: KeptExecutions, setting: str, home: Places
) -> None:
    with Claimant(setting, home, "one", forks=True) as claimant:
        claimant.reach("claimed")
        claimant.kill()
        claimant.wait_for(lambda: _status(ledger, "one") is UNKNOWN)
        os.kill(claimant.child, 0)  # raises if the child is gone


@requirement("kernel:unknown-after-death")
@pytest.mark.parametrize("barrier", ["claimed", "journalled", "handling", "handled"])
def test_a_process_killed_half_way_leaves_an_unknown_execution(
    ledger: KeptExecutions, setting: str, home: Places, barrier: str
) -> None:
    with Claimant(setting, home, "one") as claimant:
        claimant.reach(barrier)
        assert _status(ledger, "one") is CLAIMED
        claimant.kill()
    claimant.wait_for(lambda: _status(ledger, "one") is UNKNOWN)
    held = ledger.claim(entry("one", session_id="retry"))
    assert held is not None
    assert (held.session_id, held.status) == ("claimant", UNKNOWN)
    assert ledger.entries(UNKNOWN, 10) == [held]
    assert ledger.entries(CLAIMED, 10) == []


def test_a_process_killed_before_its_claim_leaves_nothing(
    ledger: KeptExecutions, setting: str, home: Places
) -> None:
    with Claimant(setting, home, "one") as claimant:
        claimant.reach("opened")
        claimant.kill()
    assert ledger.claim(entry("one")) is None


def test_a_process_that_finished_before_it_died_is_done(
    ledger: KeptExecutions, setting: str, home: Places
) -> None:
    with Claimant(setting, home, "one") as claimant:
        claimant.reach("finished")
        claimant.kill()
    assert _status(ledger, "one") is DONE


def test_freeing_is_for_what_is_unknown(ledger: KeptExecutions, setting: str, home: Places) -> None:
    assert ledger.free(hash_of("nothing")) is None
    ledger.claim(entry("done"))
    ledger.finish(hash_of("done"), DONE)
    ledger.claim(entry("claimed"))
    for name, status in (("done", DONE), ("claimed", CLAIMED)):
        kept = ledger.free(hash_of(name))
        assert kept is not None
        assert kept.entry.status is status
        assert kept.holder.pid == os.getpid()
        assert _status(ledger, name) is status
    with Claimant(setting, home, "one") as claimant:
        claimant.reach("handling")
        claimant.kill()
    claimant.wait_for(lambda: _status(ledger, "one") is UNKNOWN)
    kept = ledger.free(hash_of("one"))
    assert kept is not None
    assert kept.entry.status is UNKNOWN
    assert ledger.claim(entry("one")) is None


def test_a_handler_that_failed_can_be_freed_while_its_process_lives(ledger: KeptExecutions) -> None:
    ledger.claim(entry("one"))
    ledger.finish(hash_of("one"), UNKNOWN)
    kept = ledger.free(hash_of("one"))
    assert kept is not None
    assert ledger.claim(entry("one")) is None


def test_entries_are_listed_newest_first_by_status(ledger: KeptExecutions) -> None:
    for name in ("a", "b", "c", "d"):
        ledger.claim(entry(name))
    ledger.finish(hash_of("a"), DONE)
    ledger.finish(hash_of("b"), UNKNOWN)
    kinds = {
        status: {e.intent_hash for e in ledger.entries(status, 10)} for status in ExecutionStatus
    }
    assert kinds == {
        DONE: {hash_of("a")},
        UNKNOWN: {hash_of("b")},
        CLAIMED: {hash_of("c"), hash_of("d")},
    }
    assert len(ledger.entries(None, 10)) == 4
    assert len(ledger.entries(None, 3)) == 3
    assert len(ledger.entries(CLAIMED, 1)) == 1


def test_an_execution_is_found_by_the_beginning_of_its_hash(ledger: KeptExecutions) -> None:
    ledger.claim(entry("one"))
    ledger.claim(entry("two"))
    (found,) = ledger.find(hash_of("one")[:8], 2)
    assert found.entry == entry("one")
    assert ledger.find("", 2).__len__() == 2
    assert ledger.find("%", 2) == []


def test_text_that_cannot_be_kept_is_not_claimed(ledger: KeptExecutions) -> None:
    with pytest.raises(SubluminalError):
        ledger.claim(entry("one", session_id="\ud800"))
    assert ledger.check(hash_of("one")) is None
    assert ledger.claim(entry("one")) is None


def test_a_closed_ledger_opens_again(ledger: KeptExecutions) -> None:
    ledger.claim(entry("one"))
    ledger.close()
    ledger.close()
    ledger.finish(hash_of("one"), DONE)
    assert _status(ledger, "one") is DONE


def test_off_keeps_nothing(home: Places) -> None:
    assert open_executions("off", home) is None


def test_another_setting_is_refused_without_repeating_it(home: Places) -> None:
    with pytest.raises(SubluminalError) as refused:
        open_executions("mysql://me:secret@host/db", home)
    assert "secret" not in str(refused.value)


def _status(ledger: KeptExecutions, name: str) -> ExecutionStatus | None:
    found = ledger.check(hash_of(name))
    return found and found.status
