"""Plans the jobs of the load test from a fixed seed: servers, calls, and who is killed when."""

import random
import sys
from typing import NamedTuple

from tests.realservers.test_real_servers import node
from tests.shim.household import SERVER, SUB

SHIMS = 3
CALLS = 200
ROLES = {"spend": 90, "write": 24, "poll": 12, "fail": 16, "rate": 40, "rm": 18}
"""Number of calls of each role in a job; the sum is CALLS."""
WRITES = 6
POLLS = 2
REAL = ("everything", "sqlite", "memory")
REAL_TOOLS = {
    "everything": {
        "spend": lambda n: ("get-sum", {"a": n, "b": 1}),
        "write": lambda n: ("get-sum", {"a": n, "b": 2}),
        "poll": lambda n: ("get-tiny-image", {}),
        "fail": lambda n: ("get-structured-content", {"location": f"nowhere {n}"}),
        "rate": lambda n: ("echo", {"message": f"{n}"}),
    },
    "sqlite": {
        "spend": lambda n: ("read_query", {"query": f"select {n}"}),
        "write": lambda n: ("create_table", {"query": f"create table t{n % WRITES} (n integer)"}),
        "poll": lambda n: ("list_tables", {}),
        "fail": lambda n: ("describe_table", {"no": n}),
        "rate": lambda n: ("append_insight", {"insight": f"{n}"}),
    },
    "memory": {
        "spend": lambda n: ("open_nodes", {"names": [f"{n}"]}),
        "write": lambda n: ("create_entities", {"entities": [entity(n % WRITES)]}),
        "poll": lambda n: ("read_graph", {}),
        "fail": lambda n: ("add_observations", {"observations": [observation(n)]}),
        "rate": lambda n: ("search_nodes", {"query": f"{n}"}),
    },
}


def entity(n):
    return {"name": f"e{n}", "entityType": "t", "observations": []}


def observation(n):
    return {"entityName": f"nobody {n}", "contents": ["x"]}


class Job(NamedTuple):
    """One `sub run`: the calls of its agent, and the kill that disturbs it."""

    number: int
    is_real: bool
    is_bombed: bool
    calls: list
    """for each shim: a list of (tool, arguments)"""
    blow: str | None
    """what is killed: `server`, or the name of a signal to the agent"""
    blow_at: int
    """number of answers after which it happens"""
    victim: int

    @property
    def is_agent_killed(self):
        return self.blow in ("SIGKILL", "SIGTERM")


def plan(count, seed):
    """Plans `count` jobs: a tenth on real servers, a tenth terminated, a third disturbed by a kill."""
    chance = random.Random(seed)
    numbers = list(range(count))
    real = set(chance.sample(numbers, -(-count // 10)))
    bombed = set(chance.sample(numbers, -(-count // 10)))
    hurt = chance.sample(numbers, max(4, count * 36 // 100))
    kinds = ["SIGKILL", "server", "SIGTERM", "server"]
    blows = {number: kinds[n % len(kinds)] for n, number in enumerate(hurt)}
    return [job(n, chance, n in real, n in bombed, blows.get(n)) for n in numbers]


def job(number, chance, is_real, is_bombed, blow):
    roles = [role for role, times in ROLES.items() for _ in range(times)]
    assert len(roles) == CALLS
    chance.shuffle(roles)
    if is_bombed:
        roles[chance.randrange(CALLS // 2, CALLS)] = "bomb"
    calls = [[] for _ in range(SHIMS)]
    for n, role in enumerate(roles):
        shim = n % SHIMS
        calls[shim].append(real_call(REAL[shim], role, n) if is_real else sample_call(role, n))
    blow_at = chance.randrange(20, CALLS - 20)
    return Job(number, is_real, is_bombed, calls, blow, blow_at, chance.randrange(SHIMS))


def sample_call(role, n):
    args = {"write": {"key": n % WRITES}, "poll": {"key": n % POLLS}}.get(role, {"n": n})
    return role, args


def real_call(server, role, n):
    make = REAL_TOOLS[server].get(role)
    return make(n) if make else (role, {"n": n})


def commands(this, place, installed):
    """Returns the shims' command lines, which the agent starts."""
    if not this.is_real:
        servers = {
            f"sample-{n}": [sys.executable, "-I", "-S", SERVER, str(place / f"executed-{n}")]
            for n in range(SHIMS)
        }
    else:
        servers = {
            "everything": node(installed, "everything", "stdio"),
            "sqlite": [installed / "mcp1/bin/mcp-server-sqlite", "--db-path", place / "x.db"],
            "memory": node(installed, "memory"),
        }
    return [
        [*SUB, "shim", "stdio", "--server", name, "--", *map(str, words)]
        for name, words in servers.items()
    ]
