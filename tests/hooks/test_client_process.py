"""Which process a hook shim takes for its client."""

import pytest

from subluminal.adapters.agent_hooks import client_process
from subluminal.system.process import Process

PARENTS = {
    "a shell between": ({5: ("sh", 4), 4: ("codex", 1), 1: ("init", 0)}, 4),
    "no shell": ({5: ("codex", 1), 1: ("init", 0)}, 5),
    "the client is process 1 of its container": ({5: ("sh", 1), 1: ("codex", 0)}, 1),
    "process 1 of the container has no parent": ({1: ("bash", 0)}, 1),
    "the client died": ({5: ("sh", 1), 1: ("systemd", 0)}, 5),
}


@pytest.mark.parametrize("case", PARENTS)
def test_the_client_is_the_first_ancestor_but_for_shells(monkeypatch, case):
    table, client = PARENTS[case]

    def process(pid):
        if pid not in table:
            return None
        name, parent = table[pid]
        return Process(pid, name.encode(), b"S", parent, pid, 1)

    monkeypatch.setattr(client_process, "process", process)
    assert client_process.client_pid("codex", {}, max(table)) == client
