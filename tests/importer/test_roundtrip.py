"""Whatever a configuration looks like: importing and restoring it loses not one byte."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.importer.desk import OURS, Desk
from tests.importer.edits import USER_EDITS, UserEdit
from tests.importer.generated import json_configs, toml_configs
from tests.requirements import requirement

from subluminal.importer.clients.description import Client
from subluminal.importer.clients.table import CLAUDE, CODEX
from subluminal.importer.document import EntryKind, parse
from subluminal.importer.proposal import Action, make_proposal
from subluminal.importer.restoring import How
from subluminal.importer.wrapper import Installation, recognise

CONFIGS = {
    "json": (CLAUDE, json_configs(comments=False)),
    "jsonc": (CLAUDE, json_configs(comments=True)),
    "toml": (CODEX, toml_configs()),
}
FEW = settings(max_examples=60, suppress_health_check=list(HealthCheck))
Edits = Sequence[tuple[UserEdit, int]]


def both_edited(client: Client, one: bytes, two: bytes, edits: Edits) -> tuple[bytes, bytes]:
    """Makes the same edits to two texts; an edit that one of them cannot take is left out."""
    for make, number in edits:
        made = [make(parse(client, "f", data), number) for data in (one, two)]
        if made[0] is not None and made[1] is not None:
            one, two = made[0], made[1]
    return one, two


@pytest.fixture(params=list(CONFIGS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@requirement("001-13:restore")
@FEW
@given(data=st.data())
def test_import_then_restore_is_byte_identical(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    client, configs = CONFIGS[kind]
    original = data.draw(configs)
    desk = Desk(tmp_path_factory.mktemp("desk"), client)
    desk.file.write_bytes(original)
    desk.import_it()
    assert desk.restorer.restore(desk.target).how is not How.UNWRAPPED
    assert desk.file.read_bytes() == original


@requirement("001-13:import")
@FEW
@given(data=st.data())
def test_an_import_wraps_every_stdio_server_and_nothing_else(
    kind: str, data: st.DataObject
) -> None:
    client, configs = CONFIGS[kind]
    original = data.draw(configs)
    plan = make_proposal(client, "f", original, OURS)
    before, after = parse(client, "f", original), parse(client, "f", plan.after)
    for old, new in zip(before.entries, after.entries, strict=True):
        found = recognise(new.argv) if new.kind is EntryKind.STDIO else None
        assert (old.server, old.kind) == (new.server, new.kind)
        if found:
            assert found.wrapper.words()[:5] == [
                OURS.program,
                "shim",
                "stdio",
                "--server",
                old.server,
            ]
            assert new.argv[found.length :] == old.argv
        else:
            assert new.kind is not EntryKind.STDIO
    # Importing twice changes nothing.
    again = make_proposal(client, "f", plan.after, OURS)
    assert again.after == plan.after
    assert {row.action for row in again.rows} <= {Action.KEEP, Action.REMOTE, Action.REFUSE}


@FEW
@given(data=st.data())
def test_a_moved_program_is_refreshed_and_never_nested(kind: str, data: st.DataObject) -> None:
    client, configs = CONFIGS[kind]
    original = data.draw(configs)
    once = make_proposal(client, "f", original, OURS).after
    moved = Installation("/elsewhere/sub", None)
    refreshed = make_proposal(client, "f", once, moved).after
    direct = make_proposal(client, "f", original, moved).after
    said = [repr(parse(client, "f", data).root.value()) for data in (direct, refreshed)]
    assert said[0] == said[1]


@requirement("001-13:restore")
@FEW
@given(data=st.data())
def test_restore_after_edits_keeps_exactly_the_edits(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    client, configs = CONFIGS[kind]
    original = data.draw(configs)
    number = st.integers(0, 5)
    edits = data.draw(
        st.lists(st.tuples(st.sampled_from(USER_EDITS), number), min_size=1, max_size=4)
    )
    desk = Desk(tmp_path_factory.mktemp("desk"), client)
    desk.file.write_bytes(original)
    desk.import_it()
    wanted, edited = both_edited(desk.client, original, desk.file.read_bytes(), edits)
    desk.file.write_bytes(edited)
    if data.draw(st.booleans()):
        desk.import_it()  # a second import in between, of what is new
    desk.restorer.restore(desk.target)
    assert desk.file.read_bytes() == wanted


@FEW
@given(original=json_configs(comments=True))
def test_a_client_that_rewrites_its_file_loses_nothing(
    original: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Claude Code writes its file anew, with its own layout and without comments."""
    desk = Desk(tmp_path_factory.mktemp("desk"), CLAUDE)
    desk.file.write_bytes(original)
    desk.import_it()
    imported = parse(CLAUDE, "f", desk.file.read_bytes()).root
    desk.file.write_text(_rewritten(imported.value()), "utf-8")
    desk.restorer.restore(desk.target)
    assert desk.file.read_text("utf-8") == _rewritten(parse(CLAUDE, "f", original).root.value())


def _rewritten(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
