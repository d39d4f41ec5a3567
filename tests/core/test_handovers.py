"""Handovers between hosts of one home: who may take a call, and who records its end."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.hosts import host_in

from subluminal.config.places import places
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import Status, Transport
from subluminal.core.handovers import Handovers, key_of
from subluminal.core.host import Host
from subluminal.core.ruling import CallEnding, Ruling
from subluminal.core.runs.opening import ALONE, Sharing
from subluminal.core.runs.tidying import tidy
from subluminal.journal.reading import journal_files

OK = CallEnding(Status.OK, 2, b"ok")
THREADS = Sharing(threads=True)
HOOK, STDIO, IN_PROCESS = Transport.AGENT_HOOK, Transport.MCP_STDIO, Transport.IN_PROCESS
Open = Callable[..., Host]


def call(transport: Transport, client_call_id: str | None = "id-1") -> ToolCall:
    return ToolCall(
        server_name="git",
        tool_name="push",
        args={},
        args_hash="ab" * 32,
        bytes_in=2,
        transport=transport,
        context={} if client_call_id is None else {"client_call_id": client_call_id},
    )


@pytest.fixture
def opened(own_home: Path) -> Any:
    hosts: list[Host] = []

    def start(sharing: Sharing = ALONE, run_id: str = "run-1") -> Host:
        hosts.append(host_in(own_home, sharing=sharing, run_id=run_id))
        return hosts[-1]

    yield start
    for host in hosts:
        host.close()


def offered(host: Host, transport: Transport = HOOK, client_call_id: str | None = "id-1") -> Ruling:
    ruling = host.begin(call(transport, client_call_id), b"{}")
    host.offer(ruling)
    return ruling


def events(home: Path, kind: str) -> list[Any]:
    lines = [
        msgspec.json.decode(line)
        for file in journal_files(str(home / "journal"))
        for line in Path(file.path).read_bytes().splitlines()
    ]
    return [event for event in lines if event["type"] == kind]


def files(home: Path) -> tuple[list[str], list[str]]:
    where = home / "state" / "handovers"
    return os.listdir(where / "offers"), os.listdir(where / "taken")


@pytest.mark.parametrize("first", [ALONE, THREADS], ids=["plain", "threads"])
@pytest.mark.parametrize("second", [ALONE, THREADS], ids=["plain", "threads"])
def test_a_later_door_takes_the_call(
    own_home: Path, opened: Open, first: Sharing, second: Sharing
) -> None:
    hook, shim = opened(first), opened(second)
    begun = offered(hook)
    taken = shim.begin(call(STDIO), b"{}")
    assert taken.call_id == begun.call_id
    assert taken.is_allowed
    assert taken.handed is not None
    assert taken.handed.begun_by == begun.enforcer.run.shim_id
    assert not hook.withdraw(begun)
    hook.finish(begun, OK)
    assert begun.finished
    assert begun.enforcer.open_calls == 0
    shim.finish(taken, OK)
    shim.finish(taken, OK)
    shim.flush()
    assert taken.enforcer.open_calls == 0
    assert [event["call"]["call_id"] for event in events(own_home, "tool_call_end")] == [
        begun.call_id
    ]
    assert files(own_home) == ([], [])


@pytest.mark.parametrize("sharing", [ALONE, THREADS], ids=["plain", "threads"])
def test_a_call_that_nobody_takes_is_ended_by_its_door(
    own_home: Path, opened: Open, sharing: Sharing
) -> None:
    hook = opened(sharing)
    begun = offered(hook)
    hook.offer(begun)
    assert len(files(own_home)[0]) == 1, "it is offered once"
    hook.finish(begun, OK)
    hook.flush()
    assert len(events(own_home, "tool_call_end")) == 1
    assert files(own_home) == ([], [])
    assert opened().begin(call(STDIO), b"{}").call_id != begun.call_id


def test_a_door_does_not_take_from_its_own_kind(own_home: Path, opened: Open) -> None:
    """To a hook, an identical call is a second call, also if another hook shim saw the first."""
    one, other = opened(), opened()
    ids = {offered(each, HOOK, None).call_id for each in (one, one, other)}
    assert len(ids) == 3
    shim = opened()
    taken = [shim.begin(call(STDIO, None), b"{}").call_id for _ in range(4)]
    assert set(taken[:3]) == ids
    assert taken[3] not in ids


@pytest.mark.parametrize("change", [{"tool_name": "reset"}, {"args_hash": "cd" * 32}])
def test_an_offer_that_was_copied_to_another_call_is_not_taken(
    own_home: Path, opened: Open, change: dict[str, str]
) -> None:
    """An agent may rename files of the home; an allowed call must not vouch for another one."""
    begun = offered(opened())
    other = msgspec.structs.replace(call(STDIO), **change)
    offers = own_home / "state" / "handovers" / "offers"
    (name,) = os.listdir(offers)
    _, _, rest = name.partition(".")
    (offers / f"{key_of(other, 'run-1')[0]}.{rest}").write_bytes((offers / name).read_bytes())
    shim = opened()
    assert shim.begin(other, b"{}").call_id != begun.call_id
    assert shim.begin(call(STDIO), b"{}").call_id == begun.call_id


def test_a_copy_of_an_offer_lets_no_second_call_pass(own_home: Path, opened: Open) -> None:
    """An agent may copy files of the home; one decision is for one call."""
    begun = offered(opened())
    offers = own_home / "state" / "handovers" / "offers"
    (name,) = os.listdir(offers)
    key, _, rest = name.partition(".")
    copy = (offers / name).read_bytes()
    shim = opened()
    assert shim.begin(call(STDIO), b"{}").call_id == begun.call_id
    for again in (name, f"{key}.9{rest[1:]}"):
        (offers / again).write_bytes(copy)
        assert shim.begin(call(STDIO), b"{}").call_id != begun.call_id


def test_a_call_may_be_handed_on(own_home: Path, opened: Open) -> None:
    """An SDK in the agent, the client's hook, the server's shim: the last one records the end."""
    guard, hook, shim = opened(), opened(), opened()
    first = offered(guard, IN_PROCESS)
    second = hook.begin(call(HOOK), b"{}")
    hook.offer(second)
    third = shim.begin(call(STDIO), b"{}")
    assert first.call_id == second.call_id == third.call_id
    assert not guard.withdraw(first)
    hook.finish(second, OK)
    shim.finish(third, OK)
    for host in (guard, hook, shim):
        host.flush()
    (end,) = events(own_home, "tool_call_end")
    assert end["begun_by"] == first.enforcer.run.shim_id
    assert files(own_home) == ([], [])


def test_a_refused_call_is_not_offered(own_home: Path, opened: Open) -> None:
    hook = opened()
    ruling = offered(hook)
    hook.finish(ruling, OK)
    hook.offer(ruling)
    assert files(own_home)[0] == []


def test_a_disk_that_takes_no_offer_means_that_the_call_is_decided_anew(
    own_home: Path, opened: Open
) -> None:
    hook, shim = opened(), opened()
    hook.open_run()
    (own_home / "state" / "handovers" / "offers").write_text("not a directory")
    begun = offered(hook)
    assert begun.handed is not None
    assert begun.handed.offer == ""
    assert shim.begin(call(STDIO), b"{}").call_id != begun.call_id
    assert hook.withdraw(begun)


def test_one_of_many_threads_takes_a_call(own_home: Path, opened: Open) -> None:
    hook, later = opened(), [opened(THREADS) for _ in range(4)]
    begun = offered(hook)
    found: list[str] = []
    gate = threading.Barrier(8)

    def take(host: Host) -> None:
        gate.wait()
        found.append(host.begin(call(STDIO), b"{}").call_id)

    threads = [threading.Thread(target=take, args=(later[n % 4],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count(begun.call_id) == 1
    assert len(set(found)) == 8


def test_the_key_tells_ids_from_runs() -> None:
    assert key_of(call(STDIO, "x"), "run")[0] != key_of(call(STDIO, None), "x")[0]
    assert key_of(call(STDIO, "x"), "run") == key_of(call(HOOK, "x"), "other")
    assert key_of(call(STDIO, None), "run")[0] != key_of(call(STDIO, None), "other")[0]


def test_tidying_removes_what_the_dead_left(own_home: Path, opened: Open) -> None:
    hook = opened()
    begun = offered(hook)
    where = places({"SUB_HOME": str(own_home)})
    handovers = Handovers(where)
    left = [
        own_home / "state" / "handovers" / "taken" / "gone.call.1",
        Path(handovers.offers) / "key.0.gone.call.2",
        Path(handovers.offers) / "x.aside",
    ]
    for path in left:
        path.write_bytes(b"")
    tidy(where)
    assert all(path.exists() for path in left), "they may be in use"
    for path in [*left, Path(begun.handed.offer if begun.handed else "")]:
        os.utime(path, (0, 0))
    tidy(where)
    assert not any(path.exists() for path in left)
    assert len(files(own_home)[0]) == 1


def test_an_offer_after_an_empty_look_is_seen(own_home: Path, opened: Open) -> None:
    hook, shim = opened(), opened()
    for number in range(3):
        shim.finish(shim.begin(call(STDIO, "own"), b"{}"), OK)
        assert not shim.offers.may_be_some(), "nothing was offered, so nobody looks"
        begun = offered(hook, client_call_id=f"id-{number}")
        assert shim.offers.may_be_some()
        taken = shim.begin(call(STDIO, f"id-{number}"), b"{}")
        assert taken.call_id == begun.call_id


def test_offers_that_are_left_to_others_are_looked_at_again(own_home: Path, opened: Open) -> None:
    hook, shim = opened(), opened()
    begun = [offered(hook, client_call_id=each).call_id for each in ("a", "b")]
    shim.begin(call(STDIO, "c"), b"{}")
    taken = [shim.begin(call(STDIO, each), b"{}").call_id for each in ("b", "a")]
    assert taken == begun[::-1]


@pytest.mark.parametrize("how", ["cut", "removed", "replaced"])
def test_a_number_that_somebody_broke_is_made_anew(own_home: Path, opened: Open, how: str) -> None:
    hook, shim = opened(), opened()
    shim.finish(shim.begin(call(STDIO, "own"), b"{}"), OK)
    number = own_home / "state" / "handovers" / "generation"
    if how == "cut":
        os.truncate(number, 0)
    else:
        number.unlink()
    if how == "replaced":
        number.write_bytes(bytes(8))
    shim.tick(1 << 40)
    begun = offered(hook)
    assert shim.begin(call(STDIO), b"{}").call_id == begun.call_id


def test_where_the_number_cannot_be_kept_every_call_looks(own_home: Path, opened: Open) -> None:
    (own_home / "state" / "handovers" / "generation").mkdir(parents=True)
    (own_home / "state").chmod(0o700)
    hook, shim = opened(), opened()
    shim.finish(shim.begin(call(STDIO, "own"), b"{}"), OK)
    begun = offered(hook)
    assert shim.begin(call(STDIO), b"{}").call_id == begun.call_id
