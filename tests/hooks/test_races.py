"""Eight hooks at a time race a budget, while their hook shim is killed and stopped."""

import os
import random
import signal
import threading

from tests.processes import wait_until
from tests.shim.household import budget, policy

LIMIT = 60
ROUNDS, AT_ONCE = 12, 8


def disturb(agent, done, stopped):
    """Kills the hook shim, or stops it for a moment, until the agent is done."""
    chance = random.Random(7)
    while not done.wait(0.02):
        for pid in agent.hook_shims():
            try:
                if chance.random() < 0.5:
                    os.kill(pid, signal.SIGKILL)
                else:
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
                    done.wait(0.05)
                    os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue


def test_eight_hooks_race_a_budget(agent, household):
    household.write_policy(policy(budget(LIMIT)))
    # A slow machine may be given no time to start a hook shim later, and then there is no run.
    assert agent.before(call="first").is_nothing
    done, stopped = threading.Event(), []
    trouble = threading.Thread(target=disturb, args=[agent, done, stopped])
    trouble.start()
    allowed = {"first"}
    try:
        for turn in range(ROUNDS):
            calls = [f"t{turn}-{n}" for n in range(AT_ONCE)]
            waits = {call: agent.ask(args={"call": call}, call=call) for call in calls}
            allowed |= {call for call, wait in waits.items() if wait().is_nothing}
            for call in calls[::2]:
                agent.after(args={"call": call}, call=call)
    finally:
        done.set()
        trouble.join()
    agent.stop()
    agent.end()
    household.wait_event("run_end")
    wait_until(lambda: not agent.hook_shims(), "every hook shim to be gone")
    starts = [event["call"] for event in household.events("tool_call_start")]
    decided = {
        event["call"]["call_id"]: event["decision"]["action"]
        for event in household.events("tool_call_decision")
    }
    by_agent = {call["client_call_id"]: call["call_id"] for call in starts}
    assert all(decided[by_agent[call]] == "ALLOW" for call in allowed), "each yes is on record"
    assert len(allowed) <= LIMIT
    assert sum(action == "ALLOW" for action in decided.values()) <= LIMIT
    assert [call["seq"] for call in sorted(starts, key=lambda call: call["seq"])] == sorted(
        {call["seq"] for call in starts}
    ), "no number twice"
    ends = [event["call"]["call_id"] for event in household.events("tool_call_end")]
    assert len(ends) == len(set(ends)), "no call ends twice"
    wait_until(
        lambda: (
            {event["call"]["call_id"] for event in household.events("tool_call_end")}
            >= decided.keys()
        ),
        "every call to end",
    )
