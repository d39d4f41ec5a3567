"""A second evaluator, written from the specification and sharing no code with `policy/`.

It walks the raw bundle (plain dicts, as YAML gives them) from top to bottom for every call, keeps
every moment it ever saw, and is as slow as it is plain. Where it and the product disagree, one of
them has misread Pack section 2, no-call-waits, rule-evaluation or policy-layers. Windows are exact here, whatever their size.
"""

import re
from collections import defaultdict
from datetime import UTC, datetime

STRICTNESS = ["ALLOW", "THROTTLE", "REJECT_WITH_HINT", "BLOCK", "TERMINATE_RUN"]
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
MAX_NAME_BYTES = 256
MICRO = 1_000_000


class CannotTell(Exception):
    """The arguments were too large to look at."""


def glob_matches(pattern, name):
    """`*` any run, `?` one character, `[a-c]` and `[!a-c]` a set; anchored, case-sensitive."""
    if not pattern:
        return not name
    head, rest = pattern[0], pattern[1:]
    if head == "*":
        return any(glob_matches(rest, name[i:]) for i in range(len(name) + 1))
    if not name:
        return False
    if head == "[" and (end := pattern.find("]", 3 if pattern[1:2] == "!" else 2)) > 0:
        inside = pattern[1:end].removeprefix("!")
        negated = pattern[1] == "!"
        return in_set(inside, name[0]) != negated and glob_matches(pattern[end + 1 :], name[1:])
    return head in ("?", name[0]) and glob_matches(rest, name[1:])


def in_set(inside, char):
    while inside:
        if inside[1:2] == "-" and len(inside) > 2:
            if inside[0] <= char <= inside[2]:
                return True
            inside = inside[3:]
        else:
            if inside[0] == char:
                return True
            inside = inside[1:]
    return False


def name_matches(matcher, name):
    globs, regexes = matcher.get("glob", []), matcher.get("regex", [])
    if not globs and not regexes:
        return True
    return any(glob_matches(p, name) for p in globs) or any(re.search(p, name) for p in regexes)


def same(wanted, value):
    """JSON equality: 1 is 1.0, true is never 1, "1" is never 1, down to the leaves."""
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    if isinstance(wanted, list) and isinstance(value, list):
        return len(wanted) == len(value) and all(map(same, wanted, value))
    if isinstance(wanted, dict) and isinstance(value, dict):
        return wanted.keys() == value.keys() and all(same(wanted[k], value[k]) for k in wanted)
    return wanted == value


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def js(value):
    """A value as JavaScript's String() writes it; the values of these tests are simple."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def leaves(value):
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [leaf for each in inner for leaf in leaves(each)]
    return [] if value is None else [js(value)]


def text_matches(matcher, args):
    if not matcher:
        return True
    if args is None:
        raise CannotTell
    values = leaves(args)

    def found(word):
        return any(word.casefold() in each.casefold() for each in values)

    regex = matcher.get("regex")
    return (
        (not matcher.get("any_of") or any(map(found, matcher["any_of"])))
        and not any(map(found, matcher.get("none_of", [])))
        and (regex is None or re.search(regex, " ".join(values), re.IGNORECASE) is not None)
    )


def data_matches(wanted, kind, effect, args):
    """Nobody looks at data here, which counts against a call."""
    if wanted and args is None:
        raise CannotTell
    favours = kind == "allow" or effect.get("taint", {}).get("lower_to") == "SYSTEM"
    return not wanted or not favours


def args_match(matcher, args):
    if any(matcher.values()) and args is None:
        raise CannotTell
    return (
        all(key in args for key in matcher.get("has_keys", []))
        and all(k in args and same(v, args[k]) for k, v in matcher.get("key_equals", {}).items())
        and all(
            k in args and any(same(v, args[k]) for v in vs)
            for k, vs in matcher.get("key_in", {}).items()
        )
        and all(
            k in args
            and is_number(args[k])
            and (r.get("min") is None or args[k] >= r["min"])
            and (r.get("max") is None or args[k] <= r["max"])
            and (r.get("gt") is None or args[k] > r["gt"])
            and (r.get("lt") is None or args[k] < r["lt"])
            for k, r in matcher.get("numeric_range", {}).items()
        )
        and not any(
            k in args and same(v, args[k]) for k, v in matcher.get("key_not_equals", {}).items()
        )
    )


def time_matches(matcher, wall_ms):
    now = datetime.fromtimestamp(wall_ms / 1000, UTC)
    hours, days = matcher.get("utc_hours", []), matcher.get("weekdays", [])
    return (not days or WEEKDAYS[now.weekday()] in days) and (
        not hours
        or any(a <= now.hour < b if a <= b else now.hour >= a or now.hour < b for a, b in hours)
    )


LEVELS = (None, "SYSTEM", "TRUSTED", "UNTRUSTED")
"""From most to least trusted; every level is below none."""


ACCESS = {"allow", "deny", "kernel"}
"""Kinds that are passed over once one of them has settled access."""
PACK_ANSWERS = {
    "REFUSE": ("BLOCK", "desk.no", None),
    "ESCALATE": ("REJECT_WITH_HINT", "HUMAN_REQUIRED", None),
    "REQUEST_CONFIRMATION": ("REJECT_WITH_HINT", "CONFIRMATION_REQUIRED", None),
    "DEFER": ("REJECT_WITH_HINT", "SIGNAL_REQUIRED", None),
    "WAIT": ("THROTTLE", "DEFERRED", 500),
    "REWRITE": ("REJECT_WITH_HINT", "REWRITE_OFFERED", None),
}
"""Action, reason and backoff of what a pack may say; EXECUTE is no opinion."""
ASKS_A_PERSON = ("ESCALATE", "REQUEST_CONFIRMATION")


def pack_says(state, args, level):
    """A pack for tests: the state lists what it says, and arguments and level choose from that."""
    says = state["says"]
    return says[(len(args) + 2 * (level == "UNTRUSTED")) % len(says)]


def applies(selectors, identity):
    workload = identity.get("workload", {})
    wanted = selectors.get("workload") or {}
    labels = workload.get("labels", {})
    plain = [(selectors, identity, k) for k in ("env", "agent_id", "client")]
    plain += [(wanted, workload, k) for k in ("namespace", "service_account", "repo", "branch")]
    return all(not where.get(k) or who.get(k) in where[k] for where, who, k in plain) and all(
        labels.get(k) == v for k, v in wanted.get("labels", {}).items()
    )


class Call:
    """One tool call with the moment it came, and what is to be done if it is forwarded or ends."""

    def __init__(self, server, tool, args, args_hash, granted, wall_ms, mono_ms, excused=()):
        self.server, self.tool, self.args, self.args_hash = server, tool, args, args_hash
        self.granted, self.wall_ms, self.now = granted, wall_ms, mono_ms
        self.excused, self.level = excused, 0
        self.if_forwarded, self.when_ended = [], []

    def scope(self, where, scope):
        names = {"run": (), "tool": (self.tool,), "server_tool": (self.server, self.tool)}
        # A run of these tests has one agent.
        names |= {"agent": (), "agent_tool": (self.tool,)}
        return (*where, *names[scope])

    def same_call(self, where, scope):
        """What makes two calls equal: arguments and tool, and the server unless the scope spans servers."""
        spans = scope in ("tool", "agent_tool")
        return (*where, scope, spans or self.server, self.tool, self.args_hash)

    def matches(self, rule, tags):
        """Whether every field that is given holds; the arguments are looked at last."""
        match = rule["match"]
        return (
            name_matches(match.get("server_name") or {}, self.server)
            and name_matches(match.get("tool_name") or {}, self.tool)
            and (not match.get("risk_class") or any(t in tags for t in match["risk_class"]))
            and time_matches(match.get("time") or {}, self.wall_ms)
            and self.level > LEVELS.index((match.get("taint") or {"below": None})["below"])
            and args_match(match.get("args") or {}, self.args)
            and data_matches(match.get("data_any"), rule["kind"], rule["effect"], self.args)
            and text_matches(match.get("text"), self.args)
        )


def answer(action, rule, reason_code, backoff_ms=None):
    rule_id = rule and rule["rule_id"]
    found = {"action": action, "rule_id": rule_id, "reason_code": reason_code}
    return found | {"backoff_ms": backoff_ms, "would_be": None}


def strictness(found):
    return STRICTNESS.index(found["action"]) if found else -1


class Naive:
    """Decides calls of one run in the order they come."""

    def __init__(self, layers, identity):
        self.layers, self.identity = layers, identity
        self.counts, self.buckets, self.seen = defaultdict(int), {}, defaultdict(list)
        starts = [
            each["defaults"].get("taint")
            for _, each in layers
            if applies(each["selectors"], identity)
        ]
        self.level = max([LEVELS.index(each or "SYSTEM") for each in starts], default=1)

    def evaluate(self, call):
        """One call through every layer: the strictest answer, the earlier layer on a tie (policy-layers)."""
        call.level = self.level
        asked = [each for each in self.layers if applies(each[1]["selectors"], self.identity)]
        if not asked:
            return answer("ALLOW", None, "POLICY_NOT_APPLICABLE")
        answers = [self.ask(layer, bundle, call) for layer, bundle in asked]
        best = max(answers, key=strictness)
        if best["action"] == "ALLOW":
            if call.granted or call.excused:  # the layer that a grant satisfied says why
                best = next((a for a in answers if a["reason_code"] == "APPROVAL_GRANTED"), best)
            for act in call.if_forwarded:
                act()
        return best | {"would_be": max((a["would_be"] for a in answers), key=strictness)}

    def end(self, call, status, latency_ms, mono_ms):
        """The outcome of a call that was forwarded."""
        for act in call.when_ended:
            act(status, latency_ms, mono_ms)

    def ask(self, layer, bundle, call):
        """One layer's answer, its mode applied."""
        found = self.visit_rules(layer, bundle, call)
        end = bundle.get("expires_at")
        if end and call.wall_ms >= datetime.fromisoformat(end).timestamp() * 1000:
            found = answer("BLOCK", None, "POLICY_EXPIRED")
        if bundle["mode"] == "control" and found["action"] == "BLOCK":
            found = found | {"action": "REJECT_WITH_HINT"}
        if bundle["mode"] == "observe" and found["action"] != "ALLOW":
            return found | {"action": "ALLOW", "would_be": found, "backoff_ms": None}
        return found

    def visit_rules(self, layer, bundle, call):
        """Every rule in order. The first refusal counts, unless another ends the run (rule-evaluation)."""
        if max(len(name.encode()) for name in (call.server, call.tool)) > MAX_NAME_BYTES:
            return self.on_error(bundle["defaults"], None, ())
        tags, settled, answers = set(), False, []
        lowered = False
        for rule in bundle["rules"]:
            kind = rule["kind"]
            passed_over = (
                {"pin"} | (ACCESS if settled else set()) | ({"taint"} if lowered else set())
            )
            if not rule["enabled"] or kind in passed_over:
                continue
            where = (layer, bundle["policy_id"], rule["rule_id"])
            try:
                if not call.matches(rule, tags):
                    continue
                if kind == "tag":
                    tags |= set(rule["effect"]["tag"]["add_risk_class"])
                elif kind == "taint":
                    lowered = True
                    self.lower(rule, call)
                elif kind == "kernel":
                    found, settled = self.kernel(layer, bundle, rule, call, tags)
                    answers += found
                elif kind in ("allow", "deny"):
                    settled = True
                    answers.append(self.access(layer, rule, call))
                else:
                    refusal = getattr(self, kind)(where, rule, rule["effect"][kind], call)
                    if refusal and (layer, rule["rule_id"]) in call.excused:
                        refusal = [answer("ALLOW", rule, "APPROVAL_GRANTED")]
                    answers += refusal
            except CannotTell:
                lowered = self.unread(where, rule, call) or lowered
                answers.append(self.on_error(bundle["defaults"], rule, tags))
        refusals = [a for a in answers if a["action"] != "ALLOW"]
        ends = [a for a in refusals if a["action"] == "TERMINATE_RUN"]
        return (ends + refusals + answers + [answer("ALLOW", None, "DEFAULT_ALLOW")])[0]

    def unread(self, where, rule, call):
        """What cannot be judged counts against the call. Returns whether a taint rule is settled."""
        if rule["kind"] == "sequence":
            self.remember(where, call)
        if rule["kind"] != "taint" or rule["effect"]["taint"]["lower_to"] == "SYSTEM":
            return False
        self.lower(rule, call)
        return True

    def kernel(self, layer, bundle, rule, call, tags):
        """What a pack has to say, and whether that settles access."""
        if call.args is None:
            raise CannotTell
        said = pack_says(rule["effect"]["kernel"]["state"], call.args, LEVELS[call.level])
        if said == "EXECUTE":
            return [], False
        if said == "BROKEN":
            return [self.on_error(bundle["defaults"], rule, tags)], False
        if said in ASKS_A_PERSON and (layer, rule["rule_id"]) in call.granted:
            return [answer("ALLOW", rule, "APPROVAL_GRANTED")], False
        action, code, backoff_ms = PACK_ANSWERS[said]
        return [answer(action, rule, code, backoff_ms=backoff_ms)], True

    def lower(self, rule, call):
        level = LEVELS.index(rule["effect"]["taint"]["lower_to"])
        call.if_forwarded.append(lambda: setattr(self, "level", max(self.level, level)))

    def on_error(self, defaults, rule, tags):
        spared = defaults.get("fail_open_read_tools") and "read_like" in tags
        action = "ALLOW" if spared else defaults["decision_on_error"]
        return answer(action, rule, "EVALUATION_ERROR")

    def access(self, layer, rule, call):
        effect = rule["effect"]
        if not effect.get("require"):
            return answer(effect["action"], rule, effect["reason_code"])
        if (layer, rule["rule_id"]) in call.granted:
            return answer("ALLOW", rule, "APPROVAL_GRANTED")
        return answer("REJECT_WITH_HINT", rule, effect["require"].upper() + "_REQUIRED")

    def remember(self, where, call):
        call.if_forwarded.append(lambda: self.seen[where].append((call.tool, call.now)))

    def sequence(self, where, rule, effect, call):
        """Tries every way to lay the pattern over the calls so far, and this one."""
        within = effect.get("within_ms")
        calls = [*self.seen[where], (call.tool, call.now)]
        self.remember(where, call)

        def fits(pattern, end):
            """When the pattern may begin, if its last call is the one at this place."""
            tool, at = calls[end]
            if not glob_matches(pattern[-1], tool):
                return []
            if len(pattern) == 1:
                return [at]
            return [start for each in range(end) for start in fits(pattern[:-1], each)]

        starts = fits(effect["pattern"], len(calls) - 1)
        hit = any(within is None or call.now - start <= within for start in starts)
        return [answer(effect["on_match"], rule, "SEQUENCE_MATCHED")] if hit else []

    def sliding(self, key, rule, effect, call):
        passed = [at for at in self.seen[key] if call.now - at <= effect["window_ms"]]
        call.if_forwarded.append(lambda: self.seen[key].append(call.now))
        if len(passed) < effect["max_calls"]:
            return []
        action = effect["on_limit"]
        backoff_ms = effect["backoff_ms"] if action == "THROTTLE" else None
        return [answer(action, rule, "RATE_LIMITED", backoff_ms=backoff_ms)]

    def renew(self, key, reset_ms, call):
        """Forgets a budget that is over, and remembers when this one began."""
        if self.seen[key] and call.now - self.seen[key][0] >= reset_ms:
            self.seen[key], self.counts[key] = [], 0

    def budget(self, where, rule, effect, call):
        key = call.scope(where, effect["scope"])
        if effect.get("reset_ms") is not None:
            self.renew(key, effect["reset_ms"], call)
            began = lambda: self.seen[key].append(call.now)  # noqa: E731
            began() if effect.get("count") != "executed" else call.if_forwarded.append(began)
        if effect.get("count") == "executed":
            call.if_forwarded.append(lambda: self.count(key))
            after = self.counts[key] + 1
        else:
            after = self.count(key)
        calls, cost = effect.get("limit_calls"), effect.get("limit_cost_units")
        over = calls is not None and after > calls
        over |= cost is not None and after * effect.get("cost_units_per_call", 1) > cost
        return [answer(effect["on_exceed"], rule, "BUDGET_EXCEEDED")] if over else []

    def count(self, key):
        self.counts[key] += 1
        return self.counts[key]

    def rate_limit(self, where, rule, effect, call):
        key = call.scope(where, effect["scope"])
        if "max_calls" in effect:
            return self.sliding(key, rule, effect, call)
        full = effect["capacity"] * MICRO
        rate, period = effect["refill_tokens"] * MICRO, effect["refill_period_ms"]
        tokens, then = self.buckets.get(key, (full, call.now))
        earned = (call.now - then) * rate // period
        # The clock of a bucket stands where its last whole micro-token was earned.
        then = call.now if tokens + earned >= full else then - (-earned * period // rate)
        tokens = min(full, tokens + earned)
        cost = effect.get("cost_tokens_per_call", 1) * MICRO
        if tokens >= cost:
            self.buckets[key] = (tokens - cost, then)
            return []
        action = effect["on_limit"]
        backoff_ms = effect["backoff_ms"] if action == "THROTTLE" else None
        return [answer(action, rule, "RATE_LIMITED", backoff_ms=backoff_ms)]

    def breaker(self, where, rule, effect, call):
        key, window = call.scope(where, effect["scope"]), effect.get("window_ms")
        tripped = False
        if effect.get("error_threshold") is not None:
            tripped |= self.recent((*key, "errors"), window, call.now) >= effect["error_threshold"]
        if effect.get("latency_count") is not None:
            tripped |= self.recent((*key, "slow"), window, call.now) >= effect["latency_count"]
        call.when_ended.append(lambda *end: self.ended(key, effect, *end))
        if effect.get("repeat_threshold") is not None and not call.granted:
            if call.args is not None:
                same_call = (*call.same_call(where, effect["scope"]), "same")
                self.seen[same_call].append(call.now)
                count = self.recent(same_call, effect["repeat_window_ms"], call.now)
                tripped |= count >= effect["repeat_threshold"]
            elif not tripped:
                raise CannotTell
        return [answer(effect["on_trip"], rule, "BREAKER_TRIPPED")] if tripped else []

    def ended(self, key, effect, status, latency_ms, mono_ms):
        if status in ("ERROR", "TIMEOUT"):
            self.seen[(*key, "errors")].append(mono_ms)
        if latency_ms > effect.get("latency_threshold_ms", latency_ms):
            self.seen[(*key, "slow")].append(mono_ms)

    def recent(self, key, window_ms, now):
        return sum(seen <= now < seen + window_ms for seen in self.seen[key])

    def dedupe(self, where, rule, effect, call):
        if call.granted:
            return []
        if call.args is None:
            raise CannotTell
        key = (*call.same_call(where, effect["scope"]), "dedupe")
        if self.recent(key, effect["window_ms"], call.now):
            return [answer(effect["on_duplicate"], rule, "DEDUPE_DUPLICATE")]
        call.if_forwarded.append(lambda: self.seen[key].append(call.now))
        return []
