"""Whatever a client's file looks like: adding hooks to it and taking them out loses not one byte."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.importer.desk import OURS, Desk
from tests.importer.edits import add_at_the_end, add_at_the_start
from tests.importer.generated import NOISE, SEEDS, WORDS, JsonWriter, stdio_entries
from tests.requirements import requirement

from subluminal.importer.clients.description import Client
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.document import Document, parse
from subluminal.importer.hooks.entries import HookWish
from subluminal.importer.hooks.finding import find_hooks, without_ours
from subluminal.importer.proposal import Action, make_proposal, reader_of
from subluminal.importer.restoring import How
from subluminal.importer.text.notation import Edit
from subluminal.importer.wrapper import Installation

FEW = settings(max_examples=60, suppress_health_check=list(HealthCheck))
IN_JSON = ("claude", "codex", "gemini", "copilot")


@st.composite
def hook_files(draw: Any, client: Client) -> bytes:
    """The bytes of a file with, or without, hooks of the user; or with nothing in it."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([b"", b"\n", b" \r\n", b"\xef\xbb\xbf"]))
    assert client.hooks is not None
    hook = st.fixed_dictionaries(
        {"type": st.just("command"), client.hooks.command_key: WORDS}, optional={"timeout": NOISE}
    )
    item = (
        hook
        if client.name == "copilot"
        else st.fixed_dictionaries(
            {"hooks": st.lists(hook, max_size=2)}, optional={"matcher": WORDS}
        )
    )
    events = st.sampled_from([*client.hooks.events, "Other", "größe"])
    value = draw(st.dictionaries(st.text(max_size=5), NOISE, max_size=3))
    value.pop("hooks", None)
    value.pop("mcpServers", None)
    if draw(st.booleans()):
        value["hooks"] = draw(st.dictionaries(events, st.lists(item, max_size=2), max_size=4))
    if draw(st.booleans()) and client.hooks.beside_servers:
        value["mcpServers"] = draw(st.dictionaries(WORDS.filter(bool), stdio_entries(), max_size=2))
    value = {key: value[key] for key in draw(st.permutations(list(value)))}
    return JsonWriter(Random(draw(SEEDS)), comments=draw(st.booleans())).document(value)


def desk_with(original: bytes, client: Client, folders: pytest.TempPathFactory) -> Desk:
    """A file with these contents to which hooks were added."""
    desk = Desk(folders.mktemp("desk"), client, HookWish())
    desk.file.write_bytes(original)
    desk.import_it()
    return desk


@pytest.fixture(params=IN_JSON)
def client(request: pytest.FixtureRequest) -> Client:
    return CLIENTS[request.param]


@requirement("001-13:restore")
@FEW
@given(data=st.data())
def test_import_then_restore_is_byte_identical(
    client: Client, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    original = data.draw(hook_files(client))
    desk = desk_with(original, client, tmp_path_factory)
    if data.draw(st.booleans()):
        desk.import_it(Installation("/elsewhere/sub", None))
    assert desk.restorer.restore(desk.target).how is How.EXACT
    assert desk.file.read_bytes() == original


@FEW
@given(data=st.data())
def test_every_event_gets_one_hook_and_nothing_else_changes(
    client: Client, data: st.DataObject
) -> None:
    original = data.draw(hook_files(client))
    plan = make_proposal(client, "f", original, OURS, hooks=HookWish())
    reader = reader_of(client, HookWish())
    after = parse(reader, "f", plan.after)
    found = [each.event for each in find_hooks(client, after.root)]
    assert client.hooks is not None
    assert sorted(found) == sorted(client.hooks.events)
    assert {each.command.program for each in find_hooks(client, after.root)} == {OURS.program}
    if original.removeprefix(b"\xef\xbb\xbf").strip() and not client.hooks.beside_servers:
        before = parse(reader, "f", original)
        assert repr(without_ours(client, before.root)) == repr(without_ours(client, after.root))
    again = make_proposal(client, "f", plan.after, OURS, hooks=HookWish())
    assert again.after == plan.after
    assert again.hooks is not None
    assert again.hooks.action is Action.KEEP
    moved = make_proposal(client, "f", plan.after, Installation("/b/sub", None), hooks=HookWish())
    assert moved.hooks is not None
    assert moved.hooks.action is Action.REFRESH
    assert moved.hooks.program == OURS.program


def add_a_hook(document: Document, _: int) -> bytes | None:
    """A hook of the user, before ours, in a list that the import made or found."""
    events = document.root.get("hooks")
    if "late.sh" in document.text or events is None:
        return None
    found = [m.node for m in events.members if m.name in ("Stop", "AfterAgent", "agentStop")]
    if not found or not found[0].items:
        return None
    at = found[0].start + 1
    return document.edited([Edit(at, at, '{"hooks": [{"command": "late.sh"}]},')])


EDITS: tuple[Callable[[Document, int], bytes | None], ...] = (
    add_at_the_start,
    add_at_the_end,
    add_a_hook,
)


@FEW
@given(data=st.data())
def test_restore_after_edits_keeps_exactly_the_edits(
    client: Client, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    original = data.draw(hook_files(client))
    edits = data.draw(st.lists(st.sampled_from(EDITS), min_size=1, max_size=3))
    desk = desk_with(original, client, tmp_path_factory)
    wanted, edited = original, desk.file.read_bytes()
    if not original.removeprefix(b"\xef\xbb\xbf").strip():
        return  # the same edit cannot be made in a file without a value
    for make in edits:
        made = [
            make(parse(reader_of(client, HookWish()), "f", text), 0) for text in (wanted, edited)
        ]
        if made[0] is not None and made[1] is not None:
            wanted, edited = made[0], made[1]
    desk.file.write_bytes(edited)
    if data.draw(st.booleans()):
        desk.import_it()
    desk.restorer.restore(desk.target)
    assert desk.file.read_bytes() == wanted


@FEW
@given(data=st.data())
def test_a_client_that_rewrites_its_file_loses_nothing(
    client: Client, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    original = data.draw(hook_files(client))
    desk = desk_with(original, client, tmp_path_factory)
    if not original.removeprefix(b"\xef\xbb\xbf").strip():
        return
    reader = reader_of(client, HookWish())
    value = parse(reader, "f", desk.file.read_bytes()).root.value()
    desk.file.write_text(_rewritten(value), "utf-8")
    desk.restorer.restore(desk.target)
    assert desk.file.read_text("utf-8") == _rewritten(parse(reader, "f", original).root.value())


def _rewritten(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
