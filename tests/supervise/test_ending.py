"""The order and the waits of an end, with a fake tree."""

import signal

from subluminal.supervise.ending import TERM_GRACE_S, Ending
from subluminal.system.process import Process


class FakeTree:
    """A tree of `size` processes that never die."""

    upstream = 100
    upstream_is_alive = True

    def __init__(self, size=1, group=100):
        self.members = [Process(100 + n, b"server", b"S", 1, group, 0) for n in range(size)]

    def terminate(self):
        return self.members

    def kill(self):
        return self.members


def signals(reports):
    return [report.signal for report in reports]


def test_nothing_happens_before_it_begins():
    ending = Ending(FakeTree())
    assert ending.deadline is None
    assert ending.step(1e9) == []


def test_end_of_input_then_term_then_kill():
    ending = Ending(FakeTree())
    ending.begin(10.0, 2.0)
    assert ending.step(11.9) == []
    assert signals(ending.step(12.0)) == [signal.SIGTERM]
    assert ending.step(12.0 + TERM_GRACE_S - 0.1) == []
    assert signals(ending.step(12.0 + TERM_GRACE_S)) == [signal.SIGKILL]


def test_processes_that_an_exited_upstream_left_get_no_grace():
    tree = FakeTree(group=7)
    ending = Ending(tree)
    ending.begin(10.0, 2.0)
    tree.upstream_is_alive = False
    (report,) = ending.step(10.0)
    assert (
        report.detail
        == "`server`: left its process group and was still running after its input was closed"
    )


def test_a_second_order_shortens_and_never_lengthens():
    ending = Ending(FakeTree())
    ending.begin(10.0, 2.0)
    ending.begin(10.0, 5.0)
    assert ending.deadline == 12.0
    ending.begin(10.5, 0.0)
    assert signals(ending.step(10.5)) == [signal.SIGTERM]


def test_each_process_is_reported_once_and_kills_become_less_frequent():
    ending = Ending(FakeTree())
    ending.begin(0.0, 0.0)
    ending.step(0.0)
    waits, now = [], TERM_GRACE_S
    for round_number in range(9):
        assert bool(ending.step(now)) == (round_number == 0)
        waits.append(round(ending.deadline - now, 6))
        now = ending.deadline
    assert waits == sorted(waits)
    assert waits[-1] == 1.0


def test_a_tree_of_thousands_is_counted_not_listed():
    ending = Ending(FakeTree(size=5_000))
    ending.begin(0.0, 0.0)
    assert len(ending.step(0.0)) == 64
    assert ending.step(TERM_GRACE_S) == []
    assert [report.detail for report in ending.summary()] == ["and 9936 more processes"]
