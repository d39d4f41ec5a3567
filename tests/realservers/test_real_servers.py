"""Real servers and official clients get the same results with and without a shim, in both eras."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.adapters.records import calls_of, events_of
from tests.realservers.jobs import PROGRAMS, both, both_programs, job

EVERYTHING_STEPS = [
    ["tools"],
    ["call", "echo", {"message": "héllo \u2028 wörld"}],
    ["call", "get-sum", {"a": 2, "b": 40}],
    ["call", "get-tiny-image", {}],
    ["call", "get-structured-content", {"location": "New York"}],
    ["call", "get-roots-list", {}],
    ["call", "get-sum", {"a": "no number"}],
    ["call", "nope", {}],
    ["resources"],
    ["templates"],
    ["read", "demo://resource/static/document/architecture.md"],
    ["prompts"],
    ["prompt", "args-prompt", {"city": "Paris"}],
    ["prompt", "nope", {}],
]


def make_repository(place: Path) -> None:
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.email", "a@example.org"],
        ["config", "user.name", "A"],
    ):
        subprocess.run(["git", *words], cwd=place, check=True)
    (place / "a.txt").write_text("one\n")
    (place / "b.txt").write_text("two\n")
    subprocess.run(["git", "add", "a.txt"], cwd=place, check=True)


def make_files(place: Path) -> None:
    (place / "a.txt").write_text("one\n")
    (place / "deep").mkdir()


SERVERS = {
    "git": (
        lambda where, _place: [where / "mcp1/bin/mcp-server-git"],
        make_repository,
        [
            ["tools"],
            ["call", "git_status", {"repo_path": "."}],
            ["call", "git_diff_staged", {"repo_path": "."}],
            ["call", "git_add", {"repo_path": ".", "files": ["b.txt"]}],
            ["call", "git_status", {"repo_path": "."}],
            ["call", "git_show", {"repo_path": ".", "revision": "nope"}],
            ["call", "nope", {}],
        ],
    ),
    "time": (
        lambda where, _place: [where / "mcp1/bin/mcp-server-time", "--local-timezone", "UTC"],
        None,
        [
            ["tools"],
            [
                "call",
                "convert_time",
                {"source_timezone": "nowhere", "time": "12:00", "target_timezone": "UTC"},
            ],
            ["call", "nope", {"a": 1}],
        ],
    ),
    "sqlite": (
        lambda where, place: [where / "mcp1/bin/mcp-server-sqlite", "--db-path", place / "x.db"],
        None,
        [
            ["tools"],
            ["call", "create_table", {"query": "create table t (n integer, s text)"}],
            ["call", "write_query", {"query": "insert into t values (1, 'é'), (2, 'b')"}],
            ["call", "read_query", {"query": "select * from t order by n"}],
            ["call", "read_query", {"query": "drop table t"}],
            ["call", "read_query", {"no": "query"}],
            ["resources"],
            ["read", "memo://insights"],
            ["prompts"],
        ],
    ),
    "everything": (
        lambda where, _place: node(where, "everything", "stdio"),
        None,
        EVERYTHING_STEPS,
    ),
    "filesystem": (
        lambda where, place: node(where, "filesystem", place),
        make_files,
        [
            ["tools"],
            ["call", "write_file", {"path": "n.txt", "content": "x" * 200_000}],
            ["call", "read_text_file", {"path": "n.txt"}],
            ["call", "list_directory", {"path": "."}],
            ["call", "read_text_file", {"path": "/etc/passwd"}],
            ["call", "read_text_file", {"path": "gone.txt"}],
        ],
    ),
    "memory": (
        lambda where, _place: node(where, "memory"),
        None,
        [
            ["tools"],
            [
                "call",
                "create_entities",
                {"entities": [{"name": "a", "entityType": "t", "observations": ["o"]}]},
            ],
            ["call", "add_observations", {"observations": [{"entityName": "zz", "contents": []}]}],
            ["call", "read_graph", {}],
        ],
    ),
}
MODERN_STEPS = [
    ["tools"],
    ["call", "add", {"a": 1, "b": 2}],
    ["call", "fail", {"why": "because"}],
    ["call", "add", {"a": "x"}],
    ["call", "nope", {}],
    ["resources"],
    ["read", "note://one"],
    ["read", "note://gone"],
    ["prompts"],
    ["prompt", "greet", {"name": "Ada"}],
]


def node(where: Path, server: str, *words: object) -> list[object]:
    index = where / "node/node_modules/@modelcontextprotocol" / f"server-{server}/dist/index.js"
    return [where / "node/node_modules/node/bin/node", index, *words]


def client(where: Path, line: int) -> list[str]:
    return [str(where / f"mcp{line}/bin/python"), str(PROGRAMS / f"client{line}.py")]


def require_record(
    home: Path, steps: list[list[object]], calls: int | None = None
) -> list[list[dict]]:
    found = calls_of(events_of(home))
    wanted = [step for step in steps if step[0] == "call"]
    assert [call[0]["call"]["tool_name"] for call in found] == [step[1] for step in wanted]
    assert all(len(call) == 3 for call in found)
    return found


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_of_the_earlier_eras(installed, tmp_path, name):
    command, prepare, steps = SERVERS[name]

    def run(place):
        server = [str(word) for word in command(installed, place.path)]
        env = {**place.env, "MEMORY_FILE_PATH": str(place.path / "memory.jsonl")}
        return job(place._replace(env=env), server, steps)

    said = both(tmp_path, client(installed, 1), run, prepare)
    assert said.shimmed == said.direct
    ends = [call[2] for call in require_record(said.home, steps)]
    told = [each for kind, each in said.direct if kind == "call"]
    failed = [each.get("isError", "code" in each) for each in told]
    assert [end["status"] != "OK" for end in ends] == failed
    assert any(failed), "the steps must have a failing call"


@pytest.mark.parametrize(
    ("mode", "version", "listen"), [("auto", "2026-07-28", True), ("legacy", "2025-11-25", False)]
)
def test_a_server_of_both_eras_with_the_client_of_both(installed, tmp_path, mode, version, listen):
    """In the new era `subscriptions/listen` stays open all the time, and a call has two rounds."""
    rounds = [["call", "confirm", {"what": "really"}]] if mode == "auto" else []
    steps = MODERN_STEPS + rounds
    server = [str(installed / "mcp2/bin/python"), str(PROGRAMS / "modern_server.py")]

    def run(place):
        return job(place, server, steps, mode=mode, listen=listen)

    said = both(tmp_path, client(installed, 2), run)
    assert said.shimmed == said.direct
    assert said.direct[0] == ["version", version]
    statuses = [call[2]["status"] for call in require_record(said.home, steps)]
    assert statuses == ["OK", "ERROR", "ERROR", "ERROR", *["OK"] * len(rounds)]


def test_the_new_client_falls_back_with_an_earlier_server(installed, tmp_path):
    server = [str(word) for word in node(installed, "everything", "stdio")]
    steps = [step for step in EVERYTHING_STEPS if step[1:2] != ["get-roots-list"]]

    def run(place):
        return job(place, server, steps)

    said = both(tmp_path, client(installed, 2), run)
    assert said.shimmed == said.direct
    require_record(said.home, steps)


def test_the_earlier_client_with_the_new_server(installed, tmp_path):
    server = [str(installed / "mcp2/bin/python"), str(PROGRAMS / "modern_server.py")]

    def run(place):
        return job(place, server, MODERN_STEPS)

    said = both(tmp_path, client(installed, 1), run)
    assert said.shimmed == said.direct
    require_record(said.home, MODERN_STEPS)


@pytest.mark.parametrize(
    "words",
    [
        ["tools/list"],
        ["tools/call", "--tool-name", "echo", "--tool-arg", "message=hi"],
    ],
    ids=lambda words: words[0],
)
def test_the_inspector(installed, tmp_path, words):
    server = [str(word) for word in node(installed, "everything", "stdio")]

    def run(place):
        command = [*place.shim, *server]
        entry = {"type": "stdio", "command": command[0], "args": command[1:], "env": place.env}
        (place.path / "mcp.json").write_text(json.dumps({"mcpServers": {"real": entry}}))
        inspector = (
            "node/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        )
        return [
            str(installed / "node/node_modules/node/bin/node"),
            str(installed / inspector),
            *["--cli", "-q", "--config", "mcp.json", "--server", "real", "--method", *words],
        ]

    said = both_programs(tmp_path, run)
    assert said.shimmed == said.direct
    assert len(calls_of(events_of(said.home))) == (words[0] == "tools/call")
