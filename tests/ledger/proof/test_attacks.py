"""Somebody who can write the home attacks the record; the real `sub ledger verify` must say so.

Real shims write the journals, a real ledgerd reads and signs them. The attacker does not use the
keys, unless a test says so (provable-ledger, docs/concepts/agents-with-a-shell.md).
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd
from tests.shim.household import Household

from subluminal.clock import now
from subluminal.journal.chain import chained_form, link, seed
from subluminal.journal.reading import journal_files
from subluminal.ledger.store.drops import DAY_MS
from subluminal.ledger.store.segments import of_shim
from subluminal.ledger.upkeep.note import note_path
from subluminal.ledger.upkeep.opening import open_ledger_writer
from subluminal.ledger.upkeep.retention import Retention
from subluminal.supervise import become_subreaper
from subluminal.trust.home_key import home_key, key_path

Person = Callable[..., str]


class Scene:
    """A home with two runs of real shims, and what an attacker does to it."""

    def __init__(self, home: Home, household: Household, person: Person, start: Any) -> None:
        self.home, self.household, self.person, self._start = home, household, person, start
        self.places = home.places

    def act(self, run: str, calls: int = 4) -> None:
        """A shim of a run calls its server, and ends in order."""
        shim = self.household.start(run=run).ready()
        for number in range(calls):
            shim.call("echo", {"number": number, "text": f"word{number}"})
        shim.close()
        assert shim.wait() == 0
        self.household.wait_empty()

    def ingest(self) -> None:
        """ledgerd reads everything, signs it, and stops."""
        daemon: Ledgerd = self._start("--no-http").ready()
        daemon.has_stored(len(self.home.lines()))
        daemon.client.post("/v1/checkpoints", b"")
        assert daemon.stop() == 0

    def verify(self, *words: str, holds: bool = False) -> dict[str, Any]:
        """The report of `sub ledger verify`, and its exit code is checked."""
        code = 0 if holds else 1
        told: dict[str, Any] = json.loads(
            self._out("ledger", "verify", "--json", *words, code=code)
        )
        assert told["holds"] is holds
        return told

    def findings(self, *words: str) -> list[str]:
        return [
            f"{each['table']}: {each['row']}: {each['message']}"
            for each in self.verify(*words)["findings"]
        ]

    def _out(self, *words: str, code: int) -> str:
        text = self.person(*words, code=code, all_output=True)
        return next(line for line in text.splitlines() if line.startswith("{"))

    def anchor(self) -> Path:
        """`sub ledger anchor`, kept outside of the home."""
        path = self.household.tmp_path / "ci.log"
        line = self.person("ledger", "anchor")
        assert len(line.splitlines()) == 1
        path.write_text(f"2026-11-15 12:00:01 step 3: {line}and more text\n")
        self.person("ledgerd", "stop")
        return path

    def sql(self, *statements: str) -> list[Any]:
        """Reads or edits the ledger behind ledgerd's back."""
        connection = apsw.Connection(self.places.ledger)
        try:
            return [connection.execute(each).fetchall() for each in statements]
        finally:
            connection.close()

    def journal(self, run: str) -> Path:
        (file,) = [each for each in journal_files(self.places.journal) if each.run == run]
        return Path(file.path)

    def remove_ledger(self) -> None:
        for name in os.listdir(self.places.home):
            if name.startswith("ledger.db"):
                os.unlink(os.path.join(self.places.home, name))


class Templates(NamedTuple):
    """Homes to copy: making one takes a while."""

    recorded: Path
    """two runs, in journals only"""
    signed: Path
    """the same, read and signed by ledgerd"""


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Templates]:
    place = tmp_path_factory.mktemp("templates")
    home = Home(str(place / "home"))
    household = Household(place, Path(home.places.home))

    def start(*words: str) -> Ledgerd:
        started.append(Ledgerd(home.places, *words))
        return started[-1]

    def person(*words: str) -> str:
        raise AssertionError(words)

    started: list[Ledgerd] = []
    become_subreaper()
    made = Scene(home, household, person, start)
    made.act("run-1")
    made.act("run-2")
    shutil.copytree(home.places.home, place / "recorded")
    made.ingest()
    yield Templates(place / "recorded", Path(home.places.home))
    for each in started:
        each.close()
    household.clean()
    home.close()


@pytest.fixture
def scene(
    home: Home,
    household: Household,
    person: Person,
    ledgerd: Callable[..., Ledgerd],
    templates: Templates,
) -> Iterator[Scene]:
    """Two runs of real shims, in journals only."""
    shutil.copytree(templates.recorded, home.places.home)
    yield Scene(home, household, person, ledgerd)
    person("ledgerd", "stop")


@pytest.fixture
def signed(scene: Scene, templates: Templates) -> Scene:
    """Two runs of real shims, that ledgerd has read and signed."""
    shutil.rmtree(scene.places.home)
    shutil.copytree(templates.signed, scene.places.home, ignore=shutil.ignore_patterns("run"))
    return scene


def rewritten(lines: list[bytes], edit: Callable[[bytes], bytes], prev: bytes) -> list[bytes]:
    """The lines, each edited, with every hash of the chain computed again from `prev` on."""
    made = []
    for line in map(edit, lines):
        event = json.loads(line)
        old = event["source"]["prev"].encode()
        line = line.replace(b'"prev":"%b"' % old, b'"prev":"%b"' % prev, 1)
        prev = link(prev, chained_form(line))
        made.append(line)
    return made


def forge(path: Path, edit: Callable[[bytes], bytes] = lambda line: line, *, sealed: bool) -> None:
    """Rewrites a journal: from its own sealed beginning, or like an early version, without seals."""
    lines = path.read_bytes().splitlines()
    first = json.loads(lines[0])["source"]
    if not sealed:
        lines = [without_seal(line) for line in lines]
    prev = first["prev"].encode() if sealed else seed(first["shim_id"])
    path.write_bytes(b"".join(line + b"\n" for line in rewritten(lines, edit, prev)))


def without_seal(line: bytes) -> bytes:
    seal = json.loads(line)["source"].get("seal", "")
    return line.replace(b',"seal":"%b"' % seal.encode(), b"", 1)


def other_tool(line: bytes) -> bytes:
    return line.replace(b'"tool_name":"echo"', b'"tool_name":"safe"')


def test_what_nobody_touched_holds_and_every_journal_is_sealed(signed: Scene) -> None:
    report = signed.verify(holds=True)
    assert (report["sealed_shims"], report["unsealed_shims"], report["foreign_shims"]) == (2, 0, 0)
    assert (report["unread_events"], report["unanchored_events"]) == (0, 0)
    for run in ("run-1", "run-2"):
        first, *_, last = map(json.loads, signed.journal(run).read_bytes().splitlines())
        assert first["source"]["prev"] != seed(first["source"]["shim_id"]).decode()
        assert last["source"]["seal"]


# Erased events that pass for retention


def test_erased_events_do_not_pass_for_retention(signed: Scene) -> None:
    signed.sql(
        "UPDATE segments SET lines = NULL WHERE shim = 1",
        "DELETE FROM tool_calls WHERE shim = 1",
        "DELETE FROM previews WHERE id NOT IN (SELECT id FROM tool_calls)",
    )
    assert "no record says that retention dropped them" in signed.findings()[0]


@pytest.mark.parametrize(
    "record",
    [
        "INSERT INTO drops SELECT id, 'age', 0, 9e15, 1, 1, 1, zeroblob(70) FROM segments WHERE shim = 1",
        "INSERT INTO drops SELECT id, 'unknown', last_ms, 0, 0, 0, 0, zeroblob(70) FROM segments WHERE shim = 1",
        "INSERT INTO drops SELECT id, 'unknown', last_ms, 0, 0, 0, 0, NULL FROM segments WHERE shim = 1",
    ],
)
def test_a_drop_that_this_home_did_not_sign_is_refused(signed: Scene, record: str) -> None:
    signed.sql(
        "UPDATE segments SET lines = NULL WHERE shim = 1", record.replace("9e15", "9000000000000")
    )
    assert "this home did not sign the record of their drop" in signed.findings()[0]


def test_a_ledger_put_back_to_an_early_version_gets_no_signature_for_what_was_erased(
    signed: Scene,
) -> None:
    """ledgerd signs once what an early version dropped, and never in a ledger that it signed."""
    signed.sql(
        "UPDATE segments SET lines = NULL WHERE shim = 1",
        "DROP TABLE intents",
        "DROP TABLE ends_ahead",
        "ALTER TABLE tool_calls DROP COLUMN end_shim",
        "ALTER TABLE tool_calls DROP COLUMN taint",
        "DROP INDEX calls_by_retry",
        "ALTER TABLE tool_calls DROP COLUMN retry_of",
        "ALTER TABLE runs DROP COLUMN agent_json",
        "DROP TABLE drops",
        "ALTER TABLE checkpoints DROP COLUMN key_id",
        "PRAGMA user_version = 7",
    )
    daemon = signed._start("--no-http").ready()
    assert daemon.stop() == 0
    assert any("this home did not sign the record" in each for each in signed.findings())


def test_what_was_due_is_dropped_signed_and_told(signed: Scene) -> None:
    key = home_key(signed.places.state)
    connection = open_ledger_writer(signed.places, key)
    retention = Retention(connection, 30, 1 << 40, key)
    while retention.step(now().wall_ms + 31 * DAY_MS):
        pass
    connection.close()
    report = signed.verify(holds=True)
    assert report["events"] == 0
    (drop,) = report["drops"]
    assert (drop["reason"], drop["keep_days"]) == ("age", 30)
    assert drop["events"] == report["dropped_events"] == len(signed.home.lines())
    assert "that were older than 30 days" in signed.person("ledger", "verify")
    signed.sql("UPDATE drops SET keep_days = 90")
    assert "did not sign" in signed.findings()[0]


def test_retention_goes_by_the_events_and_not_by_the_row(signed: Scene) -> None:
    """Whoever makes rows look old makes ledgerd drop nothing."""
    signed.sql("UPDATE segments SET last_ms = 1000")
    signed.ingest()
    assert signed.sql("SELECT count(*) FROM segments WHERE lines IS NULL") == [[(0,)]]
    assert "`last_ms` is not the time" in signed.findings()[0]
    signed.person("ledger", "rebuild")
    signed.verify(holds=True)


def test_damaged_events_are_never_dropped(signed: Scene) -> None:
    """They are the evidence."""
    signed.sql(
        "UPDATE segments SET codec = 0, last_ms = 1000, lines = CAST(replace(CAST(lines AS TEXT), '2026-', '1999-') AS BLOB) WHERE shim = 1 AND codec = 0",
        "UPDATE segments SET last_ms = 1000",
    )
    signed.ingest()
    assert signed.sql("SELECT count(*) FROM segments WHERE lines IS NULL") == [[(0,)]]


# Checkpoints and their note


def test_a_missing_only_checkpoint_is_damage(signed: Scene) -> None:
    signed.sql("DELETE FROM checkpoint_heads", "DELETE FROM checkpoints")
    wanted = "checkpoints: checkpoint 1: it is in the file beside the key, but gone from the ledger"
    assert signed.findings()[0] == wanted


def test_a_missing_newest_checkpoint_is_damage_and_its_number_is_not_used_again(
    signed: Scene,
) -> None:
    signed.act("run-3")
    signed.ingest()
    signed.sql(
        "DELETE FROM checkpoint_heads WHERE checkpoint = 2", "DELETE FROM checkpoints WHERE id = 2"
    )
    assert signed.findings()[0].startswith("checkpoints: checkpoint 2: it is in the file")
    signed.act("run-4")
    signed.ingest()
    assert signed.sql("SELECT id FROM checkpoints ORDER BY id") == [[(1,), (3,)]]
    assert signed.findings()[0] == (
        "checkpoints: checkpoint 2: it is missing: checkpoint 3 is in its place"
    )


def test_a_ledger_made_anew_from_rewritten_journals_never_verifies(signed: Scene) -> None:
    """Neither at once nor after a while: it continues after the last number in the note."""
    signed.remove_ledger()
    assert "checkpoint 1: it is in the file" in signed.findings()[0]
    forge(signed.journal("run-1"), other_tool, sealed=True)
    for run in ("run-3", "run-4"):
        signed.ingest()
        assert "checkpoint 1: it is missing: checkpoint 2 is in its place" in signed.findings()[0]
        signed.act(run)


def test_with_the_note_removed_too_the_seals_still_tell(signed: Scene) -> None:
    signed.remove_ledger()
    os.unlink(note_path(signed.places))
    forge(signed.journal("run-1"), other_tool, sealed=True)
    signed.ingest()
    (finding,) = signed.findings()
    assert "its seal does not match: it was changed, or an event before it was" in finding


def test_a_rewritten_journal_that_pretends_to_be_of_an_early_version_is_found(
    signed: Scene,
) -> None:
    signed.act("run-3")
    forge(signed.journal("run-3"), other_tool, sealed=False)
    signed.ingest()
    (finding,) = signed.findings()
    assert "its journal was never sealed" in finding


def test_a_journal_of_a_shim_that_never_was_is_found(scene: Scene) -> None:
    path = scene.journal("run-1")
    shim_id = json.loads(path.read_bytes().splitlines()[0])["source"]["shim_id"]
    other = "01a1e0d6-0000-7000-8000-00000000f00d"
    made = path.with_name(f"{other}.jsonl")
    made.write_bytes(path.read_bytes().replace(shim_id.encode(), other.encode()))
    forge(made, sealed=True)
    scene.ingest()
    (finding,) = scene.findings()
    assert "does not begin with the seal of this home" in finding


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda lines: [lines[1], lines[0], lines[2]], "line 1 of `ledger.checkpoints`: it is checkpoint 2"),
        (lambda lines: [lines[0], lines[2], lines[1]], "line 2 of `ledger.checkpoints`: it is checkpoint 3"),
        (lambda lines: [lines[0], lines[2]], "it is checkpoint 3, and checkpoint 2 is missing"),
        (lambda lines: [*lines, lines[0]], "line 4 of `ledger.checkpoints`: it is checkpoint 1"),
        (lambda lines: [lines[0], b"junk", *lines[1:]], "line 2 of `ledger.checkpoints`: it is not a line"),
        (lambda lines: lines[:1], "it ends with checkpoint 1; the ledger has 3"),
        (lambda lines: [], "it ends with checkpoint 0; the ledger has 3"),
        (lambda lines: [lines[0], lines[1].replace(b"2 ", b"2 00", 1)[:-2], lines[2]], "not the one in the file"),
    ],
    ids=["swapped", "late", "removed", "repeated", "junk", "cut", "emptied", "other digest"],
)  # fmt: skip
def test_every_change_of_the_notes_lines_is_found(
    signed: Scene, change: Callable[[list[bytes]], list[bytes]], wanted: str
) -> None:
    for run in ("run-3", "run-4"):
        signed.act(run, calls=1)
        signed.ingest()
    path = Path(note_path(signed.places))
    lines = path.read_bytes().splitlines()
    assert len(lines) == 3
    path.write_bytes(b"".join(line + b"\n" for line in change(lines)))
    assert any(wanted in each for each in signed.findings()), signed.findings()


# Journals deleted or cut before they were read


def test_a_journal_deleted_before_it_was_read_is_noticed(scene: Scene) -> None:
    events = len(scene.journal("run-1").read_bytes().splitlines())
    shutil.rmtree(scene.journal("run-1").parent)
    scene.ingest()
    (finding,) = scene.findings()
    assert finding.startswith("journal: shim `")
    assert "of run `run-1`" in finding
    assert f"it wrote {events} events, and 0 are left" in finding


@pytest.mark.parametrize("end", [b"", b'{"type":"run_en'], ids=["at a line", "in a line"])
def test_a_journal_cut_before_it_was_read_is_noticed(scene: Scene, end: bytes) -> None:
    path = scene.journal("run-1")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]) + end)
    assert f"it wrote {len(lines)} events, and {len(lines) - 2} are left" in scene.findings()[0]
    scene.ingest()
    assert f"it wrote {len(lines)} events, and {len(lines) - 2} are left" in scene.findings()[0]


def test_ledgerd_notices_it_too(scene: Scene) -> None:
    events = len(scene.journal("run-2").read_bytes().splitlines())
    scene.journal("run-2").unlink()
    daemon = scene._start("--no-http").ready()
    daemon.has_stored(len(scene.home.lines()))
    status = daemon.client.get("/v1/status")
    assert status["events_lost"] == events
    assert f"{events} events that were written are gone" in scene.person(
        "ledgerd", "status", all_output=True
    )


def test_events_that_are_not_read_yet_are_not_missing(signed: Scene) -> None:
    signed.act("run-3")
    report = signed.verify(holds=True)
    assert report["unread_events"] == len(signed.journal("run-3").read_bytes().splitlines())


# An anchor outside of the home


def test_an_anchor_holds_and_the_ledger_may_grow(scene: Scene) -> None:
    anchor = scene.anchor()
    assert scene.verify("--anchor", str(anchor), holds=True)["anchors"] == 1
    scene.act("run-3")
    scene.ingest()
    assert scene.verify("--anchor", str(anchor), holds=True)["anchors"] == 1


def test_an_anchor_covers_all_that_is_recorded(scene: Scene) -> None:
    line = scene.anchor().read_text()
    assert json.loads(line[line.index("{") :].splitlines()[0])["events"] == len(scene.home.lines())
    assert scene.verify(holds=True)["unanchored_events"] == 0


def test_whoever_uses_the_keys_to_rewrite_everything_is_found_by_the_anchor(scene: Scene) -> None:
    """The worst case: all of the home is made anew, with the home's own keys."""
    anchor = scene.anchor()
    scene.remove_ledger()
    os.unlink(note_path(scene.places))
    shutil.rmtree(scene.journal("run-1").parent)
    os.unlink(os.path.join(scene.places.state, "runs", "run-1"))
    scene.ingest()
    scene.verify(holds=True)
    (finding,) = scene.findings("--anchor", str(anchor))
    assert finding == (
        "anchor: checkpoint 1: the ledger has another checkpoint of this number: it was rewritten"
    )


def test_a_ledger_that_was_rewound_with_its_note_is_found_by_the_anchor(signed: Scene) -> None:
    copy = signed.household.tmp_path / "copy"
    shutil.copytree(signed.places.home, copy)
    signed.act("run-3")
    anchor = signed.anchor()
    shutil.rmtree(signed.places.home)
    shutil.copytree(copy, signed.places.home)
    signed.verify(holds=True)
    (finding,) = signed.findings("--anchor", str(anchor))
    assert "the ledger ends with checkpoint 1: it was rewound, or made anew" in finding


@pytest.mark.parametrize(
    ("edit", "wanted"),
    [
        (lambda text: text.replace('"events":', '"events":1'), "its signature does not match"),
        (lambda text: text.replace('"home":"', '"home":"00'), "its signature does not match"),
    ],
)
def test_a_changed_anchor_is_refused(scene: Scene, edit: Callable[[str], str], wanted: str) -> None:
    path = scene.anchor()
    path.write_text(edit(path.read_text()))
    assert wanted in scene.findings("--anchor", str(path))[0]


def test_an_anchor_of_another_home_or_under_another_key_is_refused(scene: Scene) -> None:
    path = scene.anchor()
    os.unlink(key_path(scene.places.state))
    home_key(scene.places.state)
    told = scene.findings("--anchor", str(path))
    assert "its signature was not made with this key" in told[0]
    assert any("the anchor is of another home" in each for each in told)


def test_a_recorded_anchor_holds_from_then_on(scene: Scene) -> None:
    path = scene.anchor()
    assert "recorded 1 anchor" in scene.person("ledger", "anchor", "--add", str(path))
    assert (
        json.loads(scene.person("ledger", "anchor", "--add", str(path), "--json"))["recorded"] == 0
    )
    assert scene.verify(holds=True)["anchors"] == 1
    scene.remove_ledger()
    assert any(each.startswith("anchor: checkpoint 1: ") for each in scene.findings())
    text = scene.person("ledger", "anchor", "--add", str(path), code=1)
    assert "the ledger is not the one that was anchored" in text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("no anchor here\n", "there is no anchor in"),
        ('{"anchor":1,"home":7}\n', "looks like an anchor and is not one"),
        ("", "there is no anchor in"),
    ],
)
def test_rubbish_is_not_an_anchor(scene: Scene, text: str, wanted: str) -> None:
    path = scene.household.tmp_path / "rubbish"
    path.write_text(text)
    assert wanted in scene.person("ledger", "verify", "--anchor", str(path), code=2)
    assert wanted in scene.person("ledger", "anchor", "--add", str(path), code=2)


# Derived data


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("UPDATE totals SET calls = calls + 1", "totals: `echo/echo/ALLOW/OK/`: it is 9; the calls say 8"),
        ("DELETE FROM totals", "totals: `echo/echo/ALLOW/OK/`: the row is missing"),
        ("INSERT INTO totals VALUES ('x', 'y', '', '', '', 3)", "totals: `x/y///`: it is 3; no call says so"),
        ("UPDATE rollups SET calls = calls + 1", "rollups: "),
        ("UPDATE buckets SET first_id = first_id + 1", "buckets: "),
        ("UPDATE buckets SET last_id = last_id + 1", "buckets: "),
        ("DELETE FROM buckets", "buckets: "),
        ("INSERT INTO gaps VALUES (1, 2, 3)", "gaps: shim 1 events 2 to 3: the ledger has some of them"),
        ("DELETE FROM search WHERE rowid = 3", "search: call "),
        ("INSERT INTO search (rowid, args, result) VALUES (99, 'forged', 'text')", "search: row 99: the words"),
        ("INSERT OR REPLACE INTO search (rowid, args, result) VALUES (3, 'other', 'words')", "search: call "),
        ("UPDATE previews SET args_preview = '{}' WHERE id = 2", "`args_preview` does not match the hash"),
        ("UPDATE previews SET redaction_flags = '[\"x\"]' WHERE id = 2", "`redaction_flags` are not those"),
        ("UPDATE previews SET call_id = 'x' WHERE id = 2", "its `call_id` is `x`"),
        ("UPDATE runs SET calls = 7", "runs: run `run-1`: `calls` is 7; there are 4 calls"),
        ("INSERT INTO runs (run_id, agent_id, client, env, started_at, last_event_at) VALUES ('f', '', '', '', 1, 1)", "runs: run `f`: there is no event"),
        ("UPDATE counters SET value = 1 WHERE name = 'events_total'", "counters: `events_total`: it is 1"),
        ("UPDATE tool_calls SET decision = 'BLOCK' WHERE id = 2", "tool_calls: call "),
        ("DELETE FROM tool_calls WHERE id = 2", "the row is missing"),
    ],
)  # fmt: skip
def test_every_change_of_derived_data_is_found_and_mended(
    signed: Scene, sql: str, wanted: str
) -> None:
    signed.sql(sql)
    assert any(wanted in each for each in signed.findings()), signed.findings()
    chain = signed.sql("SELECT * FROM segments", "SELECT * FROM checkpoints", "SELECT * FROM shims")
    text = signed.person("ledger", "rebuild")
    assert text.startswith("mended ")
    assert wanted in text
    assert signed.verify(holds=True)["previews_missing"] == 0
    assert (
        signed.sql("SELECT * FROM segments", "SELECT * FROM checkpoints", "SELECT * FROM shims")
        == chain
    )


# The file, and rows that other rows are proven with


def hide_from_the_index(scene: Scene) -> None:
    """Lists are read from the index, which no longer has the call. The table still has it."""
    scene.sql(
        "DROP INDEX calls_by_time",
        "CREATE INDEX calls_by_time ON tool_calls (created_at) WHERE id <> 2",
        "SELECT 1",
    )
    connection = apsw.Connection(scene.places.ledger)
    connection.pragma("writable_schema", True)
    connection.execute(
        "UPDATE sqlite_master SET sql = 'CREATE INDEX calls_by_time ON tool_calls (created_at)' "
        "WHERE name = 'calls_by_time'"
    )
    connection.close()


def test_a_call_that_an_index_leaves_out_is_found_and_mended(signed: Scene) -> None:
    hide_from_the_index(signed)
    assert "file: `ledger.db`: row 2 missing from index calls_by_time" in signed.findings()
    signed.person("ledger", "rebuild")
    signed.verify(holds=True)


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON segments BEGIN DELETE FROM previews; END", "schema: `t`: a ledger has no such trigger"),
        ("CREATE VIEW v AS SELECT 1", "schema: `v`: a ledger has no such view"),
        ("DROP INDEX calls_by_args", "schema: `calls_by_args`: the index is missing"),
        ("DROP INDEX calls_by_args; CREATE INDEX calls_by_args ON tool_calls (args_hash)", "schema: `calls_by_args`: the index is defined differently"),
        ("UPDATE segments SET first_pos = 1000 - first_pos", "in the order of ingest"),
        ("UPDATE tool_calls SET tool_name = CAST(x'ff9b' AS TEXT) WHERE id = 2", "file: `ledger.db`: a text in it is not UTF-8"),
    ],
)  # fmt: skip
def test_every_change_of_the_file_is_found(signed: Scene, sql: str, wanted: str) -> None:
    signed.sql(sql)
    assert any(wanted in each for each in signed.findings()), signed.findings()


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("UPDATE counters SET value = value + 9 WHERE name = 'events_total'", "`events_total`: it is 41; the events say 32"),
        ("UPDATE shims SET anchored = zeroblob(32)", "`anchored` is not the head that a checkpoint signed last"),
    ],
)  # fmt: skip
def test_what_decides_which_events_are_signed_is_found_and_mended(
    signed: Scene, sql: str, wanted: str
) -> None:
    signed.sql(sql)
    assert any(wanted in each for each in signed.findings()), signed.findings()
    signed.person("ledger", "rebuild")
    signed.verify(holds=True)


def test_events_that_pass_for_signed_are_found(scene: Scene) -> None:
    """No checkpoint would sign them, and they could be removed later."""
    daemon = scene._start("--no-http").ready()
    daemon.has_stored(len(scene.home.lines()))
    daemon.kill()
    scene.sql("UPDATE shims SET anchored = head")
    assert any("`anchored` is not the head" in each for each in scene.findings())


def rechained(scene: Scene, run: str, edit: Callable[[bytes], bytes]) -> None:
    """Rewrites the stored events of a run as if the ledger had chained them itself."""
    connection = apsw.Connection(scene.places.ledger)
    sql = "SELECT id, shim_id FROM shims WHERE run_id = ?"
    ((shim, shim_id),) = connection.execute(sql, (run,))
    prev = seed(shim_id)
    for segment in list(of_shim(connection, shim)):
        lines, head = [edit(line) for line in segment.lines()], prev
        for line in lines:
            head = link(head, line)
        connection.execute(
            "UPDATE segments SET codec = 0, lines = ?, prev = ?, head = ? WHERE id = ?",
            (
                b"\n".join(lines),
                *(bytes.fromhex(each.decode()) for each in (prev, head)),
                segment.id,
            ),
        )
        prev = head
    connection.execute(
        "UPDATE shims SET is_chained_here = 1, head = ? WHERE id = ?",
        (bytes.fromhex(prev.decode()), shim),
    )
    connection.close()


@pytest.mark.parametrize("host", ["ours", "another"])
def test_events_that_are_not_signed_yet_cannot_pass_for_events_without_a_chain(
    scene: Scene, host: str
) -> None:
    daemon = scene._start("--no-http").ready()
    daemon.has_stored(len(scene.home.lines()))
    daemon.kill()
    (host_id,) = {json.loads(line)["source"]["host_id"] for line in scene.home.lines()}

    def edit(line: bytes) -> bytes:
        line = other_tool(line)
        return line if host == "ours" else line.replace(host_id.encode(), b"another")

    rechained(scene, "run-1", edit)
    scene.person("ledger", "rebuild", code=1)
    (finding,) = scene.findings()
    assert "it claims to be of this home, whose shims chain their events themselves" in finding


def test_a_rewritten_journal_cannot_pass_for_one_of_another_home(scene: Scene) -> None:
    """The state of its run counts its events, so a shim of this home wrote it."""
    path = scene.journal("run-1")
    host_id = json.loads(path.read_bytes().splitlines()[0])["source"]["host_id"].encode()
    forge(path, lambda line: other_tool(line).replace(host_id, b"another"), sealed=False)
    scene.ingest()
    (finding,) = scene.findings()
    assert "a shim of this home wrote it, and it claims to be of another home" in finding


def test_after_retention_a_run_that_never_was_is_still_found(signed: Scene) -> None:
    """Retention dropped events of one run. The rows of others must still follow from events."""
    signed.sql("UPDATE segments SET last_ms = 0 WHERE shim = 1")
    key = home_key(signed.places.state)
    connection = open_ledger_writer(signed.places, key)
    connection.execute("UPDATE segments SET last_ms = last_ms + 1000 WHERE shim = 2")
    retention = Retention(connection, 30, 1 << 40, key)
    retention.step(now().wall_ms + 31 * DAY_MS)
    connection.close()
    signed.sql(
        "UPDATE segments SET last_ms = last_ms - 1000 WHERE shim = 2",
        "UPDATE runs SET calls = 7 WHERE run_id = (SELECT run_id FROM shims WHERE id = 2)",
    )
    assert any("`calls` is 7; there are 4 calls" in each for each in signed.findings())


@pytest.mark.parametrize("kind", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize(
    "name",
    ["state/ledger.checkpoints", "state/ledger.anchors", "state/ledger.key", "ledger.db"],
)
def test_something_else_in_place_of_a_file_is_said(
    signed: Scene, name: str, kind: Callable[[str], None]
) -> None:
    path = os.path.join(signed.places.home, name)
    if name == "ledger.db":
        signed.remove_ledger()
    elif os.path.exists(path):
        os.unlink(path)
    kind(path)
    text = signed.person("ledger", "verify", code=2, all_output=True)
    assert name in text
    assert "not a regular file" in text
    os.rmdir(path) if kind is os.mkdir else os.unlink(path)


def test_a_run_that_is_not_in_the_ledger_is_not_verified(signed: Scene) -> None:
    assert "there is no run `run-9`" in signed.person(
        "ledger", "verify", "--run", "run-9", code=2, all_output=True
    )


def test_a_rebuild_from_damaged_events_keeps_what_the_rows_said(signed: Scene) -> None:
    signed.sql("UPDATE segments SET lines = x'00ff', codec = 0 WHERE shim = 1")
    text = signed.person("ledger", "rebuild", code=1, all_output=True)
    (copy,) = [name for name in os.listdir(signed.places.home) if ".damaged-" in name]
    assert copy in text
    path = os.path.join(signed.places.home, copy)
    assert os.stat(path).st_mode & 0o777 == 0o600
    connection = apsw.Connection(path)
    assert connection.execute("SELECT count(*) FROM tool_calls").fetchone() == (8,)
    connection.close()
