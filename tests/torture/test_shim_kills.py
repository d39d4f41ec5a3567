"""kill -9 at random points, from a fixed seed: no executed call without its decision, no orphan.

Twenty rounds in the default suite; `make torture` sets TORTURE and runs a thousand.
"""

import hashlib
import json
import os
import random
import signal

import pytest
from tests.processes import descendants
from tests.shim.household import Household, deny, policy, wait_until

from subluminal.config.places import places
from subluminal.ledger.client.roll_call import close_what_died

ROUNDS = 1000 if os.environ.get("TORTURE") else 20
BATCH = 5
CALLS = 200


@pytest.fixture
def household(tmp_path, own_home, subreaper):
    home = Household(tmp_path, own_home)
    home.write_policy(policy(deny("rm")))
    home.hurry()
    yield home
    home.clean()


@pytest.mark.timeout(20 + 4 * ROUNDS)
def test_random_kills(household):
    chance = random.Random(20261115)
    for first in range(0, ROUNDS, BATCH):
        rounds = [Round(household, number, chance) for number in range(first, first + BATCH)]
        for each in chance.sample(rounds, len(rounds)):
            # From before the warden's fork to well into the traffic.
            signal.sigtimedwait([], chance.uniform(0, 0.12))
            each.hurt()
        for each in rounds:
            each.client.close()
            each.client.process.wait(20)
        household.wait_empty()
        # If warden and shim were killed together, the next command completes the record.
        close_what_died(places({"SUB_HOME": str(household.home)}))
        for each in rounds:
            each.check()
        household.forget(rounds)


class Round:
    """One shim under traffic, which is killed or signalled once."""

    def __init__(self, household, number, chance):
        self.household = household
        self.run = f"run-{number}"
        self.log = household.tmp_path / f"executed-{number}"
        self.chance = chance
        server = chance.choice([(), ("stubborn",), ("daemon",)])
        self.client = household.start(*server, run=self.run, log=self.log)
        for n in range(CALLS):
            tool = "rm" if n % 7 == 0 else "echo"
            self.client.ask(tool, {"n": n + 1})

    def hurt(self):
        ways = ["shim", "shim", "warden", "deputy", "both", "stop", "server", "signal"]
        victim = self.chance.choice(ways)
        known = {process.name: process.pid for process in descendants(self.client.pid)}
        if victim == "shim" or not known:
            self.client.kill()
        elif victim == "warden":
            os.kill(known.get("sub-warden", self.client.pid), signal.SIGKILL)
        elif victim == "deputy":
            os.kill(known.get("sub-deputy", self.client.pid), signal.SIGKILL)
        elif victim in ("both", "stop"):
            number = signal.SIGKILL if victim == "both" else signal.SIGSTOP
            os.kill(known.get("sub-warden", self.client.pid), number)
            self.client.kill()
        elif victim == "server":
            os.kill(max(known.values()), signal.SIGKILL)
        else:
            self.client.kill(self.chance.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))

    def check_ends(self):
        """Every decided call has its end, exactly once, whoever wrote it."""
        ended = [e["call"]["call_id"] for e in self.household.events("tool_call_end", self.run)]
        decided = self.household.events("tool_call_decision", self.run)
        assert sorted(ended) == sorted(event["call"]["call_id"] for event in decided)

    def check(self):
        events = self.household.events(run=self.run)
        allowed = {
            event["call"]["args_hash"]
            for event in events
            if event["type"] == "tool_call_decision" and event["decision"]["action"] == "ALLOW"
        }
        for message_id in self.log.read_text().split() if self.log.exists() else ():
            text = json.dumps({"n": int(message_id)}, separators=(",", ":"))
            assert hashlib.sha256(text.encode()).hexdigest() in allowed, f"{message_id} unrecorded"
        if events:
            wait_until(lambda: self.household.events("run_end", self.run), f"an end of {self.run}")
        self.check_ends()
        seqs = [event["call"]["seq"] for event in events if event["type"] == "tool_call_start"]
        assert seqs == sorted(set(seqs))
