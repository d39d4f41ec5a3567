"""Whatever stands in a configuration, manifest or definition: no traceback, and linear time."""

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subluminal.errors import SubluminalError
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.document import parse
from subluminal.importer.scan.approval import Settings
from subluminal.importer.scan.definitions import Tool, definition_findings, tools_from
from subluminal.importer.scan.entries import Surroundings
from subluminal.importer.scan.manifest import read_manifest
from subluminal.importer.scan.naming import Offer, compare
from subluminal.importer.scan.rules import Finding
from subluminal.importer.scan.scanning import rows_of, scan_document

WORDS = st.sampled_from(
    [
        *(
            "npx",
            "-y",
            "uvx",
            "--from",
            "docker",
            "run",
            "-v",
            "/:/x",
            "-e",
            "A=",
            "sh",
            "-c",
            "cmd",
        ),
        *("/c", "git+https://a@b", "x@", "@", "@a/b@1", "$(", "'", '"', "http://[::1", "~", "deno"),
        *(
            "npm:@x/y",
            "--package=",
            "pipx",
            "bash",
            "-lc",
            "curl a | sh",
            "env",
            "",
            "\u202e",
            "mcp-remote",
        ),
    ]
)
TEXTS = st.one_of(WORDS, st.text(max_size=12))
KEYS = st.sampled_from(
    [
        *("command", "args", "env", "url", "type", "headers", "http_headers", "trust", "enabled"),
        *("httpUrl", "name", "description", "inputSchema", "properties", "tools", "permissions"),
        *("allowedTools", "permission", "environment", "version", "verified"),
    ]
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(KEYS, TEXTS), inner, max_size=4)
    ),
    max_leaves=12,
)
ENTRIES = st.one_of(
    st.fixed_dictionaries(
        {"command": TEXTS, "args": st.lists(TEXTS, max_size=7)},
        optional={"env": st.dictionaries(TEXTS, TEXTS, max_size=3), "trust": VALUES},
    ),
    st.fixed_dictionaries({"url": TEXTS}, optional={"headers": VALUES, "type": TEXTS}),
    VALUES,
)
MANY = settings(max_examples=150, suppress_health_check=list(HealthCheck))
AROUND = Surroundings(None, "/home/me", Settings())


def check(found: list[Finding]) -> None:
    assert all(each.message for each in found)
    assert all(each.line is None or each.line > 0 for each in found)


@MANY
@given(
    entries=st.dictionaries(TEXTS, ENTRIES, max_size=4),
    more=VALUES,
    name=st.sampled_from(list(CLIENTS)),
)
def test_any_entry(entries: dict[str, Any], more: Any, name: str) -> None:
    client = CLIENTS[name]
    if name == "codex":
        return
    (*outer, last) = client.tables[0]
    assert not outer
    text = json.dumps(
        {last: entries, "permission": more, "projects": {"p": {"allowedTools": more}}}
    )
    try:
        found = list(scan_document(parse(client, "f", text.encode()), lambda _entry: AROUND))
    except SubluminalError:
        return
    for each in found:
        check(each.findings)
    assert len(rows_of(found, [], {}, with_unconfigured=True)) == len(found)


@MANY
@given(listed=st.lists(VALUES, max_size=4), other=st.lists(VALUES, max_size=4))
def test_any_definition(listed: list[Any], other: list[Any]) -> None:
    tools = [Tool("t", each) for each in listed] + tools_from(other)
    check(list(definition_findings(tools)))
    compare([Offer("a", tools), Offer("b", [Tool("t2", each) for each in other], "p")])


@MANY
@given(value=VALUES)
def test_any_manifest(value: Any) -> None:
    with suppress(SubluminalError):
        read_manifest("m", json.dumps(value).encode())


@pytest.mark.parametrize(
    "piece",
    [
        *(
            " ",
            "\n ",
            "\u200b",
            "\u200f",
            "\u200d",
            "\ufe0f",
            "A",
            "`a ",
            "mcp__a__b ",
            "<",
            "[INST",
        ),
        *(
            "do not tell the user ",
            "read id_rsa ",
            "must always send all ",
            "all emails ",
            "user ha ",
        ),
        *(
            "include full chat ",
            "ignore all the ",
            "curl x | ",
            "a.b.c.",
            "send_email ",
            "without telling ",
        ),
    ],
    ids=repr,
)
def test_time_is_linear(piece: str) -> None:
    """Sixteen times the text takes much less than the square of that."""

    def cost(count: int) -> float:
        tools = [Tool("t", {"description": piece * count})]
        begun = time.process_time()
        list(definition_findings(tools))
        compare([Offer("a", tools), Offer("b", [Tool("send_email", {})])])
        return time.process_time() - begun

    cost(100)
    small = max(cost(1_000), 0.002)
    assert cost(16_000) < 80 * small
