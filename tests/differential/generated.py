"""Bundles, identities and call sequences: small vocabularies, so that things meet.

Everything is plain data, as YAML would give it. Bundles are valid: what a compiler must refuse is
another test's subject. Each function asks a `Chooser` for its choices; behind it is either
Hypothesis, which shrinks what fails, or a seeded random generator, which is a hundred times faster.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from tests.differential.naive import PACK_ANSWERS

SERVERS = ["git", "gitlab", "db"]
TOOLS = ["push", "pull", "Push", "push_all", "dröp"]
KEYS = ["a", "b", "c"]
VALUES = [1, 1.0, True, "1", 0, False, None, 2.5, -3, "x", [1], [True], {"x": 1}, {"x": True}, {}]
SCALARS = [value for value in VALUES if isinstance(value, str | int | float)]
NUMBERS = [-3, 0, 0.5, 1, 1.0, 2, 2.5]
LEVELS = ["SYSTEM", "TRUSTED", "UNTRUSTED"]
CLASSES = ["read_like", "write_like", "network_like"]
GLOBS = ["*", "p*", "?ush", "*l*", "[a-p]*", "[!p]*", "[!a-z]*", "push", "PUSH", "git*", "d?*p"]
REGEXES = ["^p", "ush$", "p.sh", "[Pp]ull", "a|b", "(?i)PUSH", "^git$", "u", "ö", r"^\w+_\w+$"]
LAYERS = ["managed", "user", "repository"]
RULE_IDS = [f"r{i}" for i in range(8)]
SCOPES = ["run", "tool", "server_tool", "agent", "agent_tool"]
WORDS = ["x", "1", "TRUE", "2.5", "a", "-", "\u00e9"]
TEXT_REGEXES = ["^1", "x|y", "e 1", "[0-9]$", "T.*E"]
DATA = ["SECRET", "PCI", "PII", "PII.email"]
WINDOWS = [1, 10, 50, 1_000]
REFUSALS = ["BLOCK", "REJECT_WITH_HINT", "TERMINATE_RUN"]
REQUIREMENTS = ["approval", "step_up", "ticket", "human", "confirmation"]
ENDS = ["2026-11-12T21:59:00Z", "2026-11-12T21:59:00.010Z", "2030-01-01T00:00:00Z"]
MODES = ["observe", "guardrails", "control"]
AGENTS, REPOS, BRANCHES, SPACES = ["fixer", "sweeper"], ["acme/x", "acme/y"], ["main", "dev"], ["a"]
PAUSES_MS = [0, 1, 3, 9, 10, 49, 50, 999, 1_000, 60_000, 7_200_000]

Data = dict[str, Any]


class Chooser:
    """Takes choices from `below`, a function that gives an integer in [0, n)."""

    def __init__(self, below: Callable[[int], int]) -> None:
        self.below = below

    def one(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]

    def some(self, values: Sequence[Any], low: int = 1, high: int = 2) -> list[Any]:
        return [self.one(values) for _ in range(low + self.below(high - low + 1))]

    def rarely(self, one_in: int = 3) -> bool:
        return self.below(one_in) == one_in - 1

    def fields(self, **makers: Callable[[], Any]) -> Data:
        """Any subset of the fields."""
        return {name: make() for name, make in makers.items() if self.below(2)}

    def fields_rarely(self, **makers: Callable[[], Any]) -> Data:
        """A few of the fields, and mostly none."""
        return {name: make() for name, make in makers.items() if self.rarely()}

    def by_key(self, make: Callable[[], Any], low: int = 1) -> Data:
        return {key: make() for key in self.some(KEYS, low)}


def seeded(seed: int) -> Chooser:
    return Chooser(random.Random(seed).randrange)


def drawn(make: Callable[..., Any], *args: Any) -> st.SearchStrategy[Any]:
    """The strategy of what `make` makes."""

    @st.composite
    def strategy(draw: st.DrawFn) -> Any:
        return make(Chooser(lambda n: draw(st.integers(0, n - 1))), *args)

    return strategy()


def name_match(choose: Chooser) -> Data:
    match choose.below(3):
        case 0:
            return {"glob": choose.some(GLOBS)}
        case 1:
            return {"regex": choose.some(REGEXES, 1, 1)}
    return {"glob": choose.some(GLOBS), "regex": choose.some(REGEXES)}


def open_bounds(choose: Chooser) -> Data:
    low, high = sorted(choose.some(NUMBERS, 2, 2))
    if low == high or choose.rarely():
        return choose.one([{"gt": low}, {"lt": high}])
    return choose.one([{"gt": low, "lt": high}, {"min": low, "lt": high}, {"gt": low, "max": high}])


def text_match(choose: Chooser) -> Data:
    given = choose.fields(
        any_of=lambda: choose.some(WORDS),
        none_of=lambda: choose.some(WORDS),
        regex=lambda: choose.one(TEXT_REGEXES),
    )
    return given or {"any_of": choose.some(WORDS)}


def bounds(choose: Chooser) -> Data:
    low, high = sorted((choose.one(NUMBERS), choose.one(NUMBERS)))
    return choose.one([{"min": low}, {"max": high}, {"min": low, "max": high}])


def args_match(choose: Chooser) -> Data:
    return choose.fields(
        has_keys=lambda: choose.some(KEYS),
        key_equals=lambda: choose.by_key(lambda: choose.one([*SCALARS, None])),
        key_in=lambda: choose.by_key(lambda: choose.some(VALUES, 1, 3)),
        numeric_range=lambda: choose.by_key(
            lambda: open_bounds(choose) if choose.rarely() else bounds(choose)
        ),
    ) | choose.fields_rarely(
        key_not_equals=lambda: choose.by_key(lambda: choose.one([*SCALARS, None]))
    )


def hours(choose: Chooser) -> list[int]:
    start = choose.below(24)
    return [start, (start + 1 + choose.below(23)) % 24]


def time_match(choose: Chooser) -> Data:
    return choose.fields(
        utc_hours=lambda: [hours(choose) for _ in range(1 + choose.below(2))],
        weekdays=lambda: choose.some(["thu", "fri", "sat", "mon"]),
    )


def match(choose: Chooser) -> Data:
    if choose.rarely():
        return {}
    return choose.fields(
        server_name=lambda: name_match(choose),
        tool_name=lambda: name_match(choose),
        risk_class=lambda: choose.some(CLASSES),
        args=lambda: args_match(choose),
    ) | choose.fields_rarely(
        time=lambda: time_match(choose),
        taint=lambda: {"below": choose.one(LEVELS[:2])},
        text=lambda: text_match(choose),
        data_any=lambda: choose.some(DATA),
    )


def access(choose: Chooser, actions: list[str], code: str) -> Data:
    effect = {"action": choose.one(actions), "reason_code": code, "message": "m"}
    return effect | ({"require": choose.one(REQUIREMENTS)} if choose.rarely() else {})


def suggestion(choose: Chooser) -> Data:
    match choose.below(4):
        case 0:
            return {"set": choose.one(VALUES)}
        case 1:
            return {"remove": True}
        case 2:
            return {"one_of": choose.some(VALUES, 1, 3)}
    ends = bounds(choose)
    return {f"clamp_{end}": number for end, number in ends.items()}


def denial(choose: Chooser) -> Data:
    effect = access(choose, ["BLOCK", "REJECT_WITH_HINT"], "NO")
    return effect | choose.fields(suggest=lambda: choose.by_key(lambda: suggestion(choose)))


def budget(choose: Chooser) -> Data:
    limits = {"limit_calls": choose.below(5), "limit_cost_units": choose.below(5) * 2}
    if choose.below(3):
        limits.pop(choose.one(sorted(limits)))
    more = choose.fields(
        cost_units_per_call=lambda: 1 + choose.below(3),
        count=lambda: choose.one(["attempts", "executed"]),
    )
    more |= choose.fields_rarely(reset_ms=lambda: choose.one(WINDOWS))
    return {"scope": choose.one(SCOPES), "on_exceed": choose.one(REFUSALS)} | limits | more


def rate_limit(choose: Chooser) -> Data:
    action = choose.one(["THROTTLE", "BLOCK", "REJECT_WITH_HINT"])
    if choose.rarely():
        effect = {"max_calls": 1 + choose.below(3), "window_ms": choose.one(WINDOWS)}
        waits = {"backoff_ms": 7} if action == "THROTTLE" else {}
        return {"scope": choose.one(SCOPES), "on_limit": action} | effect | waits
    effect = {
        "scope": choose.one(SCOPES),
        "capacity": 1 + choose.below(3),
        "refill_tokens": 1 + choose.below(3),
        "refill_period_ms": choose.one([1, 7, 30, 1_000, 3_000_000_000]),
        "on_limit": action,
    }
    if action == "THROTTLE":
        effect["backoff_ms"] = 1 + choose.below(900)
    if choose.rarely():
        effect["cost_tokens_per_call"] = 1 + choose.below(effect["capacity"])
    return effect


def breaker(choose: Chooser) -> Data:
    errors = {"error_threshold": 1 + choose.below(3)}
    slow = {"latency_threshold_ms": choose.one([1, 5]), "latency_count": 1 + choose.below(3)}
    repeats = {
        "repeat_threshold": 1 + choose.below(3),
        "repeat_window_ms": choose.one(WINDOWS),
    }
    effect = {"scope": choose.one(SCOPES), "on_trip": choose.one(REFUSALS)}
    for part in choose.some([errors, slow, repeats], 1, 3):
        effect |= part
    if errors.keys() & effect.keys() or slow.keys() & effect.keys():
        effect["window_ms"] = choose.one(WINDOWS)
    return effect


def dedupe(choose: Chooser) -> Data:
    return {
        "scope": choose.one(SCOPES),
        "window_ms": choose.one(WINDOWS),
        "on_duplicate": choose.one(["BLOCK", "REJECT_WITH_HINT"]),
    }


def sequence(choose: Chooser) -> Data:
    return {
        "pattern": choose.some(GLOBS, 2, 4),
        "on_match": choose.one(REFUSALS),
    } | choose.fields(within_ms=lambda: choose.one(WINDOWS))


def kernel(choose: Chooser) -> Data:
    words = ["EXECUTE", "EXECUTE", "EXECUTE", "BROKEN", *PACK_ANSWERS]
    return {
        "pack": "desk",
        "intent": "desk.pay",
        "state": {"says": choose.some(words, 1, 4)},
        "version": "1.0.0",
        "fingerprint": "d" * 64,
    }


EFFECTS: dict[str, Callable[[Chooser], Data]] = {
    "allow": lambda choose: access(choose, ["ALLOW"], "OK"),
    "deny": denial,
    "budget": lambda choose: {"budget": budget(choose)},
    "rate_limit": lambda choose: {"rate_limit": rate_limit(choose)},
    "breaker": lambda choose: {"breaker": breaker(choose)},
    "dedupe": lambda choose: {"dedupe": dedupe(choose)},
    "tag": lambda choose: {"tag": {"add_risk_class": choose.some(CLASSES)}},
    "taint": lambda choose: {"taint": {"lower_to": choose.one(LEVELS)}},
    "kernel": lambda choose: {"kernel": kernel(choose)},
    "sequence": lambda choose: {"sequence": sequence(choose)},
}


def rule(choose: Chooser, rule_id: str) -> Data:
    kind = choose.one(list(EFFECTS))
    return {
        "rule_id": rule_id,
        "kind": kind,
        "enabled": not choose.rarely(10),
        "match": match(choose),
        "effect": EFFECTS[kind](choose),
        "severity": choose.one(["info", "warn", "critical"]),
    }


def selectors(choose: Chooser) -> Data:
    workload = choose.fields(
        namespace=lambda: choose.some(SPACES, 1, 1),
        service_account=lambda: choose.some(SPACES, 1, 1),
        labels=lambda: choose.by_key(lambda: choose.one(["1", "2"]), 0),
        repo=lambda: choose.some(REPOS),
        branch=lambda: choose.some(BRANCHES),
    )
    return choose.fields(
        env=lambda: choose.some(["dev", "ci", "prod"], 2, 3),
        agent_id=lambda: choose.some(AGENTS),
        client=lambda: choose.some(["claude", "codex", "custom"], 2, 3),
        workload=lambda: workload,
    )


def bundle(choose: Chooser, modes: Sequence[str] = MODES) -> Data:
    return {
        "policy_id": choose.one(["p", "q"]),
        "version": "1",
        "mode": choose.one(modes),
        "defaults": {"decision_on_error": choose.one(["ALLOW", "BLOCK"])}
        | choose.fields(fail_open_read_tools=lambda: bool(choose.below(2)))
        | choose.fields_rarely(taint=lambda: choose.one(LEVELS)),
        # Most policies apply: a sequence of POLICY_NOT_APPLICABLE teaches little.
        "selectors": selectors(choose) if choose.rarely() else {},
        **({"expires_at": choose.one(ENDS)} if choose.rarely(8) else {}),
        "rules": [rule(choose, each) for each in RULE_IDS[: choose.below(len(RULE_IDS) + 1)]],
    }


def layers(choose: Chooser) -> list[tuple[str, Data]]:
    count = choose.one([1, 1, 1, 2, 3])
    return [(layer, bundle(choose)) for layer in LAYERS[:count]]


def identity(choose: Chooser) -> Data:
    return {
        "env": choose.one(["dev", "ci", "prod", "unknown"]),
        "agent_id": choose.one(AGENTS),
        "client": choose.one(["claude", "codex", "custom"]),
        "workload": choose.fields(
            namespace=lambda: choose.one(SPACES),
            service_account=lambda: choose.one(SPACES),
            labels=lambda: choose.by_key(lambda: choose.one(["1", "2"]), 0),
            repo=lambda: choose.one(REPOS),
            branch=lambda: choose.one(BRANCHES),
        ),
    }


def args(choose: Chooser) -> Data | None:
    """Often the same, and now and then too large to inspect."""
    if choose.rarely():
        return {"a": 1}
    if choose.rarely(7):
        return None
    return choose.by_key(lambda: choose.one(VALUES), 0)


def grants(choose: Chooser) -> frozenset[tuple[str, str]]:
    pairs = [(choose.one(LAYERS), choose.one(RULE_IDS[:4])) for _ in range(choose.below(4))]
    return frozenset(pairs)


def call(choose: Chooser) -> Data:
    return {
        "after_ms": choose.one(PAUSES_MS),
        "server": choose.one(SERVERS),
        "tool": choose.one(TOOLS),
        "args": args(choose),
        "granted": grants(choose) if choose.rarely() else frozenset(),
        "excused": grants(choose) if choose.rarely() else frozenset(),
        "status": choose.one(["OK", "ERROR", "TIMEOUT", "CANCELLED"]),
        "latency_ms": choose.one([0, 1, 2, 5, 6, 50]),
        "ends_late": choose.rarely(),
    }


def calls(choose: Chooser) -> list[Data]:
    return [call(choose) for _ in range(1 + choose.below(10))]
