"""Checks the record of one job: complete, in order, and decided exactly as its policy says.

A call takes its `seq` under the same lock as its decision. So a plain model of the policy, given the
calls in the order of `seq`, must come to the recorded decisions, across all shims and restarts.
"""

from collections import Counter, defaultdict
from datetime import datetime

CODES = {
    "ALLOW": 0,
    "BLOCK": -32081,
    "THROTTLE": -32082,
    "REJECT_WITH_HINT": -32083,
    "TERMINATE_RUN": -32084,
}
REFUSED = ("BLOCK", "REJECT_WITH_HINT", "TERMINATE_RUN")
SPEND = ("spend", "get-sum", "read_query", "open_nodes")
WRITE = ("write", "create_table", "create_entities")
POLL = ("poll", "get-tiny-image", "list_tables", "read_graph")
FAIL = ("fail", "get-structured-content", "describe_table", "add_observations")
RATE = ("rate", "echo", "append_insight", "search_nodes")
SPEND_RUN, SPEND_SERVER, POLLS, FAILURES, BURST = 60, 25, 4, 5, 20
ALLOWED = ("ALLOW", None)


class Model:
    """A plain model of policy.yaml: the decisions that are right for each call, in order."""

    def __init__(self):
        self.spent = 0
        self.spent_at = Counter()
        self.wrote = set()
        self.polled = Counter()
        self.is_over = False

    def want(self, call):
        """Returns the right (action, rule) pairs: two if it depends on time or on ends of calls."""
        if self.is_over:
            return [("TERMINATE_RUN", None)]
        for tools, rule in (
            (SPEND, self._spend),
            (WRITE, self._write),
            (POLL, self._poll),
            (FAIL, lambda call: [ALLOWED, ("BLOCK", "failing")]),
            (RATE, lambda call: [ALLOWED, ("THROTTLE", "slowly")]),
            (("rm",), lambda call: [("BLOCK", "no-rm")]),
            (("bomb",), self._bomb),
        ):
            if call["tool_name"] in tools:
                return rule(call)
        raise AssertionError(call)

    def _spend(self, call):
        where = call["server_name"], call["tool_name"]
        self.spent += 1
        self.spent_at[where] += 1
        if self.spent > SPEND_RUN:
            return [("BLOCK", "spend-run")]
        if self.spent_at[where] > SPEND_SERVER:
            return [("REJECT_WITH_HINT", "spend-server")]
        return [ALLOWED]

    def _write(self, call):
        key = call["server_name"], call["tool_name"], call["args_hash"]
        again = key in self.wrote
        self.wrote.add(key)
        return [("BLOCK", "write-once") if again else ALLOWED]

    def _poll(self, call):
        key = call["server_name"], call["tool_name"], call["args_hash"]
        self.polled[key] += 1
        return [("REJECT_WITH_HINT", "no-polling") if self.polled[key] >= POLLS else ALLOWED]

    def _bomb(self, _call):
        self.is_over = True
        return [("TERMINATE_RUN", "no-bombs")]


class Record:
    """The events of one run, as its shims journalled them."""

    def __init__(self, events):
        self.events = events
        self.starts = self._of("tool_call_start")
        self.decisions = {
            e["call"]["call_id"]: e["decision"] for e in self._of("tool_call_decision")
        }
        self.ends = self._of("tool_call_end")
        self.ordered = sorted(self.starts, key=lambda event: event["call"]["seq"])

    def _of(self, kind):
        return [event for event in self.events if event["type"] == kind]

    def decision(self, start):
        return self.decisions[start["call"]["call_id"]]

    def rule(self, start):
        decision = self.decision(start)
        return decision["action"], decision["rule_id"]

    def actions(self):
        return Counter(decision["action"] for decision in self.decisions.values())

    def refused(self):
        actions = self.actions()
        return sum(actions[action] for action in REFUSED)

    def check_order(self):
        """Checks that each call has start, decision and end, in this order, and that `seq` has no gap."""
        steps = defaultdict(list)
        for event in self.events:
            if event["type"].startswith("tool_call_"):
                steps[event["call"]["call_id"]].append(event["type"])
        whole = ["tool_call_start", "tool_call_decision", "tool_call_end"]
        assert all(kinds == whole for kinds in steps.values()), steps
        seqs = [event["call"]["seq"] for event in self.ordered]
        assert seqs == list(range(1, len(seqs) + 1))

    def check_totals(self, status):
        (start,) = self._of("run_start")
        (end,) = self._of("run_end")
        assert (start["env"], start["run"]["policy"]["policy_id"]) == ("ci", "load")
        actions = self.actions()
        summary = end["run"]["summary"]
        wanted = {
            "calls_total": len(self.starts),
            "calls_allowed": actions["ALLOW"],
            "calls_blocked": self.refused(),
            "calls_throttled": actions["THROTTLE"],
            "errors_total": sum(event["status"] != "OK" for event in self.ends),
        }
        assert {name: summary[name] for name in wanted} == wanted
        assert end["run"]["status"] == status, end["run"]

    def check_decisions(self, *, server_is_killed):
        """Checks every decision against the model. No rule is asked about a call to a dead server."""
        model = Model()
        for start in self.ordered:
            got = self.rule(start)
            reason = self.decision(start)["explain"]["reason_code"]
            if server_is_killed and reason == "SERVER_UNREACHABLE":
                continue
            want = model.want(start["call"])
            assert got in want, (start["call"], self.decision(start), want)

    def check_breaker(self, shims):
        """Checks that the breaker tripped after five failures; each other shim may have had a call in flight."""
        asked = [start for start in self.starts if start["call"]["tool_name"] in FAIL]
        passed = [start for start in asked if self.decision(start)["action"] == "ALLOW"]
        assert len(passed) <= FAILURES + shims - 1
        asked_alive = [s for s in asked if self.decision(s)["action"] != "TERMINATE_RUN"]
        if len(asked_alive) > FAILURES + shims - 1:
            assert len(passed) >= FAILURES

    def check_rate(self):
        """Checks the rate: the bucket starts with 20 tokens and gains one a second."""
        asked = [start for start in self.ordered if start["call"]["tool_name"] in RATE]
        passed = [start for start in asked if self.decision(start)["action"] == "ALLOW"]
        if not passed:
            return
        seconds = self._span_s(passed)
        assert len(passed) <= BURST + seconds + 1
        alive = [s for s in asked if self.decision(s)["action"] != "TERMINATE_RUN"]
        assert len(passed) >= min(BURST, len(alive))

    @staticmethod
    def _span_s(starts):
        moments = [datetime.fromisoformat(start["ts"]).timestamp() for start in starts]
        return max(moments) - min(moments)

    def check_answers(self, answers, *, is_killed):
        """Checks the answers against the decisions; a killed agent may have missed some."""
        told = Counter(int(code) for _, _, code in answers if code != "gone")
        actions = self.actions()
        for action, code in CODES.items():
            heard, decided = told[code], actions[action]
            if action == "ALLOW":
                # A killed server leaves errors of its own, and calls that it never received.
                assert heard <= decided
            elif action == "BLOCK":
                # A call that passed and could not be written to a dying server is refused too.
                most = decided + self._undelivered()
                assert heard <= most, (action, heard, decided)
                assert is_killed or heard >= decided, (action, heard, decided)
            else:
                assert heard == decided or (is_killed and heard <= decided), (
                    action,
                    heard,
                    decided,
                )

    def _undelivered(self):
        """Counts calls that passed and were then lost on their way to the server."""
        return sum(
            event["error"]["class"] == "transport"
            for event in self.ends
            if event["status"] == "ERROR"
        )

    def allowed_at(self, server):
        return sum(
            start["call"]["server_name"] == server and self.decision(start)["action"] == "ALLOW"
            for start in self.starts
        )
